"""The order of a record and a view of the source, by their positions in the binlog. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.reading.table_view import TableView
from rowtide.connector.snapshot.view.stream_order import binlog_order
from rowtide.decoder.topics import gtid_test


class Order(Enum):
    """Where the change of a record stands."""

    BEFORE = auto()
    """The view has it."""
    WITHIN = auto()
    """The view may have it."""
    AFTER = auto()
    """The view does not have it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands in the topic and in the binlog."""

    partition: int
    offset: int
    op: str
    file: str = ""
    pos: int = 0
    gtid: str | None = None
    snapshot: bool = False

    @classmethod
    def of(cls, partition: int, offset: int, op: str, at: SourcePosition | None) -> "Place":
        """The place of a change; a tombstone has no position in the binlog."""
        if at is None:
            return cls(partition, offset, op)
        return cls(partition, offset, op, at.file, at.pos, at.gtid, at.snapshot is not None)

    def as_list(self) -> list[Any]:
        """Its attributes, for JSON."""
        return [self.partition, self.offset, self.op, self.file, self.pos, self.gtid, self.snapshot]


class ViewOrder:
    """Compares records with a view.

    Args:
        view: where the view is in the binlog.
    """

    def __init__(self, view: TableView) -> None:
        self._seen, self._end = _test(view.seen), _test(view.end)

    def order(self, place: Place) -> Order:
        """Where the change of a record stands. That of a snapshot's row is not known."""
        if place.snapshot:
            return Order.WITHIN
        if self._seen(place):
            return Order.BEFORE
        return Order.AFTER if self._end(place) is False else Order.WITHIN


def _test(offset: SourceOffset) -> Callable[[Place], bool | None]:
    """Tell whether a record is before a position; ``None`` if that is not known."""
    contains = gtid_test(offset.gtids) if offset.gtids else None

    def is_before(place: Place) -> bool | None:
        if contains is not None and place.gtid is not None:
            try:
                return contains(place.gtid)
            except ValueError:  # a GTID of the other server
                return None
        if place.file and offset.file:
            return binlog_order(place.file, place.pos) < binlog_order(offset.file, offset.pos)
        return None

    return is_before
