"""Selects the events of a binlog file that a server sends to a replica with a GTID set. Pure."""

from rowtide.connector.errors import OffsetError
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import GTID_TYPES, HEADER, EventType
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

BETWEEN_TRANSACTIONS = frozenset(
    {
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.ROTATE,
        EventType.STOP,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.MARIADB_GTID_LIST,
        EventType.MARIADB_BINLOG_CHECKPOINT,
        EventType.MARIADB_START_ENCRYPTION,
    }
)
"""The events that belong to no transaction."""


class GtidFilter:
    """Selects the transactions that are not in a GTID set.

    Args:
        gtids: the set.
        decoder: has decoded the FORMAT_DESCRIPTION of the events.

    Attributes:
        begun: whether a transaction was selected.
    """

    def __init__(self, gtids: GtidSet | MariadbGtidPosition, decoder: EventDecoder) -> None:
        self.begun = False
        self._set = gtids
        self._decoder = decoder
        self._within = False

    def selects(self, packet: bytes) -> bool:
        """Return whether an event belongs to a selected transaction; one between transactions is not selected.

        Raises:
            OffsetError: a transaction has no GTID.
        """
        kind = HEADER.unpack_from(packet)[1]
        if kind in BETWEEN_TRANSACTIONS:
            return False
        if kind in GTID_TYPES:
            event = self._decoder.decode(packet)
            self._within = not self._contains(event)
            self.begun = self.begun or self._within
        return self._within

    def _contains(self, event: events.Event) -> bool:
        if isinstance(event, events.MariadbGtidEvent) and isinstance(self._set, MariadbGtidPosition):
            return self._set.contains(event.gtid)
        if isinstance(event, events.Gtid) and not event.anonymous and isinstance(self._set, GtidSet):
            return self._set.contains(event.uuid, event.gno, event.tag)
        raise OffsetError(
            f"the start is a GTID set, and there is a transaction without GTID at {self._decoder.file}:"
            f"{event.header.start}: give a file and a position"
        )
