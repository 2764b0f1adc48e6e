"""Packets are complete, regardless of the pieces in which the bytes arrive."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.protocol.packets import PacketBuffer

LARGEST = 0xFFFFFF


def framed(payload: bytes) -> bytes:
    """One payload as the server sends it: split at 2^24-1 bytes, with a shorter last packet."""
    data = b""
    while True:
        piece, payload = payload[:LARGEST], payload[LARGEST:]
        data += len(piece).to_bytes(3, "little") + b"\x00" + piece
        if len(piece) < LARGEST:
            return data


def fed(buffer: PacketBuffer, data: bytes, sizes: Iterable[int] = ()) -> list[bytes]:
    """Receive the data in pieces of these sizes, then in pieces as large as the buffer's space."""
    found, pos, wanted = [], 0, iter(sizes)
    while pos < len(data):
        space = buffer.space()
        count = min(next(wanted, len(space)), len(space), len(data) - pos)
        space[:count] = data[pos : pos + count]
        found += buffer.received(count)
        pos += count
    return found


@given(st.lists(st.binary(max_size=40), max_size=10), st.lists(st.integers(1, 7)), st.integers(1, 50))
def test_payloads_do_not_depend_on_the_pieces(payloads: list[bytes], sizes: list[int], room: int) -> None:
    assert fed(PacketBuffer(room), b"".join(map(framed, payloads)), sizes) == payloads


def test_a_payload_of_more_than_16_mib() -> None:
    payload = bytes(LARGEST + 5)
    data = framed(payload) + framed(b"next")
    buffer = PacketBuffer()
    assert fed(buffer, data[: LARGEST + 6]) == []
    assert fed(buffer, data[LARGEST + 6 :]) == [payload, b"next"]


def test_a_payload_of_exactly_16_mib_ends_with_an_empty_packet() -> None:
    assert fed(PacketBuffer(), framed(bytes(LARGEST))) == [bytes(LARGEST)]


def test_a_large_packet_is_received_into_one_buffer() -> None:
    """TLS hands out 16 KB at a time: to join them one by one would copy a packet of 16 MB a thousand times."""
    buffer, packet = PacketBuffer(1 << 10), framed(bytes(1 << 20))
    assert fed(buffer, packet[:1000]) == []
    whole = buffer.space().obj
    for at in range(1000, len(packet) - (1 << 14), 1 << 14):
        assert fed(buffer, packet[at : at + (1 << 14)]) == []
        assert buffer.space().obj is whole
    assert fed(buffer, bytes(buffer.missing) + framed(b"next")) == [bytes(1 << 20), b"next"]
    assert len(buffer.space()) == 1 << 10  # the large buffer is not kept


def test_what_a_packet_lacks() -> None:
    buffer = PacketBuffer()
    assert buffer.missing == 0
    fed(buffer, b"\x0a\x00")
    assert buffer.missing == 2
    fed(buffer, b"\x00\x00ab")
    assert buffer.missing == 8
    fed(buffer, b"cdefghij")
    assert buffer.missing == 0
