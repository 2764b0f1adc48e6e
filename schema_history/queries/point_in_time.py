"""A point in a server's history, in the user's notation: a binlog position, a GTID set, a time, or ``end``."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

_FILE_AND_POSITION = re.compile(r"(?P<file>.*\.\d+):(?P<pos>\d+)")
_SECONDS = re.compile(r"\d{9,10}")
_MILLISECONDS = re.compile(r"\d{12,13}")


class InvalidPointInTime(SchemaHistoryError, ValueError):
    """The text is not a position, GTID set or time; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class PointInTime:
    """A point in a server's history.

    Attributes:
        text: as the user wrote it.
        position: a binlog position or a GTID set; ``None`` for a time, and for the end.
        time: seconds since the epoch; ``None`` for a position, and for the end.
    """

    text: str
    position: BinlogPosition | None = None
    time: float | None = None

    def filter(self) -> "PointInTimeFilter":
        """Return a filter for the positions up to this point."""
        return PointInTimeFilter(self)


class PointInTimeFilter:
    """Selects the changes that belong to the state at a point in time."""

    def __init__(self, point: PointInTime) -> None:
        self._time = point.time
        self._filter = PositionFilter(point.position) if point.position is not None else None
        self._by_gtids = point.position is not None and not point.position.file

    def includes(self, position: BinlogPosition) -> bool:
        """Return whether a change at ``position`` belongs to the state at the point in time.

        Raises:
            InvalidPointInTime: the point is a GTID set, and ``position`` has no GTIDs.
        """
        if self._time is not None:
            return position.ts_sec <= self._time
        if self._filter is None:
            return True
        if self._by_gtids:
            if position.gtids is None:
                raise InvalidPointInTime(
                    "the history has no GTIDs: use a file and position instead, such as binlog.000042:1234"
                )
            return self._filter.includes(BinlogPosition("", 0, position.gtids))
        return self._filter.includes(BinlogPosition(position.file, position.pos, None, position.event, position.row))


def parse_point_in_time(text: str) -> PointInTime:
    """Parse ``binlog.000042:1234``, a GTID set, a time as ISO 8601 or as a number since the epoch, or ``end``.

    Raises:
        InvalidPointInTime: the text is not one of these.
    """
    text = text.strip()
    if text.lower() == "end":
        return PointInTime(text)
    match = _FILE_AND_POSITION.fullmatch(text)
    if match is not None:
        return PointInTime(text, BinlogPosition(match["file"], int(match["pos"])))
    if _SECONDS.fullmatch(text) or _MILLISECONDS.fullmatch(text):
        return PointInTime(text, time=int(text) / (1 if _SECONDS.fullmatch(text) else 1000))
    try:
        time = datetime.fromisoformat(text)
        return PointInTime(text, time=(time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except ValueError:
        pass
    for parse in (GtidSet.parse, MariadbGtidPosition.parse):
        try:
            if parse(text):
                return PointInTime(text, BinlogPosition("", 0, text))
        except ValueError:
            continue
    raise InvalidPointInTime(
        f"invalid point in time {text!r}: expected a file and position (binlog.000042:1234), a GTID set, a time "
        "(2026-01-31T12:00:00Z, or seconds or milliseconds since 1970; without a zone it is UTC), or end"
    )
