"""Parsers of the events that carry transaction identifiers, and of a transaction's commit."""

from struct import Struct

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.byte_reader import ByteReader
from rowtide.connector.protocol.events.classes import (
    Gtid,
    MariadbGtidEvent,
    MariadbGtidList,
    PreviousGtids,
    XaPrepare,
    Xid,
)
from rowtide.connector.protocol.events.serialization import read_message
from rowtide.connector.protocol.header import EventHeader
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtid

_GTID = Struct("<B16sq")
_LOGICAL_CLOCK = Struct("<Bqq")
_LOGICAL_CLOCK_CODE = 2
_TIMESTAMP_FLAG = 1 << 55
_VERSION_FLAG = 1 << 31
_U64 = Struct("<Q")
_MARIADB_GTID = Struct("<QIB")

UUID_TEXTS: dict[bytes, str] = {}
"""The texts of uuids by their bytes."""
_UUIDS_LIMIT = 10_000


def uuid_text(raw: bytes) -> str:
    """Return the text of a uuid's 16 bytes. There are few sources, so the texts are cached."""
    text = UUID_TEXTS.get(raw)
    if text is None:
        if len(UUID_TEXTS) >= _UUIDS_LIMIT:
            UUID_TEXTS.clear()
        digits = raw.hex()
        text = UUID_TEXTS[raw] = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return text


def parse_gtid(header: EventHeader, data: bytes, pos: int, end: int) -> Gtid:
    """Parse GTID and ANONYMOUS_GTID of all versions since 5.6; events of older servers lack the fields at the end."""
    flags, uuid, gno = _GTID.unpack_from(data, pos)
    pos += 25
    last_committed = sequence_number = immediate = original = length = 0
    immediate_version = original_version = ticket = 0
    if pos < end:
        code, last_committed, sequence_number = _LOGICAL_CLOCK.unpack_from(data, pos)
        if code != _LOGICAL_CLOCK_CODE:
            raise UnsupportedEvent(f"GTID event with unknown kind {code} of logical timestamps")
        pos += 17
    if pos + 7 <= end:
        immediate = original = int.from_bytes(data[pos : pos + 7], "little")
        pos += 7
        if immediate & _TIMESTAMP_FLAG:
            immediate ^= _TIMESTAMP_FLAG
            original = int.from_bytes(data[pos : pos + 7], "little")
            pos += 7
    if pos < end:
        length = data[pos]
        pos += 1
        if length > 250:
            size = {252: 2, 253: 3, 254: 8}.get(length, 0)
            length = int.from_bytes(data[pos : pos + size], "little")
            pos += size
    if pos + 4 <= end:
        immediate_version = original_version = int.from_bytes(data[pos : pos + 4], "little")
        pos += 4
        if immediate_version & _VERSION_FLAG:
            immediate_version ^= _VERSION_FLAG
            original_version = int.from_bytes(data[pos : pos + 4], "little")
            pos += 4
    if pos + 8 <= end:
        (ticket,) = _U64.unpack_from(data, pos)
        pos += 8
    if pos != end:
        raise RemoteProtocolError(
            f"GTID event with {end - pos} unknown bytes at its end"
            if pos < end
            else f"GTID event that lacks {pos - end} bytes"
        )
    return Gtid(
        header, uuid_text(uuid), "", gno, flags, last_committed, sequence_number, immediate, original, length,
        immediate_version, original_version, ticket,
    )  # fmt: skip


_TAGGED_FIELDS = (
    "uint", "bytes16", "int", "string", "int", "int", "uint", "uint", "uint", "uint", "uint", "uint",
)  # fmt: skip
"""flags, uuid, gno, tag, last_committed, sequence_number, immediate and original commit timestamp, transaction length,
immediate and original server version, commit group ticket (``Gtid_event::define_fields``)."""


def parse_gtid_tagged(header: EventHeader, data: bytes, pos: int, end: int) -> Gtid:
    """Parse GTID_TAGGED (8.3 and later), a serialized message; absent original values equal the immediate ones."""
    fields = read_message(ByteReader(data, pos, end), _TAGGED_FIELDS)
    for index in (0, 1, 2, 3):
        if index not in fields:
            raise RemoteProtocolError(f"GTID_TAGGED event without its field {index}")
    immediate, version = fields.get(6, 0), fields.get(9, 0)
    return Gtid(
        header, uuid_text(fields[1]), fields[3].decode("ascii"), fields[2], fields[0], fields.get(4, 0),
        fields.get(5, 0), immediate, fields.get(7, immediate), fields.get(8, 0), version, fields.get(10, version),
        fields.get(11, 0),
    )  # fmt: skip


def parse_previous_gtids(header: EventHeader, data: bytes, pos: int, end: int) -> PreviousGtids:
    """Parse PREVIOUS_GTIDS."""
    try:
        return PreviousGtids(header, GtidSet.decode(data[pos:end]))
    except ValueError as error:
        raise RemoteProtocolError(f"PREVIOUS_GTIDS event: {error}") from None


def parse_xid(header: EventHeader, data: bytes, pos: int, end: int) -> Xid:
    """Parse XID."""
    return Xid(header, _U64.unpack_from(data, pos)[0])


def parse_xa_prepare(header: EventHeader, data: bytes, pos: int, end: int) -> XaPrepare:
    """Parse XA_PREPARE."""
    reader = ByteReader(data, pos, end)
    one_phase, format_id = bool(reader.uint(1)), reader.sint(4)
    gtrid_size, bqual_size = reader.uint(4), reader.uint(4)
    return XaPrepare(header, one_phase, format_id, reader.take(gtrid_size), reader.take(bqual_size))


def parse_mariadb_gtid(header: EventHeader, data: bytes, pos: int, end: int) -> MariadbGtidEvent:
    """Parse MariaDB's GTID: 19 bytes, or more with a commit id, an XA identifier or extra flags."""
    sequence, domain, flags = _MARIADB_GTID.unpack_from(data, pos)
    gtid = MariadbGtid(domain, header.server_id, sequence)
    if not flags & 0xC2 and not any(data[pos + 13 : end]):
        return MariadbGtidEvent(header, gtid, flags, 0, None, 0, None, None)
    reader = ByteReader(data, pos + 13, end)
    commit_id = reader.uint(8) if flags & 0x02 else 0
    xa = None
    if flags & 0xC0:
        format_id, gtrid_size, bqual_size = reader.sint(4), reader.uint(1), reader.uint(1)
        xa = (format_id, reader.take(gtrid_size), reader.take(bqual_size))
    extra = reader.uint(1) if reader.remaining() else 0
    if extra & ~0x1F:
        raise UnsupportedEvent(f"MariaDB GTID event with unknown extra flags 0x{extra:02x}; known: 0x01 to 0x10")
    if extra & 0x01:
        reader.uint(1)  # number of further engines that take part
    start_alter = reader.uint(8) if extra & 0x0C else None
    thread_id = reader.uint(4) if extra & 0x10 else None
    return MariadbGtidEvent(header, gtid, flags, commit_id, xa, extra, start_alter, thread_id)


def parse_mariadb_gtid_list(header: EventHeader, data: bytes, pos: int, end: int) -> MariadbGtidList:
    """Parse MariaDB's GTID_LIST."""
    reader = ByteReader(data, pos, end)
    count_and_flags = reader.uint(4)
    gtids = tuple(
        MariadbGtid(reader.uint(4), reader.uint(4), reader.uint(8)) for _ in range(count_and_flags & 0x0FFFFFFF)
    )
    return MariadbGtidList(header, gtids, count_and_flags >> 28)
