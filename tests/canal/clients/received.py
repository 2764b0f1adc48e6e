"""What a client got, compared with the plan: every change, in order, and repeats from the stored position on only.

A client program writes lines whose fields are separated by tabs::

    connected                                   it has subscribed
    batch ID                                    the lines of a batch follow
    at FILE POSITION                            the begin or the end of a transaction, or DDL
    row TABLE KIND BEFORE... | AFTER...         KIND INSERT, UPDATE or DELETE
    ack ID                                      it acknowledges the batch now
    lost REASON                                 its connection ended; it connects again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.canal.clients.workload import Row

__all__ = ["Position", "Received"]

_MOST_PROBLEMS = 20


class Position(NamedTuple):
    """A place in the binlog."""

    file: str
    pos: int


class Received:
    """The changes that one client got, which are checked as they come.

    Args:
        expected: the changes of each table, in their order.

    Attributes:
        repeated: how many changes came again.
        rewinds: the number of times changes came again.
        connections: the number of times the client has connected.
        lost: why its connections ended.
        problems: what is wrong.
    """

    def __init__(self, expected: Mapping[str, Sequence[Row]]) -> None:
        self.repeated = self.rewinds = self.connections = 0
        self.lost: list[str] = []
        self.problems: list[str] = []
        self._expected = expected
        self._order: list[tuple[str, int]] = []  # of all changes: the table, and the number in it
        self._next = 0  # in this order
        self._counts = dict.fromkeys(expected, 0)
        self._reached: dict[Position, int] = {}  # the number of changes before
        self._stored: list[int] = []  # of each kill, the number of changes before it, until they come again from there
        self._begins = False  # a batch, whose first row shows whether changes come again
        self._waiting: list[Position] = []  # before that row

    @property
    def changes(self) -> int:
        """How many changes have come, each counted once."""
        return len(self._order)

    @property
    def complete(self) -> bool:
        """Whether all changes have come."""
        return all(self._counts[table] == len(rows) for table, rows in self._expected.items())

    def killed(self, stored: Position | None) -> None:
        """The server was killed; its next start resumes after the stored position.

        A slow client may still show what an earlier server gave it: the positions of earlier kills stay until changes
        have come again from a later one.
        """
        if stored is not None and stored not in self._reached:
            self._problem(f"{stored} is stored, which the client did not get")
            return
        self._stored.append(0 if stored is None else self._reached[stored])

    def feed(self, line: str) -> None:
        """Take a line of the client."""
        kind, *fields = line.split("\t")
        match kind:
            case "connected":
                self.connections += 1
            case "lost":
                self.lost.append(fields[0])
            case "batch":
                self._begins = True
            case "at":
                position = Position(fields[0], int(fields[1]))
                if self._begins:
                    self._waiting.append(position)
                else:
                    self._reach(position)
            case "row":
                bar = fields.index("|")
                self._row(fields[0], Row(fields[1], tuple(fields[2:bar]), tuple(fields[bar + 1 :])))
            case "ack":
                self._reach_waiting()
            case _:
                self._problem(f"the client writes {line!r}")

    def _reach(self, position: Position) -> None:
        if self._reached.setdefault(position, self._next) != self._next:
            self._problem(f"{position} came again in another place")

    def _reach_waiting(self) -> None:
        for position in self._waiting:
            self._reach(position)
        self._waiting.clear()

    def _row(self, table: str, row: Row) -> None:
        begins, self._begins = self._begins, False
        if begins and not self._is_at(self._next, table, row):
            self._rewind(table, row)
        self._reach_waiting()
        if self._is_at(self._next, table, row):
            self._go_on(table)
            return
        where = f"change {self._counts.get(table, 0) + 1} of {table}"
        self._problem(f"{row} came instead of {where} ({self._next} changes before, {self._stored} stored)")

    def _rewind(self, table: str, row: Row) -> None:
        for kill, number in enumerate(self._stored):
            if number < self._next and self._is_at(number, table, row):
                self.rewinds += 1
                self._next = number
                del self._stored[: kill + 1]
                return

    def _is_at(self, number: int, table: str, row: Row) -> bool:
        if table not in self._expected:
            return False
        if number < len(self._order):
            known, index = self._order[number]
            return known == table and self._expected[table][index] == row
        rows, index = self._expected[table], self._counts[table]
        return index < len(rows) and rows[index] == row

    def _go_on(self, table: str) -> None:
        if self._next < len(self._order):
            self.repeated += 1
        else:
            self._order.append((table, self._counts[table]))
            self._counts[table] += 1
        self._next += 1

    def _problem(self, text: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(text)
