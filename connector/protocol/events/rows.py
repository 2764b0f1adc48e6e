"""Parsers of rows events of all versions, up to the row images, which stay in the packet.

Decoding the images takes a TABLE_MAP: see ``rowtide.connector.rows``.
"""

from collections.abc import Callable, Mapping
from struct import Struct

from rowtide.connector.errors import ProtocolError, RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.events.compression import decompress
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import EventHeader

_V1 = Struct("<IHH")
_V2 = Struct("<IHHH")

RowsParser = Callable[[EventHeader, bytes, int, int], Rows]


def rows_parser(kind: RowsKind, *, version: int = 2, partial: bool = False, compressed: bool = False) -> RowsParser:
    """Return the parser of a type of rows event; versions 0 and 1 lack extra data, and rows may be compressed."""
    update = kind is RowsKind.UPDATE
    head = _V2 if version == 2 else _V1

    def parse(header: EventHeader, data: bytes, pos: int, end: int) -> Rows:
        extra = b""
        if version == 2:
            low, high, flags, extra_size = head.unpack_from(data, pos)
            pos += 8 + extra_size
            if extra_size > 2:
                extra = data[pos - extra_size + 2 : pos]
            elif extra_size < 2:
                raise RemoteProtocolError(
                    f"rows event with an extra data length of {extra_size}, which is less than its own size"
                )
        else:
            low, high, flags = head.unpack_from(data, pos)
            pos += 8
        count = data[pos]
        pos += 1
        if count >= 251:
            count, pos = _packed_count(data, pos, count)
        size = (count + 7) >> 3
        columns = data[pos : pos + size]
        pos += size
        if update:
            columns_after = data[pos : pos + size]
            pos += size
        else:
            columns_after = columns
        if pos > end:
            raise TruncatedEvent(f"rows event of {end} bytes whose rows would start at byte {pos}")
        if compressed:
            data = decompress(data, pos, end)
            pos, end = 0, len(data)
        return Rows(
            header, kind, low | high << 32, flags, count, columns, columns_after, partial, extra, data, pos, end
        )

    return parse


def _packed_count(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """Return a packed integer of more than one byte, and the offset after it. A table has at most 4096 columns."""
    if first != 252:
        raise RemoteProtocolError(f"rows event whose number of columns starts with byte 0x{first:02x}")
    return int.from_bytes(data[pos : pos + 2], "little"), pos + 2


def table_map_of(event: Rows, table_ids: Mapping[int, TableStructure]) -> TableStructure:
    """Return the TABLE_MAP of a row event.

    Args:
        event: the event.
        table_ids: the TABLE_MAPs before it in its transaction.

    Raises:
        ProtocolError: there is none, or it has a different number of columns.
    """
    structure = table_ids.get(event.table_id)
    if structure is None:
        raise ProtocolError(f"rows of table id {event.table_id} without a TABLE_MAP before them")
    if event.column_count != len(structure.columns):
        raise RemoteProtocolError(
            f"rows of table {structure.database}.{structure.table} with {event.column_count} columns, but the "
            f"TABLE_MAP before them has {len(structure.columns)}"
        )
    return structure
