"""The connectors of one worker start and stop together, however many they are."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from mode import Service

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.config.kafka.producer_settings import idempotent_settings
from rowtide.connector.delivery.event_store import DEFAULT_MAX_BYTES
from rowtide.connector.worker.connectors import Connectors
from tests.support.configurations import PROPERTIES

COUNT = 40
"""More than Python's default executor has threads."""


def test_all_connectors_stop_at_the_same_time() -> None:
    together = threading.Barrier(COUNT)
    stopped: list[int] = []

    class Stopping(Service):
        async def on_stop(self) -> None:
            stopped.append(await asyncio.to_thread(together.wait, 20))

    async def life() -> None:
        connectors = Connectors([])
        services: dict[str, Any] = {str(number): Stopping() for number in range(COUNT)}
        connectors.services = services
        await connectors.start()
        await connectors.stop()

    asyncio.run(life())
    assert sorted(stopped) == list(range(COUNT))


def configured(number: int, **more: str) -> Configuration:
    names = {"name": f"c{number}", "topic.prefix": f"c{number}", "database.server.id": str(5000 + number)}
    return from_properties({**PROPERTIES, **names, **{name.replace("__", "."): text for name, text in more.items()}})


def limits(config: Configuration) -> tuple[int, int]:
    """The bytes that wait at most, and those that are on their way to Kafka."""
    settings = idempotent_settings(config.kafka.producer)
    return config.streaming.max_queue_bytes or DEFAULT_MAX_BYTES, int(settings["queue.buffering.max.kbytes"]) * 1024


@pytest.mark.parametrize("count", [1, 2, 5, 8, 40])
def test_connectors_of_a_process_share_the_memory_of_one(count: int) -> None:
    services = Connectors([configured(number) for number in range(count)]).services.values()
    assert len(services) == count
    for kind in (0, 1):
        shares = [limits(service.config)[kind] for service in services]
        assert sum(shares) <= max(DEFAULT_MAX_BYTES, count * (8 << 20)) + count * 1024
        assert min(shares) >= 8 << 20


def test_a_limit_of_its_own_holds_for_a_connector() -> None:
    more = {"max__queue__size__in__bytes": "1000000", "producer__override__buffer__memory": "4194304"}
    own = configured(1, **more)
    large = configured(2, producer__override__max__request__size="33554432")
    services = Connectors([own, large]).services
    assert limits(services["c1"].config) == (1_000_000, 4 << 20)
    assert limits(services["c2"].config)[1] >= 32 << 20, "the largest message has room"
