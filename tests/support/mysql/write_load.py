"""A load for tests of delivery: a writer that records every row change in order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tests.support.mysql.background_writer import BackgroundWriter

if TYPE_CHECKING:
    from rowtide_stack import Database

__all__ = ["Change", "WriteLoad"]

Change = tuple[str, int, int]
"""Operation (c, u, d), key, and the new number of the row (0 for a deletion)."""

_COUNTERS = 300


class WriteLoad(BackgroundWriter):
    """Writes small and large transactions, and sometimes changes the structure, until it is stopped.

    Args:
        database: a database that nothing else uses.
        seed: the seed of the random numbers.

    Attributes:
        changes: row changes by table, in the order of the binlog.
        statements: changes of structure, in that order.
        transactions: the number of transactions.
    """

    def __init__(self, database: Database, seed: int = 1) -> None:
        super().__init__(database)
        self.changes: dict[str, list[Change]] = {"counters": [], "events": []}
        self.statements: list[str] = []
        self.transactions = 0
        self._random = random.Random(seed)
        self._numbers = dict.fromkeys(range(_COUNTERS), 0)
        self._events: list[int] = []
        self._next_event = 1
        rows = ",".join(f"({key},0)" for key in range(_COUNTERS))
        database.execute(
            "CREATE TABLE counters (id INT PRIMARY KEY, n INT NOT NULL)",
            "CREATE TABLE events (id INT PRIMARY KEY, n INT NOT NULL, pad VARCHAR(200))",
            f"INSERT INTO counters VALUES {rows}",
        )

    def _pause_s(self) -> float:
        return self._random.choice((0.002, 0.01, 0.03))

    def _write(self, connection: Any, cursor: Any) -> None:
        self._change(cursor)
        connection.commit()

    def _change(self, cursor: Any) -> None:
        kind = self._random.random()
        if kind < 0.003:
            statement = f"ALTER TABLE counters ADD COLUMN x{len(self.statements)} INT"
            cursor.execute(statement)
            self.statements.append(statement)
            return
        self.transactions += 1
        cursor.execute("BEGIN")
        if kind < 0.02:
            for _ in range(self._random.randint(1, 4)):
                self._update(cursor, 0, _COUNTERS)
                self._insert(cursor, self._random.randint(50, 400))
        elif kind < 0.6:
            first = self._random.randrange(_COUNTERS)
            self._update(cursor, first, first + self._random.randint(1, 12))
        elif kind < 0.8 or not self._events:
            self._insert(cursor, self._random.randint(1, 5))
        else:
            key = self._events.pop(self._random.randrange(len(self._events)))
            cursor.execute(f"DELETE FROM events WHERE id={key}")
            self.changes["events"].append(("d", key, 0))

    def _update(self, cursor: Any, first: int, last: int) -> None:
        cursor.execute(f"UPDATE counters SET n=n+1 WHERE id>={first} AND id<{last} ORDER BY id")
        for key in range(first, min(last, _COUNTERS)):
            self._numbers[key] += 1
            self.changes["counters"].append(("u", key, self._numbers[key]))

    def _insert(self, cursor: Any, count: int) -> None:
        keys = range(self._next_event, self._next_event + count)
        values = ",".join(f"({key},{key},'{'x' * (key % 150)}')" for key in keys)
        cursor.execute(f"INSERT INTO events (id,n,pad) VALUES {values}")
        self._next_event += count
        self._events += keys
        self.changes["events"] += [("c", key, key) for key in keys]
