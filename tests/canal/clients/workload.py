"""The load: every row change is planned from a seed, so that what a client gets can be compared with it.

Each writer has a table of its own, whose changes are in the order of the plan. Each change of a row has a number ``n``,
which increases within the table; the values of a row depend on it alone. Now and then, the table gets a further column.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rowtide_stack import Database

__all__ = ["Load", "Row", "Transaction", "planned", "table"]

_KEYS = 5000
_SMALL, _LARGE = 12, 600
"""The most rows of a statement."""
_COLUMNS = 6
"""How many columns are added to each table."""
_LARGE_SHARE = 0.02
_NOTES = "né ☃ 水 "


class Row(NamedTuple):
    r"""A change of a row as a client shows it: the kind of statement, and both images; ``\N`` stands for NULL."""

    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Transaction:
    """A transaction of one writer.

    Attributes:
        statements: of SQL.
        rows: its changes, in their order; none if it alters the table.
    """

    statements: list[str]
    rows: list[Row]


def table(writer: int) -> str:
    """The table of a writer."""
    return f"load_{writer}"


def _image(key: int, n: int, columns: int = 0) -> tuple[str, ...]:
    added = [str(number) for number in range(columns)]
    return str(key), str(n), r"\N" if n % 7 == 0 else f"{n} {_NOTES * (n % 9)}.", *added


def _literal(key: int, n: int) -> str:
    _, _, note = _image(key, n)
    return f"({key}, {n}, {'NULL' if n % 7 == 0 else repr(note)})"


def planned(seed: int, writer: int, changes: int) -> Iterator[Transaction]:
    """The transactions of a writer, with about so many changes in all."""
    chance = random.Random(f"{seed} {writer}")
    keys: dict[int, int] = {}
    n = made = columns = 0
    while made < changes:
        if made * (_COLUMNS + 1) // changes > columns:
            yield Transaction([f"ALTER TABLE {table(writer)} ADD COLUMN c{columns} INT NOT NULL DEFAULT {columns}"], [])
            columns += 1
        statements, rows = [], []
        for _ in range(chance.randint(1, 5)):
            size = chance.randint(_SMALL, _LARGE) if chance.random() < _LARGE_SHARE else chance.randint(1, _SMALL)
            first = chance.randrange(_KEYS)
            wanted = range(first, first + size)
            found = [key for key in wanted if key in keys]
            kind = chance.choice(["INSERT", "UPDATE", "UPDATE", "DELETE"])
            if kind == "INSERT":
                found = [key for key in wanted if key not in keys]
            if not found:
                continue
            base = n + 1
            if kind == "INSERT":
                values = ", ".join(_literal(key, base + key - first) for key in found)
                statements.append(f"INSERT INTO {table(writer)} (id, n, note) VALUES {values}")
            else:
                where = f"WHERE id BETWEEN {first} AND {first + size - 1} ORDER BY id"
                note = f"IF(n % 7 = 0, NULL, CONCAT(n, ' ', REPEAT('{_NOTES}', n % 9), '.'))"
                change = f"UPDATE {table(writer)} SET n = id + {base - first}, note = {note} "
                statements.append((change if kind == "UPDATE" else f"DELETE FROM {table(writer)} ") + where)
            for key in found:
                before = _image(key, keys[key], columns) if kind != "INSERT" else ()
                if kind == "DELETE":
                    del keys[key]
                else:
                    keys[key] = base + key - first
                rows.append(Row(kind, before, _image(key, keys[key], columns) if kind != "DELETE" else ()))
            n = base + size
        if rows:
            made += len(rows)
            yield Transaction(statements, rows)


class Load:
    """Writers, each in a thread, which write a part of their transactions and wait until they may continue.

    Args:
        database: of the tables, which are created.
        plans: the transactions of each writer.
    """

    def __init__(self, database: Database, plans: list[list[Transaction]]) -> None:
        self._database = database
        self._plans = plans
        self._share = 0.0
        self._allowed = threading.Condition()
        self._ended = False
        self.failures: list[Exception] = []
        columns = "id INT PRIMARY KEY, n INT NOT NULL, note VARCHAR(200)"
        database.execute(*[f"CREATE TABLE {table(writer)} ({columns})" for writer in range(len(plans))])
        self._threads = [threading.Thread(target=self._run, args=(plan,)) for plan in plans]
        for thread in self._threads:
            thread.start()

    def allow(self, share: float) -> None:
        """Let the writers go on until this share of their changes is written."""
        with self._allowed:
            self._share = share
            self._allowed.notify_all()

    def close(self) -> None:
        """End the writers, and wait for them."""
        with self._allowed:
            self._ended = True
            self._allowed.notify_all()
        for thread in self._threads:
            thread.join()

    def _may_write(self, share: float) -> bool:
        with self._allowed:
            self._allowed.wait_for(lambda: self._ended or share < self._share)
            return not self._ended

    def _run(self, plan: list[Transaction]) -> None:
        try:
            with self._database.connect(autocommit=False) as connection, connection.cursor() as cursor:
                written, changes = 0, sum(len(transaction.rows) for transaction in plan)
                for transaction in plan:
                    if not self._may_write(written / changes):
                        return
                    written += len(transaction.rows)
                    for statement in transaction.statements:
                        cursor.execute(statement)
                    connection.commit()
        except Exception as failure:  # noqa: BLE001 - reported by the campaign
            self.failures.append(failure)
