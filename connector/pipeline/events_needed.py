"""Binlog files of one row event and the events that its records depend on, for dead letters.

::

    FORMAT_DESCRIPTION, GTID, BEGIN, ROWS_QUERY, TABLE_MAP, rows

Tools such as mysqlbinlog read these files. Those of a compressed transaction have a TRANSACTION_PAYLOAD, which is not
compressed, because the events in it have neither checksums nor positions.
"""

import zlib

from rowtide.connector.protocol.binlog_file import MAGIC
from rowtide.connector.protocol.events.classes import Event, Gtid, MariadbGtidEvent, Query, RowsQuery, TableMap
from rowtide.connector.protocol.events.log_events import FormatDescription
from rowtide.connector.protocol.header import HEADER, HEADER_LENGTH, EventHeader

_TABLE_ID_BYTES = 6
_NO_COMPRESSION = b"\x02\x03\xfc\xff\x00"
"""The field of a TRANSACTION_PAYLOAD that says so."""
_BEGINNINGS = b"BEGIN", b"XA START"
_SAVEPOINTS = b"SAVEPOINT", b"ROLLBACK", b"RELEASE"


def table_id(packet: bytes) -> int:
    """Return the table id of a TABLE_MAP or a row event."""
    return int.from_bytes(packet[HEADER_LENGTH : HEADER_LENGTH + _TABLE_ID_BYTES], "little")


class EventsNeeded:
    """The events of the current transaction that its next row event depends on.

    Attributes:
        payload: the header of the TRANSACTION_PAYLOAD that has the events; ``None`` if none has.
    """

    def __init__(self) -> None:
        self.payload: EventHeader | None = None
        self._gtid: bytes | None = None
        self._statements: list[bytes] = []
        self._text: bytes | None = None
        self._maps: dict[int, bytes] = {}

    def add(self, packet: bytes, event: Event) -> None:
        """Take the next event of the stream."""
        if isinstance(event, TableMap):
            self._maps[event.table_id] = packet
        elif isinstance(event, Gtid | MariadbGtidEvent):
            self._begin(packet)
        elif isinstance(event, RowsQuery):
            self._text = packet
        elif isinstance(event, Query) and not event.statement[:9].lstrip().upper().startswith(_SAVEPOINTS):
            if self._gtid is None and event.statement.startswith(_BEGINNINGS):  # the server has no GTID events
                self._begin(None)
            self._statements.append(packet)  # CREATE TABLE … SELECT is in the transaction of its rows

    def _begin(self, gtid: bytes | None) -> None:
        self._gtid, self._statements, self._text, self.payload = gtid, [], None, None
        self._maps.clear()

    def file(self, form: FormatDescription, packet: bytes) -> bytes:
        """Return a binlog file of an event.

        Args:
            form: the format of the stream.
            packet: the event.
        """
        text = () if self._text is None else (self._text,)
        table = self._maps.get(table_id(packet))
        events = b"".join([*self._statements, *text, *(() if table is None else (table,)), packet])
        if self.payload is not None:
            events = _payload(self.payload, events, checksum=form.checksum == "CRC32")
        return b"".join([MAGIC, form.packet, self._gtid or b"", events])


def _payload(header: EventHeader, events: bytes, *, checksum: bool) -> bytes:
    """Return a TRANSACTION_PAYLOAD that begins where another one does."""
    size = len(events).to_bytes(8, "little")
    body = b"\x01\x09\xfe" + size + _NO_COMPRESSION + b"\x03\x09\xfe" + size + b"\x00" + events
    length = HEADER_LENGTH + len(body) + 4 * checksum
    head = HEADER.pack(
        header.timestamp, header.type_code, header.server_id, length, header.start + length, header.flags
    )
    return head + body + (zlib.crc32(head + body).to_bytes(4, "little") if checksum else b"")
