"""What the first events of a binlog file say: when it was begun, and the transactions before it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import GTID_TYPES
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition


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
    """The head of a file; ``None`` if it has no events yet.

    Args:
        file: its name.
        packets: its events from the first one on; only those before the first transaction are taken.

    Raises:
        ProtocolError: an event is damaged.
    """
    decoder, began = EventDecoder(file), None
    for packet in packets:
        if packet[4] in GTID_TYPES:
            break
        event = decoder.decode(packet)
        if isinstance(event, events.FormatDescription):
            began = event.header.timestamp
        elif began is not None and isinstance(event, events.PreviousGtids):
            return FileHead(file, began, event.gtids)
        elif began is not None and isinstance(event, events.MariadbGtidList):
            return FileHead(file, began, MariadbGtidPosition.parse(",".join(map(str, event.gtids))))
    return None if began is None else FileHead(file, began)
