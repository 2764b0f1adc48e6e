"""The Faust app makes and looks up nothing of Faust's that rowtide does not use: each delays the first record."""

import asyncio

import pytest
import venusian
from configurations import PROPERTIES

from rowtide.connector.config import from_properties
from rowtide.connector.worker.faust_app import create_app


def test_services_are_started_without_the_discovery_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venusian, "attach", pytest.fail)
    app = create_app(from_properties(PROPERTIES))
    assert [app.connectors, app.reporter] == app._extra_services[:2]


def test_no_consumer_and_no_transport_are_made() -> None:
    app = create_app(from_properties(PROPERTIES))

    async def started() -> None:
        await app.on_start()

    asyncio.run(started())
    assert app.finalized
    assert (app._consumer, app._transport) == (None, None)


def test_the_end_of_the_start_waits_for_no_tables() -> None:
    app = create_app(from_properties(PROPERTIES))
    app._extra_services.clear()  # the connectors
    asyncio.run(app.on_started())
    assert app._extra_service_instances == []
