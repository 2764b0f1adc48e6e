"""MariaDB's compression of queries and rows (``log_bin_compress``): a one-byte head, the size, a zlib stream."""

import zlib

from rowtide.connector.errors import RemoteProtocolError, TruncatedEvent, UnsupportedEvent


def decompress(data: bytes, pos: int, end: int) -> bytes:
    """Unpack the compressed part of a QUERY_COMPRESSED or ..._ROWS_COMPRESSED event.

    The head is ``0x80 | algorithm << 4 | n``, then follow ``n`` bytes with the uncompressed size, highest byte first,
    then the stream (``binlog_buf_compress`` in MariaDB's ``log_event.cc``).

    Raises:
        UnsupportedEvent: an algorithm other than zlib.
        RemoteProtocolError: the stream is damaged or does not give the size that is told.
        TruncatedEvent: the bytes end too early.
    """
    if pos >= end:
        raise TruncatedEvent("a compressed event without compressed data")
    head = data[pos]
    algorithm, size_bytes = (head & 0x70) >> 4, head & 0x07
    if not head & 0x80 or algorithm:
        raise UnsupportedEvent(f"compressed event with head byte 0x{head:02x}; known is zlib (0x80 to 0x87)")
    size = int.from_bytes(data[pos + 1 : pos + 1 + size_bytes], "big")
    stream = zlib.decompressobj()
    try:
        result = stream.decompress(memoryview(data)[pos + 1 + size_bytes : end], size + 1)
    except zlib.error as error:
        raise RemoteProtocolError(f"a compressed event cannot be decompressed: {error}") from None
    if len(result) != size or not stream.eof:
        raise RemoteProtocolError(f"a compressed event does not have the {size} bytes that it tells")
    return result
