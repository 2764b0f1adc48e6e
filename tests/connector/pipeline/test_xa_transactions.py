"""XA transactions: only committed changes become records, wherever the stream is cut."""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from golden import written
from live_database import configured, purge_binlogs, snapshot, streamed
from live_snapshot import binlog_end
from packets import event, started

from rowtide.connector.config import Configuration
from rowtide.connector.errors import ProtocolError, SnapshotError
from rowtide.connector.pipeline.xa_transactions import XaTransactions
from rowtide.connector.protocol import events
from rowtide.connector.protocol.header import EventType
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.store.history_record import parse_record
from rowtide.schema_history.store.history_store import InMemorySchemaHistory

if TYPE_CHECKING:
    from rowtide_stack import Database, SqlServer

Change = tuple[str, str, Any]
"""Table, operation and key, or for transaction metadata the topic, the status and the id's last part."""


def changes(outputs: Iterable[Output]) -> list[Change]:
    found: list[Change] = []
    for message in written(outputs):
        value = json.loads(message.value or "{}")
        if "op" in value:
            row = value["after"] or value["before"]
            found.append((value["source"]["table"], value["op"], row["id"]))
        elif "status" in value:
            found.append((message.topic, value["status"], value["id"]))
    return found


def run(config: Configuration, tables: Tables, start: SourceOffset, end: tuple[str, int]) -> list[Output]:
    return [output for step in streamed(config, tables, start, end) for output in step.outputs]


def xa(server: SqlServer, database: str, name: str, *statements: str) -> None:
    """Prepare an XA transaction and close its connection."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(f"XA START '{name}'")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute(f"XA END '{name}'")
        cursor.execute(f"XA PREPARE '{name}'")


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database of either server; prepared transactions are rolled back, because they keep it from being dropped."""
    found: Database = request.getfixturevalue(f"{request.param}_db")
    yield found
    for format_id, length, _, xid in found.server.query("XA RECOVER"):
        name = xid.decode() if isinstance(xid, bytes) else xid
        found.server.execute(f"XA ROLLBACK '{name[:length]}','{name[length:]}',{format_id}")


@pytest.mark.servers
def test_only_committed_changes_are_written(database: Database) -> None:
    server, name = database.server, database.name
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE u (id INT PRIMARY KEY, v INT)")
    config = configured(database, {"provide.transaction.metadata": "true"})
    taken = snapshot(config)
    before = list(taken.outputs())
    xa(server, name, "rolled.back", "INSERT INTO t VALUES (1, 1)", "INSERT INTO u VALUES (1, 1)")
    database.execute("INSERT INTO t VALUES (2, 2), (3, 3)")
    xa(
        server,
        name,
        "committed",
        "INSERT INTO t VALUES (4, 4)",
        "INSERT INTO u VALUES (4, 4)",
        "UPDATE t SET v=0 WHERE id=2",
    )
    database.execute("INSERT INTO u VALUES (5, 5)", "CREATE TABLE w (id INT PRIMARY KEY, v INT)")
    database.execute("XA ROLLBACK 'rolled.back'", "INSERT INTO w VALUES (6, 6)")
    xa(server, name, "later", "INSERT INTO w VALUES (7, 7)")
    database.execute(
        "XA COMMIT 'committed'",
        "INSERT INTO t VALUES (1, 8), (8, 8)",
        "XA COMMIT 'later'",
        "XA START 'one'", "INSERT INTO t VALUES (9, 9)", "INSERT INTO u VALUES (9, 9)", "XA END 'one'",
        "XA COMMIT 'one' ONE PHASE",
        "INSERT INTO t VALUES (10, 10)",
    )  # fmt: skip
    end = binlog_end(server)
    whole = run(config, taken.tables.copy(), taken.offset, end)
    rows = [change for change in changes(whole) if change[0] in "tuw"]
    assert rows == [
        ("t", "c", 2), ("t", "c", 3), ("u", "c", 5), ("w", "c", 6), ("t", "c", 4), ("u", "c", 4), ("t", "u", 2),
        ("t", "c", 1), ("t", "c", 8), ("w", "c", 7), ("t", "c", 9), ("u", "c", 9), ("t", "c", 10),
    ]  # fmt: skip
    history = InMemorySchemaHistory()
    for output in [*before, *whole]:
        if isinstance(output, HistoryEntry):
            history.append(output.text)

    def recovered(start: SourceOffset) -> Tables:
        position = BinlogPosition.from_map(replace(start, prepared=()).to_map())
        return recover(history.replay_as(parse_record), taken.tables.server, position)

    batches = [output for output in whole if isinstance(output, Batch)]
    resumed = 0
    for place, batch in enumerate(batches[:-1], 1):
        if batches[place].offset == batch.offset:
            assert not batches[place].messages, "one offset for two records"
            continue
        start = SourceOffset.from_json(batch.offset.to_json())
        resumed += bool(start.prepared)
        found = changes(run(config, recovered(start), start, end))
        assert found == changes(batches[place:]), f"{place}: {start.to_json()}"
    assert resumed > 5


@pytest.mark.servers
def test_what_is_prepared_during_a_snapshot_is_not_lost(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    server, name = database.server, database.name
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    config = configured(database)
    xa(server, name, "older", "INSERT INTO t VALUES (1), (2)", "INSERT INTO u VALUES (3)")
    server.execute("FLUSH BINARY LOGS")
    xa(server, name, "rolled.back", "INSERT INTO t VALUES (4)")
    xa(server, name, "newer", "INSERT INTO u VALUES (5)")
    taken = snapshot(config)
    with caplog.at_level(logging.WARNING):
        assert [change for change in changes(taken.outputs()) if change[0] in "tu"] == []
        database.execute("INSERT INTO t VALUES (6)", "XA COMMIT 'newer'", "CREATE TABLE w (id INT PRIMARY KEY)")
        database.execute("XA ROLLBACK 'rolled.back'", "XA COMMIT 'older'", "INSERT INTO t VALUES (7)")
        end = binlog_end(server)
        whole = run(config, taken.tables.copy(), taken.offset, end)
    expected = [("t", "c", 6), ("u", "c", 5), ("t", "c", 1), ("t", "c", 2), ("u", "c", 3), ("t", "c", 7)]
    assert [change for change in changes(whole) if change[0] in "tu"] == expected
    assert not caplog.messages
    for place, batch in enumerate(whole):
        if isinstance(batch, Batch) and batch.messages:
            start = SourceOffset.from_json(batch.offset.to_json())
            again = run(config, taken.tables.copy(), start, end)
            assert [change for change in changes([*whole[: place + 1], *again]) if change[0] in "tu"] == expected


@pytest.mark.servers
def test_a_purged_transaction_is_reported(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    server = database.server
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    xa(server, database.name, "purged", "INSERT INTO t VALUES (1)")
    server.execute("FLUSH BINARY LOGS")
    config, warning = configured(database), {"event.processing.failure.handling.mode": "warn"}
    taken = snapshot(config)
    list(taken.outputs())
    purge_binlogs(server)
    database.execute("XA COMMIT 'purged'", "INSERT INTO t VALUES (2)")
    end = binlog_end(server)
    with pytest.raises(ProtocolError, match=r"X'707572676564'.* no longer has that file: .*mode=warn .*\(at binlog"):
        run(config, taken.tables.copy(), taken.offset, end)
    left = run(configured(database, warning), taken.tables.copy(), taken.offset, end)
    assert changes(left) == [("t", "c", 2)]
    xa(server, database.name, "too early", "INSERT INTO t VALUES (3)")
    purge_binlogs(server)
    with pytest.raises(SnapshotError, match=r"X'746f6f206561726c79',X'',1.* no binlog file has them.*XA RECOVER"):
        list(snapshot(config).outputs())
    start = SourceOffset(*binlog_end(server))
    database.execute("XA COMMIT 'too early'")
    assert changes(run(config, taken.tables.copy(), start, binlog_end(server))) == []
    assert any("XA COMMIT X'746f6f206561726c79'" in line and "in no record" in line for line in caplog.messages)


@pytest.mark.servers
def test_a_stream_that_resumes_behind_other_statements(database: Database) -> None:
    """A new stream keeps the structures; no statement is applied to them a second time."""
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    config = configured(database)
    taken = snapshot(config)
    list(taken.outputs())
    tables = taken.tables
    xa(database.server, database.name, "prepared", "INSERT INTO t VALUES (1)")
    database.execute("ALTER TABLE u ADD COLUMN v INT", "INSERT INTO u VALUES (2, 2)")
    first = run(config, tables, taken.offset, binlog_end(database.server))
    database.execute("INSERT INTO u VALUES (3, 3)", "XA COMMIT 'prepared'")
    stored = next(output.offset for output in reversed(first) if isinstance(output, Batch))
    assert stored.prepared
    then = run(config, tables, stored, binlog_end(database.server))
    assert [*changes(first), *changes(then)] == [("u", "c", 2), ("u", "c", 3), ("t", "c", 1)]


def test_large_transactions_are_read_again_instead_of_held() -> None:
    before = SourceOffset("binlog.000003", 500)
    statement = b"XA COMMIT X'61',X'',1"
    for size, kept in ((1 << 20, True), (17 << 20, False)):
        batch = Batch("t", -1, [(None, b"", ())], before, size, 0)
        asked: list[PreparedXa] = []

        def read_xa(xa: PreparedXa, batch: Batch = batch, asked: list[PreparedXa] = asked) -> list[Batch]:
            asked.append(xa)
            return [batch, batch]

        transactions = XaTransactions(before, read_xa)
        transactions.begin(before, ("binlog.000003", 450))
        for _ in range(2):
            transactions.hold(batch)
        assert not list(transactions.prepared(prepare()))
        assert (transactions.records("X'61',X'',1") is not None) is kept
        transactions.load(b"XA ROLLBACK X'61',X'',1")
        transactions.load(statement)
        assert asked == ([] if kept else [PreparedXa("X'61',X'',1", "binlog.000003", 450, before)])
        after = SourceOffset("binlog.000003", 900)
        ended = list(transactions.ended(statement, before, after, 1))
        assert [each.offset for each in ended] == [after]


def test_records_that_are_not_held_and_cannot_be_read_are_an_error() -> None:
    start = SourceOffset("binlog.000003", 500, prepared=(PreparedXa("X'61',X'',1", "binlog.000001", 4),))
    transactions = XaTransactions(start, None)
    transactions.load(b"XA ROLLBACK X'61',X'',1")
    with pytest.raises(ProtocolError, match="rows of XA transaction X'61',X'',1 were prepared before"):
        transactions.load(b"XA COMMIT X'61',X'',1")


def prepare() -> events.XaPrepare:
    body = bytes([0]) + struct.pack("<III", 1, 1, 0) + b"a"
    decoded = started().decode(event(EventType.XA_PREPARE, body))
    assert isinstance(decoded, events.XaPrepare)
    return decoded


def test_offsets_with_prepared_transactions_are_restored() -> None:
    before = SourceOffset("binlog.000002", 4, "u:1-2", ts_sec=5)
    earlier = PreparedXa("X'61',X'',1", "binlog.000001", 77)
    streamed = PreparedXa("X'62',X'63',7", "binlog.000002", 99, before)
    going_on = SourceOffset("binlog.000009", 500, "u:1-5", event=3, row=1, transaction={"transaction_id": "u:6"})
    for prepared, pos in (((earlier,), 500), ((streamed,), 4), ((earlier, streamed), 4)):
        offset = replace(going_on, prepared=prepared)
        assert SourceOffset.from_json(offset.to_json()) == offset
        assert offset.to_map()["pos"] == pos, "Debezium begins before what it must not miss"
