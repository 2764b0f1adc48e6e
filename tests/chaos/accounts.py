"""Checks that records have every change that `workload` made: none lost, repeated or out of order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Series", "account", "accounts_of", "entries_of", "made_problems", "sent_problems"]


@dataclass
class Series:
    """Sequences of consecutive numbers.

    Attributes:
        last: the last number of each sequence.
        repeated: how many numbers were repeated.
        problems: descriptions of gaps and of other errors.
    """

    last: dict[int | str, int] = field(default_factory=dict)
    repeated: int = 0
    problems: list[str] = field(default_factory=list)

    def follow(self, of: int | str, number: int) -> None:
        """Add the next number. A sequence may start anywhere, because a snapshot does not have deleted rows."""
        last = self.last.get(of, number - 1)
        if number > last + 1:
            self.problems.append(f"{of}: {number} follows {last}")
        if number <= last:
            self.repeated += 1
        self.last[of] = max(last, number)


def accounts_of(values: Iterable[bytes | None]) -> tuple[Series, dict[int, int]]:
    """The version sequences of ``accounts``, and the table that the records result in: version by id."""
    series, table = Series(), dict[int, int]()
    for payload in _payloads(values):
        before, after, op = payload["before"], payload["after"], payload["op"]
        if _starts_snapshot(payload):  # a new snapshot has no records of rows that were deleted after an aborted one
            series.last.clear()
            table.clear()
        if op == "r":
            series.last[after["id"]] = table[after["id"]] = after["v"]
        elif op == "d":
            if before["v"] > series.last.get(before["id"], 0):
                series.problems.append(f"{before['id']}: {before['v']} is deleted before it is written")
            table.pop(before["id"], None)
        else:
            if after["v"] > series.last.get(after["id"], 0) and (op == "u") != (after["id"] in table):
                series.problems.append(f"{after['id']}: {after['v']} has op {op}")
            if before is not None and before["v"] != after["v"] - 1:
                series.problems.append(f"{after['id']}: {after['v']} follows {before['v']}")
            series.follow(after["id"], after["v"])
            table[after["id"]] = after["v"]
    return series, table


def entries_of(values: Iterable[bytes | None]) -> Series:
    """The number sequences of ``entries``, by writer."""
    series, at_start = Series(), dict[int, set[int]]()
    for payload in _payloads(values):
        after = payload["after"]
        writer, number = after["writer"], after["n"]
        if _starts_snapshot(payload):
            series.last.clear()
            at_start.clear()
        if payload["op"] == "r":
            at_start.setdefault(writer, set()).add(number)
            series.last[writer] = max(number, series.last.get(writer, 0))
        else:
            series.follow(writer, number)
    for writer, numbers in at_start.items():
        if len(numbers) != max(numbers):
            series.problems.append(f"{writer}: {max(numbers) - len(numbers)} are not in the snapshot")
    return series


def _starts_snapshot(payload: Mapping[str, Any]) -> bool:
    return payload["source"]["snapshot"] in {"first", "first_in_data_collection"}


def _payloads(values: Iterable[bytes | None]) -> Iterable[Mapping[str, Any]]:
    return (json.loads(value) for value in values if value is not None)


def account(
    accounts: Iterable[bytes | None],
    entries: Iterable[bytes | None],
    table: Mapping[int, int],
    numbers: Mapping[int, int],
    *,
    exactly_once: bool,
) -> tuple[list[str], int]:
    """Problems of the records, and the number of repeated records.

    Args:
        accounts: the values in the topic of ``accounts``, in order.
        entries: the values in the topic of ``entries``, in order.
        table: the final rows of ``accounts``: version by id.
        numbers: the final number of rows of each writer in ``entries``.
        exactly_once: whether a repeated record is a problem.
    """
    versions, left = accounts_of(accounts)
    counted = entries_of(entries)
    problems = [f"accounts: {text}" for text in versions.problems]
    problems += [f"entries: {text}" for text in counted.problems]
    if left != dict(table):
        for key in sorted(left.keys() | table.keys()):
            if left.get(key) != table.get(key):
                problems.append(f"accounts: {key} is {left.get(key)}, not {table.get(key)}")
    if counted.last != dict(numbers):
        problems.append(f"entries: {counted.last}, not {dict(numbers)}")
    repeated = versions.repeated + counted.repeated
    if exactly_once and repeated:
        problems.append(f"{repeated} records are repeated")
    return problems, repeated


def sent_problems(
    sent: Mapping[str, Iterable[int]], rows: Mapping[str, int], *, exactly_once: bool
) -> tuple[list[str], int]:
    """Problems of the numbers that went through ``outbox``, and the number of repeated ones.

    Args:
        sent: the numbers of each kind, in order. The outbox pattern leaves nothing that tells a snapshot, so a sequence
            may begin again at 1, as after an aborted snapshot.
        rows: the final number of rows of each kind.
        exactly_once: whether a repeated number is a problem.
    """
    series = Series()
    for kind, numbers in sent.items():
        series.last[kind] = 0
        for number in numbers:
            if number == 1:
                series.last[kind] = 0
            series.follow(kind, number)
    problems = [f"outbox: {text}" for text in series.problems]
    problems += [
        f"outbox: {kind} ends with {series.last.get(kind, 0)}, not {count}"
        for kind, count in sorted(rows.items())
        if series.last.get(kind, 0) != count
    ]
    if exactly_once and series.repeated:
        problems.append(f"outbox: {series.repeated} records are repeated")
    return problems, series.repeated


def made_problems(
    made: Mapping[str, Iterable[bytes | None]], rows: Mapping[str, set[int]], *, exactly_once: bool
) -> list[str]:
    """Problems of the tables that were made meanwhile.

    Args:
        made: the values in the topic of each table.
        rows: the final keys of each table; none is ever deleted.
        exactly_once: whether a repeated record of an insertion is a problem.
    """
    problems = []
    for table, values in made.items():
        payloads = list(_payloads(values))
        found = {payload["after"]["id"] for payload in payloads}
        if found != rows[table]:
            problems.append(f"{table} has rows {sorted(found)}, not {sorted(rows[table])}")
        created = [payload["after"]["id"] for payload in payloads if payload["op"] == "c"]
        if exactly_once and len(created) != len(set(created)):
            problems.append(f"{table} has repeated records: {created}")
    return problems
