"""Parsers of the events about the log itself: files, heartbeats, incidents, group replication."""

from typing import Literal

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.byte_reader import ByteReader
from rowtide.connector.protocol.events.classes import TransactionPayload
from rowtide.connector.protocol.events.log_events import (
    BinlogCheckpoint,
    FormatDescription,
    Heartbeat,
    Ignorable,
    Incident,
    Rotate,
    StartEncryption,
    Stop,
    TransactionContext,
    ViewChange,
)
from rowtide.connector.protocol.header import HEADER_LENGTH, EventHeader, EventType, type_name

CRC32 = 1
"""The checksum algorithm in the fifth byte from the end of a FORMAT_DESCRIPTION; 0 means none."""

_POST_HEADER_LENGTHS = {
    EventType.QUERY: (13,),
    EventType.ROTATE: (8,),
    EventType.TABLE_MAP: (8,),
    EventType.WRITE_ROWS_V0: (8,),
    EventType.UPDATE_ROWS_V0: (8,),
    EventType.DELETE_ROWS_V0: (8,),
    EventType.WRITE_ROWS_V1: (8,),
    EventType.UPDATE_ROWS_V1: (8,),
    EventType.DELETE_ROWS_V1: (8,),
    EventType.WRITE_ROWS: (10,),
    EventType.UPDATE_ROWS: (10,),
    EventType.DELETE_ROWS: (10,),
    EventType.PARTIAL_UPDATE_ROWS: (10,),
    EventType.GTID: (19, 25, 42),  # 19: MariaDB's own GTID event; 25: MySQL 5.6, without a logical clock
    EventType.TRANSACTION_CONTEXT: (18,),
    EventType.VIEW_CHANGE: (52,),
    EventType.MARIADB_GTID: (19,),
}
"""The post-header lengths that the parsers support; the server states 0 for types that it does not write."""


def parse_format_description(header: EventHeader, data: bytes, pos: int, end: int) -> FormatDescription:
    """Parse FORMAT_DESCRIPTION as since MySQL 5.6.1: the checksum algorithm and four bytes of checksum are at its end.

    Raises:
        UnsupportedEvent: the server is older than 5.6.1, or uses an unknown format.
    """
    reader = ByteReader(data, pos, end)
    version = reader.uint(2)
    server_version = reader.take(50).rstrip(b"\0").decode("ascii", "replace")
    created, header_length = reader.uint(4), reader.uint(1)
    if version != 4 or header_length != HEADER_LENGTH:
        raise UnsupportedEvent(
            f"binlog version {version} with headers of {header_length} bytes, written by {server_version}; "
            "only version 4 with 19 bytes is supported"
        )
    lengths = reader.take(reader.remaining() - 5)
    algorithm = reader.uint(1)
    names: dict[int, Literal["NONE", "CRC32"]] = {0: "NONE", CRC32: "CRC32"}
    if algorithm not in names or len(lengths) < EventType.DELETE_ROWS_V1:
        raise UnsupportedEvent(
            f"FORMAT_DESCRIPTION of {server_version} with checksum algorithm {algorithm} (known: 0 none, 1 CRC32) "
            f"and {len(lengths)} event types; servers before 5.6.1 are not supported"
        )
    for code, known in _POST_HEADER_LENGTHS.items():
        length = lengths[code - 1] if code <= len(lengths) else 0
        if length and length not in known:
            raise UnsupportedEvent(
                f"{server_version} writes {type_name(code)} events with a post-header of {length} bytes; known: {known}"
            )
    packet = data[pos - HEADER_LENGTH :]
    return FormatDescription(header, version, server_version, created, lengths, names[algorithm], packet)


def parse_rotate(header: EventHeader, data: bytes, pos: int, end: int) -> Rotate:
    """Parse ROTATE."""
    reader = ByteReader(data, pos, end)
    position = reader.uint(8)
    return Rotate(header, reader.rest().decode("utf-8"), position)


def parse_stop(header: EventHeader, data: bytes, pos: int, end: int) -> Stop:
    """Parse STOP."""
    return Stop(header)


def parse_heartbeat(header: EventHeader, data: bytes, pos: int, end: int) -> Heartbeat:
    """Parse HEARTBEAT: the file's name; the position is in the header."""
    return Heartbeat(header, data[pos:end].decode("utf-8"), header.log_pos)


def parse_heartbeat_v2(header: EventHeader, data: bytes, pos: int, end: int) -> Heartbeat:
    """Parse HEARTBEAT_V2 (8.0.26 and later): fields 1 file, 2 position, 0 end."""
    reader = ByteReader(data, pos, end)
    file, position = "", 0
    while reader.remaining():
        field = reader.packed()
        if field == 0:
            break
        value = reader.packed_string()
        if field == 1:
            file = value.decode("utf-8")
        elif field == 2:
            position = ByteReader(value, 0, len(value)).packed()
        else:
            raise UnsupportedEvent(f"HEARTBEAT_V2 event with unknown field {field}")
    return Heartbeat(header, file, position)


def parse_incident(header: EventHeader, data: bytes, pos: int, end: int) -> Incident:
    """Parse INCIDENT."""
    reader = ByteReader(data, pos, end)
    number = reader.uint(2)
    return Incident(header, number, reader.string(1).decode("utf-8", "replace"))


def parse_ignorable(header: EventHeader, data: bytes, pos: int, end: int) -> Ignorable:
    """Parse IGNORABLE, and unknown types that are flagged as ignorable."""
    return Ignorable(header, data[pos:end])


def parse_transaction_context(header: EventHeader, data: bytes, pos: int, end: int) -> TransactionContext:
    """Parse TRANSACTION_CONTEXT."""
    reader = ByteReader(data, pos, end)
    uuid_size, thread_id, specified = reader.uint(1), reader.uint(4), bool(reader.uint(1))
    version_size, writes, reads = reader.uint(4), reader.uint(4), reader.uint(4)
    uuid = reader.take(uuid_size).decode("ascii")
    snapshot_version = reader.take(version_size)
    write_set = tuple(reader.string(2) for _ in range(writes))
    read_set = tuple(reader.string(2) for _ in range(reads))
    return TransactionContext(header, uuid, thread_id, specified, snapshot_version, write_set, read_set)


def parse_view_change(header: EventHeader, data: bytes, pos: int, end: int) -> ViewChange:
    """Parse VIEW_CHANGE."""
    reader = ByteReader(data, pos, end)
    view_id = reader.take(40).split(b"\0", 1)[0].decode("ascii")
    sequence_number, count = reader.uint(8), reader.uint(4)
    certification = tuple((reader.string(2).decode("utf-8", "replace"), reader.string(4)) for _ in range(count))
    return ViewChange(header, view_id, sequence_number, certification)


def parse_binlog_checkpoint(header: EventHeader, data: bytes, pos: int, end: int) -> BinlogCheckpoint:
    """Parse MariaDB's BINLOG_CHECKPOINT."""
    return BinlogCheckpoint(header, ByteReader(data, pos, end).string(4).decode("utf-8"))


def parse_start_encryption(header: EventHeader, data: bytes, pos: int, end: int) -> StartEncryption:
    """Parse MariaDB's START_ENCRYPTION."""
    reader = ByteReader(data, pos, end)
    return StartEncryption(header, reader.uint(1), reader.uint(4), reader.take(12))


def parse_transaction_payload(header: EventHeader, data: bytes, pos: int, end: int) -> TransactionPayload:
    """Parse TRANSACTION_PAYLOAD: fields 1 size, 2 algorithm, 3 uncompressed size, 0 end; then the payload."""
    reader = ByteReader(data, pos, end)
    fields: dict[int, int] = {}
    while field := reader.packed():
        value = reader.packed_string()
        if field not in {1, 2, 3}:
            raise UnsupportedEvent(f"TRANSACTION_PAYLOAD event with unknown field {field}")
        fields[field] = ByteReader(value, 0, len(value)).packed()
    algorithms: dict[int, Literal["ZSTD", "NONE"]] = {0: "ZSTD", 255: "NONE"}
    algorithm = fields.get(2, 255)
    if algorithm not in algorithms:
        raise UnsupportedEvent(
            f"TRANSACTION_PAYLOAD event with unknown compression algorithm {algorithm}; known: 0 zstd, 255 none"
        )
    size = fields.get(1, reader.remaining())
    if size != reader.remaining():
        raise RemoteProtocolError(
            f"TRANSACTION_PAYLOAD event with {reader.remaining()} bytes of payload, but its header states {size}"
        )
    return TransactionPayload(header, algorithms[algorithm], fields.get(3, size), data, reader.pos, end)
