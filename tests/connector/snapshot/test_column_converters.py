"""Column converters: the same values in a snapshot, in an incremental snapshot, and in the stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.envelope.custom_converter import Registration, RelationalColumn
from rowtide.envelope.schema import STRING
from rowtide.schema_history.catalog.tables import Tables
from tests.support.incremental_stream import BesideStream
from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.recordings.golden import written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowtide_stack import Database

    from rowtide.connector.records.batch import Output

pytestmark = pytest.mark.servers
CONVERTER = {"converters": "shown", "shown.type": f"python:{__name__}.Shown"}


class Shown:
    """Registers the representation of all values."""

    def converter_for(self, _column: RelationalColumn, registration: Registration) -> None:
        registration.register(STRING, repr)


def fill(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, price DECIMAL(30,10), at DATETIME(3), day DATE, moment TIMESTAMP(6), "
        "span TIME(2), text VARCHAR(20), data VARBINARY(5), flag TINYINT(1), bits BIT(3), label ENUM('a', 'b'), "
        "rate FLOAT, ratio DOUBLE, nothing INT)"
    )
    values = (
        "'12345678901234567890.0123456789', '2024-02-29 10:11:12.34', '1000-01-01', '2024-01-01 00:00:00.000001', "
        "'-100:01:02.5', 'é\\'', x'00ff', 1, 5, 'b', 1.1, 0.1, NULL"
    )
    database.execute(f"INSERT INTO t VALUES (1, {values}), (2, {values}), (3, {values})")


def rows(outputs: Iterable[Output], op: str) -> dict[str, dict[str, Any]]:
    """The rows of records by key."""
    found = {}
    for message in written(outputs):
        if message.key is not None and message.value is not None and f'"op":"{op}"' in message.value:
            value = json.loads(message.value)
            found[message.key] = value.get("payload", value)["after"]
    return found


def test_a_converter_gets_the_same_values_in_snapshot_and_stream(database: Database) -> None:
    database.server.execute("FLUSH BINARY LOGS")
    begin = database.server.query("SHOW BINARY LOGS")[-1][:2]
    fill(database)
    config = configured(database, CONVERTER)
    taken = snapshot(config)
    found = rows(taken.outputs(), "r")
    start, end = SourceOffset(str(begin[0]), int(begin[1])), (taken.offset.file, taken.offset.pos)
    steps = streamed(config, Tables(taken.tables.server), start, end)
    assert found == rows((output for step in steps for output in step.outputs), "c")
    (row, *_) = found.values()
    assert row["price"] == "Decimal('12345678901234567890.0123456789')"
    assert row["text"] == '''"é'"'''
    assert row["nothing"] is None


def test_a_converter_gets_the_same_values_in_an_incremental_snapshot(database: Database) -> None:
    beside = BesideStream(database, CONVERTER, chunk_size=2)
    try:
        fill(database)
        beside.run_to_end()
        beside.execute(rf"{database.name}\.t")
        beside.run(lambda: not beside.snapshots.active)
        stream = rows(beside.outputs, "c")
        assert len(stream) == 3
        assert rows(beside.outputs, "r") == stream
    finally:
        beside.close()


BUILT_IN = {
    "converters": "flags,dates",
    "flags.type": "io.debezium.connector.mysql.converters.TinyIntOneToBooleanConverter",
    "dates.type": "io.debezium.connector.binlog.converters.ZeroDateFallbackConverter",
    "dates.fallback.date": "1970-01-02",
    "dates.fallback.datetime": "1970-01-02 00:00:00",
}


def test_debeziums_converters_in_an_incremental_snapshot(database: Database) -> None:
    beside = BesideStream(database, BUILT_IN, chunk_size=2)
    try:
        database.execute("CREATE TABLE t (id INT PRIMARY KEY, flag TINYINT(1), day DATE, at DATETIME(6))")
        database.execute(
            "INSERT INTO t VALUES (1, 2, NULL, NULL), (2, NULL, '2024-02-29', '2024-02-29 00:00:00.000001')"
        )
        beside.run_to_end()
        beside.execute(rf"{database.name}\.t")
        beside.run(lambda: not beside.snapshots.active)
        found = list(rows(beside.outputs, "r").values())
        assert found == list(rows(beside.outputs, "c").values())
        assert found == [
            {"id": 1, "flag": True, "day": 1, "at": 86_400_000_000},
            {"id": 2, "flag": None, "day": 19_782, "at": 1_709_164_800_000_001},
        ]
    finally:
        beside.close()
