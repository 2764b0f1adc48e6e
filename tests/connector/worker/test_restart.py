"""A restart while a server does not answer, so that the connector cannot stop in time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.run import Checks
from rowtide.connector.errors import SignalError
from rowtide.connector.worker import service
from rowtide.connector.worker.service import ConnectorService
from rowtide.connector.worker.web.connect_rest import StandsBy, StillStopping
from tests.support.configurations import PROPERTIES


class Task:
    """A task that stops when it is released."""

    current = SimpleNamespace(delivery=None)

    def __init__(self) -> None:
        self.started = self.released = False

    def start(self) -> None:
        self.started = True

    def stop(self) -> bool:
        return self.released

    @property
    def over(self) -> bool:
        return self.released


class OneConnector(ConnectorService):
    """A service of tasks that do nothing."""

    def _new_task(self, _checks: Checks = Checks.ALL) -> Task:  # type: ignore[override]
        return Task()


@pytest.fixture
def connector(monkeypatch: pytest.MonkeyPatch) -> OneConnector:
    monkeypatch.setattr(service, "_STOP_POLL_S", 0.01)
    return OneConnector(from_properties(PROPERTIES))


async def restarted(connector: OneConnector, *, then_held: bool) -> None:
    first = connector.connector
    with pytest.raises(StillStopping, match="has not stopped yet"):
        await connector.rerun()
    await asyncio.sleep(0.05)
    assert connector.connector is first, "two tasks must never run at the same time"
    if then_held:
        await connector.hold("STOPPED")
    first.released = True  # type: ignore[attr-defined]
    await asyncio.wait_for(asyncio.gather(*connector._futures), 60)
    assert (connector.connector is first) is then_held
    assert connector.connector.started is not then_held  # type: ignore[attr-defined]


@pytest.mark.parametrize("then_held", [False, True])
def test_a_connector_that_stops_late_is_started_then_unless_it_is_held(
    connector: OneConnector, *, then_held: bool
) -> None:
    asyncio.run(restarted(connector, then_held=then_held))


def test_a_connector_that_stands_by_is_started_by_nothing_but_its_turn(connector: OneConnector) -> None:
    async def lives() -> None:
        connector.stand_by()
        await connector.on_start()
        with pytest.raises(StandsBy, match="send the request to the process that runs it"):
            await connector.hold("STOPPED")
        with pytest.raises(SignalError, match="send the signal to the process that runs it"):
            connector.signal({"type": "log"})
        await connector.resume()
        await connector.rerun()
        assert not connector.connector.started  # type: ignore[attr-defined]
        await connector.begin()
        assert connector.connector.started  # type: ignore[attr-defined]

    asyncio.run(lives())
