"""Packets of clients: cut at any byte, damaged, or too long."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.canal.entries import protobuf
from rowtide.canal.server import packets
from rowtide.canal.server.authentication import Credentials
from rowtide.canal.server.packets import MAX_FRAME, FrameError, FrameMemory, Get, PacketReader, PacketType, frame
from rowtide.canal.server.session import SEED_BYTES, Answer, CanalSession, SessionClosed
from rowtide.envelope.protobuf import wire
from rowtide.envelope.protobuf.wire import signed

STORED = "e3619321c1a937c46a0d8bd1dac39f93b27d4458"  # of the password "canal"


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(0, 200), max_size=10))
def test_frames_are_found_wherever_the_bytes_are_cut(frames: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(frame, frames))
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    reader, found = PacketReader(), []
    for begin, end in itertools.pairwise(bounds):
        found += list(reader.receive(data[begin:end]))
    assert found == frames


@pytest.mark.parametrize("size", [MAX_FRAME + 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_long_frame_is_refused_before_it_is_there(size: int) -> None:
    with pytest.raises(FrameError, match=f"a frame of {size} bytes"):
        list(PacketReader().receive(size.to_bytes(4, "big")))


def test_unfinished_frames_share_memory() -> None:
    memory = FrameMemory(1000)
    first, second = PacketReader(memory), PacketReader(memory)
    begun = (900).to_bytes(4, "big")
    assert list(first.receive(begun + b"x" * 600)) == []
    with pytest.raises(FrameError, match="used up by other connections"):
        list(second.receive(begun + b"y" * 600))
    assert list(first.receive(b"x" * 300)) == [b"x" * 900]  # which gives its memory back
    third = PacketReader(memory)
    assert list(third.receive(begun + b"z" * 600)) == []
    third.close()
    assert list(PacketReader(memory).receive(begun + b"z" * 800)) == []


@given(st.binary(max_size=60))
def test_damaged_messages_are_not_internal_errors(data: bytes) -> None:
    session = CanalSession(Credentials(), b"12345678", "[]")
    for found in session.receive(frame(data) + frame(data)):
        assert isinstance(found, Answer | SessionClosed) or found.destination


@given(st.dictionaries(st.integers(1, 100), st.integers(-(1 << 63), (1 << 63) - 1) | st.binary(max_size=200)))
def test_fields_are_read_as_written(fields: dict[int, int | bytes]) -> None:
    message = b"".join(
        protobuf.integer(n, value) if isinstance(value, int) else protobuf.data(n, value) for n, value in fields.items()
    )
    read = {n: signed(value) if isinstance(value, int) else value for n, _, value in wire.fields(message)}
    assert read == fields


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"\x80", "ends within a number"),
        (b"\x08" + b"\xff" * 10, "more than ten bytes"),
        (b"\x00\x00", "number 0"),
        (b"\x0b", "unknown wire type 3"),
        (b"\x0a\x05abc", "field 1 needs 5 bytes, but has only 3"),
        (b"\x0d\x00", "field 1 needs 4 bytes, but has only 1"),
    ],
)
def test_what_is_not_a_message(message: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(wire.fields(message))


@pytest.mark.parametrize(
    ("unit", "seconds"), [(0, 5e-9), (1, 5e-6), (2, 0.005), (3, 5), (4, 300), (6, 432000), (99, 0.005)]
)
def test_units_of_timeouts(unit: int, seconds: float) -> None:
    body = protobuf.text(1, "d") + protobuf.text(2, "1") + protobuf.integer(4, 5) + protobuf.integer(5, unit)
    found = packets.request(PacketType.GET, body)
    assert isinstance(found, Get)
    assert found.timeout_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("user", "password", "admitted"),
    [("canal", "canal", True), ("canal", "wrong", False), ("other", "canal", False), ("canal", None, False)],
)
def test_passwords(user: str, password: str | None, admitted: bool) -> None:
    seed = bytes(range(SEED_BYTES))
    token = b"" if password is None else token_of(password, seed)
    request = packets.authentication(protobuf.text(1, user) + protobuf.data(2, token))
    for stored in (STORED, STORED.upper(), "canal"):
        assert Credentials("canal", stored).admit(request, seed) is admitted
    assert Credentials("canal", "").admit(request, seed)


@pytest.mark.parametrize("token", [b"canal", b"\xff\xfe", b"00" * 19, b"00" * 21])
def test_tokens_that_are_none(token: bytes) -> None:
    assert not Credentials("", STORED).admit(packets.authentication(protobuf.data(2, token)), b"12345678")


def token_of(password: str, seed: bytes) -> bytes:
    once = hashlib.sha1(password.encode()).digest()
    mask = hashlib.sha1(seed + hashlib.sha1(once).digest()).digest()
    return bytes(a ^ b for a, b in zip(once, mask, strict=True)).hex().encode()
