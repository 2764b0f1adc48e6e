"""Single binlog events, with a right size and checksum: the decoder, and what is compressed inside an event."""

from __future__ import annotations

import zlib
from copy import copy
from functools import cache
from random import Random

import zstandard

from rowtide.connector.errors import ProtocolError
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import Query, RowsQuery, TransactionPayload
from rowtide.connector.protocol.header import HEADER_LENGTH, EventType
from tests.fuzz.mutators import mutated, spliced
from tests.fuzz.recorded import single_events
from tests.support.mysql.packets import captured

SERVERS = ("mysql", "mariadb")
_BOMB = 8 << 20


class Packets:
    """An input is a byte that selects the server, and an event without checksum."""

    declared = (ProtocolError,)

    def make(self, random: Random) -> bytes:
        """A damaged event."""
        number = random.randrange(len(SERVERS))
        events = single_events(SERVERS[number])
        event = random.choice(events)
        action = random.random()
        if action < 0.1:
            event = event[:HEADER_LENGTH] + spliced(
                random, event[HEADER_LENGTH:], random.choice(events)[HEADER_LENGTH:]
            )
        elif action < 0.2 and number == 0:
            event = _payload(random, events)
        elif action < 0.25 and number == 1:
            event = _compressed_query(random)
        elif action < 0.3:
            event = mutated(random, event)
        else:
            event = event[:HEADER_LENGTH] + mutated(random, event[HEADER_LENGTH:])
        return bytes((number,)) + event

    def run(self, data: bytes) -> None:
        """Decode the event, and those inside it."""
        if len(data) < 1 + HEADER_LENGTH:
            return
        server = SERVERS[data[0] % 2]
        decoder = _begin(server) if data[5] in _CHANGE_DECODER else copy(_begun(server))
        try:
            event = decoder.decode(with_size(data[1:]))
            if isinstance(event, TransactionPayload):
                for _ in decoder.unpack(event):
                    pass
        except ProtocolError as error:
            check_location(error)
            raise
        if isinstance(event, Query | RowsQuery):
            str(event.text)


def check_location(error: ProtocolError) -> None:
    """Raise ``AssertionError`` if the error names no position."""
    assert ":" in error.location, f"no position: {error}"


def with_size(event: bytes) -> bytes:
    """The event with the size that it has, and four bytes for a checksum that is not verified."""
    return event[:9] + (len(event) + 4).to_bytes(4, "little") + event[13:] + b"\0\0\0\0"


def _begin(server: str) -> EventDecoder:
    """A decoder after the first events."""
    decoder = EventDecoder("binlog.000001", verify_checksum=False)
    for packet in captured(server)[:2]:
        decoder.decode(packet)
    return decoder


_begun = cache(_begin)
"""FORMAT_DESCRIPTION takes a decoder longer than most events, so those that change nothing share one."""
_CHANGE_DECODER = {EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.TRANSACTION_PAYLOAD}


def packed(number: int) -> bytes:
    """MySQL's packed integer."""
    if 0 <= number < 251:
        return bytes((number,))
    for first, size in ((252, 2), (253, 3)):
        if 0 <= number < 1 << 8 * size:
            return bytes((first,)) + number.to_bytes(size, "little")
    return b"\xfe" + (number % (1 << 64)).to_bytes(8, "little")


def _payload(random: Random, events: tuple[bytes, ...]) -> bytes:
    """A TRANSACTION_PAYLOAD of damaged events, whose header may lie about its size."""
    inner = b""
    for _ in range(random.randint(0, 3)):
        event = random.choice(events)
        event = event[:HEADER_LENGTH] + mutated(random, event[HEADER_LENGTH:])
        size = len(event) if random.random() < 0.9 else random.choice((0, 18, len(event) + 1, 2**32 - 1))
        inner += event[:9] + size.to_bytes(4, "little") + event[13:]
    if random.random() < 0.005:
        inner += bytes(_BOMB)
    stated = (
        len(inner) if random.random() < 0.6 else random.choice((0, 1, len(inner) - 1, len(inner) + 1, 2**31, 2**63))
    )
    body = zstandard.compress(inner)
    if random.random() < 0.3:
        body = mutated(random, body)
    algorithm = 0 if random.random() < 0.9 else random.choice((1, 255, 2**40))
    head = b""
    for field, value in ((2, algorithm), (3, stated), (1, len(body))):
        raw = packed(value)
        head += packed(field) + packed(len(raw)) + raw
    return _header(EventType.TRANSACTION_PAYLOAD) + head + b"\0" + body


def _compressed_query(random: Random) -> bytes:
    bomb = random.random() < 0.01
    statement = b"" if bomb else random.randbytes(random.randint(0, 200))
    size = len(statement) if random.random() < 0.5 else random.choice((0, 1, 2**31, 2**32 - 1, 2**56 - 1))
    width = random.randint(0, 7)
    compressed = _compressed_bomb() if bomb else zlib.compress(statement, 1)
    body = bytes((0x80 + width,)) + (size % (1 << 8 * width)).to_bytes(width, "big") + compressed
    if random.random() < 0.3:
        body = mutated(random, body)
    return _header(EventType.MARIADB_QUERY_COMPRESSED) + bytes(13) + b"\0" + body


@cache
def _compressed_bomb() -> bytes:
    return zlib.compress(bytes(_BOMB))


def _header(kind: int) -> bytes:
    return bytes(4) + bytes((kind,)) + b"\1\0\0\0" + bytes(4) + b"\0\x10\0\0\0\0"
