"""Questions about structures: as of which moment, of which tables, and what changed them."""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition, Reach
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.structure.show_create import show_create

_PLACE = re.compile(r"(?P<file>.*\.\d+):(?P<pos>\d+)")
_SECONDS = re.compile(r"\d{9,10}")
_WHOLE = 10_000  # lines around a difference: all of a table
_MILLISECONDS = re.compile(r"\d{12,13}")


class NotAMoment(ValueError):
    """A text that is no position, GTID set or time; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment in a server's history.

    Attributes:
        text: as it was given.
        position: a place in the binlog or a GTID set; ``None`` if it is a time, or the end.
        time: seconds since the epoch; ``None`` if it is a position, or the end.
    """

    text: str
    position: BinlogPosition | None = None
    time: float | None = None

    def reaches(self) -> "Filter":
        """What belongs to it."""
        return Filter(self)


class Filter:
    """Tells what belongs to the state at a moment."""

    def __init__(self, moment: Moment) -> None:
        self._time = moment.time
        self._reach = Reach(moment.position) if moment.position is not None else None
        self._by_gtids = moment.position is not None and not moment.position.file

    def includes(self, place: BinlogPosition) -> bool:
        """Whether what happened at a place is part of it.

        Raises:
            NotAMoment: the moment is a GTID set, and the place has none.
        """
        if self._time is not None:
            return place.ts_sec <= self._time
        if self._reach is None:
            return True
        if self._by_gtids:
            if place.gtids is None:
                raise NotAMoment("there are no GTIDs here: give a file and position, such as binlog.000042:1234")
            return self._reach.includes(BinlogPosition("", 0, place.gtids))
        return self._reach.includes(BinlogPosition(place.file, place.pos, None, place.event, place.row))


def moment(text: str) -> Moment:
    """Read a moment: ``binlog.000042:1234``, a GTID set, a time as ISO 8601 or a number, or ``end``.

    Raises:
        NotAMoment: it is none of these.
    """
    text = text.strip()
    if text.lower() == "end":
        return Moment(text)
    match = _PLACE.fullmatch(text)
    if match is not None:
        return Moment(text, BinlogPosition(match["file"], int(match["pos"])))
    if _SECONDS.fullmatch(text) or _MILLISECONDS.fullmatch(text):
        return Moment(text, time=int(text) / (1 if _SECONDS.fullmatch(text) else 1000))
    try:
        time = datetime.fromisoformat(text)
        return Moment(text, time=(time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except ValueError:
        pass
    for read in (GtidSet.parse, MariadbGtidPosition.parse):
        try:
            if read(text):
                return Moment(text, BinlogPosition("", 0, text))
        except ValueError:
            continue
    raise NotAMoment(
        f"{text!r} is no moment: expected a file and position (binlog.000042:1234), a GTID set, a time "
        "(2026-01-31T12:00:00Z, or seconds or milliseconds since 1970; without a zone it is UTC), or end"
    )


def chosen(tables: Tables, pattern: str) -> list[Table]:
    """The tables whose name ``database.table`` matches a pattern with ``*`` and ``?``, by name."""
    names = [table_id for table_id in tables.names() if fnmatchcase(str(table_id), pattern)]
    found = (tables.table(table_id.database, table_id.table) for table_id in sorted(names, key=str))
    return [table for table in found if table is not None]


def differences(before: Tables, after: Tables, pattern: str, server: Server, names: tuple[str, str]) -> Iterator[str]:
    """The lines of a unified diff of the tables' DDL between two moments.

    Args:
        before: the tables at the first moment.
        after: those at the second.
        pattern: which tables.
        server: decides about spelling.
        names: of the two moments.
    """
    old, new = ({table.id: table for table in chosen(tables, pattern)} for tables in (before, after))
    for table_id in sorted(old.keys() | new.keys(), key=str):
        yield from difflib.unified_diff(
            _lines(old.get(table_id), server),
            _lines(new.get(table_id), server),
            f"{table_id} at {names[0]}",
            f"{table_id} at {names[1]}",
            lineterm="",
            n=_WHOLE,
        )


def _lines(table: Table | None, server: Server) -> list[str]:
    return [] if table is None else show_create(table, server).split("\n")


@dataclass(frozen=True, slots=True)
class Change:
    """A statement that changed tables.

    Attributes:
        place: where it stands.
        ddl: its text.
        tables: the tables that it changed.
        moved: old and new name, where it gave a table another one.
    """

    place: BinlogPosition
    ddl: str
    tables: frozenset[TableId]
    moved: tuple[tuple[TableId, TableId], ...] = ()


def changes_of(changes: Iterable[Change], table_id: TableId) -> list[Change]:
    """What made the table of that name what it is, under its former names too; and what was of its name before."""
    logs: dict[TableId, list[Change]] = {}
    for change in changes:
        for old, new in change.moved:
            logs[new] = [*logs.get(new, []), *logs.pop(old, [])]
        for changed in change.tables - {old for old, _ in change.moved}:
            logs.setdefault(changed, []).append(change)
    return logs.get(table_id, [])
