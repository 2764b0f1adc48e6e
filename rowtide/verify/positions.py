"""The order of a record and a view of the source, by their positions in the binlog. Pure.

Positions of different servers are only compared by GTIDs: each server has its own binlog files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.reading.table_view import TableView
from rowtide.connector.snapshot.view.stream_order import binlog_order
from rowtide.decoder.topics import gtid_test
from rowtide.verify.errors import Undecided


class Order(Enum):
    """The order of the change of a record and a view."""

    BEFORE = auto()
    """The view has it."""
    WITHIN = auto()
    """The view may have it."""
    AFTER = auto()
    """The view does not have it."""


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """The place of a record in the topic and in the binlog.

    ``topic`` is its number if the table has several topics.
    """

    partition: int
    offset: int
    op: str
    file: str = ""
    pos: int = 0
    gtid: str | None = None
    snapshot: bool = False
    topic: int = 0

    @classmethod
    def of(cls, topic: int, partition: int, offset: int, op: str, at: SourcePosition | None) -> "RecordPlace":
        """Return the place of a change; a tombstone has no position in the binlog."""
        if at is None:
            return cls(partition, offset, op, topic=topic)
        return cls(partition, offset, op, at.file, at.pos, at.gtid, at.snapshot is not None, topic)

    def as_list(self) -> list[Any]:
        """Return the attributes as a list, for JSON."""
        return [self.partition, self.offset, self.op, self.file, self.pos, self.gtid, self.snapshot, self.topic]


class ViewOrder:
    """Compares records with a view.

    Args:
        view: the position of the view in the binlog.
        same_server: whether the records have positions in the binlog of the view's server.
    """

    def __init__(self, view: TableView, *, same_server: bool) -> None:
        self._seen, self._end = (before(offset, same_server=same_server) for offset in (view.seen, view.end))

    def order(self, place: RecordPlace) -> Order:
        """Return whether the change of a record is before or after the view.

        It is not known for a row of a snapshot.
        """
        if place.snapshot:
            return Order.WITHIN
        if self._seen(place):
            return Order.BEFORE
        return Order.AFTER if self._end(place) is False else Order.WITHIN


def before(offset: SourceOffset, *, same_server: bool) -> Callable[[RecordPlace], bool | None]:
    """Return whether a record is before a position; ``None`` if that is not known.

    Args:
        offset: the position.
        same_server: whether the records have positions in the binlog of the position's server.
    """
    contains = gtid_test(offset.gtids) if offset.gtids else None

    def is_before(place: RecordPlace) -> bool | None:
        if contains is not None and place.gtid is not None:
            try:
                return contains(place.gtid)
            except ValueError:  # a GTID of MySQL and one of MariaDB
                return None
        if same_server and place.file and offset.file:
            return binlog_order(place.file, place.pos) < binlog_order(offset.file, offset.pos)
        return None

    return is_before


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The server that is read.

    Attributes:
        identity: MySQL's ``server_uuid`` or MariaDB's ``server_id``.
        server_id: its ``server_id``, as in its events.
    """

    identity: str
    server_id: str

    def wrote(self, stored: SourceOffset) -> bool:
        """Return whether the position of a connector is known to be in the binlog of this server.

        Debezium does not store the server. The last event before its position names the server of origin.
        """
        if stored.server is not None:
            return stored.server == self.identity
        return stored.gtids is None and stored.server_id in (0, int(self.server_id))


def have_gtids(stored: SourceOffset, end: SourceOffset) -> bool:
    """Return whether two positions can be compared by their GTID sets."""
    return stored.gtids is not None and end.gtids is not None


def refuse_other_server(stored: SourceOffset, end: SourceOffset, server: ServerIdentity) -> None:
    """Raise ``Undecided`` if the position of a connector and one of the server cannot be compared."""
    if have_gtids(stored, end) or server.wrote(stored):
        return
    of = f"server {stored.server or stored.server_id}"
    if stored.server is None and stored.gtids is not None:
        of = f"a server with GTIDs ({stored.gtids})"
    raise Undecided(
        f"the connector's position {stored.file}:{stored.pos} is from {of}, but the tables are read from server "
        f"{server.identity} (server_id {server.server_id}). Without GTIDs on both, positions of different servers "
        "cannot be compared: let database.hostname name the server that the connector reads, or use GTIDs"
    )


def described(position: SourceOffset) -> str:
    """Return the text of a position for a report."""
    place = f"{position.file}:{position.pos}" if position.file else ""
    return ", ".join(filter(None, (place, position.gtids and f"GTIDs {position.gtids}")))
