"""Positions in the binlog, and Debezium's rule which of two comes first, for the recovery of the history.

The rule is ``BinlogHistoryRecordComparator.isPositionAtOrBefore``. A position comes from a history record or an offset.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

_MARIADB_GTIDS = re.compile(r"\s*\d+-\d+-\d+\s*(?:,\s*\d+-\d+-\d+\s*)*\Z")

SourceFilter = Callable[[str], bool]
"""Accepts the source of a GTID: a uuid of MySQL, or ``domain-server`` of MariaDB."""


def file_number(name: str) -> int | None:
    """The number at the end of a binlog file's name, ``None`` if it has none, as a copy may."""
    number = name.rpartition(".")[2]
    return int(number) if number.isascii() and number.isdigit() else None


@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A place in the binlog, with Debezium's field names.

    Attributes:
        file: binlog file name, ``""`` if not known.
        pos: position in the file.
        gtids: executed GTID set, ``None`` without GTIDs.
        event: events of the transaction after ``pos`` that are done.
        row: rows of the next event that are done.
        server_id: 0 if not known.
        ts_sec: seconds since the epoch; 0 if not known.
        snapshot: whether a snapshot was under way.
    """

    file: str
    pos: int
    gtids: str | None = None
    event: int = 0
    row: int = 0
    server_id: int = 0
    ts_sec: int = 0
    snapshot: bool = False

    @classmethod
    def from_map(cls, fields: Mapping[str, Any]) -> "BinlogPosition":
        """Read the ``position`` of a history record, or an offset.

        Raises:
            ValueError: a number is none; the message names the field.
        """

        def number(name: str) -> int:
            try:
                return int(fields.get(name) or 0)
            except (TypeError, ValueError):
                raise ValueError(f"{name!r} of a binlog position must be a number, not {fields[name]!r}") from None

        return cls(
            file=str(fields.get("file") or ""),
            pos=number("pos"),
            gtids=fields.get("gtids"),
            event=number("event"),
            row=number("row"),
            server_id=number("server_id"),
            ts_sec=number("ts_sec"),
            snapshot=str(fields.get("snapshot") or "false").lower() != "false",
        )

    @property
    def base_name(self) -> str:
        """The file name without its number; positions in files of different base names cannot be compared."""
        return self.file.rpartition(".")[0]

    @property
    def file_number(self) -> int:
        """The number of the file.

        Raises:
            ValueError: the name does not end with one.
        """
        number = file_number(self.file)
        if number is None:
            raise ValueError(f"binlog file name {self.file!r} does not end with a number")
        return number


class PositionFilter:
    """What belongs to the state at one position: the rule of `is_at_or_before` for many records.

    Args:
        desired: position to which the history is recovered.
        keep: sources of GTIDs that count, all if ``None``.
    """

    def __init__(self, desired: BinlogPosition, keep: SourceFilter | None = None) -> None:
        self._desired = desired
        self._keep = keep
        self._gtids = None if desired.gtids is None else parse_gtids(desired.gtids, keep)

    def includes(self, recorded: BinlogPosition) -> bool:
        """Whether what was recorded at a position is part of it.

        Raises:
            ValueError: a GTID set or a file name cannot be read.
        """
        desired = self._desired
        if recorded.gtids is not None and self._gtids is not None:
            return self._by_gtids(recorded, parse_gtids(recorded.gtids, self._keep), self._gtids)
        if recorded.gtids is not None or desired.gtids is not None:
            return recorded.gtids is None
        if recorded.server_id and desired.server_id and recorded.server_id != desired.server_id:
            return recorded.ts_sec <= desired.ts_sec
        if recorded.base_name != desired.base_name:
            return True
        return _place(recorded) <= _place(desired)

    def _by_gtids(
        self, recorded: BinlogPosition, before: GtidSet | MariadbGtidPosition, after: GtidSet | MariadbGtidPosition
    ) -> bool:
        desired = self._desired
        if before == after:
            if desired.snapshot and not recorded.snapshot:
                return False
            if (
                not recorded.snapshot
                and recorded.event == desired.event
                and recorded.base_name
                and recorded.base_name == desired.base_name
            ):
                # Debezium takes the record in any case. But one behind the position is that of the next statement,
                # whose offset was not stored before a crash; it comes again, and must not be applied twice.
                return _place(recorded)[:2] <= _place(desired)[:2]
            return recorded.event <= desired.event
        if isinstance(before, GtidSet) and isinstance(after, GtidSet):
            return before <= after
        if isinstance(before, MariadbGtidPosition) and isinstance(after, MariadbGtidPosition):
            return before <= after
        return not before  # an empty set, which is that of any server


def is_at_or_before(recorded: BinlogPosition, desired: BinlogPosition, keep: SourceFilter | None = None) -> bool:
    """Whether what was recorded at one position belongs to the state at another.

    GTIDs decide if both have them; a position with GTIDs comes after one without. Without GTIDs the time decides
    between two servers, and on one server file, position, event and row. Files of different base names cannot be
    compared: the answer is then true, so that no change of structure is left out.

    Args:
        recorded: position of a history record.
        desired: position to which the history is recovered.
        keep: sources of GTIDs that count, all if ``None``.

    Raises:
        ValueError: a GTID set or a file name cannot be read.
    """
    return PositionFilter(desired, keep).includes(recorded)


def _place(position: BinlogPosition) -> tuple[int, int, int, int]:
    return position.file_number, position.pos, position.event, position.row


def parse_gtids(text: str, keep: SourceFilter | None = None) -> GtidSet | MariadbGtidPosition:
    """A GTID set of MySQL, or a position of MariaDB.

    Args:
        text: as a position has it.
        keep: sources that count, all if ``None``.

    Raises:
        ValueError: it is neither.
    """
    if _MARIADB_GTIDS.match(text):
        position = MariadbGtidPosition.parse(text)
        return position.filter(keep) if keep else position
    gtids = GtidSet.parse(text)
    return gtids.filter(keep) if keep else gtids
