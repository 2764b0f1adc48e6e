"""Positions in the binlog, and Debezium's rule for their order in the recovery of the history.

The rule is ``BinlogHistoryRecordComparator.isPositionAtOrBefore``. A position comes from a history record or an offset.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

_MARIADB_GTIDS = re.compile(r"\s*\d+-\d+-\d+\s*(?:,\s*\d+-\d+-\d+\s*)*\Z")

SourceFilter = Callable[[str], bool]
"""Whether a source of GTIDs counts: MySQL's uuid, or MariaDB's ``domain-server``."""


def file_number(name: str) -> int | None:
    """Return the number at the end of a binlog file name; ``None`` if there is none, as in the name of a copy."""
    number = name.rpartition(".")[2]
    return int(number) if number.isascii() and number.isdigit() else None


@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A position in the binlog, with Debezium's field names.

    Attributes:
        file: binlog file name, ``""`` if not known.
        pos: position in the file.
        gtids: executed GTID set, ``None`` without GTIDs.
        event: number of events of the transaction after ``pos`` that are processed.
        row: number of rows of the next event that are processed.
        server_id: 0 if not known.
        ts_sec: seconds since the epoch; 0 if not known.
        snapshot: whether it was stored during a snapshot.
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
        """Parse the ``position`` of a history record, or an offset.

        Raises:
            ValueError: a field has the wrong type; the message names it.
        """
        gtids = fields.get("gtids")
        if gtids is not None and not isinstance(gtids, str):
            raise ValueError(f"'gtids' of a binlog position must be a string, not {gtids!r:.80}")

        def number(name: str) -> int:
            try:
                return int(fields.get(name) or 0)
            except (TypeError, ValueError, OverflowError):
                raise ValueError(f"{name!r} of a binlog position must be a number, not {fields[name]!r:.80}") from None

        return cls(
            file=str(fields.get("file") or ""),
            pos=number("pos"),
            gtids=gtids,
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
            ValueError: the file name does not end with a number.
        """
        number = file_number(self.file)
        if number is None:
            raise ValueError(f"binlog file name {self.file!r} does not end with a number")
        return number


class PositionFilter:
    """Selects the records that belong to the state at a position.

    If both positions have GTIDs, their sets are compared; a position with GTIDs comes after one without. Without GTIDs,
    positions of two servers are compared by time, and those of one server by file, position, event and row. Files with
    different base names cannot be compared: the record then belongs to the state, so no change is ignored.

    Args:
        desired: the position up to which the history is recovered.
        keep: selects the sources of GTIDs that count; ``None`` for all.
    """

    def __init__(self, desired: BinlogPosition, keep: SourceFilter | None = None) -> None:
        self._desired = desired
        self._keep = keep
        self._gtids = None if desired.gtids is None else parse_gtids(desired.gtids, keep)

    def includes(self, recorded: BinlogPosition) -> bool:
        """Return whether a record at a position belongs to the state.

        Raises:
            ValueError: a GTID set or a file name cannot be parsed.
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
        return _sort_key(recorded) <= _sort_key(desired)

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
                # Debezium uses the record in any case. But a record after the position belongs to the next statement,
                # whose offset was not stored before a crash: it is read again, and must not be applied twice.
                return _sort_key(recorded)[:2] <= _sort_key(desired)[:2]
            return recorded.event <= desired.event
        if isinstance(before, GtidSet) and isinstance(after, GtidSet):
            return before <= after
        if isinstance(before, MariadbGtidPosition) and isinstance(after, MariadbGtidPosition):
            return before <= after
        return not before  # an empty set belongs to either server


def _sort_key(position: BinlogPosition) -> tuple[int, int, int, int]:
    return position.file_number, position.pos, position.event, position.row


def parse_gtids(text: str, keep: SourceFilter | None = None) -> GtidSet | MariadbGtidPosition:
    """Parse a GTID set of MySQL, or a GTID position of MariaDB.

    Args:
        text: as in a position.
        keep: selects the sources that count; ``None`` for all.

    Raises:
        ValueError: the text is neither.
    """
    if _MARIADB_GTIDS.match(text):
        position = MariadbGtidPosition.parse(text)
        return position.filter(keep) if keep else position
    gtids = GtidSet.parse(text)
    return gtids.filter(keep) if keep else gtids
