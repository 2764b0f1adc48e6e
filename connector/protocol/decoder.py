"""Decodes binlog events, one at a time, and keeps track of the stream's format, file and position."""

import struct
import zlib
from collections.abc import Callable, Iterator

from rowtide.connector.errors import (
    ChecksumMismatch,
    ProtocolError,
    RemoteProtocolError,
    TruncatedEvent,
    UnsupportedEvent,
)
from rowtide.connector.protocol.events import control, gtid, statements
from rowtide.connector.protocol.events.classes import Event, Gtid, Query, RowsKind, TableMap, TransactionPayload
from rowtide.connector.protocol.events.compression import inner_packets
from rowtide.connector.protocol.events.log_events import FormatDescription, Rotate
from rowtide.connector.protocol.events.rows import rows_parser
from rowtide.connector.protocol.events.table_map import TableMapParser
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import (
    ARTIFICIAL,
    HEADER,
    HEADER_LENGTH,
    IGNORABLE,
    IN_USE,
    EventHeader,
    EventType,
)
from rowtide.connector.protocol.native import usual_events

_Parser = Callable[[EventHeader, bytes, int, int], Event]

_CRC_RESIDUE = 0x2144DF1C
"""The CRC32 of any bytes followed by their own CRC32."""

_WRITE, _UPDATE, _DELETE = RowsKind.WRITE, RowsKind.UPDATE, RowsKind.DELETE
_PARSERS: dict[EventType, _Parser] = {
    EventType.QUERY: statements.parse_query,
    EventType.STOP: control.parse_stop,
    EventType.INTVAR: statements.parse_int_var,
    EventType.APPEND_BLOCK: statements.parse_load_block,
    EventType.DELETE_FILE: statements.parse_delete_file,
    EventType.RAND: statements.parse_rand,
    EventType.USER_VAR: statements.parse_user_var,
    EventType.XID: gtid.parse_xid,
    EventType.BEGIN_LOAD_QUERY: statements.parse_load_block,
    EventType.EXECUTE_LOAD_QUERY: statements.parse_execute_load_query,
    EventType.WRITE_ROWS_V0: rows_parser(_WRITE, version=0),
    EventType.UPDATE_ROWS_V0: rows_parser(_UPDATE, version=0),
    EventType.DELETE_ROWS_V0: rows_parser(_DELETE, version=0),
    EventType.WRITE_ROWS_V1: rows_parser(_WRITE, version=1),
    EventType.UPDATE_ROWS_V1: rows_parser(_UPDATE, version=1),
    EventType.DELETE_ROWS_V1: rows_parser(_DELETE, version=1),
    EventType.INCIDENT: control.parse_incident,
    EventType.HEARTBEAT: control.parse_heartbeat,
    EventType.IGNORABLE: control.parse_ignorable,
    EventType.ROWS_QUERY: statements.parse_rows_query,
    EventType.WRITE_ROWS: rows_parser(_WRITE),
    EventType.UPDATE_ROWS: rows_parser(_UPDATE),
    EventType.DELETE_ROWS: rows_parser(_DELETE),
    EventType.GTID: gtid.parse_gtid,
    EventType.ANONYMOUS_GTID: gtid.parse_gtid,
    EventType.PREVIOUS_GTIDS: gtid.parse_previous_gtids,
    EventType.TRANSACTION_CONTEXT: control.parse_transaction_context,
    EventType.VIEW_CHANGE: control.parse_view_change,
    EventType.XA_PREPARE: gtid.parse_xa_prepare,
    EventType.PARTIAL_UPDATE_ROWS: rows_parser(_UPDATE, partial=True),
    EventType.TRANSACTION_PAYLOAD: control.parse_transaction_payload,
    EventType.HEARTBEAT_V2: control.parse_heartbeat_v2,
    EventType.GTID_TAGGED: gtid.parse_gtid_tagged,
    EventType.MARIADB_ANNOTATE_ROWS: statements.parse_annotate_rows,
    EventType.MARIADB_BINLOG_CHECKPOINT: control.parse_binlog_checkpoint,
    EventType.MARIADB_GTID: gtid.parse_mariadb_gtid,
    EventType.MARIADB_GTID_LIST: gtid.parse_mariadb_gtid_list,
    EventType.MARIADB_START_ENCRYPTION: control.parse_start_encryption,
    EventType.MARIADB_QUERY_COMPRESSED: statements.parse_query_compressed,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: rows_parser(_WRITE, version=1, compressed=True),
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: rows_parser(_UPDATE, version=1, compressed=True),
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: rows_parser(_DELETE, version=1, compressed=True),
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: rows_parser(_WRITE, compressed=True),
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: rows_parser(_UPDATE, compressed=True),
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: rows_parser(_DELETE, compressed=True),
}
"""All types except those that change the decoder's state, and those that no server since 5.0 writes (START_V3, LOAD,
SLAVE, CREATE_FILE, EXEC_LOAD, NEW_LOAD)."""


def _unknown(header: EventHeader, data: bytes, pos: int, end: int) -> Event:
    if header.flags & IGNORABLE:
        return control.parse_ignorable(header, data, pos, end)
    raise UnsupportedEvent(
        f"unknown {header.type_name}, which is not flagged as ignorable; skipping it could lose changes"
    )


def _before_format(header: EventHeader, data: bytes, pos: int, end: int) -> Event:
    raise RemoteProtocolError(f"{header.type_name} event before the FORMAT_DESCRIPTION that defines its format")


class EventDecoder:
    """Decodes a stream of events. It must see every event of the stream, from the first one.

    Attributes:
        file: the current binlog file; follows ROTATE, and may be set before the first event.
        position: the position after the last event in that file. It is also exact where MariaDB 11 and later leave
            ``log_pos`` of the events inside a transaction 0.
        format: the last FORMAT_DESCRIPTION; ``None`` before the first one.
    """

    def __init__(self, file: str = "", *, verify_checksum: bool = True) -> None:
        self.file = file
        self.position = 4
        self.format: FormatDescription | None = None
        self._verify = verify_checksum
        self._checksum = False
        self._table_maps: dict[bool, TableMapParser] = {}
        self._structures: dict[bytes, TableStructure] = {}
        self._usual = None  # there is no format yet
        self._parsers: list[_Parser] = [_before_format] * 256
        self._parsers[EventType.FORMAT_DESCRIPTION] = self._format_description
        self._parsers[EventType.ROTATE] = self._rotate
        self._parsers[EventType.HEARTBEAT] = control.parse_heartbeat
        self._parsers[EventType.HEARTBEAT_V2] = control.parse_heartbeat_v2

    def decode(self, packet: bytes, offset: int = 0) -> Event:
        """Decode the event that starts at ``offset`` of ``packet`` and ends with it.

        Raises:
            TruncatedEvent, ChecksumMismatch, RemoteProtocolError: the bytes are damaged.
            UnsupportedEvent: the bytes are intact, but their meaning is unknown.
            All of them name the file and the position.
        """
        if self._usual is not None and not offset:
            event = self._usual.decode(packet, self._checksum, self._verify, self._structures)
            if event is not None:
                header = event[0]
                self.position = header[4] or self.position + header[3]
                return event
        end = len(packet)
        try:
            header = _new(EventHeader, _unpack(packet, offset))
        except struct.error:
            raise TruncatedEvent(
                f"an event of {end - offset} bytes is shorter than its header", f"{self.file}:{self.position}"
            ) from None
        _, code, _, size, log_pos, flags = header
        if size != end - offset:
            raise TruncatedEvent(
                f"{header.type_name} event of {end - offset} bytes, but its header states {size}",
                f"{self.file}:{self.position}",
            )
        start = self.position
        if log_pos:
            self.position = log_pos
        elif code not in _NOT_IN_FILE and not flags & ARTIFICIAL:
            self.position = start + size
        try:
            if self._checksum and code != _FORMAT_DESCRIPTION:
                if self._verify and zlib.crc32(memoryview(packet)[offset:] if offset else packet) != _CRC_RESIDUE:
                    raise ChecksumMismatch(_CHECKSUM_MESSAGE.format(header.type_name))
                end -= 4
            return self._parsers[code](header, packet, offset + HEADER_LENGTH, end)
        except ProtocolError as error:
            error.location = error.location or f"{self.file}:{header.start or start}"
            raise
        except (struct.error, IndexError, ValueError) as error:
            raise TruncatedEvent(
                f"{header.type_name} event of {header.size} bytes is damaged: {error}",
                f"{self.file}:{header.start or start}",
            ) from error

    def opening(self, packets: list[bytes], at: int) -> tuple[Gtid, Query, TableMap] | None:
        """Decode the three events from ``packets[at]`` on together, if these open a transaction.

        Returns:
            The events; ``None`` if they have to be decoded one by one: others, damaged ones, or without compiled code.
        """
        if self._usual is None:
            return None
        found = self._usual.opening(packets, at, self._checksum, self._verify, self._structures)
        if found is not None:
            self.position = found[2].header.log_pos
        return found

    def unpack(self, event: TransactionPayload) -> Iterator[Event]:
        """Yield the events inside a TRANSACTION_PAYLOAD, decompressing on demand. Raises as `decode` does."""
        return (inner for _, inner in self.unpack_packets(event))

    def unpack_packets(self, event: TransactionPayload) -> Iterator[tuple[bytes, Event]]:
        """Yield the events as :meth:`unpack` does, each with its bytes, which have no checksum."""
        for packet in self.packets_in(event):
            yield packet, self.decode_in(event, packet)

    def packets_in(self, payload: TransactionPayload) -> Iterator[bytes]:
        """Yield the bytes of the events in a TRANSACTION_PAYLOAD. Raises as `decode` does."""
        try:
            yield from inner_packets(payload)
        except ProtocolError as error:
            error.location = f"{self.file}:{payload.header.start}"
            raise

    def decode_in(self, payload: TransactionPayload, packet: bytes) -> Event:
        """Decode an event in a TRANSACTION_PAYLOAD. Raises as `decode` does."""
        state = self._checksum, self.position
        self._checksum = False
        try:
            return self.decode(packet)
        except ProtocolError as error:
            error.location = f"{self.file}:{payload.header.start}"
            raise
        finally:
            self._checksum, self.position = state

    def _format_description(self, header: EventHeader, data: bytes, pos: int, end: int) -> Event:
        if self._verify and data[-5] == control.CRC32:
            self._verify_format_description(header, data, pos)
        event = control.parse_format_description(header, data, pos, end)
        self.follow(event)
        return event

    def follow(self, event: FormatDescription) -> None:
        """Decode the next events in the format of a FORMAT_DESCRIPTION that was decoded before."""
        mariadb = event.mariadb
        if self.format is None or self.format.mariadb != mariadb:
            self._parsers[:] = [_PARSERS.get(code, _unknown) for code in _CODES]  # type: ignore[call-overload]
            self._parsers[EventType.FORMAT_DESCRIPTION] = self._format_description
            self._parsers[EventType.ROTATE] = self._rotate
            table_maps = self._table_maps.setdefault(mariadb, TableMapParser(mariadb))
            self._parsers[EventType.TABLE_MAP], self._structures = table_maps, table_maps.parsed
            self._usual = usual_events.reader
        self._checksum = event.checksum == "CRC32"
        self.format = event

    @staticmethod
    def _verify_format_description(header: EventHeader, data: bytes, pos: int) -> None:
        """Verify the checksum without the in-use flag, which the server sets and clears in place."""
        packet = bytearray(data[pos - HEADER_LENGTH :])
        packet[17] &= ~IN_USE & 0xFF
        if zlib.crc32(packet) != _CRC_RESIDUE:
            raise ChecksumMismatch(_CHECKSUM_MESSAGE.format(header.type_name))

    def _rotate(self, header: EventHeader, data: bytes, pos: int, end: int) -> Rotate:
        if self.format is None and zlib.crc32(memoryview(data)[pos - HEADER_LENGTH :]) == _CRC_RESIDUE:
            end -= 4  # the first event of a dump precedes its format: only the CRC32 itself shows that there is one
        event = control.parse_rotate(header, data, pos, end)
        self.file, self.position = event.next_file, event.next_position
        return event


_new, _unpack = tuple.__new__, HEADER.unpack_from
_CODES = range(256)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION)
_NOT_IN_FILE = frozenset({EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.HEARTBEAT_V2})
"""Types that the server sends without a position, because they are in no file or elsewhere in it."""
_CHECKSUM_MESSAGE = (
    "{} event with a wrong checksum: its bytes changed in transit or on disk; "
    "check the file on the server with mysqlbinlog --verify-binlog-checksum"
)
