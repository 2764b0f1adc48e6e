"""Ctrl-C while a program takes changes, which then continues with the same engine, as in a notebook."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import rowtide
from rowtide.connector.delivery import batch_ring, event_store
from rowtide.connector.engine import engine as engine_module
from tests.support.processes.interrupted import Interrupted

_MODULES = (batch_ring, event_store, engine_module)


def running_engine(batches: int) -> rowtide.Engine:
    """An engine whose connector has read some batches of one change each."""
    store: Any = event_store.Store()
    store.put(
        [SimpleNamespace(events=1, size=1, ts_ms=0, changes=[number], offset=number) for number in range(batches)]
    )
    saved: list[int] = []
    components = SimpleNamespace(store=store, offsets=SimpleNamespace(save=saved.append))
    engine = rowtide.Engine(
        {
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "database.hostname": "localhost",
            "database.user": "u",
            "database.server.id": "5",
            "topic.prefix": "p",
            "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
            "offset.storage.file.filename": "unused",
        }
    )
    current = SimpleNamespace(components=components, stored=None)
    engine._task = SimpleNamespace(ended=False, failure=None, current=current)  # type: ignore[assignment]
    return engine


def test_no_change_is_passed_over_after_ctrl_c_in_get() -> None:
    places = 0
    while True:
        engine = running_engine(3)
        seen: list[Any] = []
        interrupted = Interrupted(places, _MODULES, never=[rowtide.Engine.get.__code__])
        first = None
        with suppress(KeyboardInterrupt), interrupted.tracing():
            first = engine.get(1, timeout=0)
        while first is not None or len(seen) < 3:
            batch, first = first or engine.get(1, timeout=0), None
            assert batch is not None, places
            seen += list(batch)
            assert batch.ack()
        assert seen == [0, 1, 2], places
        if not interrupted.raised:
            break
        places += 1
    assert places > 10
