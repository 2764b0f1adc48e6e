"""The recorded incremental snapshots of Debezium, taken again on a real server.

Compared are the rows that each table's chunks have, in their order, and every notification but its time. Window ids,
positions and times differ from run to run, and Debezium opens another, empty window after the last chunk of a table.
The blocking snapshot of the case is omitted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import rowtide
from tests.support.connector_properties import CONNECTORS, address
from tests.support.recordings.golden import Case

if TYPE_CHECKING:
    from rowtide_stack import MySQL

pytestmark = pytest.mark.servers

CASE = Case("incremental-snapshot")
KEPT = (
    "signal.data.collection",
    "incremental.snapshot.chunk.size",
    "table.include.list",
    "snapshot.include.collection.list",
)
SIGNALS = {"stream.sql": "inc-1", "stream2.sql": "inc-2"}


def execute(server: MySQL, name: str) -> None:
    with server.connect(client_flag=65536) as connection, connection.cursor() as cursor:  # CLIENT.MULTI_STATEMENTS
        cursor.execute((CASE.folder / name).read_text())
        while cursor.nextset():
            pass


def take_until(engine: rowtide.Engine, changes: list[rowtide.Change], reached: Callable[[], bool]) -> None:
    """Take changes until a state is reached."""
    limit = time.monotonic() + 180
    while not reached():
        take_next(engine, changes)
        assert time.monotonic() < limit, engine.notifications


def of_snapshots(engine: rowtide.Engine) -> list[Mapping[str, Any]]:
    """The notifications of incremental snapshots, without those of the signals that start them."""
    return [one for one in engine.notifications if one["aggregate_type"] == "Incremental Snapshot"]


def is_complete(engine: rowtide.Engine, signal_id: str) -> bool:
    """Whether the snapshot of a signal is complete."""
    return ("COMPLETED", signal_id) in {(one["type"], one["id"]) for one in of_snapshots(engine)}


def take_next(engine: rowtide.Engine, changes: list[rowtide.Change]) -> None:
    batch = engine.get(timeout=0.1)
    if batch is not None:
        changes += batch
        batch.ack()


def recorded_rows() -> dict[str, list[Any]]:
    """The rows of incremental snapshots by table, as recorded."""
    found: dict[str, list[Any]] = {}
    for value in payloads(".sig."):
        if value["op"] == "r" and value["source"]["snapshot"] == "incremental":
            found.setdefault(value["source"]["table"], []).append(value["after"])
    return found


def payloads(topic: str) -> list[dict[str, Any]]:
    values = [record["value"] for record in CASE.records if topic in record["topic"] and record["value"]]
    return [json.loads(value)["payload"] for value in values]


def compared(notification: Any) -> tuple[object, ...]:
    return notification["id"], notification["type"], dict(notification["additional_data"])


def test_the_rows_and_notifications_are_those_of_debezium(mysql: MySQL) -> None:
    properties = {
        "name": "golden",
        "connector.class": CONNECTORS["mysql"],
        "topic.prefix": CASE.prefix,
        "database.server.id": "184099",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        **address(mysql),
        **{name: CASE.description["config"][name] for name in KEPT},
    }
    changes: list[rowtide.Change] = []
    try:
        execute(mysql, "setup.sql")
        with rowtide.Engine(properties) as engine:
            take_until(engine, changes, lambda: engine.state == "RUNNING")
            for name, signal_id in SIGNALS.items():
                execute(mysql, name)
                take_until(engine, changes, partial(is_complete, engine, signal_id))
            mysql.execute("UPDATE sig.big SET v = 'last' WHERE id = 1")
            take_until(engine, changes, lambda: bool(changes[-1].after) and changes[-1].after.get("v") == "last")
            sent = [compared(one) for one in of_snapshots(engine)]
    finally:
        mysql.execute("DROP DATABASE IF EXISTS sig")
    rows: dict[str, list[Any]] = {}
    for change in changes:
        if change.position.snapshot == "incremental":
            assert change.after is not None
            rows.setdefault(change.table, []).append(dict(change.after))
    assert rows == recorded_rows()
    expected = [one for one in payloads("notes") if one["aggregate_type"] == "Incremental Snapshot"]
    assert sent == [compared(one) for one in expected if one["id"] in SIGNALS.values()]
    kinds = [change.after["type"] for change in changes if change.table == "debezium_signal" and change.after]
    windows = [kind for kind in kinds if kind.startswith("snapshot-window")]
    assert windows == ["snapshot-window-open", "snapshot-window-close"] * (len(windows) // 2)
    assert len(windows) // 2 == sum(one[1] == "IN_PROGRESS" for one in sent)
