"""Requests for stored positions while Kafka does not answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.worker import offsets
from rowtide.connector.worker.web.connect_rest import StoreUnavailable
from tests.support.configurations import PROPERTIES


def test_a_position_that_cannot_be_read_in_time_takes_no_thread_of_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered, config = threading.Event(), from_properties(PROPERTIES)
    monkeypatch.setattr(offsets, "_read", lambda _config: answered.wait())
    monkeypatch.setattr(offsets, "_ANSWER_S", 0.05)

    async def work() -> set[str]:
        found = await asyncio.gather(*(offsets.read_offsets(config) for _ in range(100)), return_exceptions=True)
        assert all(isinstance(one, StoreUnavailable) for one in found)
        assert await asyncio.to_thread(lambda: "a connector stops")
        return {str(one) for one in found}

    try:
        reason = "Kafka has not answered for 0 s. Ask again when it is available"
        assert asyncio.run(work()) == {f"the position of {config.name} cannot be read: {reason}"}
    finally:
        answered.set()
