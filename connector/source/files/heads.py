"""Reads the first events of a binlog file: the time of its beginning, and the transactions before it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import GTID_TYPES, EventType
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

_BEFORE_GTIDS = frozenset(
    {EventType.FORMAT_DESCRIPTION, EventType.ROTATE, EventType.MARIADB_START_ENCRYPTION, EventType.IGNORABLE}
)
"""The types of events before the GTIDs of a file; a mirror has IGNORABLE in place of START_ENCRYPTION."""


@dataclass(frozen=True, slots=True)
class FileHead:
    """The first events of a binlog file.

    Attributes:
        file: its name.
        began: when the server began it, in seconds since the epoch.
        gtids: executed before its first transaction; ``None`` without GTIDs.
    """

    file: str
    began: int
    gtids: GtidSet | MariadbGtidPosition | None = None


def read_head(file: str, packets: Iterable[bytes]) -> FileHead | None:
    """Return the head of a file; ``None`` if it is not complete yet, because the file is being written.

    Args:
        file: its name.
        packets: its events, starting with the first; only those before the first transaction are used.

    Raises:
        ProtocolError: an event is damaged.
    """
    decoder, began, complete = EventDecoder(file), None, False
    for packet in packets:
        complete = complete or packet[4] not in _BEFORE_GTIDS
        if packet[4] in GTID_TYPES:
            break
        event = decoder.decode(packet)
        if isinstance(event, events.FormatDescription):
            began = event.header.timestamp
        elif began is not None and isinstance(event, events.PreviousGtids):
            return FileHead(file, began, event.gtids)
        elif began is not None and isinstance(event, events.MariadbGtidList):
            return FileHead(file, began, MariadbGtidPosition.parse(",".join(map(str, event.gtids))))
    return FileHead(file, began) if began is not None and complete else None
