"""The connectors of one worker. Each runs in its own threads, and a failure of one does not stop the others.

A worker whose connectors are in files can read these again: a connector starts, stops or restarts if its file demands
it, and the others are not interrupted.
"""

import asyncio
import functools
import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from mode import Service

from rowtide.connector.config import Configuration, ConfigurationError, Problem, from_properties
from rowtide.connector.config.kafka.producer_settings import DEFAULTS
from rowtide.connector.delivery.event_store import DEFAULT_MAX_BYTES
from rowtide.connector.records.settings import MessageForm
from rowtide.connector.worker.changed_secrets import watch
from rowtide.connector.worker.reload import Changes, ConfigurationFiles, changes
from rowtide.connector.worker.service import ConnectorService
from rowtide.connector.worker.standby import Standby, lock_of
from rowtide.connector.worker.validation import problems_of
from rowtide.connector.worker.web.connect_rest import BadRequest, ConnectorStore, Controlled, StillStopping
from rowtide.connector.worker.web.page.neighbours import Members

log = logging.getLogger(__name__)

_LEAST_STOP_S = 1.0
"""The least time to stop, even with ``task.shutdown.graceful.timeout.ms=0``."""
_OTHER_THREADS = 6
"""Threads of the event loop in addition to those for the connectors, such as for names of hosts."""

_STOP_POLL_S = 0.5

_LEAST_SHARE = 8 << 20
"""The least memory of a connector for each of its queues, in bytes."""

Failure = tuple[str, BaseException]
"""The name of a connector, and why it has failed."""


class Connectors(Service):
    """Starts and stops the connectors of a worker together.

    Args:
        configs: their configurations, with different names (see ``config.conflicts``).
        form: the form of the messages of rows and statements, instead of Debezium's.
        files: the files of the configurations, if they can be read again.

    Attributes:
        services: the connectors by name.
        files: as given.
        on_failure: called in the event loop when a connector fails while others continue.
        on_end: called in the event loop when the last connector has ended without a request.
        store: ``None``: the connectors are those of configuration files.
        members: ``None``: there are no other workers.
    """

    logger = ConnectorService.logger
    store: ConnectorStore | None = None
    members: Members | None = None

    def __init__(
        self,
        configs: Iterable[Configuration],
        form: MessageForm | None = None,
        files: ConfigurationFiles | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.services: dict[str, ConnectorService] = {}
        self.files = files
        self.on_failure: Callable[[Failure], None] = lambda _failure: None
        self.on_end: Callable[[], None] = lambda: None
        self._form = form
        self._standbys: dict[str, Standby] = {}
        self._reloading = asyncio.Lock()
        for config in sharing_memory(tuple(configs)):
            self._add(config)

    def _add(self, config: Configuration, paused: str | None = None) -> None:
        name = config.name
        service = self.services[name] = ConnectorService(config, self._form)
        service.on_end = functools.partial(self._ended, name)
        if self.files is not None:
            service.reread = functools.partial(self._reread, name)
        if config.delivery.standby:
            self._standbys[name] = Standby(service)
        if paused is not None:
            service.hold_first(paused)

    @property
    def controlled(self) -> Mapping[str, Controlled]:
        """The connectors that the REST interface controls."""
        return self.services

    @property
    def kafka(self) -> Mapping[str, str] | None:
        """Settings of an admin client, with librdkafka's names; ``None`` without Kafka."""
        configs = (service.config for service in self.services.values())
        return next((config.kafka.admin for config in configs if config.uses_kafka), None)

    def validate(self, properties: Mapping[str, str]) -> list[Problem]:
        """Return the problems of the configuration of another connector; this may connect to the database."""
        return problems_of(properties, self.candidate)

    def candidate(self, properties: Mapping[str, str], not_required: Collection[str]) -> Configuration:
        """Return the configuration that another connector would have; see ``validation.Build``."""
        servers = [service.config.kafka.bootstrap_servers for service in self.services.values()]
        worker = {"bootstrap.servers": servers[0]} if servers and servers[0] else {}
        return from_properties({**worker, **properties}, None, not_required)

    def about(self) -> Mapping[str, Any]:
        """Return what the page shows of this worker."""
        return {"worker": None, "labels": [], "fleet": None}

    def about_connector(self, _name: str) -> Mapping[str, Any]:
        """Return what a fleet knows of a connector: nothing, without one."""
        return {}

    @property
    def several(self) -> bool:
        """Whether log lines must name their connector."""
        return len(self.services) > 1 or (self.files is not None and self.files.several)

    @property
    def failures(self) -> list[Failure]:
        """The connectors that have failed, or did not stop in time."""
        found = {name: one.connector.failure or one.failure for name, one in self.services.items()}
        return [(name, failure) for name, failure in found.items() if failure is not None]

    @property
    def stop_timeout_s(self) -> float:
        """The time limit of a stop: the longest ``task.shutdown.graceful.timeout.ms``, in seconds."""
        limits = (one.config.delivery.shutdown_timeout_ms / 1000 for one in self.services.values())
        return max([_LEAST_STOP_S, *limits])

    async def on_start(self) -> None:
        """Start all connectors."""
        self._make_threads()
        async with self._reloading:  # one that has not started cannot be restarted
            for name in self.services:
                await self._start(name)

    def _make_threads(self) -> None:
        """Create threads for the event loop: each connector may wait in two, for its end and for a server's lag."""
        threads = ThreadPoolExecutor(_OTHER_THREADS + 2 * len(self.services), thread_name_prefix="asyncio")
        asyncio.get_running_loop().set_default_executor(threads)

    async def _start(self, name: str) -> None:
        await self.services[name].maybe_start()
        if name in self._standbys:
            await self._standbys[name].maybe_start()

    async def on_stop(self) -> None:
        """Stop all connectors at the same time."""
        await asyncio.gather(*({**self.services, **self._standbys}[name].stop() for name in self.services))
        async with self._reloading:  # which may be stopping one of them
            pass

    def _ended(self, name: str) -> None:
        service = self.services.get(name)
        if service is None:  # its file is gone
            return
        failure = service.connector.failure or service.failure
        if name in self._standbys and self._standbys[name].takes(failure):
            return
        if all(service.ended for service in self.services.values()):
            self.on_end()
        elif failure is not None:
            self.on_failure((name, failure))

    async def reload(self) -> None:
        """Read the configuration files again, and apply the changes, one connector after the other."""
        async with self._reloading:
            try:
                found = await self._changes()
            except ConfigurationError as error:
                log.error("the configuration files are not used, and nothing changes: %s", error)  # noqa: TRY400
                return
            await self._apply(found)

    async def _changes(self) -> Changes:
        """Return the changes in the files, and tell each connector whether its file has errors.

        Raises:
            ConfigurationError: an error does not concern a single connector.
        """
        assert self.files is not None
        running = self.files.running
        try:
            read = await asyncio.to_thread(self.files.read)
            found = changes({file: self.services[name].config for file, name in running.items()}, read)
        except ConfigurationError as error:
            for service in self.services.values():
                service.problem = str(error)
            raise
        for file, name in running.items():
            rejection = found.rejected.get(file)
            self.services[name].problem = None if rejection is None else f"{file}: {rejection}"
        return found

    async def _apply(self, found: Changes) -> None:
        assert self.files is not None
        running = self.files.running
        for file, error in found.rejected.items():
            does = "continues as it is" if file in running else "does not start"
            log.error("%s is not used, and its connector %s: %s", file, does, error)
        for file in found.removed:
            await self._remove(running.pop(file))
        for file, config in found.changed.items():
            try:
                await self._change(file, config)
            except StillStopping as error:
                log.warning("%s; it starts as soon as that has ended", error)
        for file, config in found.added.items():
            await self._run(file, config)
        log.info(
            "the configuration files were read again: %d connectors started, %d changed, %d stopped, %d as before, "
            "%d rejected",
            len(found.added),
            len(found.changed),
            len(found.removed),
            found.unchanged,
            len(found.rejected),
        )
        if self.services and all(service.ended for service in self.services.values()):
            self.on_end()

    @Service.task
    async def _watch_secrets(self) -> None:
        """Restart connectors whose secrets have changed in their files."""
        await watch(
            self,
            lambda: {
                name: (one.config, one.config.properties, one.config.file_values) for name, one in self.services.items()
            },
            self._renew_secrets,
        )

    async def _renew_secrets(self, name: str) -> None:
        async with self._reloading:
            service = self.services.get(name)
            if service is None:  # its file is gone
                return
            files = {} if self.files is None else {one: file for file, one in self.files.running.items()}
            try:
                config = await asyncio.to_thread(from_properties, service.config.properties, os.environ)
                if name in files:
                    await self._change(files[name], config)
                else:
                    await service.reconfigure(with_share(config, len(self.services)))
            except (ConfigurationError, StillStopping) as error:
                log.warning("connector %s: %s", name, error)

    async def _reread(self, name: str) -> bool:
        """Read the configuration of a connector again, and return whether a change has restarted it.

        Raises:
            BadRequest: there is none, or it is wrong.
            StillStopping: the connector does not stop.
        """
        assert self.files is not None
        async with self._reloading:
            files = [file for file, one in self.files.running.items() if one == name]
            try:
                found = await self._changes()
            except ConfigurationError as error:
                raise BadRequest(f"the configuration is wrong, so nothing was restarted: {error}") from None
            for file in files:
                if file in found.rejected:
                    problem = f"{file} is wrong, so connector {name} was not restarted: {found.rejected[file]}"
                    raise BadRequest(problem)
                if file in found.removed:
                    raise BadRequest(f"{file} has no connector {name} any more; SIGHUP stops it")
                if file in found.changed:
                    await self._change(file, found.changed[file])
                    return True
        return False

    async def _change(self, file: str, config: Configuration) -> None:
        """Restart a connector with another configuration.

        Raises:
            StillStopping: it has not stopped in time; it starts as soon as it stops.
        """
        service = self.services[config.name]
        before, after = service.properties(), config.masked_properties()
        names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        log.info("connector %s: changed: %s", config.name, ", ".join(names) or "the value of a secret or a reference")
        if lock_of(service.config) != lock_of(config):
            paused = service.paused
            await self._remove(config.name)
            await self._run(file, config, paused)
            return
        await service.reconfigure(with_share(config, len(self.services)))

    async def _run(self, file: str, config: Configuration, paused: str | None = None) -> None:
        """Start another connector, unless it is paused."""
        assert self.files is not None
        if self.should_stop:
            return
        self._add(with_share(config, len(self.services) + 1), paused)
        self.files.running[file] = config.name
        self._make_threads()
        await self._start(config.name)

    async def _remove(self, name: str) -> None:
        """Stop a connector, and forget it."""
        service = self.services[name]
        standby = self._standbys.get(name)
        await (standby or service).stop()
        while not (service.connector.over or service.connector.left_behind or self.should_stop):
            await self.sleep(_STOP_POLL_S)
        if self.should_stop:
            return
        del self.services[name]
        self._standbys.pop(name, None)


def sharing_memory(configs: Sequence[Configuration]) -> list[Configuration]:
    """Divide the memory for queued records, and for those in transit to Kafka, among the connectors of a process."""
    return [with_share(config, len(configs)) for config in configs]


def with_share(config: Configuration, connectors: int) -> Configuration:
    """Give a connector its share of a process's memory for queued records, and for those in transit to Kafka.

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
