"""JSON lines of messages: compiled code and Python write the same text, and raise the same errors."""

from __future__ import annotations

import json
import os
import signal
import struct
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowtide.connector.engine.decoding.forms import LineForm
from rowtide.connector.engine.decoding.lines import headers_text, put_lines, python_lines, python_write
from rowtide.connector.records.batch import Batch, Headers, Message
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.native import implementation
from tests.support.packed_lines import text_of

Packer = Callable[[memoryview, bytes, Sequence[Message], Callable[[Headers], bytes]], int]
Writer = Callable[[int, memoryview], None]

PACKERS: list[Packer] = [python_lines]
WRITERS: list[Writer] = [python_write]
if implementation.native is not None:
    PACKERS.append(implementation.native.message_lines)
    WRITERS.append(implementation.native.write_lines)
PIECES = st.sampled_from(
    ["", '"', "\\", "\n\r\t\b\f", "\x00\x1f\x7f", "a", "plain", "é", "è", "€uro", "\U0001f600", "x" * 70]
)
PARTS = st.none() | st.builds(lambda *pieces: "".join(pieces).encode(), PIECES, PIECES, PIECES, PIECES)
HEADERS = st.lists(st.tuples(st.sampled_from(["h", 'é"']), PARTS), max_size=2)
MESSAGES = st.lists(st.tuples(PARTS, PARTS, HEADERS), max_size=6)


def packed(packer: Packer, messages: Sequence[Message], room: int = 100_000) -> memoryview:
    memory = bytearray(b"#" * (room + 8))
    size = packer(memoryview(memory)[:room], b'"t"', messages, headers_text)
    assert memory[room:] == b"#" * 8
    return memoryview(memory)[:size]


def written(packer: Packer, messages: Sequence[Message]) -> bytes:
    """The text of messages, which all writers must write in the same way."""
    lines = packed(packer, messages)
    texts = {text_of(lines, writer) for writer in WRITERS}
    assert len(texts) == 1
    return texts.pop()


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
    texts = {written(packer, messages) for packer in PACKERS}
    assert texts == {
        "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in expected).encode()
    }


@given(MESSAGES, st.integers(1, 400))
def test_memory_that_is_too_small_is_an_error(messages: list[Message], missing: int) -> None:
    for packer in PACKERS:
        size = len(packed(packer, messages))
        assert len(packed(packer, messages, size)) == size
        with pytest.raises(BufferError):
            packed(packer, messages, max(size - missing, 0))


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("damaged", [b"\xff", b"a\x80", b"ab\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf"])
@pytest.mark.parametrize("before", [b"ab", "aé".encode(), "abé".encode(), b""])
def test_bytes_that_are_no_text_are_an_error(packer: Packer, damaged: bytes, before: bytes) -> None:
    with pytest.raises(UnicodeDecodeError) as python:
        damaged.decode()
    for messages in ([(None, before, ()), (None, damaged, ())], [(before, None, ()), (damaged, None, ())]):
        with pytest.raises(UnicodeDecodeError) as found:
            packed(packer, messages)
        assert str(found.value) == str(python.value)


@pytest.mark.parametrize("packer", PACKERS)
def test_equal_headers_of_several_messages_are_written_for_each(packer: Packer) -> None:
    shared: Headers = [("a", b"1")]
    messages: list[Message] = [
        (None, None, shared),
        (None, None, shared),
        (None, None, ()),
        (None, None, [("b", None)]),
    ]
    found = [json.loads(line)["headers"] for line in written(packer, messages).splitlines()]
    assert found == [[["a", "1"]], [["a", "1"]], [], [["b", None]]]


@pytest.mark.parametrize("topic", ["t", 'é"\\'])
def test_the_topic_is_a_string(topic: str) -> None:
    memory = bytearray(100)
    size = put_lines(memory, topic, [(None, None, ())])
    assert json.loads(text_of(memoryview(memory)[:size]))["topic"] == topic


def test_memory_for_lines_grows_and_is_used_again() -> None:
    form = LineForm()
    large, small = batch("t", [(b"k", b"v" * 1_000_000, ())]), batch("t", [(b"k", b"v", ())])
    first = form.direct([large])
    assert (first.records, json.loads(text_of(first.packed))["value"]) == (1, "v" * 1_000_000)
    second = form.direct([small, small])
    assert second.packed.obj is first.packed.obj
    assert second.records == 2
    assert [json.loads(line)["value"] for line in text_of(second.packed).splitlines()] == ["v", "v"]


SCHEMA = b'{"schema":"' + b"s" * 1000 + '€","payload":'.encode()


@pytest.mark.parametrize("packer", PACKERS[1:])
def test_text_that_messages_begin_with_is_in_memory_once(packer: Packer) -> None:
    messages: list[Message] = [(SCHEMA + b"%d}" % row, SCHEMA + b'"%d"}' % row, ()) for row in range(3000)]
    lines = packed(packer, messages, 1_000_000)
    assert len(lines) < 3000 * 150
    text = written(packer, messages[:10]) + text_of(lines)
    assert [json.loads(line)["value"].encode() for line in text.splitlines()] == [
        message[1] for message in messages[:10] + messages
    ]


Part = tuple[int, int, int]


def piece(text: bytes, *parts: Part, size: int | None = None, number: int | None = None) -> bytes:
    """A piece of packed lines; its head may have wrong numbers."""
    head = struct.pack("=QQ", len(text) if size is None else size, len(parts) if number is None else number)
    return head + text + b"".join(struct.pack("=QQQ", *part) for part in reversed(parts))


HUGE = (1 << 64) - 1
WHOLE = piece(b"text", (4, 0, 0))
DAMAGED = [
    b"#",
    WHOLE[:-1],
    WHOLE + b"#",
    WHOLE + WHOLE[:15],
    piece(b"text", (4, 0, 0), size=29),
    piece(b"text", (4, 0, 0), size=HUGE),
    piece(b"text", (4, 0, 0), size=HUGE - 15),
    piece(b"text", (4, 0, 0), number=2),
    piece(b"text", (4, 0, 0), number=HUGE),
    piece(b"text", (4, 0, 0), number=(1 << 64) // 24 + 2),  # 24 bytes each are a few bytes again
    piece(b"text"),
    piece(b"text", (3, 0, 0)),
    piece(b"text", (5, 0, 0)),
    piece(b"text", (HUGE, 0, 0)),
    piece(b"text", (2, 0, 0), (3, 0, 0)),
    piece(b"text", (2, 0, 0), (HUGE, 0, 0), (3, 0, 0)),
    piece(b"text", (4, 0, 5)),
    piece(b"text", (4, 1, 4)),
    piece(b"text", (4, 5, 0)),
    piece(b"text", (4, HUGE, 1)),
    piece(b"text", (4, 1, HUGE)),
    piece(b"text", (4, HUGE - 1, 4)),
]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("damaged", DAMAGED)
def test_damaged_lines_are_an_error(writer: Writer, damaged: bytes) -> None:
    with pytest.raises(ValueError, match="the packed lines are damaged"):
        text_of(memoryview(damaged), writer)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("parts", [0, 1, 511, 512, 513, 2000])
@pytest.mark.parametrize("pieces", [1, 3])
def test_any_number_of_parts_is_written(writer: Writer, parts: int, pieces: int) -> None:
    text = b"".join(b"%04d" % number for number in range(parts))
    lines = piece(text, *((4, 4 * (parts - 1 - number) + 1, 3) for number in range(parts))) * pieces
    expected = b"".join(b"%04d%03d" % (number, (parts - 1 - number) % 1000) for number in range(parts)) * pieces
    assert text_of(memoryview(lines), writer) == expected


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for file in (reading, writing):
        try:
            os.close(file)
        except OSError:  # the test has closed it
            continue


LARGE = piece(b"".join(b"%01000d" % number for number in range(1000)), *((1000, 200 + n, 700) for n in range(1000)))
"""More than a pipe holds, so that it is written in pieces that end within a segment."""


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("blocking", [True, False])
def test_a_pipe_gets_all_lines_in_pieces(writer: Writer, blocking: bool, pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, blocking)
    read = bytearray()

    def reader() -> None:
        while piece := os.read(reading, 1777):
            read.extend(piece)

    thread = threading.Thread(target=reader)
    thread.start()
    writer(writing, memoryview(LARGE))
    os.close(writing)
    thread.join()
    assert read == text_of(memoryview(LARGE))


@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_without_a_reader_is_an_error(writer: Writer, pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    with pytest.raises(BrokenPipeError):
        writer(pipe[1], memoryview(LARGE))


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("blocking", [True, False])
def test_a_signal_ends_a_write_that_waits_if_its_handler_raises(
    writer: Writer, blocking: bool, pipe: tuple[int, int]
) -> None:
    arrived = 0

    def handler(*_: object) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == 3:
            raise Interrupted

    os.set_blocking(pipe[1], blocking)
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with pytest.raises(Interrupted):
            writer(pipe[1], memoryview(LARGE))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
