"""Edge: the connectors of one worker. Each runs in its own threads, and a failure of one does not stop the others."""

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from mode import Service

from rowtide.connector.config import Configuration, Problem, from_properties
from rowtide.connector.config.kafka.producer_settings import DEFAULTS
from rowtide.connector.delivery.event_store import DEFAULT_MAX_BYTES
from rowtide.connector.records.settings import MessageForm
from rowtide.connector.worker.service import ConnectorService
from rowtide.connector.worker.validation import problems_of
from rowtide.connector.worker.web.connect_rest import Controlled, Store

_LEAST_STOP_S = 1.0
"""The least time to stop, also with ``task.shutdown.graceful.timeout.ms=0``."""
_OTHER_THREADS = 6
"""Threads of the event loop in addition to those for the connectors, such as for names of hosts."""

_LEAST_SHARE = 8 << 20
"""The least memory of a connector for each of its queues, in bytes."""

Failure = tuple[str, BaseException]
"""The name of a connector, and why it has failed."""


class Connectors(Service):
    """Starts and stops the connectors of a worker together.

    Args:
        configs: their configurations, with different names (see ``config.conflicts``).
        form: what rows and statements become instead of Debezium's messages.

    Attributes:
        services: the connectors by name.
        on_failure: called in the event loop when a connector fails while others continue.
        on_end: called in the event loop when the last connector has ended by itself.
        store: ``None``: the connectors are those of configuration files.
    """

    logger = ConnectorService.logger
    store: Store | None = None

    def __init__(self, configs: Iterable[Configuration], form: MessageForm | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.services = {config.name: ConnectorService(config, form) for config in sharing_memory(tuple(configs))}
        self.on_failure: Callable[[Failure], None] = lambda _failure: None
        self.on_end: Callable[[], None] = lambda: None

    @property
    def controlled(self) -> Mapping[str, Controlled]:
        """What the REST interface controls."""
        return self.services

    @property
    def kafka(self) -> Mapping[str, str] | None:
        """Librdkafka's settings of an admin client; ``None`` without Kafka."""
        first = next(iter(self.services.values())).config
        return first.kafka.admin if first.uses_kafka else None

    def validate(self, properties: Mapping[str, str]) -> list[Problem]:
        """Return what is wrong with the configuration of another connector; it may connect to the database."""
        first = next(iter(self.services.values())).config.kafka.bootstrap_servers
        worker = {"bootstrap.servers": first} if first else {}
        return problems_of(
            properties, lambda given, not_required: from_properties({**worker, **given}, None, not_required)
        )

    @property
    def several(self) -> bool:
        """Whether lines of the log must say which connector they are about."""
        return len(self.services) > 1

    @property
    def failures(self) -> list[Failure]:
        """The connectors that have failed, or did not stop in time."""
        found = {name: one.connector.failure or one.failure for name, one in self.services.items()}
        return [(name, failure) for name, failure in found.items() if failure is not None]

    @property
    def stop_timeout_s(self) -> float:
        """The time limit of a stop: the longest ``task.shutdown.graceful.timeout.ms``, in seconds."""
        limits = (one.config.delivery.shutdown_timeout_ms / 1000 for one in self.services.values())
        return max(_LEAST_STOP_S, *limits)

    async def on_start(self) -> None:
        """Start all connectors."""
        # Each may wait for its end and for the lag of a server that does not answer, in two threads.
        threads = ThreadPoolExecutor(_OTHER_THREADS + 2 * len(self.services), thread_name_prefix="asyncio")
        asyncio.get_running_loop().set_default_executor(threads)
        for name, service in self.services.items():
            service.on_end = functools.partial(self._ended, name)
            await service.maybe_start()

    async def on_stop(self) -> None:
        """Stop all connectors at the same time."""
        await asyncio.gather(*(service.stop() for service in self.services.values()))

    def _ended(self, name: str) -> None:
        failure = self.services[name].connector.failure
        if all(service.ended for service in self.services.values()):
            self.on_end()
        elif failure is not None:
            self.on_failure((name, failure))


def sharing_memory(configs: Sequence[Configuration]) -> list[Configuration]:
    """Divide the memory for queued records, and for those on their way to Kafka, among the connectors of a process."""
    return [with_share(config, len(configs)) for config in configs]


def with_share(config: Configuration, connectors: int) -> Configuration:
    """Give a connector its share of a process's memory for queued records, and for those on their way to Kafka.

    One connector may hold 64 MB of each. Those of a process share this, with at least 8 MB each, unless a connector's
    own configuration has a limit.

    Args:
        config: the connector's configuration.
        connectors: the number of connectors in the process.
    """
    if connectors <= 1:
        return config
    share = max(_LEAST_SHARE, DEFAULT_MAX_BYTES // connectors)
    largest = int(config.kafka.producer.get("message.max.bytes", DEFAULTS["message.max.bytes"]))
    memory = {"queue.buffering.max.kbytes": str(max(share, largest) // 1024 + 1)}
    return replace(
        config,
        kafka=replace(config.kafka, producer=config.kafka.producer.over(memory)),
        streaming=replace(config.streaming, max_queue_bytes=config.streaming.max_queue_bytes or share),
    )
