"""Reads the heads of rows events of all versions; the row images stay where they are in the packet.

Knows nothing of tables: decoding the images needs the table map and is done elsewhere.
"""

from collections.abc import Callable
from struct import Struct

from rowtide.connector.errors import RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.events.compression import decompress
from rowtide.connector.protocol.header import EventHeader

_V1 = Struct("<IHH")
_V2 = Struct("<IHHH")

RowsParser = Callable[[EventHeader, bytes, int, int], Rows]


def rows_parser(kind: RowsKind, *, version: int = 2, partial: bool = False, compressed: bool = False) -> RowsParser:
    """A parser of one type of rows event. Versions 0 and 1 lack the extra data; compressed rows are unpacked."""
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
                    f"rows event with an extra data length of {extra_size}, less than its own size"
                )
        else:
            low, high, flags = head.unpack_from(data, pos)
            pos += 8
        count = data[pos]
        pos += 1
        if count >= 251:
            count, pos = _wide(data, pos, count)
        size = (count + 7) >> 3
        columns = data[pos : pos + size]
        pos += size
        if update:
            columns_after = data[pos : pos + size]
            pos += size
        else:
            columns_after = columns
        if pos > end:
            raise TruncatedEvent(f"rows event of {end} bytes whose rows would begin at byte {pos}")
        if compressed:
            data = decompress(data, pos, end)
            pos, end = 0, len(data)
        return Rows(
            header, kind, low | high << 32, flags, count, columns, columns_after, partial, extra, data, pos, end
        )

    return parse


def _wide(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """A packed integer of more than one byte; a table has at most 4096 columns, so two further bytes are enough."""
    if first != 252:
        raise RemoteProtocolError(f"rows event whose number of columns begins with byte 0x{first:02x}")
    return int.from_bytes(data[pos : pos + 2], "little"), pos + 2
