"""JSON lines of messages: compiled code and Python write the same bytes, and raise the same errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowtide.connector.engine.decoding.forms import LineForm
from rowtide.connector.engine.decoding.lines import headers_text, put_lines, python_lines
from rowtide.connector.records.batch import Batch, Headers, Message
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.native import implementation

Writer = Callable[[memoryview, bytes, Sequence[Message], Callable[[Headers], bytes]], int]

WRITERS: list[Writer] = [python_lines]
if implementation.native is not None:
    WRITERS.append(implementation.native.message_lines)
PIECES = st.sampled_from(
    ["", '"', "\\", "\n\r\t\b\f", "\x00\x1f\x7f", "a", "plain", "é", "è", "€uro", "\U0001f600", "x" * 70]
)
PARTS = st.none() | st.builds(lambda *pieces: "".join(pieces).encode(), PIECES, PIECES, PIECES, PIECES)
HEADERS = st.lists(st.tuples(st.sampled_from(["h", 'é"']), PARTS), max_size=2)
MESSAGES = st.lists(st.tuples(PARTS, PARTS, HEADERS), max_size=6)


def written(writer: Writer, messages: Sequence[Message], room: int = 100_000) -> bytes:
    memory = bytearray(b"#" * (room + 8))
    size = writer(memoryview(memory)[:room], b'"t"', messages, headers_text)
    assert memory[size:] == b"#" * (room + 8 - size)
    return bytes(memory[:size])


def batch(topic: str, messages: Sequence[Message]) -> Batch:
    return Batch(topic, -1, messages, SourceOffset("binlog.000001", 4), 0, 0)


@given(MESSAGES)
@example(
    [(None, '{"a":"é"}'.encode(), ()), (None, '{"a":"è"}'.encode(), ())]
)  # they share the first half of a character
@example([(b"abc", b"abcd", ()), (b"ab", b"", ()), (b"abc", b"abcd", ())])
def test_all_writers_write_the_same_lines(messages: list[Message]) -> None:
    expected = [
        {
            "topic": "t",
            "key": None if key is None else key.decode(),
            "value": None if value is None else value.decode(),
            "headers": [[name, None if text is None else text.decode()] for name, text in headers],
        }
        for key, value, headers in messages
    ]
    texts = {written(writer, messages) for writer in WRITERS}
    assert texts == {
        "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in expected).encode()
    }


@given(MESSAGES, st.integers(1, 400))
def test_memory_that_is_too_small_is_an_error(messages: list[Message], missing: int) -> None:
    size = len(written(python_lines, messages))
    for writer in WRITERS:
        assert len(written(writer, messages, size)) == size
        if missing <= size:
            with pytest.raises(BufferError):
                written(writer, messages, size - missing)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("damaged", [b"\xff", b"a\x80", b"ab\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf"])
@pytest.mark.parametrize("before", [b"ab", "aé".encode(), "abé".encode(), b""])
def test_bytes_that_are_no_text_are_an_error(writer: Writer, damaged: bytes, before: bytes) -> None:
    with pytest.raises(UnicodeDecodeError) as python:
        damaged.decode()
    for messages in ([(None, before, ()), (None, damaged, ())], [(before, None, ()), (damaged, None, ())]):
        with pytest.raises(UnicodeDecodeError) as found:
            written(writer, messages)
        assert str(found.value) == str(python.value)


@pytest.mark.parametrize("writer", WRITERS)
def test_equal_headers_of_several_messages_are_written_for_each(writer: Writer) -> None:
    shared: Headers = [("a", b"1")]
    messages: list[Message] = [
        (None, None, shared),
        (None, None, shared),
        (None, None, ()),
        (None, None, [("b", None)]),
    ]
    found = [json.loads(line)["headers"] for line in written(writer, messages).splitlines()]
    assert found == [[["a", "1"]], [["a", "1"]], [], [["b", None]]]


@pytest.mark.parametrize("topic", ["t", 'é"\\'])
def test_the_topic_is_a_string(topic: str) -> None:
    memory = bytearray(100)
    size = put_lines(memory, topic, [(None, None, ())])
    assert json.loads(memory[:size])["topic"] == topic


def test_memory_for_lines_grows_and_is_used_again() -> None:
    form = LineForm()
    large, small = batch("t", [(b"k", b"v" * 1_000_000, ())]), batch("t", [(b"k", b"v", ())])
    first = form.direct([large])
    assert (first.records, json.loads(bytes(first.text))["value"]) == (1, "v" * 1_000_000)
    second = form.direct([small, small])
    assert second.text.obj is first.text.obj
    assert second.records == 2
    assert [json.loads(line)["value"] for line in bytes(second.text).splitlines()] == ["v", "v"]
