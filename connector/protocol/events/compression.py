"""Decompresses MySQL's TRANSACTION_PAYLOAD, one inner event at a time, and MariaDB's compressed queries and rows."""

import io
import zlib
from collections.abc import Iterator

from rowtide.connector.errors import RemoteProtocolError, TruncatedEvent, UnsupportedEvent
from rowtide.connector.protocol.events.classes import TransactionPayload
from rowtide.connector.protocol.header import HEADER, HEADER_LENGTH

_CHUNK = 256 * 1024
_MAX_EVENT = 1 << 30
"""The largest event that a server replicates (the maximum of ``replica_max_allowed_packet``). Memory for an event is
reserved before it is read, so a damaged size must not decide."""
_LIMIT = f"servers replicate at most {_MAX_EVENT}"
_ZLIB = 0x80
_LARGEST_EVENT = (1 << 30) + (1 << 20)
"""The largest ``max_allowed_packet`` of the servers, and space for the event around a row of that size."""
_SIZE_BYTES = 0x07


def inner_packets(event: TransactionPayload) -> Iterator[bytes]:
    """Yield the bytes of each inner event, so that a huge transaction needs little memory. They have no checksum.

    Raises:
        RemoteProtocolError: the payload is damaged, or its size is not the one that its header states.
    """
    import zstandard  # noqa: PLC0415 - 0.5 MB, and few servers compress transactions

    payload = memoryview(event.buffer)[event.start : event.end]
    if event.compression == "NONE":
        stream: io.BufferedIOBase = io.BytesIO(payload)
    else:
        reader = zstandard.ZstdDecompressor().stream_reader(payload, read_across_frames=True)
        stream = io.BufferedReader(reader, _CHUNK)
    left = event.uncompressed_size
    try:
        while left:
            head = stream.read(HEADER_LENGTH)
            size = HEADER.unpack(head)[3] if len(head) == HEADER_LENGTH else 0
            if size > _MAX_EVENT:
                raise RemoteProtocolError(f"TRANSACTION_PAYLOAD with an inner event of {size} bytes; {_LIMIT}")
            if not HEADER_LENGTH <= size <= left:
                raise TruncatedEvent(f"TRANSACTION_PAYLOAD with an inner event of {size} bytes where {left} are left")
            if size > _LARGEST_EVENT:
                raise RemoteProtocolError(f"TRANSACTION_PAYLOAD with an inner event of {size} bytes; 1 GiB is allowed")
            body = stream.read(size - HEADER_LENGTH)
            if len(body) != size - HEADER_LENGTH:
                raise TruncatedEvent(f"TRANSACTION_PAYLOAD ends {size - HEADER_LENGTH - len(body)} bytes short")
            left -= size
            yield head + body
        if stream.read(1):
            raise RemoteProtocolError(
                f"TRANSACTION_PAYLOAD is longer than the {event.uncompressed_size} bytes that its header states"
            )
    except zstandard.ZstdError as error:
        raise RemoteProtocolError(f"TRANSACTION_PAYLOAD cannot be decompressed: {error}") from None


def decompress(data: bytes, pos: int, end: int) -> bytes:
    """Decompress the body of MariaDB's QUERY_COMPRESSED or ..._ROWS_COMPRESSED event (``log_bin_compress``).

    The body is a head byte (0x80 plus the number of size bytes), the uncompressed size in big-endian order, and a zlib
    stream (``binlog_buf_compress`` in MariaDB's ``log_event.cc``).

    Raises:
        UnsupportedEvent: an algorithm other than zlib.
        RemoteProtocolError: the stream is damaged, or its size is not the one that the head states.
        TruncatedEvent: there are no bytes.
    """
    if pos >= end:
        raise TruncatedEvent("compressed event without compressed data")
    head = data[pos]
    if head & ~_SIZE_BYTES != _ZLIB:
        raise UnsupportedEvent(f"compressed event with unknown head byte 0x{head:02x}; known: zlib (0x80 to 0x87)")
    size_bytes = head & _SIZE_BYTES
    size = int.from_bytes(data[pos + 1 : pos + 1 + size_bytes], "big")
    if size > _MAX_EVENT:
        raise RemoteProtocolError(f"compressed event of {size} bytes; {_LIMIT}")
    stream = zlib.decompressobj()
    try:
        result = stream.decompress(memoryview(data)[pos + 1 + size_bytes : end], size + 1)
    except zlib.error as error:
        raise RemoteProtocolError(f"compressed data cannot be decompressed: {error}") from None
    if len(result) != size or not stream.eof:
        raise RemoteProtocolError(f"compressed data does not decompress to the {size} bytes that its header states")
    return result
