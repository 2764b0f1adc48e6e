"""Snapshots during writes: the rows are the state at the offset, and the stream leads from there to the tables."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pymysql
import pytest
from pymysql.constants import ER

from rowtide.connector.records.batch import Output
from rowtide.connector.snapshot.reading import table_rows
from tests.support.mysql.live_database import Rows, apply, configured, markers, snapshot, streamed, user
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from pymysql.cursors import Cursor
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

_TABLES = ("a", "b", "c")
_ROWS = 1000


@pytest.fixture
def filled(database: Database) -> Database:
    """A database with tables whose rows arrive in several batches."""
    numbers = f"WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < {_ROWS})"
    for table in _TABLES:
        database.execute(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT NOT NULL, moves INT NOT NULL, t TEXT NOT NULL)",
            f"INSERT INTO {table} {numbers} SELECT n, 100, 0, REPEAT(SHA2(n, 256), 4) FROM s",
        )
    return database


class Writers:
    """Threads that move amounts between rows of all tables, and replace rows, in transactions, until :meth:`stop`."""

    def __init__(self, database: Database, count: int = 3) -> None:
        self._database = database
        self._stop = threading.Event()
        self._moved = threading.Condition()
        self.transactions = 0
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(seed,)) for seed in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Wait for this number of further commits."""
        with self._moved:
            enough = self.transactions + more
            self._moved.wait_for(lambda: self.transactions >= enough or bool(self.errors))

    def _run(self, seed: int) -> None:
        rng = random.Random(seed)
        try:
            with self._database.connect(autocommit=False) as connection, connection.cursor() as cursor:
                while not self._stop.is_set():
                    try:
                        self._transaction(cursor, rng, seed)
                    except pymysql.MySQLError as error:
                        if error.args[0] != ER.LOCK_DEADLOCK:
                            raise
                        connection.rollback()  # against the snapshot's locks on tables
                        continue
                    connection.commit()
                    with self._moved:
                        self.transactions += 1
                        self._moved.notify_all()
        except BaseException as error:  # noqa: BLE001 - the test must see it
            with self._moved:
                self.errors.append(error)
                self._moved.notify_all()

    @staticmethod
    def _transaction(cursor: Cursor, rng: random.Random, seed: int) -> None:
        """Move an amount. Each thread has its own rows, so there is no deadlock; the sum of all rows is constant."""
        one, other = (
            (rng.choice(_TABLES), rng.randrange(seed, _ROWS, 3) + 1),
            (rng.choice(_TABLES), rng.randrange(seed, _ROWS, 3) + 1),
        )
        amount = rng.randrange(1, 50)
        cursor.execute(f"UPDATE {one[0]} SET v = v - {amount}, moves = moves + 1 WHERE id = {one[1]}")
        cursor.execute(f"UPDATE {other[0]} SET v = v + {amount}, moves = moves + 1 WHERE id = {other[1]}")
        if rng.random() < 0.3:
            table, key = one
            cursor.execute(f"SELECT v FROM {table} WHERE id = {key}")
            found = cursor.fetchone()
            assert found is not None
            cursor.execute(f"DELETE FROM {table} WHERE id = {key}")
            cursor.execute(f"INSERT INTO {table} VALUES ({key}, {found[0]}, 0, REPEAT('x', {rng.randrange(200)}))")


@contextmanager
def writing(database: Database) -> Iterator[Writers]:
    writers = Writers(database)
    writers.start()
    try:
        yield writers
    finally:
        writers.stop()
        assert not writers.errors


def content(database: Database) -> Rows:
    """The rows of the tables, as records have them."""
    return {
        (f"live.{database.name}.{table}", f'{{"id":{key}}}'): {"id": key, "v": v, "moves": moves, "t": text}
        for table in _TABLES
        for key, v, moves, text in database.query(f"SELECT id, v, moves, t FROM {table}")
    }


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.nightly), 4])
@pytest.mark.parametrize("locking", ["minimal", "extended", "none", "single tables"])
def test_the_rows_are_the_state_at_the_offset_and_the_stream_continues_there(
    filled: Database,
    locking: str,
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(table_rows, "PART_ROWS", 150)
    caplog.set_level("INFO")
    database = filled
    before = snapshot(configured(database, {"snapshot.mode": "no_data"}))
    list(before.outputs())
    initial = content(database)
    with user(database, "LOCK TABLES") as limited:
        more = limited if locking == "single tables" else {"snapshot.locking.mode": locking}
        config = configured(database, {"snapshot.max.threads": str(threads), **more})
        outputs: list[Output] = []
        with writing(database) as writers:
            writers.wait_for(20)
            taken = snapshot(config)
            with closing(taken.outputs()) as remaining:
                for output in remaining:
                    outputs.append(output)
                    if locking in ("minimal", "none") and markers([output]):
                        writers.wait_for(3)  # no lock: they write between the batches of rows
            writers.wait_for(20)
        end = binlog_end(database.server)
    if threads > 1 and locking != "none":
        assert "reading 3 tables with 4 connections" in caplog.messages
    rows: Rows = {}
    apply(rows, outputs)
    assert len(markers(outputs)) == len(rows) == len(initial)
    assert sum(row["v"] for row in rows.values()) == 100 * len(rows)

    state = dict(initial)
    reached = (taken.offset.file, taken.offset.pos)
    compared = locking == "none"
    for step in streamed(configured(database), before.tables, before.offset, end):
        apply(state, step.outputs)
        if not compared and (step.file, step.pos) >= reached:
            assert (step.file, step.pos) == reached
            assert state == rows, "the snapshot is not the state at its offset"
            compared = True
    assert compared
    final = content(database)
    assert state == final
    for step in streamed(configured(database), taken.tables, taken.offset, end):
        apply(rows, step.outputs)
    assert rows == final
