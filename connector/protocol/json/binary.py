"""Converts MySQL's binary JSON to text, in Debezium's style for streamed records or in the server's style.

The layout is that of ``sql-common/json_binary.h``. Differences of a PARTIAL_UPDATE_ROWS event are applied to the
document of the before image.

Values have offsets, so a damaged document can contain a value many times, or itself. No server writes that: its values
take no more bytes than the document has. Reading stops where they would, so time and text stay linear in its size.
"""

import struct
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.json import values
from rowtide.connector.protocol.json.diff import Leaf, Node, apply_diffs
from rowtide.connector.protocol.json.values import DECIMAL_TYPES, TEMPORAL_TYPES

_LARGE_OBJECT, _LARGE_ARRAY = 1, 3  # the small ones are 0 and 2
_LITERAL, _DOUBLE, _STRING, _OPAQUE = 0x04, 0x0B, 0x0C, 0x0F
_LITERALS = {0: "null", 1: "true", 2: "false"}
_LITERAL_VALUES = {0: None, 1: True, 2: False}
_NUMBERS = {
    0x05: struct.Struct("<h"),
    0x06: struct.Struct("<H"),
    0x07: struct.Struct("<i"),
    0x08: struct.Struct("<I"),
    0x09: struct.Struct("<q"),
    0x0A: struct.Struct("<Q"),
}
_INLINED = (frozenset({0x04, 0x05, 0x06}), frozenset({0x04, 0x05, 0x06, 0x07, 0x08}))
"""Types whose values are inlined in the entries of small and of large containers."""
_KEY_ENTRY = (struct.Struct("<HH"), struct.Struct("<IH"))
_VALUE_ENTRY = (struct.Struct("<BH"), struct.Struct("<BI"))
"""The entries of keys and of values in small and in large containers."""
_F64 = struct.Struct("<d")
_I64 = struct.Struct("<q")
_DAMAGED = (struct.error, IndexError, KeyError, ValueError, RecursionError)


class _Space:
    """The bytes of a document that its values have not taken yet."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size

    def take(self, size: int) -> None:
        """Count the bytes of a value. Raises ``IndexError`` if values overlap."""
        self.left -= size
        if self.left < 0:
            raise IndexError("values overlap")


class JsonStyle(NamedTuple):
    """How JSON is written as text.

    Attributes:
        comma: separator of elements.
        colon: separator of key and value.
        string: quotes a string.
        double: formats a double.
        temporal: formats a temporal value, from its column type and packed number.
        opaque_type: whether opaque values include their type and the line breaks of the server's base64.
    """

    comma: str
    colon: str
    string: Callable[[str], str]
    double: Callable[[float], str]
    temporal: Callable[[int, int], str]
    opaque_type: bool


STREAM: Final = JsonStyle(
    ",", ":", values.stream_string, values.stream_double, partial(values.temporal_text, trim=True), False
)
"""Debezium's style in streamed records: no spaces, doubles as exact decimal expansions, opaque values in base64."""

SERVER: Final = JsonStyle(
    ", ", ": ", values.server_string, values.server_double, partial(values.temporal_text, trim=False), True
)
"""The server's style, which Debezium's snapshots have too."""


def json_text(data: bytes, style: JsonStyle = STREAM) -> str:
    """Return the text of a binary JSON value. No bytes at all are ``null``, as on the server.

    Raises:
        RemoteProtocolError: the bytes are not valid binary JSON.
        UnsupportedEvent: an unknown type.
    """
    if not data:
        return "null"
    try:
        return _text(style, data, data[0], 1, _Space(len(data)))
    except _DAMAGED as error:
        raise RemoteProtocolError(f"a JSON value of {len(data)} bytes is damaged: {_reason(error)}") from None


def stream_text(data: bytes) -> str | None:
    """Return the text in Debezium's style; ``None`` for no bytes, which a row has that is older than its column."""
    return json_text(data, STREAM) if data else None


def server_text(data: bytes) -> str | None:
    """Return the text in the server's style; ``None`` for no bytes."""
    return json_text(data, SERVER) if data else None


def json_value(data: bytes, opaque: Callable[[int, bytes], Any]) -> Any:
    """Return the value as Python objects: ``dict``, ``list``, ``int``, ``float``, ``bool``, ``None``.

    Args:
        data: the binary JSON value.
        opaque: converts an opaque value (a decimal, a date ...), from its column type and bytes.

    Returns:
        The value; keys and strings are bytes in UTF-8.

    Raises:
        RemoteProtocolError: the bytes are not valid binary JSON.
        UnsupportedEvent: an unknown type.
    """
    try:
        return _value(opaque, data, data[0], 1, _Space(len(data)))
    except _DAMAGED as error:
        raise RemoteProtocolError(f"a JSON value of {len(data)} bytes is damaged: {_reason(error)}") from None


def patched_json_text(data: bytes, diffs: bytes, style: JsonStyle = STREAM) -> str:
    """Return the text of a JSON value after the differences of a PARTIAL_UPDATE_ROWS event.

    Args:
        data: the value of the before image.
        diffs: the differences in the after image, without their length prefix.
        style: how to write the text.

    Raises:
        RemoteProtocolError: the bytes are damaged, or a difference does not apply to the document.
        UnsupportedEvent: an unknown operation or type.
    """
    try:
        changed = apply_diffs(_tree(data, data[0], 1, _Space(len(data))), diffs, _value_tree)
        return _node_text(style, changed, _Space(len(data) + len(diffs)))
    except _DAMAGED as error:
        raise RemoteProtocolError(f"a JSON value, or a difference in it, is damaged: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Return the error without the data that a `UnicodeError` carries."""
    return error.reason if isinstance(error, UnicodeDecodeError | UnicodeEncodeError) else repr(error)


def _members(data: bytes, kind: int, pos: int, space: _Space) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Return the keys (of an object), and the types and offsets of the values, in the container at ``pos``."""
    large = kind & 1
    width = 4 if large else 2
    count = int.from_bytes(data[pos : pos + width], "little")
    at = pos + 2 * width
    if at + count * (width + 1) > len(data):
        raise IndexError(f"{count} elements in {len(data) - at} bytes")
    space.take(2 * width)
    keys: list[bytes] = []
    if kind <= _LARGE_OBJECT:
        spans = _KEY_ENTRY[large].iter_unpack(_take(data, at, count * (width + 2), space))
        keys = [data[pos + start : pos + start + size] for start, size in spans]
        space.take(sum(map(len, keys)))
        at += count * (width + 2)
    inlined, step = _INLINED[large], width + 1
    entries = _VALUE_ENTRY[large].iter_unpack(_take(data, at, count * step, space))
    # Not one format for all entries: struct keeps the last 100 formats, each several times as large as its data.
    found = [
        (value_kind, at + i * step + 1 if value_kind in inlined else pos + value)
        for i, (value_kind, value) in enumerate(entries)
    ]
    return keys, found


def _text(style: JsonStyle, data: bytes, kind: int, pos: int, space: _Space) -> str:
    if kind > _LARGE_ARRAY:
        return _scalar(style, data, kind, pos, space)
    keys, values = _members(data, kind, pos, space)
    texts = [_text(style, data, value_kind, offset, space) for value_kind, offset in values]
    if kind > _LARGE_OBJECT:
        return f"[{style.comma.join(texts)}]"
    string, colon = style.string, style.colon
    pairs = [string(key.decode()) + colon + text for key, text in zip(keys, texts, strict=True)]
    return "{" + style.comma.join(pairs) + "}"


def _value(opaque: Callable[[int, bytes], Any], data: bytes, kind: int, pos: int, space: _Space) -> Any:
    if kind <= _LARGE_ARRAY:
        keys, values = _members(data, kind, pos, space)
        found = [_value(opaque, data, value_kind, offset, space) for value_kind, offset in values]
        return found if kind > _LARGE_OBJECT else dict(zip(keys, found, strict=True))
    number = _NUMBERS.get(kind)
    if number is not None:
        return number.unpack_from(data, pos)[0]
    if kind == _STRING:
        size, pos = _size(data, pos)
        return _take(data, pos, size, space)
    if kind == _LITERAL:
        return _LITERAL_VALUES[data[pos]]
    if kind == _DOUBLE:
        space.take(_F64.size)
        return _F64.unpack_from(data, pos)[0]
    if kind == _OPAQUE:
        size, start = _size(data, pos + 1)
        return opaque(data[pos], _take(data, start, size, space))
    raise UnsupportedEvent(f"a JSON value of unknown type 0x{kind:02x}")


def _scalar(style: JsonStyle, data: bytes, kind: int, pos: int, space: _Space) -> str:
    number = _NUMBERS.get(kind)
    if number is not None:
        return str(number.unpack_from(data, pos)[0])
    if kind == _STRING:
        size, pos = _size(data, pos)
        return style.string(_take(data, pos, size, space).decode())
    if kind == _LITERAL:
        return _LITERALS[data[pos]]
    if kind == _DOUBLE:
        space.take(_F64.size)
        return style.double(_F64.unpack_from(data, pos)[0])
    if kind == _OPAQUE:
        return _opaque(style, data, pos, space)
    raise UnsupportedEvent(f"a JSON value of unknown type 0x{kind:02x}")


def _opaque(style: JsonStyle, data: bytes, pos: int, space: _Space) -> str:
    column_type = data[pos]
    size, pos = _size(data, pos + 1)
    value = _take(data, pos, size, space)
    if column_type in DECIMAL_TYPES:
        return values.decimal_text(value)
    if column_type in TEMPORAL_TYPES:
        packed = _I64.unpack(value)[0]
        return f'"{style.temporal(column_type, packed)}"'
    encoded = b64encode(value).decode()
    if not style.opaque_type:
        return f'"{encoded}"'
    lines = [encoded[i : i + 76] for i in range(0, len(encoded), 76)]  # the server inserts line breaks and escapes them
    return f'"base64:type{column_type}:' + "\\n".join(lines) + '"'


def _size(data: bytes, pos: int) -> tuple[int, int]:
    """Return a length in groups of seven bits, and the offset after it."""
    size = data[pos]
    if size < 0x80:
        return size, pos + 1
    size &= 0x7F
    for shift in (7, 14, 21, 28):
        pos += 1
        byte = data[pos]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size, pos + 1
    raise IndexError("a length of more than five bytes")


def _take(data: bytes, pos: int, size: int, space: _Space) -> bytes:
    space.take(size)
    if pos + size > len(data):
        raise IndexError(f"{size} bytes at {pos} of {len(data)}")
    return data[pos : pos + size]


def _value_tree(value: bytes) -> Node:
    return _tree(value, value[0], 1, _Space(len(value)))


def _tree(data: bytes, kind: int, pos: int, space: _Space) -> Node:
    """Return the value at ``pos`` as a mutable tree whose leaves refer to the bytes."""
    if kind > _LARGE_ARRAY:
        return Leaf(data, kind, pos)
    keys, values = _members(data, kind, pos, space)
    nodes = [_tree(data, value_kind, offset, space) for value_kind, offset in values]
    return nodes if kind > _LARGE_OBJECT else dict(zip(keys, nodes, strict=True))


def _node_text(style: JsonStyle, node: Node, space: _Space) -> str:
    if isinstance(node, Leaf):
        return _scalar(style, node.data, node.kind, node.offset, space)
    if isinstance(node, list):
        return f"[{style.comma.join(_node_text(style, element, space) for element in node)}]"
    members = sorted(node.items(), key=lambda member: (len(member[0]), member[0]))  # MySQL's order of keys
    pairs = [style.string(key.decode()) + style.colon + _node_text(style, value, space) for key, value in members]
    return "{" + style.comma.join(pairs) + "}"
