"""The engine in a program: snapshot, changes, acknowledgement, restarts, sinks; against real servers, without Kafka."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import datetime as dt
import json
import logging
import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

import rowtide
from rowtide.connector.records.change import JsonText
from tests.support.connector_properties import connector_properties

if TYPE_CHECKING:
    from rowtide_stack import Database, MariaDB, MySQL

pytestmark = pytest.mark.servers

SOON = 180.0
Properties = Callable[..., dict[str, str]]


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Any:
    """A new database, of MySQL and of MariaDB."""
    server: MySQL | MariaDB = request.getfixturevalue(request.param)
    with server.database() as found:
        yield found


@pytest.fixture
def properties(tmp_path: Path) -> Properties:
    """Properties of an engine for a database, with positions and history in files."""

    def make(database: Database, **more: str) -> dict[str, str]:
        history = {"schema.history.internal.file.filename": str(tmp_path / "history.jsonl")}
        made = connector_properties("e", database.server, database.name, history)
        made |= {"offset.storage.file.filename": str(tmp_path / "offsets.dat")}
        return made | {name.replace("_", "."): text for name, text in more.items()}

    return make


def take(engine: rowtide.Engine, count: int, *, ack: bool = True) -> list[rowtide.Change]:
    """So many changes."""
    found: list[rowtide.Change] = []
    while len(found) < count:
        batch = engine.get(count - len(found), timeout=SOON)
        assert batch is not None, found
        found += batch
        if ack:
            assert batch.ack()
    assert len(found) == count
    return found


def rows(changes: Sequence[rowtide.Change]) -> list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
    return [
        (change.op, change.before and dict(change.before), change.after and dict(change.after)) for change in changes
    ]


def test_snapshot_and_changes_come_as_python_values(database: Database, properties: Properties) -> None:
    database.execute(
        "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, price DECIMAL(9,2), made DATETIME(3), seen TIMESTAMP(6) NULL,"
        " day DATE, clock TIME(2), label ENUM('a','b'), doc JSON, data VARBINARY(9), flag BIT(1), ratio FLOAT,"
        " name VARCHAR(20) CHARACTER SET utf8mb4)",
        "INSERT INTO t VALUES (1, 1.50, '2024-02-29 12:00:00.125', '2024-01-01 00:00:00.000001', '2024-02-29',"
        " '-101:02:03.25', 'b', '{\"a\": [1, 2.5]}', 0x00ff, 1, 1.1, 'Zoë')",
    )
    with rowtide.Engine(properties(database)) as engine:
        (read,) = take(engine, 1)
        database.execute("UPDATE t SET price = -0.01, label = NULL WHERE id = 1", "DELETE FROM t")
        updated, deleted = take(engine, 2)
    row = {
        "id": 1,
        "price": Decimal("1.50"),
        "made": dt.datetime(2024, 2, 29, 12, 0, 0, 125000),  # noqa: DTZ001 - as DATETIME is
        "seen": read.after and read.after["seen"],
        "day": dt.date(2024, 2, 29),
        "clock": -dt.timedelta(hours=101, minutes=2, seconds=3.25),
        "label": "b",
        "doc": {"a": [1, 2.5]} if database.server.name == "mysql" else '{"a": [1, 2.5]}',
        "data": b"\x00\xff",
        "flag": True,
        "ratio": 1.1,
        "name": "Zoë",
    }
    assert isinstance(row["seen"], dt.datetime)
    assert row["seen"].utcoffset() == dt.timedelta(0)
    assert row["seen"].microsecond == 1
    changed = row | {"price": Decimal("-0.01"), "label": None}
    assert rows([read, updated, deleted]) == [("r", None, row), ("u", row, changed), ("d", changed, None)]
    assert read.snapshot
    assert not updated.snapshot
    assert (read.database, read.table, read.key) == (database.name, "t", {"id": 1})
    if database.server.name == "mysql":
        assert read.after is not None
        assert json.loads(read.after.json_text("doc") or "") == {"a": [1, 2.5]}
    assert [column.column_type for column in updated.schema.columns][:2] == ["int unsigned", "decimal(9,2)"] or (
        database.server.name == "mariadb"
    )
    for change in (read, updated, deleted):
        envelope = json.loads(change.to_debezium())["payload"]
        assert (envelope["op"], envelope["source"]["table"]) == (change.op, "t")
        assert json.loads(change.debezium_key() or "")["payload"] == {"id": 1}
    assert repr(deleted).startswith(f"<Change d {database.name}.t before={{'id': 1, ")


def test_what_is_not_acknowledged_comes_again(database: Database, properties: Properties) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (0)")
    given = properties(database)
    with rowtide.Engine(given) as engine:
        take(engine, 1)
        database.execute(*(f"INSERT INTO t VALUES ({number})" for number in range(1, 6)))
        first = take(engine, 2)
        rest = take(engine, 3, ack=False)
        assert engine.rollback() == 3
        again = take(engine, 3, ack=False)
        assert rows(again) == rows(rest)
    with rowtide.Engine(given) as engine:
        later = take(engine, 3)
    assert [change.after and change.after["id"] for change in (*first, *later)] == [1, 2, 3, 4, 5]
    with rowtide.Engine(given) as engine:
        assert engine.get(timeout=3) is None
        database.execute("INSERT INTO t VALUES (6)")
        assert rows(take(engine, 1)) == [("c", None, {"id": 6})]


def test_a_batch_that_was_rolled_back_cannot_be_acknowledged(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    with rowtide.Engine(properties(mysql_db)) as engine:
        batch = engine.get(timeout=SOON)
        assert batch is not None
        engine.rollback()
        assert not batch.ack()
        again = engine.get(timeout=SOON)
        assert again is not None
        assert rows(again) == rows(batch)
        assert again.ack()
        assert again.ack(), "a second time changes nothing"


def test_a_rollback_while_another_thread_waits_for_changes(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    with rowtide.Engine(properties(mysql_db)) as engine, ThreadPoolExecutor() as threads:
        first = take(engine, 2, ack=False)
        for _ in range(5):
            waiting = threads.submit(engine.get, timeout=SOON)
            assert engine.get(timeout=0.05) is None
            engine.rollback()
            again = waiting.result()
            assert again is not None
            assert rows(again) == rows(first)
        assert again.ack(), "it was taken after the rollback"


def test_a_cut_connection_loses_nothing(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (0)")
    with rowtide.Engine(properties(mysql_db)) as engine:
        take(engine, 1)
        for number in range(1, 4):
            mysql_db.execute(f"INSERT INTO t VALUES ({number})")
            assert rows(take(engine, 1)) == [("c", None, {"id": number})]
            for row in mysql_db.query("SHOW PROCESSLIST"):
                if str(row[4]).startswith("Binlog Dump"):
                    with contextlib.suppress(pymysql.MySQLError):  # one of an earlier test has just ended
                        mysql_db.execute(f"KILL {row[0]}")


def test_a_failure_is_raised_behind_the_changes_before_it(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (0, 0)")
    with rowtide.Engine(properties(mysql_db)) as engine:
        take(engine, 1)
        mysql_db.execute(
            "INSERT INTO t VALUES (1, 1)", "SET SESSION binlog_row_image = MINIMAL", "UPDATE t SET b = 2 WHERE id = 1"
        )
        assert rows(take(engine, 1)) == [("c", None, {"id": 1, "b": 1})]
        with pytest.raises(rowtide.ConnectorError, match="binlog_row_image=MINIMAL"):
            engine.get(timeout=SOON)
        assert engine.state == "FAILED"


def test_what_a_minimal_image_leaves_out_is_not_null(database: Database, properties: Properties) -> None:
    database.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, day DATE, name VARCHAR(9))",
        "INSERT INTO t VALUES (1, 1, '2024-02-29', 'a')",
    )
    with rowtide.Engine(properties(database), binlog_row_image_minimal_allowed="true") as engine:
        take(engine, 1)
        database.execute("SET SESSION binlog_row_image = MINIMAL", "UPDATE t SET n = NULL", "UPDATE t SET name = 'b'")
        first, second = take(engine, 2)
    away = rowtide.UNAVAILABLE
    assert rows([first, second]) == [
        ("u", {"id": 1, "n": away, "day": away, "name": away}, {"id": 1, "n": None, "day": away, "name": away}),
        ("u", {"id": 1, "n": away, "day": away, "name": away}, {"id": 1, "n": away, "day": away, "name": "b"}),
    ]


def test_what_a_query_of_a_snapshot_leaves_out_is_not_null(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, x TEXT)", "INSERT INTO t VALUES (1, 1, 'a')")
    given = properties(mysql_db, snapshot_select_statement_overrides=f"{mysql_db.name}.t")
    given[f"snapshot.select.statement.overrides.{mysql_db.name}.t"] = f"SELECT id FROM {mysql_db.name}.t"
    with rowtide.Engine(given) as engine:
        (read,) = take(engine, 1)
    assert rows([read]) == [("r", None, {"id": 1, "n": rowtide.UNAVAILABLE, "x": rowtide.UNAVAILABLE})]


def test_initial_only_ends_the_iteration(database: Database, properties: Properties) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    found = []
    with rowtide.Engine(properties(database, snapshot_mode="initial_only")) as engine:
        for batch in engine:
            found += [change.after and change.after["id"] for change in batch]
            batch.ack()
    assert found == [1, 2, 3]
    assert engine.state == "STOPPED"


def test_async_iteration(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")

    async def run() -> list[int]:
        found = []
        async with rowtide.Engine(properties(mysql_db), snapshot_mode="initial_only") as engine:
            async for batch in engine:
                found += [change.after["id"] for change in batch if change.after]
                batch.ack()
        return found

    assert asyncio.run(run()) == [1, 2, 3]


def test_a_cancelled_task_takes_no_changes_with_it(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (0)")

    async def run() -> list[int]:
        found = []
        async with rowtide.Engine(properties(mysql_db)) as engine:
            while len(found) < 6:
                async for batch in engine:
                    found += [change.after["id"] for change in batch if change.after]
                    batch.ack()
                    break
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.02):
                        async for batch in engine:
                            raise AssertionError(batch)
                mysql_db.execute(f"INSERT INTO t VALUES ({len(found)})")
        return found

    assert asyncio.run(asyncio.wait_for(run(), SOON)) == [0, 1, 2, 3, 4, 5]


def test_a_full_store_without_acknowledgement_is_reported(
    mysql_db: Database, properties: Properties, caplog: pytest.LogCaptureFixture
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, x LONGTEXT)", "INSERT INTO t VALUES (0, '')")
    with rowtide.Engine(properties(mysql_db), max_queue_size_in_bytes=200_000, max_queue_size=3000) as engine:
        take(engine, 1)
        mysql_db.execute(*(f"INSERT INTO t VALUES ({number}, REPEAT('x', 90000))" for number in range(1, 6)))
        found = []
        with caplog.at_level(logging.WARNING):
            while not any("not acknowledged" in message for message in caplog.messages):
                batch = engine.get(timeout=1)
                found += [batch] if batch else []
        assert 0 < len(found) < 5
        found[-1].ack()
        take(engine, 5 - sum(map(len, found)))


def test_a_function_is_called_with_every_batch(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    found: list[rowtide.Change] = []
    rowtide.Engine(properties(mysql_db), snapshot_mode="initial_only").run(found.extend)
    assert rows(found) == [("r", None, {"id": 1}), ("r", None, {"id": 2})]


def test_run_starts_the_engine_itself(mysql_db: Database, properties: Properties) -> None:
    with rowtide.Engine(properties(mysql_db)) as engine, pytest.raises(rowtide.EngineError, match=r"run\(\) starts it"):
        engine.run(print)


def test_a_sink_of_ones_own_gets_debeziums_records(mysql_db: Database, properties: Properties) -> None:
    class Sink:
        def __init__(self) -> None:
            self.records: list[rowtide.Record] = []
            self.calls: list[str] = []

        def write(self, records: Sequence[rowtide.Record]) -> None:
            self.records += records

        def flush(self) -> None:
            self.calls.append("flush")

        def close(self) -> None:
            self.calls.append("close")

    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    sink = Sink()
    given = properties(mysql_db, snapshot_mode="initial_only", include_schema_changes="false")
    rowtide.Engine(given).run(sink)
    assert [json.loads(record.key or b"")["payload"]["id"] for record in sink.records] == [1, 2]
    assert sink.calls[-1] == "close"
    assert "flush" in sink.calls
    engine = rowtide.Engine(given)
    engine.run(sink)
    assert len(sink.records) == 2, "the position was stored"


def test_changes_can_be_pickled(database: Database, properties: Properties) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, doc JSON)", "INSERT INTO t VALUES (1, '{\"a\": 1.0}')")
    with rowtide.Engine(properties(database), provide_transaction_metadata=True) as engine:
        found = take(engine, 1)
        database.execute("UPDATE t SET doc = NULL", "DELETE FROM t")
        found += take(engine, 2)
    for change in found:
        again = pickle.loads(pickle.dumps(change))
        for one in (again, copy.deepcopy(change), copy.copy(change)):
            for name in ("op", "database", "table", "topic", "key", "before", "after", "schema", "position", "row"):
                assert getattr(one, name) == getattr(change, name), name
            assert (one.transaction, one.timestamp, one.snapshot) == (
                change.transaction,
                change.timestamp,
                change.snapshot,
            )
            assert (one.to_debezium(), one.debezium_key()) == (change.to_debezium(), change.debezium_key())
    kept = pickle.loads(pickle.dumps(found))
    assert kept[1].schema is kept[2].schema, "one copy of a structure for all changes"
    with ProcessPoolExecutor(1) as processes:
        assert processes.submit(repr, found[0]).result() == repr(found[0])


def test_a_json_null_is_told_from_null(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, doc JSON)", "INSERT INTO t VALUES (1, 'null'), (2, NULL)")
    with rowtide.Engine(properties(mysql_db)) as engine:
        found = take(engine, 2)
        mysql_db.execute("UPDATE t SET id = id + 2 ORDER BY id DESC")
        found += [change for change in take(engine, 4) if change.op == "c"]
    texts = {
        change.after["id"]: (change.after["doc"], change.after.json_text("doc")) for change in found if change.after
    }
    assert texts == {1: (None, "null"), 2: (None, None), 3: (None, "null"), 4: (None, None)}
    arrow = rowtide.ChangeBatch(found, lambda: True).to_arrow()[f"{mysql_db.name}.t"]
    assert {row["id"]: row["doc"] for part in arrow for row in part.to_pylist()} == {
        1: "null", 2: None, 3: "null", 4: None
    }  # fmt: skip


def test_an_engine_that_another_thread_closes_ends_the_iteration(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    engine = rowtide.Engine(properties(mysql_db))
    engine.start()
    first = threading.Event()

    def consume() -> int:
        count = 0
        for batch in engine:
            count += len(batch)
            batch.ack()
            first.set()
        return count

    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(consume)
        assert first.wait(SOON)
        engine.close()
        assert waiting.result() == 1
    assert engine.state == "STOPPED"
    with pytest.raises(rowtide.EngineError, match="the engine was closed"):
        engine.get()


def test_what_was_taken_can_be_acknowledged_after_the_end(mysql_db: Database, properties: Properties) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    given = properties(mysql_db)
    with rowtide.Engine(given) as engine:
        batch = engine.get(timeout=SOON)
    assert batch is not None
    assert batch.ack()
    mysql_db.execute("INSERT INTO t VALUES (2)")
    with rowtide.Engine(given) as engine:
        assert rows(take(engine, 1)) == [("c", None, {"id": 2})]


def test_structures_change_within_a_batch(database: Database, properties: Properties) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with rowtide.Engine(properties(database)) as engine:
        take(engine, 1)
        database.execute(
            "INSERT INTO t VALUES (2)",
            "ALTER TABLE t ADD doc JSON, ADD x DECIMAL(60,5)",
            "INSERT INTO t VALUES (3, '[1]', 1.5)",
        )
        second, third = take(engine, 2)
    batch = rowtide.ChangeBatch([second, third], lambda: True)
    first, last = batch.to_arrow()[f"{database.name}.t"]
    assert first.num_rows == last.num_rows == 1
    assert last.to_pylist()[0] | {"__ts": None, "__file": None, "__pos": None} == {
        "__op": "c", "__ts": None, "__file": None, "__pos": None, "__row": 0, "__unavailable": None,
        "id": 3, "doc": "[1]", "x": "1.50000",
    }  # fmt: skip
    assert isinstance(third.image and third.image[1], JsonText) == (database.server.name == "mysql")
