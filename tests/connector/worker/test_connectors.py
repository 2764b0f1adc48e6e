"""The connectors of one worker start and stop together, however many they are."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from mode import Service

from rowtide.connector.worker.connectors import Connectors

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
