"""XA transactions: only committed changes become records, wherever the stream is cut."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from rowtide_stack import Database, MariaDB, MySQL, SqlServer

from rowtide.connector.config import Configuration
from rowtide.connector.errors import ProtocolError, SnapshotError
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.xa_transactions import XaTransactions
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.store.history_record import parse_record
from rowtide.schema_history.store.history_store import InMemorySchemaHistory
from tests.chaos.primary import Primary
from tests.support.mysql.live_database import configured, purge_binlogs, snapshot, streamed
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

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
        return recover(history.replay(parse_record), taken.tables.server, position)

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
@pytest.mark.usefixtures("stay_prepared")
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
@pytest.mark.usefixtures("stay_prepared")
@pytest.mark.parametrize("kind", [MySQL, MariaDB])
def test_a_transaction_that_is_committed_on_another_server_is_found_there(kind: type[SqlServer]) -> None:
    logged = {"log_slave_updates": "ON"} if kind is MariaDB else {}  # the replica's binlog has what it replicates
    with kind() as old, kind({"server_id": 2, **logged}) as new:
        new.execute(*["FLUSH BINARY LOGS"] * 3)  # so that file and position are others
        primary = Primary(old, new)
        old.execute("CREATE DATABASE shop")
        database = Database(old, "shop")
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        config = configured(database)
        taken = snapshot(config)
        list(taken.outputs())
        xa(old, "shop", "other", "INSERT INTO t VALUES (1)")
        xa(old, "shop", "moved", "INSERT INTO t VALUES (2), (3)")
        database.execute("INSERT INTO t VALUES (4)")
        first = run(config, taken.tables, taken.offset, binlog_end(old))
        assert changes(first) == [("t", "c", 4)]
        batches = [output for output in first if isinstance(output, Batch)]
        start = SourceOffset.from_json(batches[-1].offset.to_json())
        assert [xa.xid for xa in start.prepared] == ["X'6f74686572',X'',1", "X'6d6f766564',X'',1"]
        primary.promote()
        new.execute("INSERT INTO shop.t VALUES (5)", "XA COMMIT 'moved'", "XA ROLLBACK 'other'")
        found = run(configured(Database(new, "shop")), taken.tables, start, binlog_end(new))
        assert changes(found) == [("t", "c", 5), ("t", "c", 2), ("t", "c", 3)]


@pytest.mark.servers
@pytest.mark.usefixtures("stay_prepared")
@pytest.mark.parametrize(
    "database", [pytest.param("purged_mysql", marks=pytest.mark.nightly), "purged_mariadb"], indirect=True
)
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
    assert any(
        "XA COMMIT X'746f6f206561726c79'" in line and "no record contains its changes" in line
        for line in caplog.messages
    )


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
    """The limit counts the records of all transactions that are held, and a rollback or a commit makes room."""
    before = SourceOffset("binlog.000003", 500)
    batch = Batch("t", -1, [(None, b"", ())], before, 5 << 20, 0)
    asked: list[PreparedXa] = []

    def read_xa(xa: PreparedXa) -> Iterator[Batch]:
        asked.append(xa)
        yield from [batch] * 9

    progress = Progress(before)
    transactions = XaTransactions(progress, before, read_xa, refused)

    def prepared(name: str, batches: int) -> None:
        transactions.begin(f"X'{name}',X'',1", before)
        for _ in range(batches):
            transactions.hold(batch)
        transactions.prepare(f"X'{name}',X'',1")

    def ended(part: str, name: str) -> list[Batch]:
        statement = f"XA {part} X'{name}',X'',1".encode()
        return list(transactions.second_part(statement, lambda: progress.offset(None)))

    prepared("61", 4)
    prepared("62", 2)
    prepared("63", 2)
    assert len(ended("COMMIT", "62")) == 2
    prepared("64", 3)
    assert ended("ROLLBACK", "64") == []
    prepared("65", 3)
    assert asked == []
    assert [len(ended("COMMIT", name)) for name in ("65", "63", "61")] == [3, 9, 9]
    assert asked == [PreparedXa(f"X'{name}',X'',1", "binlog.000003", 500, before) for name in ("63", "61")]


def test_batches_that_were_delivered_before_a_restart_are_skipped() -> None:
    """The last batch has the offset after the commit, those before it lead to the commit again."""
    start = SourceOffset("binlog.000003", 500, event=2, prepared=(PreparedXa("X'61',X'',1", "binlog.000001", 4),))
    progress = Progress(start)
    batches = [Batch("t", -1, [(None, b"%d" % number, ())], start, 1, 0) for number in range(5)]
    transactions = XaTransactions(progress, start, lambda _: iter(batches), refused)
    progress.at_event(500, 600, 1, 0)
    found = []
    for batch in transactions.second_part(b"XA COMMIT X'61',X'',1", lambda: progress.offset(None)):
        assert transactions.offset(progress.offset(None)) == batch.offset
        found.append((batch.messages[0][1], batch.offset.pos, batch.offset.event, len(batch.offset.prepared)))
    assert found == [(b"2", 500, 3, 1), (b"3", 500, 4, 1), (b"4", 600, 0, 0)]


def test_records_that_are_not_held_and_cannot_be_read_are_an_error() -> None:
    start = SourceOffset("binlog.000003", 500, prepared=(PreparedXa("X'61',X'',1", "binlog.000001", 4),))
    for part, message in ((b"ROLLBACK", None), (b"COMMIT", "rows of XA transaction X'61',X'',1 were prepared before")):
        transactions = XaTransactions(Progress(start), start, None, refused)
        ended = transactions.second_part(b"XA " + part + b" X'61',X'',1", lambda: start)
        with pytest.raises(ProtocolError, match=message) if message else contextlib.nullcontext():
            assert not list(ended)


def refused(problem: ProtocolError) -> None:
    """``event.processing.failure.handling.mode=fail``."""
    raise problem


def test_offsets_with_prepared_transactions_are_restored() -> None:
    before = SourceOffset("binlog.000002", 4, "u:1-2", ts_sec=5)
    earlier = PreparedXa("X'61',X'',1", "binlog.000001", 77)
    streamed = PreparedXa("X'62',X'63',7", "binlog.000002", 99, before)
    going_on = SourceOffset("binlog.000009", 500, "u:1-5", event=3, row=1, transaction={"transaction_id": "u:6"})
    for prepared, pos in (((earlier,), 500), ((streamed,), 4), ((earlier, streamed), 4)):
        offset = replace(going_on, prepared=prepared)
        assert SourceOffset.from_json(offset.to_json()) == offset
        assert offset.to_map()["pos"] == pos, "Debezium begins before what it must not miss"
