"""Messages as JSON lines: an object with topic, key, value and headers for each message.

The lines are packed in memory of the caller, where the schema at the beginning of all messages is stored only once.
Packed lines consist of pieces: the bytes of the text, the number of parts, the text, and the parts, the last one first.
A part is its own text, which follows that of the previous part, and then other text of the piece: three numbers, the
bytes of its own text, where the other one begins in the text of the piece, and its bytes.
"""

import json
import os
import select
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from rowtide.connector.records.batch import Headers, Message
from rowtide.connector.rows.native.implementation import native

_PIECE = struct.Struct("=QQ")
_PART = struct.Struct("=QQQ")
_MOST_SEGMENTS = 1024
"""IOV_MAX of Linux and macOS."""
_DAMAGED = "the packed lines are damaged"

_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def put(memory: bytearray | memoryview, data: bytes) -> int:
    """Copy bytes to the beginning of memory, and return their number.

    Raises:
        BufferError: the memory is too small for them.
    """
    size = len(data)
    if size > len(memory):
        raise BufferError(f"the memory has {len(memory)} bytes, but {size} are needed")
    memory[:size] = data
    return size


def put_lines(memory: bytearray | memoryview, topic: str, messages: Sequence[Message]) -> int:
    """Pack a line for each message at the beginning of memory, and return the size in bytes.

    Args:
        memory: the memory to write to. Its contents after the lines are undefined; after an error, all contents are.
        topic: the topic of all messages.
        messages: the messages.

    Raises:
        BufferError: the memory is too small for them.
        UnicodeDecodeError: a key, a value or a header is not UTF-8.
    """
    return _put_messages(memory, _topic_text(topic), messages, headers_text)


def python_lines(
    memory: bytearray | memoryview, topic: bytes, messages: Sequence[Message], headers: Callable[[Headers], bytes]
) -> int:
    """Do the same as :func:`put_lines`.

    Args:
        memory: as there.
        topic: the topic as a JSON string.
        messages: as there.
        headers: returns the JSON text of headers.
    """
    opening = f'{{"topic":{topic.decode()},"key":'
    lines = (
        f'{opening}{_string(key)},"value":{_string(value)},"headers":{headers(pairs).decode()}}}\n'
        for key, value, pairs in messages
    )
    text = "".join(lines).encode()
    return put(memory, _PIECE.pack(len(text), 1) + text + _PART.pack(len(text), 0, 0))


def python_write(file: int, packed: memoryview) -> None:
    """Do the same as :func:`write_lines`."""
    found = _segments(packed)
    while segments := list(islice(found, _MOST_SEGMENTS)):
        _write(file, segments)


def _segments(packed: memoryview) -> Iterator[memoryview]:
    """Yield the text of the lines, in segments."""
    while packed:
        if len(packed) < _PIECE.size:
            raise ValueError(_DAMAGED)
        size, parts = _PIECE.unpack_from(packed)
        text = packed[_PIECE.size : _PIECE.size + size]
        end = _PIECE.size + size + parts * _PART.size
        if end > len(packed):
            raise ValueError(_DAMAGED)
        yield from _segments_of(text, packed[_PIECE.size + size : end])
        packed = packed[end:]


def _segments_of(text: memoryview, parts: memoryview) -> Iterator[memoryview]:
    """Yield the text of a piece, in segments."""
    done = 0
    for place in reversed(range(0, len(parts), _PART.size)):
        own, at, shared = _PART.unpack_from(parts, place)
        if done + own > len(text) or at + shared > len(text):
            raise ValueError(_DAMAGED)
        yield text[done : done + own]
        yield text[at : at + shared]
        done += own
    if done < len(text):
        raise ValueError(_DAMAGED)


def _write(file: int, segments: list[memoryview]) -> None:
    while segments:
        try:
            written = os.writev(file, segments)
        except BlockingIOError:
            waiting = select.poll()
            waiting.register(file, select.POLLOUT)
            waiting.poll()
            continue
        whole = 0
        while whole < len(segments) and written >= len(segments[whole]):
            written -= len(segments[whole])
            whole += 1
        del segments[:whole]
        if segments:
            segments[0] = segments[0][written:]


def _string(data: bytes | None) -> str:
    return "null" if data is None else _text(data.decode())


@lru_cache(maxsize=1000)
def _topic_text(topic: str) -> bytes:
    return _text(topic).encode()


def headers_text(headers: Headers) -> bytes:
    """Return the JSON text of headers. Most messages have the same ones."""
    return _headers_text(tuple(headers))


@lru_cache(maxsize=4)
def _headers_text(headers: tuple[tuple[str, bytes | None], ...]) -> bytes:
    return _text([[name, None if text is None else text.decode()] for name, text in headers]).encode()


_put_messages = python_lines if native is None else native.message_lines

write_lines: Callable[[int, memoryview], None] = python_write if native is None else native.write_lines
"""Write packed lines to the descriptor of a file, all of them, even if the file does not block.

Raises:
    OSError: the file does not take them; a part of them may have been written.
    ValueError: they are damaged.
"""
