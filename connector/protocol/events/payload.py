"""Takes the events out of a TRANSACTION_PAYLOAD one after the other, so that a huge transaction needs little memory."""

import io
from collections.abc import Iterator

import zstandard

from rowtide.connector.errors import RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol.events.classes import TransactionPayload
from rowtide.connector.protocol.header import HEADER, HEADER_LENGTH

_CHUNK = 256 * 1024


def inner_packets(event: TransactionPayload) -> Iterator[bytes]:
    """The bytes of the inner events; they have no checksum.

    Raises:
        RemoteProtocolError: the payload is damaged, or does not have the size it tells.
    """
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
            if not HEADER_LENGTH <= size <= left:
                raise TruncatedEvent(f"TRANSACTION_PAYLOAD with an inner event of {size} bytes where {left} are left")
            body = stream.read(size - HEADER_LENGTH)
            if len(body) != size - HEADER_LENGTH:
                raise TruncatedEvent(f"TRANSACTION_PAYLOAD ends {size - HEADER_LENGTH - len(body)} bytes too early")
            left -= size
            yield head + body
        if stream.read(1):
            raise RemoteProtocolError(
                f"TRANSACTION_PAYLOAD is longer than the {event.uncompressed_size} bytes it tells"
            )
    except zstandard.ZstdError as error:
        raise RemoteProtocolError(f"TRANSACTION_PAYLOAD cannot be decompressed: {error}") from None
