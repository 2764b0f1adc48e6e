"""MariaDB's compression of queries and rows (``log_bin_compress``) and of columns declared COMPRESSED.

All have a one-byte head, the uncompressed size with its highest byte first, and a zlib stream.
"""

import zlib

from rowtide.connector.errors import RemoteProtocolError, TruncatedEvent, UnsupportedEvent

_METHOD = 0xF0
_ZLIB = 0x80
_RAW = 0x08
_SIZE_BYTES = 0x07


def decompress(data: bytes, pos: int, end: int) -> bytes:
    """Unpack the compressed part of a QUERY_COMPRESSED or ..._ROWS_COMPRESSED event.

    The head is 0x80 and the number of bytes of the size (``binlog_buf_compress`` in MariaDB's ``log_event.cc``).

    Raises:
        UnsupportedEvent: an algorithm other than zlib.
        RemoteProtocolError: the stream is damaged or does not give the size that is told.
        TruncatedEvent: the bytes end too early.
    """
    if pos >= end:
        raise TruncatedEvent("a compressed event without compressed data")
    head = data[pos]
    if head & ~_SIZE_BYTES != _ZLIB:
        raise UnsupportedEvent(f"a compressed event with head byte 0x{head:02x}; known is zlib (0x80 to 0x87)")
    return _inflate(data, pos + 1, end, head & _SIZE_BYTES, zlib.MAX_WBITS)


def decompress_column(value: bytes) -> bytes:
    """The value of a column declared COMPRESSED: its head says how it is stored (``field_comp.cc`` in MariaDB).

    Raises:
        UnsupportedEvent: an algorithm other than zlib.
        RemoteProtocolError: the stream is damaged or does not give the size that is told.
    """
    if not value or not value[0]:
        return value[1:]
    head = value[0]
    if head & _METHOD != _ZLIB:
        raise UnsupportedEvent(
            f"a compressed column with head byte 0x{head:02x}; known are zlib (0x80 to 0x8f) and none (0)"
        )
    return _inflate(value, 1, len(value), head & _SIZE_BYTES, -zlib.MAX_WBITS if head & _RAW else zlib.MAX_WBITS)


def _inflate(data: bytes, pos: int, end: int, size_bytes: int, window: int) -> bytes:
    size = int.from_bytes(data[pos : pos + size_bytes], "big")
    stream = zlib.decompressobj(window)
    try:
        result = stream.decompress(memoryview(data)[pos + size_bytes : end], size + 1)
    except zlib.error as error:
        raise RemoteProtocolError(f"compressed data cannot be decompressed: {error}") from None
    if len(result) != size or not stream.eof:
        raise RemoteProtocolError(f"compressed data does not have the {size} bytes that it tells")
    return result
