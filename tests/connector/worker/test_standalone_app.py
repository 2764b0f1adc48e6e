"""The Faust app starts nothing of Faust's that a standalone worker does not use."""

import asyncio
from pathlib import Path

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.worker.faust_app import create_app
from tests.support.configurations import PROPERTIES


def test_it_starts_its_web_server_and_then_its_own_services() -> None:
    app = create_app(from_properties(PROPERTIES))
    app.finalize()
    started = list(app.on_init_dependencies())
    assert started == [app.cache, app.web, app.agents, *app.services]
    assert app.services[:2] == [app.connectors, app.reporter]


def test_no_kafka_client_of_fausts_is_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    app = create_app(from_properties(PROPERTIES))
    app.services.clear()  # the connectors would need servers
    app.finalize()
    app.conf.web_enabled = False

    async def started() -> None:
        async with app:
            assert (app._consumer, app._producer, app._transport) == (None, None, None)

    asyncio.run(started())
    assert list(tmp_path.iterdir()) == []  # nor a data directory
