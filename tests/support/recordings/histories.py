"""The versions of rows that result from applying the records of a topic one by one.

An independent reference for ``rowtide tables --history``, in plain Python.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.recordings.recorded_tables import Recorded

Place = tuple[int | None, int | None, int | None, int | None]
"""Milliseconds, number of the file, position and row."""


@dataclass
class Version:
    """A version of a row."""

    row: dict[str, Any]
    begin: Place
    end: Place | None = None

    def flat(self, columns: Iterable[str]) -> tuple[Any, ...]:
        """Return the values of columns, the begin, and the end."""
        return (*(self.row.get(name) for name in columns), self.begin, self.end)


@dataclass
class _History:
    """The versions so far."""

    seen: set[str] = field(default_factory=set)
    known: dict[str, Any] | None = None
    current: dict[str, Version] = field(default_factory=dict)
    all: list[Version] = field(default_factory=list)

    def add(self, record: Recorded) -> None:
        if record.value is None:
            return
        message = json.loads(record.value)
        change = message["payload"]
        written = json.dumps([change["op"], change["source"], change["before"], change["after"]])
        if change["op"] != "r":
            if written in self.seen:
                return
            self.seen.add(written)
        place = _place(change["source"])
        if change["op"] == "t":
            for key in list(self.current):
                self._end(key, place)
            return
        (after,) = (one for one in message["schema"]["fields"] if one["field"] == "after")
        self._alter({column["field"]: column.get("default") for column in after["fields"]})
        key = json.dumps(json.loads(record.key or "")["payload"])
        if change["op"] == "d":
            self._end(key, place)
            return
        row = change["after"]
        is_known = key in self.current and all(self.current[key].row.get(name) == row[name] for name in row)
        if change["op"] == "r" and is_known:
            return
        self._end(key, place)
        self.current[key] = Version(row, place)
        self.all.append(self.current[key])

    def _alter(self, columns: dict[str, Any]) -> None:
        """Give current versions the defaults of columns that were added."""
        for name, default in columns.items():
            if self.known is not None and name not in self.known:
                for version in self.current.values():
                    version.row[name] = default
        self.known = columns

    def _end(self, key: str, place: Place) -> None:
        if (version := self.current.pop(key, None)) is not None:
            version.end = place


def histories(records: Iterable[Recorded]) -> list[Version]:
    """Return all versions of the rows of a topic with one partition."""
    found = _History()
    for record in sorted(records, key=lambda record: record.offset):
        found.add(record)
    return found.all


def _place(source: Mapping[str, Any]) -> Place:
    number = source["file"].rpartition(".")[2]
    return source["ts_ms"], int(number) if number else None, source["pos"], source["row"]
