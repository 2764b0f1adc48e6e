"""``BinLogStreamReader`` on real servers."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pymysqlreplication.event import (
    GtidEvent,
    HeartbeatLogEvent,
    MariadbAnnotateRowsEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

import rowtide
from rowtide.connector.errors import EngineTypeError
from rowtide.connector.source import server_queries
from rowtide.mysql_replication import BinLogStreamReader
from tests.support.connector_properties import connector_properties
from tests.support.pages import blocks

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

ROWS = [WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent]


def settings(database: Database) -> dict[str, Any]:
    server = database.server
    return {"host": server.host, "port": server.port, "user": server.user, "passwd": server.password}


def position(database: Database) -> tuple[str, int]:
    statement = "SHOW MASTER STATUS" if database.server.name == "mariadb" else "SHOW BINARY LOG STATUS"
    file, pos = database.server.query(statement)[0][:2]
    return str(file), int(pos)


def reader(database: Database, at: tuple[str, int], **arguments: Any) -> BinLogStreamReader:
    arguments = {
        "log_file": at[0],
        "log_pos": at[1],
        "resume_stream": True,
        "only_schemas": [database.name],
    } | arguments
    return BinLogStreamReader(settings(database), 5150, enable_logging=False, **arguments)


def values(events: Iterator[Any]) -> list[Any]:
    return [row.get("values", row.get("after_values")) for event in events for row in event.rows]


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_db")
    return found


def test_names_and_values_without_metadata(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, price DECIMAL(8,2), made DATETIME(3), at TIMESTAMP NULL, "
        "took TIME, kind ENUM('a','b'), flags SET('x','y'), name VARCHAR(9) CHARACTER SET latin2, raw VARBINARY(9), "
        "bits BIT(11))"
    )
    at = position(database)
    database.execute(
        "INSERT INTO t VALUES (4294967295, -1.50, '2024-02-03 04:05:06.789', NULL, '-00:00:01', 'b', 'y,x', 'Łódź', "
        "x'00ff', b'101')",
        "UPDATE t SET flags = '', price = NULL",
        "DELETE FROM t",
    )
    inserted, updated, deleted = reader(database, at, only_events=ROWS)
    assert inserted.rows == [
        {
            "values": {
                "id": 4294967295, "price": Decimal("-1.50"), "made": dt.datetime(2024, 2, 3, 4, 5, 6, 789000),  # noqa: DTZ001
                "at": None, "took": dt.timedelta(seconds=-1), "kind": "b", "flags": {"x", "y"}, "name": "Łódź",
                "raw": b"\0\xff", "bits": "00000000101",
            },
            "none_sources": {"at": "null"},
        }
    ]  # fmt: skip
    assert updated.rows[0]["after_none_sources"] == {"at": "null", "flags": "empty set", "price": "null"}
    assert deleted.rows[0]["values"]["id"] == 4294967295
    assert (inserted.schema, inserted.table, inserted.primary_key) == (database.name, "t", "id")
    inserted.dump()


def test_structures_of_the_past_are_followed_by_statements(database: Database) -> None:
    at = position(database)
    database.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        "INSERT INTO t VALUES (1, 2)",
        "ALTER TABLE t RENAME COLUMN a TO b, ADD c INT",
        "INSERT INTO t VALUES (3, 4, 5)",
        "DROP TABLE t",
    )
    assert values(iter(reader(database, at, only_events=ROWS))) == [{"id": 1, "a": 2}, {"id": 3, "b": 4, "c": 5}]


def test_a_schema_history_has_the_structures_before_the_stream(mysql_db: Database, tmp_path: Path) -> None:
    history = tmp_path / "history"
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    properties = connector_properties("blsr", mysql_db.server, mysql_db.name, {})
    properties |= {
        "schema.history.internal.file.filename": str(history),
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "snapshot.mode": "no_data",
    }
    with rowtide.Engine(properties) as engine:
        engine.get(timeout=0.1)
        while not history.exists() or "CREATE TABLE `t`" not in history.read_text():
            engine.get(timeout=0.1)
    at = position(mysql_db)
    mysql_db.execute("INSERT INTO t VALUES (1, 2)", "ALTER TABLE t RENAME COLUMN a TO b")
    with pytest.raises(rowtide.UnknownTable, match="schema_history"):
        list(reader(mysql_db, at, only_events=ROWS))
    assert values(iter(reader(mysql_db, at, only_events=ROWS, schema_history=history))) == [{"id": 1, "a": 2}]
    by_properties = reader(mysql_db, at, only_events=ROWS, schema_history={**properties, "name": "blsr"})
    assert values(iter(by_properties)) == [{"id": 1, "a": 2}]


def test_the_stream_resumes_at_each_position_and_gtid(database: Database) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    at = position(database)
    mariadb = database.server.name == "mariadb"
    before = database.server.query("SELECT @@GLOBAL.gtid_binlog_pos" if mariadb else "SELECT @@GLOBAL.gtid_executed")
    for number in range(3):
        database.execute(f"INSERT INTO t VALUES ({number})")
    kinds = [MariadbGtidEvent if mariadb else GtidEvent, XidEvent, *ROWS]
    seen: list[Any] = []
    stream = reader(database, at, only_events=kinds)
    ends = []
    for event in stream:
        seen.append(type(event))
        if isinstance(event, XidEvent):
            ends.append((stream.log_file, stream.log_pos))
    assert seen == [kinds[0], WriteRowsEvent, XidEvent] * 3
    for place, end in enumerate(ends, 1):
        assert values(iter(reader(database, end, only_events=ROWS))) == [{"id": n} for n in range(place, 3)]
    stopped = reader(database, at, only_events=ROWS, end_log_pos=ends[1][1])
    assert values(iter(stopped)) == [{"id": 0}, {"id": 1}]
    assert stopped.fetchone() is None
    by_gtid = reader(
        database, at, only_events=ROWS, log_file=None, log_pos=None,
        auto_position=str(before[0][0]).replace("\n", ""), is_mariadb=mariadb,
    )  # fmt: skip
    assert values(iter(by_gtid)) == [{"id": 0}, {"id": 1}, {"id": 2}]
    later = reader(database, at, only_events=ROWS, skip_to_timestamp=time.time() + 1000)
    assert list(later) == []


def test_the_iteration_continues_after_its_end(mysql_db: Database) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    stream = reader(mysql_db, position(mysql_db), only_events=ROWS)
    for number in range(3):
        mysql_db.execute(f"INSERT INTO t VALUES ({number})")
        assert values(iter(stream)) == [{"id": number}]


def test_a_lost_connection_is_opened_again(database: Database) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    stream = reader(database, position(database), only_events=ROWS, blocking=True)
    for number in range(2):
        database.execute(f"INSERT INTO t VALUES ({number})")
        assert values(iter([stream.fetchone()])) == [{"id": number}]
        own = [row[0] for row in database.server.query("SHOW PROCESSLIST") if str(row[4]).startswith("Binlog Dump")]
        assert own
        database.execute(*(f"KILL {session}" for session in own))
    database.execute("INSERT INTO t VALUES (2)")
    assert values(iter([stream.fetchone()])) == [{"id": 2}]
    stream.close()


def test_a_blocking_stream_waits_and_yields_heartbeats(mysql_db: Database) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    own = "4e1bd3a1-0000-4000-8000-000000000001"
    stream = reader(
        mysql_db, position(mysql_db), blocking=True, slave_heartbeat=0.2, slave_uuid=own,
        report_slave=("reader.example", "u", "p", 3310), only_events=[HeartbeatLogEvent, *ROWS],
    )  # fmt: skip
    assert isinstance(stream.fetchone(), HeartbeatLogEvent)
    shown = mysql_db.server.query("SHOW REPLICAS")
    assert any("reader.example" in row and own in row for row in shown)
    writer = threading.Thread(target=mysql_db.execute, args=("INSERT INTO t VALUES (7)",))
    writer.start()
    event = next(event for event in stream if isinstance(event, WriteRowsEvent))
    writer.join()
    threading.Timer(0.2, stream.close).start()
    assert all(isinstance(other, HeartbeatLogEvent) for other in stream)  # until it is closed
    assert event.rows[0]["values"] == {"id": 7}


def test_compressed_transactions_and_partial_documents(mysql_db: Database) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, doc JSON)")
    at = position(mysql_db)
    mysql_db.execute(
        "SET binlog_transaction_compression = ON, binlog_row_value_options = PARTIAL_JSON, binlog_row_image = MINIMAL",
        """INSERT INTO t VALUES (1, '{"a": "long enough to be changed in place", "b": [1, 2.5, null, true]}')""",
        "UPDATE t SET doc = JSON_SET(doc, '$.a', 'short')",
    )
    stream = reader(mysql_db, at, only_events=None)
    events = list(stream)
    assert events[-1].packet.log_pos == stream.log_pos == position(mysql_db)[1]
    inserted, updated = (event for event in events if hasattr(event, "rows"))
    assert inserted.rows[0]["values"]["doc"] == {
        b"a": b"long enough to be changed in place", b"b": [1, 2.5, None, True],
    }  # fmt: skip
    row = updated.rows[0]
    assert row["before_none_sources"] == {"doc": "cols bitmap"}
    assert (row["after_values"]["doc"].path, row["after_values"]["doc"].value) == (b"$.a", b"short")


def test_mariadb_annotates_rows_and_starts_with_its_oldest_file(mariadb_db: Database) -> None:
    mariadb_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    stream = reader(
        mariadb_db, ("", 0), log_file=None, log_pos=None, is_mariadb=True, annotate_rows_event=True, only_schemas=None,
        only_events=[RotateEvent, MariadbAnnotateRowsEvent],
    )  # fmt: skip
    events = list(stream)
    oldest = mariadb_db.server.query("SHOW BINARY LOGS")[0][0]
    assert events[0].next_binlog == oldest
    assert b"INSERT INTO t VALUES (1)" in [getattr(event, "sql_statement", None) for event in events]


def test_other_events_have_their_attributes(mysql_db: Database) -> None:
    at = position(mysql_db)
    mysql_db.execute("CREATE TABLE é (id INT PRIMARY KEY)", "INSERT INTO é VALUES (1)")
    events = list(reader(mysql_db, at))
    statement = next(
        event for event in events if isinstance(event, QueryEvent) and b"BEGIN" not in event.query.encode()
    )
    assert (statement.query, statement.schema) == ("CREATE TABLE é (id INT PRIMARY KEY)", mysql_db.name.encode())
    table = next(event for event in events if isinstance(event, TableMapEvent))
    assert (table.table, [column.name for column in table.columns]) == ("é", ["id"])
    assert isinstance(events[0], RotateEvent)
    for event in events:
        event.dump()
        assert event.to_dict()["log_pos"] == event.packet.log_pos


def test_structures_of_another_server_are_refused(mysql_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    identities = iter(["one", "another"])
    monkeypatch.setattr(server_queries, "server_identity", lambda _client, **_: next(identities))
    stream = reader(mysql_db, position(mysql_db), ctl_connection_settings=settings(mysql_db))
    with pytest.raises(EngineTypeError, match="ctl_connection_settings lead to a different server"):
        stream.fetchone()


def test_the_example_in_the_documentation_prints_rows(mysql_db: Database, capsys: pytest.CaptureFixture[str]) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (5)")
    server = mysql_db.server
    text = blocks("mysql-replication", "python")[0].replace('"port": 3306', f'"port": {server.port}')
    text = text.replace('"127.0.0.1"', repr(server.host)).replace('"root"', repr(server.user))
    exec(text.replace('"secret"', repr(server.password)), {})
    assert f"{mysql_db.name} t [{{'values': {{'id': 5}}, 'none_sources': {{}}}}]" in capsys.readouterr().out
