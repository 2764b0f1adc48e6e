"""MariaDB's compression of queries and rows (``log_bin_compress``).

Both have a one-byte head, the uncompressed size with its highest byte first, and a zlib stream.
"""

import zlib

from rowtide.connector.errors import RemoteProtocolError, TruncatedEvent, UnsupportedEvent

_ZLIB = 0x80
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
    size_bytes = head & _SIZE_BYTES
    size = int.from_bytes(data[pos + 1 : pos + 1 + size_bytes], "big")
    stream = zlib.decompressobj()
    try:
        result = stream.decompress(memoryview(data)[pos + 1 + size_bytes : end], size + 1)
    except zlib.error as error:
        raise RemoteProtocolError(f"compressed data cannot be decompressed: {error}") from None
    if len(result) != size or not stream.eof:
        raise RemoteProtocolError(f"compressed data does not have the {size} bytes that it tells")
    return result
