"""Packets are complete, regardless of the chunks in which the bytes arrive."""

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


@given(st.lists(st.binary(max_size=40), max_size=10), st.lists(st.integers(1, 7)))
def test_payloads_do_not_depend_on_the_chunks(payloads: list[bytes], sizes: list[int]) -> None:
    data = b"".join(map(framed, payloads))
    buffer, found, pos = PacketBuffer(), [], 0
    for size in sizes:
        found += buffer.feed(data[pos : pos + size])
        pos += size
    found += buffer.feed(data[pos:])
    assert found == payloads


def test_a_payload_of_more_than_16_mib() -> None:
    payload = bytes(LARGEST + 5)
    data = framed(payload) + framed(b"next")
    buffer = PacketBuffer()
    assert buffer.feed(data[: LARGEST + 6]) == []
    assert buffer.feed(data[LARGEST + 6 :]) == [payload, b"next"]


def test_a_payload_of_exactly_16_mib_ends_with_an_empty_packet() -> None:
    assert PacketBuffer().feed(framed(bytes(LARGEST))) == [bytes(LARGEST)]
