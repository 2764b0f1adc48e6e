"""XA transactions: what was rolled back is in no record, whatever comes between, and wherever the stream is cut."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
from golden import written
from live_database import configured, snapshot, streamed
from live_snapshot import binlog_end
from packets import event, started

from rowtide.connector.batch import Batch, HistoryEntry, Output
from rowtide.connector.config import Configuration
from rowtide.connector.offset import SourceOffset
from rowtide.connector.protocol import EventType, events
from rowtide.connector.xa import XaTransactions
from rowtide.schema_history.position import BinlogPosition
from rowtide.schema_history.record import parse_record
from rowtide.schema_history.recovery import recover
from rowtide.schema_history.store import InMemorySchemaHistory
from rowtide.schema_history.tables import Tables

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
    """Prepare an XA transaction; nobody's connection is needed for its end."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(f"XA START '{name}'")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute(f"XA END '{name}'")
        cursor.execute(f"XA PREPARE '{name}'")


@pytest.mark.servers
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_only_what_was_committed_is_written(flavor: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
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
        position = BinlogPosition.from_map(start.to_map())
        return recover(history.replay_as(parse_record), taken.tables.server, position)

    batches = [output for output in whole if isinstance(output, Batch)]
    resumed = 0
    for place, batch in enumerate(batches[:-1], 1):
        if batches[place].offset == batch.offset:
            assert not batches[place].messages, "one offset for two records"
            continue
        start = SourceOffset.from_json(batch.offset.to_json())
        resumed += start.done is not None
        found = changes(run(config, recovered(start), start, end))
        assert found == changes(batches[place:]), f"{place}: {start.to_json()}"
    assert resumed > 5


@pytest.mark.servers
def test_what_is_prepared_during_a_snapshot_is_told(mysql_db: Database, caplog: pytest.LogCaptureFixture) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    config = configured(mysql_db)
    xa(mysql_db.server, mysql_db.name, "prepared", "INSERT INTO t VALUES (1)")
    taken = snapshot(config)
    with caplog.at_level(logging.WARNING):
        assert [change for change in changes(taken.outputs()) if change[0] == "t"] == []
        mysql_db.execute("XA COMMIT 'prepared'", "INSERT INTO t VALUES (2)")
        end = binlog_end(mysql_db.server)
        assert changes(run(config, taken.tables.copy(), taken.offset, end)) == [("t", "c", 2)]
    assert any("XA RECOVER: prepared" in line for line in caplog.messages)
    assert any("XA COMMIT X'7072657061726564'" in line and "in no record" not in line for line in caplog.messages)


def query(position: int, file_flags: int = 0) -> events.Query:
    """An event at a position."""
    decoded = started().decode(
        event(
            EventType.QUERY,
            bytes(4 + 4) + b"\0\0\0" + b"\0\0" + b"\0" + b"BEGIN",
            log_pos=position + 100,
            flags=file_flags,
        )
    )
    assert isinstance(decoded, events.Query)
    return decoded._replace(header=decoded.header._replace(size=100))


def test_without_gtids_the_place_tells_what_was_written() -> None:
    done = SourceOffset("binlog.000009", 500)
    waiting = XaTransactions(SourceOffset("binlog.000002", 4, done=done), "mysql")
    assert waiting.offset(SourceOffset("binlog.000003", 77)).done == done, "a restart does the same again"
    for file, position, reached in (
        ("binlog.000002", 900, False),
        ("binlog.000009", 499, False),
        ("binlog.000009", 500, True),
        ("binlog.000010", 4, True),
    ):
        assert waiting.reached(query(position), file) is reached
    assert not waiting.reached(query(600, 0x20), "binlog.000009"), "an artificial event has no place"
    assert waiting.go_on() == done
    assert not waiting.repeating


def test_an_offset_with_both_places_comes_back() -> None:
    done = SourceOffset("binlog.000009", 500, "u:1-5", event=3, row=1, transaction={"transaction_id": "u:6"})
    offset = SourceOffset("binlog.000002", 4, "u:1-2", done=done)
    assert SourceOffset.from_json(offset.to_json()) == offset
