"""The parts of all tables of a snapshot, in the order in which connections take them. Pure.

A large table is divided into ranges of its key; small tables and those without a key are read in one part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rowtide.connector.snapshot.chunks.key_ranges import Bound, KeyRanges, row_key
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.connector.source.server_queries import ListedTable
from rowtide.schema_history.model import Table

Query = Callable[[str], Sequence[tuple[Any, ...]]]
"""Runs a query and returns its rows."""


@dataclass(frozen=True, slots=True)
class TableToRead:
    """A table whose rows are read.

    Attributes:
        listed: its name and estimated rows.
        captured: makes records of its rows.
        query: the statement for all of its rows.
        ranges: the ranges of its key; ``None`` if it is read in one part.
    """

    listed: ListedTable
    captured: SnapshotTable
    query: str
    ranges: KeyRanges | None = None


def key_ranges(listed: ListedTable, table: Table, rows: int) -> KeyRanges | None:
    """Return the ranges into which a table is divided; ``None`` if it is small, or its key cannot be compared exactly.

    Args:
        listed: its name and estimated rows.
        table: its structure.
        rows: the rows of a part.
    """
    key = row_key(table)
    if key is None or (listed.rows is not None and listed.rows <= rows):
        return None
    try:
        return key.ranges(listed.id)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class TablePart:
    """A part of a table: the rows of a query.

    Attributes:
        place: the table's place among all.
        number: the part's number in its table, from 0.
        upper: its last key; ``None`` for the last part.
        total: the parts of its table; before the last one is returned, this is based on the server's estimate of rows.
    """

    place: int
    table: TableToRead
    query: str
    number: int = 0
    upper: Bound | None = None
    total: int = 1


class TableParts:
    """Returns the parts of some tables, table by table. Only one thread at a time may call a method.

    Args:
        tables: the tables in the order of reading.
        rows: the rows of a part.
    """

    def __init__(self, tables: Sequence[TableToRead], rows: int) -> None:
        self._tables = tables
        self._rows = rows
        self._next = 0
        self._number = 0
        self._lower: Bound | None = None
        self._unread = [0] * len(tables)

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self._tables)

    @property
    def current(self) -> TableToRead | None:
        """The table that the next part belongs to; ``None`` after the last one."""
        return self._tables[self._next] if self._next < len(self._tables) else None

    def take(self, query: Query) -> TablePart | None:
        """Return the next part; ``None`` if there is none left.

        Args:
            query: runs the query for the last key of the part.
        """
        table = self.current
        if table is None:
            return None
        place = self._next
        self._unread[place] += 1
        if table.ranges is None:
            self._next += 1
            return TablePart(place, table, table.query)
        lower, number = self._lower, self._number
        found = query(table.ranges.bound_query(lower, self._rows))
        upper = self._lower = table.ranges.bound(found[0]) if found else None
        self._number += 1
        if upper is None:
            self._next, self._number = self._next + 1, 0
        total = number + 1 if upper is None else max(number + 2, -(-(table.listed.rows or 0) // self._rows))
        return TablePart(place, table, f"{table.query} WHERE {table.ranges.where(lower, upper)}", number, upper, total)

    def completed(self, part: TablePart) -> bool:
        """Note that a part was read, and return whether it was the last one of its table."""
        self._unread[part.place] -= 1
        return not self._unread[part.place] and part.place < self._next
