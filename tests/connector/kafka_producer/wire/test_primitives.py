"""The primitive types of Kafka's protocol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer
from rowtide.connector.kafka_producer.wire.primitives import INT16, Reader, Writer, binary, string


@given(st.integers(0, 0xFFFFFFFF))
def test_numbers_of_variable_length(value: int) -> None:
    writer = Writer()
    writer.uvarint(value)
    (content,) = writer.parts()
    assert len(content) == max(1, -(-value.bit_length() // 7))
    reader = Reader(content)
    assert (reader.uvarint(), reader.left) == (value, 0)


@pytest.mark.parametrize("content", [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x01", b"\xff" * 20])
def test_a_number_of_variable_length_that_is_too_long(content: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="the number of variable length at 0 has more than 32 bits"):
        Reader(content).uvarint()


@pytest.mark.parametrize("content", [b"", b"\x80", b"\xff\xff"])
def test_a_number_of_variable_length_that_ends_early(content: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="bytes are needed at offset"):
        Reader(content).uvarint()


def test_a_reader_does_not_go_back() -> None:
    with pytest.raises(MalformedAnswer):
        Reader(b"abc").take(-1)


@pytest.mark.parametrize(
    ("flexible", "content"),
    [(False, b"\xff\xfe"), (False, b"\xff\xff"), (True, b"\0"), (False, b"\0\4abc"), (True, b"\5abc")],
)
def test_a_length_that_does_not_fit(content: bytes, *, flexible: bool) -> None:
    with pytest.raises(MalformedAnswer, match="does not fit the"):
        string(flexible=flexible, nullable=False).read(Reader(content))


def test_a_text_that_is_not_utf_8() -> None:
    with pytest.raises(MalformedAnswer, match="a string is not valid UTF-8"):
        string(flexible=True, nullable=True).read(Reader(b"\3\xff\xfe"))


def test_large_values_are_not_copied() -> None:
    writer, records = Writer(), bytearray(b"records")
    INT16.write(writer, 7)
    binary(flexible=True, nullable=True, copied=False).write(writer, records)
    INT16.write(writer, 8)
    before, middle, after = writer.parts()
    assert (before, after) == (b"\0\7\x08", b"\0\x08")
    assert middle is records
