"""Transactions whose row changes can all be checked.

Each writer has its own rows in ``accounts``. Every change increments ``v`` of its row, also across a deletion, since
``versions`` keeps it in the same transaction. For each transaction, the writer adds a row without a key to ``entries``,
with the next ``n``, and one row event with several rows to ``outbox``, with the next numbers of two kinds. A record
that is lost, repeated or out of order breaks one of these sequences.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING

import pymysql

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

    from tests.chaos.primary import Primary

__all__ = ["TABLES", "Reshaper", "Writer"]

TABLES = (
    "CREATE TABLE accounts (id INT PRIMARY KEY, v BIGINT NOT NULL, note VARCHAR(300))",
    "CREATE TABLE versions (id INT PRIMARY KEY, v BIGINT NOT NULL)",
    "CREATE TABLE entries (writer INT NOT NULL, n BIGINT NOT NULL, note VARCHAR(300), KEY (writer, n))",
    "CREATE TABLE outbox (id BIGINT AUTO_INCREMENT PRIMARY KEY, "
    + ", ".join(f"{name} VARCHAR(20)" for name in ("aggregatetype", "aggregateid", "type", "payload"))
    + ")",
)
_ROWS = 40
_SIZES = (20_000, *(1000,) * 10)
"""The rows of large insertions."""
_DAY_S = 86_400


class _Client(threading.Thread):
    """Repeats a step, and connects again when the connection breaks."""

    def __init__(self, primary: Primary, database: str, seed: int, pause_s: float) -> None:
        super().__init__(daemon=True)
        self._primary = primary
        self._database = database
        self._pause_s = pause_s
        self._random = random.Random(seed)
        self._ended = threading.Event()
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while not self._ended.is_set():
                with contextlib.suppress(pymysql.OperationalError, pymysql.InterfaceError):
                    self._work()
                time.sleep(0.2)
        except Exception as failure:  # noqa: BLE001 - raised by `end`
            self.failure = failure

    def _work(self) -> None:
        connection = self._primary.connect(self._database, autocommit=False, connect_timeout=5, read_timeout=30)
        try:
            with connection.cursor() as cursor:
                self._begin(cursor)
                while not self._ended.wait(self._pause_s * self._random.random() * 2):
                    self._step(connection, cursor)
        finally:
            with contextlib.suppress(pymysql.Error, OSError):
                connection.close()

    def _begin(self, cursor: Cursor) -> None:
        """Read the state, and end what an earlier connection has left."""

    def _step(self, connection: Connection[Cursor], cursor: Cursor) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Stop, and raise the error of the thread if there was one."""
        self._ended.set()
        self.join(60)
        if self.failure is not None:
            raise self.failure


class Writer(_Client):
    """Writes transactions of all sizes; some are rolled back, and some are XA transactions.

    Args:
        primary: where to write.
        database: the database with `TABLES`.
        number: the number of the writer, from 0.
        seed: the seed of its decisions.
        xa: whether it writes XA transactions.
    """

    def __init__(self, primary: Primary, database: str, number: int, seed: int, *, xa: bool = False) -> None:
        super().__init__(primary, database, seed, 0.1)
        self._number = number
        self._xa = xa
        self._versions: dict[int, int] = {}
        self._present: set[int] = set()
        self._n = 0
        self._sent = 0

    def _begin(self, cursor: Cursor) -> None:
        self._finish(cursor)
        first, end = self._number * _ROWS, (self._number + 1) * _ROWS
        cursor.execute("SELECT id, v FROM versions WHERE id >= %s AND id < %s", (first, end))
        self._versions = dict.fromkeys(range(first, end), 0) | dict(cursor.fetchall())
        cursor.execute("SELECT id FROM accounts WHERE id >= %s AND id < %s", (first, end))
        self._present = {number for (number,) in cursor.fetchall()}
        cursor.execute("SELECT COALESCE(MAX(n), 0) FROM entries WHERE writer = %s", (self._number,))
        self._n = int(cursor.fetchall()[0][0])
        cursor.execute("SELECT COUNT(*) FROM outbox WHERE aggregatetype = %s", (f"{self._number}a",))
        self._sent = int(cursor.fetchall()[0][0])
        cursor.execute("COMMIT")

    def finish(self) -> None:
        """End prepared transactions."""
        with self._primary.connect(None) as connection, connection.cursor() as cursor:
            self._finish(cursor)

    def _finish(self, cursor: Cursor) -> None:
        if self._xa:
            cursor.execute("XA RECOVER")
            for *_, xid in cursor.fetchall():
                name = xid if isinstance(xid, str) else xid.decode()
                cursor.execute(f"XA {self._random.choice(['COMMIT', 'ROLLBACK'])} '{name}'")

    def _step(self, connection: Connection[Cursor], cursor: Cursor) -> None:
        state = self._state()
        step = self._random.uniform(-_DAY_S, _DAY_S) if self._random.random() < 0.05 else None
        cursor.execute(f"SET timestamp = {'DEFAULT' if step is None else int(time.time() + step)}")
        name = f"w{self._number}-{random.getrandbits(64):x}"
        cursor.execute(f"XA START '{name}'" if self._xa else "BEGIN")
        self._change(cursor)
        if not self._xa and self._random.random() < 0.2:
            inner = self._state()
            cursor.execute("SAVEPOINT s")
            self._change(cursor)
            cursor.execute("ROLLBACK TO s")
            self._versions, self._present, self._n, self._sent = inner
        committed = self._random.random() < 0.85
        if self._xa:
            cursor.execute(f"XA END '{name}'")
            cursor.execute(f"XA PREPARE '{name}'")
            self._ended.wait(self._random.random())
            cursor.execute(f"XA {'COMMIT' if committed else 'ROLLBACK'} '{name}'")
        else:
            cursor.execute("COMMIT" if committed else "ROLLBACK")
        if not committed:
            self._versions, self._present, self._n, self._sent = state

    def _state(self) -> tuple[dict[int, int], set[int], int, int]:
        return dict(self._versions), set(self._present), self._n, self._sent

    def _change(self, cursor: Cursor) -> None:
        for number in self._random.sample(sorted(self._versions), self._random.randint(1, 6)):
            self._versions[number] += 1
            version = self._versions[number]
            if number not in self._present:
                cursor.execute("INSERT INTO accounts (id, v, note) VALUES (%s, %s, 'new')", (number, version))
                self._present.add(number)
            elif self._random.random() < 0.15:
                # the record of the deletion has the last version as ``before``
                self._versions[number] = version = version - 1
                cursor.execute("DELETE FROM accounts WHERE id = %s", (number,))
                self._present.discard(number)
            else:
                note = "x" * self._random.randint(0, 300)
                cursor.execute("UPDATE accounts SET v = %s, note = %s WHERE id = %s", (version, note, number))
            cursor.execute("REPLACE INTO versions VALUES (%s, %s)", (number, version))
        count = self._random.choice(_SIZES) if self._random.random() < 0.01 else 1
        rows = ",".join(f"({self._number}, {self._n + each}, REPEAT('y', 100))" for each in range(1, count + 1))
        cursor.execute(f"INSERT INTO entries (writer, n, note) VALUES {rows}")
        self._n += count
        # The rows of one event have different topics with the outbox transform.
        sent = [(f"{self._number}{kind}", self._sent + step) for step in (1, 2) for kind in "ab"]
        rows = ",".join(f"('{kind}', '{self._number}', 'sent', '{number}')" for kind, number in sent)
        cursor.execute(f"INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES {rows}")
        self._sent += 2


class Reshaper(_Client):
    """Alters the tables during the writes, makes new ones, and rotates the binlog.

    Args:
        primary: where to write.
        database: the database with `TABLES`.
        seed: the seed of its decisions.
    """

    def __init__(self, primary: Primary, database: str, seed: int) -> None:
        super().__init__(primary, database, seed, 3.0)
        self._made = 0

    def _step(self, connection: Connection[Cursor], cursor: Cursor) -> None:
        table = self._random.choice(("accounts", "entries"))
        cursor.execute(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s "
            "AND COLUMN_NAME LIKE 'extra%%'",
            (table,),
        )
        extra = sorted(name for (name,) in cursor.fetchall())
        choice = self._random.random()
        if choice < 0.2:
            cursor.execute("FLUSH BINARY LOGS")
        elif choice < 0.4:
            self._make(connection, cursor)
        elif extra and self._random.random() < 0.5:
            cursor.execute(f"ALTER TABLE {table} DROP COLUMN {self._random.choice(extra)}")
        else:
            place = self._random.choice(("FIRST", "", "AFTER note"))
            kind = self._random.choice(("INT DEFAULT 5", "VARCHAR(20) DEFAULT 'e'", "DECIMAL(10,2)"))
            cursor.execute(f"ALTER TABLE {table} ADD COLUMN extra{random.getrandbits(40)} {kind} {place}")

    def _make(self, connection: Connection[Cursor], cursor: Cursor) -> None:
        """Make a table with some rows."""
        self._made += 1
        name = f"made_{self._made}_{random.getrandbits(24):x}"
        cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
        for number in range(self._random.randint(1, 3)):
            cursor.execute(f"INSERT INTO {name} VALUES ({number})")
            connection.commit()
