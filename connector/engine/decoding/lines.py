"""Messages as JSON lines, in memory of the caller: an object with topic, key, value and headers for each message."""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache

from rowtide.connector.records.batch import Headers, Message
from rowtide.connector.rows.native.implementation import native

_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def put(memory: bytearray | memoryview, data: bytes) -> int:
    """Copy bytes to the beginning of memory; returns how many.

    Raises:
        BufferError: the memory is too small for them.
    """
    size = len(data)
    if size > len(memory):
        raise BufferError(f"the memory has {len(memory)} bytes, {size} are needed")
    memory[:size] = data
    return size


def put_lines(memory: bytearray | memoryview, topic: str, messages: Sequence[Message]) -> int:
    """Write a line for each message to the beginning of memory; returns how many bytes they have.

    Args:
        memory: where they are written; if an error is raised, its contents are undefined.
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
    """As :func:`put_lines`.

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
    return put(memory, "".join(lines).encode())


def _string(data: bytes | None) -> str:
    return "null" if data is None else _text(data.decode())


@lru_cache(maxsize=1000)
def _topic_text(topic: str) -> bytes:
    return _text(topic).encode()


def headers_text(headers: Headers) -> bytes:
    """The JSON text of headers. Most messages have the same ones."""
    return _headers_text(tuple(headers))


@lru_cache(maxsize=4)
def _headers_text(headers: tuple[tuple[str, bytes | None], ...]) -> bytes:
    return _text([[name, None if text is None else text.decode()] for name, text in headers]).encode()


_put_messages = python_lines if native is None else native.message_lines
