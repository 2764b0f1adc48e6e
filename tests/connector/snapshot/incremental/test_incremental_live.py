"""Incremental snapshots on real servers, while rows and tables change: a consumer gets each row, and none goes back."""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from rowtide.connector.records.batch import Batch, Output
from tests.support.incremental_stream import BesideStream

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

TABLES = {
    "plain": ("id INT PRIMARY KEY", str),
    "words": ("a VARCHAR(9), b INT, PRIMARY KEY (a, b DESC)", lambda number: f"'{'aBcD'[number % 4]}', {number}"),
    "large": ("id BIGINT UNSIGNED PRIMARY KEY", lambda number: str(2**64 - 1 - number)),
    "bytes": ("id VARBINARY(8) PRIMARY KEY", lambda number: f"x'{number:04x}'"),
}
KEYS = {"plain": ["id"], "words": ["a", "b"], "large": ["id"], "bytes": ["id"]}


class Load:
    """Changes the rows of a table: each change of a key has a larger ``ver``."""

    def __init__(self, database: Database, table: str, seed: int, *, ddl: bool) -> None:
        self._database = database
        self._table = table
        self._random = random.Random(f"{seed} {table}")
        self._ver = itertools.count(1_000)
        self._columns = itertools.count()
        self._ddl = ddl
        self.stopped = threading.Event()
        self.changes = 0

    def run(self) -> None:
        with self._database.server.connect(self._database.name) as connection, connection.cursor() as cursor:
            while not self.stopped.is_set():
                with suppress(pymysql.err.IntegrityError):
                    cursor.execute("BEGIN")
                    for _ in range(self._random.choice((1, 1, 1, 5))):
                        cursor.execute(self._change())
                    cursor.execute(self._random.choice(("COMMIT",) * 9 + ("ROLLBACK",)))
                    self.changes += 1
                if self._ddl and self._random.random() < 0.03:
                    cursor.execute(self._statement())
                time.sleep(0.01)  # faster writers leave a stream after that shares the interpreter with them

    def _change(self) -> str:
        key_of, table, ver = TABLES[self._table][1], self._table, next(self._ver)
        key = key_of(self._random.randrange(130))
        names = ", ".join(KEYS[table])
        match self._random.randrange(6):
            case 0:
                return f"DELETE FROM {table} WHERE ({names}) = ({key})"
            case 1 | 2:
                return f"REPLACE INTO {table} ({names}, ver, v) VALUES ({key}, {ver}, 'n{ver}')"
            case 3:  # the key changes
                new = key_of(self._random.randrange(130)).split(", ")
                changed = ", ".join(f"{name} = {value}" for name, value in zip(KEYS[table], new, strict=True))
                return f"UPDATE {table} SET {changed}, ver = {ver} WHERE ({names}) = ({key})"
            case _:
                return f"UPDATE {table} SET ver = {ver}, v = 'u{ver}' WHERE ({names}) = ({key})"

    def _statement(self) -> str:
        number = next(self._columns)
        if number % 2:
            return f"ALTER TABLE {self._table} DROP COLUMN x{number - 1}"
        place = self._random.choice(("FIRST", ""))
        return f"ALTER TABLE {self._table} ADD COLUMN x{number} INT NULL {place}"


@contextmanager
def loads(database: Database, seed: int, *, ddl: bool) -> Iterator[list[Load]]:
    """Change all tables while the block runs."""
    running = [Load(database, table, seed, ddl=ddl) for table in TABLES]
    threads = [threading.Thread(target=load.run) for load in running]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        for load in running:
            load.stopped.set()
        for thread in threads:
            thread.join()


def fill(database: Database) -> None:
    for table, (definition, key_of) in TABLES.items():
        database.execute(f"CREATE TABLE {table} (v VARCHAR(20) DEFAULT 'd', ver INT, {definition})")
        rows = ", ".join(f"({key_of(number)}, {number}, 'f{number}')" for number in range(120))
        database.execute(f"INSERT INTO {table} ({', '.join(KEYS[table])}, ver, v) VALUES {rows}")


def records(outputs: Iterable[Output]) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Topic, key and value of each record of the tables."""
    for output in outputs:
        if isinstance(output, Batch):
            for key, value, _ in output.messages:
                if key is not None and (value is None or b'"op":' in value):
                    yield output.topic, key.decode(), None if value is None else json.loads(value)


def state(outputs: Iterable[Output]) -> dict[str, dict[str, dict[str, Any]]]:
    """The tables that a consumer has."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for topic, key, value in records(outputs):
        rows = found.setdefault(topic.rpartition(".")[2], {})
        if value is None or value["op"] == "d":
            rows.pop(key, None)
        else:
            rows[key] = value["after"]
    return found


def check_state(database: Database, outputs: Iterable[Output]) -> None:
    """A consumer has the rows of the database."""
    found = state(outputs)
    for table in TABLES:
        rows = database.query(f"SELECT ver, v FROM {table} ORDER BY ver, v")
        assert sorted((row["ver"], row["v"]) for row in found.get(table, {}).values()) == [*rows], table


def check_order(outputs: Iterable[Output]) -> int:
    """No record has an older state of its row than one before it; returns the number of rows that were read."""
    newest: dict[tuple[str, str], int] = {}
    reads = 0
    for topic, key, value in records(outputs):
        if value is None:
            continue
        ver = (value["after"] or value["before"])["ver"]
        reads += value["op"] == "r"
        assert ver >= newest.get((topic, key), -1), (topic, key, value["op"], ver)
        newest[topic, key] = ver
    return reads


def campaign(database: Database, seed: int, *, ddl: bool, kills: bool, crashes: int, threads: int) -> None:
    """One snapshot of all tables under load."""
    chance = random.Random(seed)
    fill(database)
    beside = BesideStream(database, chunk_size=chance.choice((1, 3, 10, 50)), threads=threads, lag_s=0.1)
    segment = 0
    try:
        with loads(database, seed, ddl=ddl) as running:
            beside.run(lambda: all(load.changes > 5 for load in running))
            beside.execute(rf"{database.name}\.(plain|words|large|bytes)")
            beside.run(lambda: requested(beside.outputs) > 0)
            for _ in range(crashes):
                run_for(beside, chance.random())
                if kills:
                    kill_connections(database)
                    run_for(beside, 0.5)
                check_order(beside.outputs[segment:])
                segment = chance.randint(max(segment, requested(beside.outputs)), len(beside.outputs))
                beside.crash(segment)
            beside.run(lambda: not beside.snapshots.active)
            reads = check_order(beside.outputs[segment:])
        beside.run_to_end()
        check_order(beside.outputs[segment:])
        check_state(database, beside.outputs)
        assert reads or crashes
    finally:
        beside.close()


def run_for(beside: BesideStream, seconds: float) -> None:
    """Stream for a while, or until all is read."""
    end = time.monotonic() + seconds
    beside.run(lambda: time.monotonic() > end or not beside.snapshots.active)


def requested(outputs: Iterable[Output]) -> int:
    """The number of outputs up to the first one whose offset has the request, 0 without one."""
    carried = (isinstance(output, Batch) and output.offset.carried is not None for output in outputs)
    return next((number for number, found in enumerate(carried, 1) if found), 0)


def kill_connections(database: Database) -> None:
    """End all connections to the server but this one and those of the load."""
    rows = database.query("SHOW PROCESSLIST")
    for row in rows:
        if row[3] != database.name and row[4] != "Daemon" and row[0] != database.query("SELECT CONNECTION_ID()")[0][0]:
            with suppress(pymysql.MySQLError):
                database.execute(f"KILL {row[0]}")


def test_rows_and_structures_change_while_tables_are_read(database: Database) -> None:
    campaign(database, 1, ddl=True, kills=False, crashes=0, threads=1)


@pytest.mark.parametrize("database", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)], indirect=True)
def test_connections_are_killed_and_the_connector_crashes(database: Database) -> None:
    campaign(database, 2, ddl=True, kills=True, crashes=3, threads=2)


def test_helper_tables_of_online_schema_changes_are_not_read(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)",
        "CREATE TABLE _t_new LIKE t", "INSERT INTO _t_new VALUES (2)",
        "CREATE TABLE _u_new LIKE t", "INSERT INTO _u_new VALUES (3)",
    )  # fmt: skip
    beside = BesideStream(database)
    try:
        beside.execute(rf"{database.name}\..*")
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    read = [
        (topic.rpartition(".")[2], key) for topic, key, value in records(beside.outputs) if value and value["op"] == "r"
    ]
    assert read == [("_u_new", '{"id":3}'), ("t", '{"id":1}')]


def test_the_rows_of_a_table_that_is_renamed_are_read_under_its_new_name(database: Database) -> None:
    rows = ", ".join(f"({number})" for number in range(30))
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", f"INSERT INTO t VALUES {rows}")
    beside = BesideStream(database)
    try:
        beside.execute(rf"{database.name}\.t")
        database.execute("RENAME TABLE t TO u", "INSERT INTO u VALUES (30)")
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    read = {key for topic, key, _value in records(beside.outputs) if topic.endswith(".u")}
    assert read == {f'{{"id":{number}}}' for number in range(31)}


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_campaign(database: Database) -> None:
    for seed in range(int(os.environ.get("ROWTIDE_CAMPAIGN", "30"))):
        with database.server.database() as one:
            campaign(one, seed, ddl=seed % 3 > 0, kills=seed % 2 > 0, crashes=seed % 4, threads=1 + seed % 3)
