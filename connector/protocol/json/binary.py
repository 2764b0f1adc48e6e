"""MySQL's binary JSON, as rows hold it, to text: as Debezium writes it in streamed records, or as the server prints it.

The layout is that of ``sql-common/json_binary.h``. Differences of PARTIAL_UPDATE_ROWS are applied to the document, so
that the after image is whole. Knows nothing of rows; the caller cuts out the bytes of the value.
"""

import struct
from base64 import b64encode
from collections.abc import Callable
from typing import Final, NamedTuple

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.json import values
from rowtide.connector.protocol.json.diff import Leaf, Node, apply_diffs
from rowtide.connector.protocol.json.values import DECIMAL_TYPES, TEMPORAL_TYPES

_LARGE_OBJECT, _LARGE_ARRAY = 1, 3  # the small ones are 0 and 2
_LITERAL, _DOUBLE, _STRING, _OPAQUE = 0x04, 0x0B, 0x0C, 0x0F
_LITERALS = {0: "null", 1: "true", 2: "false"}
_NUMBERS = {
    0x05: struct.Struct("<h"),
    0x06: struct.Struct("<H"),
    0x07: struct.Struct("<i"),
    0x08: struct.Struct("<I"),
    0x09: struct.Struct("<q"),
    0x0A: struct.Struct("<Q"),
}
_INLINED = (frozenset({0x04, 0x05, 0x06}), frozenset({0x04, 0x05, 0x06, 0x07, 0x08}))
"""Types whose values stand in the entries of small and of large containers, not behind them."""
_F64 = struct.Struct("<d")
_I64 = struct.Struct("<q")
_DAMAGED = (struct.error, IndexError, KeyError, UnicodeDecodeError, RecursionError)


class JsonStyle(NamedTuple):
    """A way to write JSON as text.

    Attributes:
        comma: between elements.
        colon: between key and value.
        string: quotes a string.
        double: writes a double.
        trim_fractions: whether times lose zeros at the end of their fraction.
        opaque_type: whether opaque values tell their type, and have the line breaks of the server's base64.
    """

    comma: str
    colon: str
    string: Callable[[str], str]
    double: Callable[[float], str]
    trim_fractions: bool
    opaque_type: bool


STREAM: Final = JsonStyle(",", ":", values.stream_string, values.stream_double, True, False)
"""Debezium's form in streamed records: no blanks, doubles as exact decimal expansions, opaque values in base64."""

SERVER: Final = JsonStyle(", ", ": ", values.server_string, values.server_double, False, True)
"""The server's own form, which is Debezium's in snapshots."""


def json_text(data: bytes, form: JsonStyle = STREAM) -> str:
    """The text of a binary JSON value; no bytes at all are ``null``, as the server has it.

    Raises:
        RemoteProtocolError: the bytes are no binary JSON.
        UnsupportedEvent: a type that is not known.
    """
    if not data:
        return "null"
    try:
        return _text(form, data, data[0], 1)
    except _DAMAGED as error:
        raise RemoteProtocolError(f"a JSON value of {len(data)} bytes is damaged: {error!r}") from None


def patched_json_text(data: bytes, diffs: bytes, form: JsonStyle = STREAM) -> str:
    """The text of a JSON value after the differences of a PARTIAL_UPDATE_ROWS event.

    Args:
        data: the value of the before image.
        diffs: what stands in the after image instead of a value, without its length.
        form: how to write it.

    Raises:
        RemoteProtocolError: the bytes are damaged, or a difference does not fit the document.
        UnsupportedEvent: an operation or a type that is not known.
    """
    try:
        return _node_text(form, apply_diffs(_tree(data, data[0], 1), diffs, lambda value: _tree(value, value[0], 1)))
    except _DAMAGED as error:
        raise RemoteProtocolError(f"a JSON value or its differences are damaged: {error!r}") from None


def _members(data: bytes, kind: int, pos: int) -> tuple[list[bytes], list[tuple[int, int]]]:
    """The keys (of an object) and the types and offsets of the values of the container at ``pos``."""
    large = kind & 1
    width = 4 if large else 2
    count = int.from_bytes(data[pos : pos + width], "little")
    at = pos + 2 * width
    if at + count * (width + 1) > len(data):
        raise IndexError(f"{count} elements in {len(data) - at} bytes")
    keys: list[bytes] = []
    if kind <= _LARGE_OBJECT:
        spans = struct.unpack_from("<" + ("IH" if large else "HH") * count, data, at)
        keys = [data[pos + spans[i] : pos + spans[i] + spans[i + 1]] for i in range(0, 2 * count, 2)]
        at += count * (width + 2)
    entries = struct.unpack_from("<" + ("BI" if large else "BH") * count, data, at)
    inlined, step = _INLINED[large], width + 1
    found = []
    for i in range(count):
        value_kind = entries[2 * i]
        offset = at + i * step + 1 if value_kind in inlined else pos + entries[2 * i + 1]
        found.append((value_kind, offset))
    return keys, found


def _text(form: JsonStyle, data: bytes, kind: int, pos: int) -> str:
    if kind > _LARGE_ARRAY:
        return _scalar(form, data, kind, pos)
    keys, values = _members(data, kind, pos)
    texts = [_text(form, data, value_kind, offset) for value_kind, offset in values]
    if kind > _LARGE_OBJECT:
        return f"[{form.comma.join(texts)}]"
    string, colon = form.string, form.colon
    pairs = [string(key.decode()) + colon + text for key, text in zip(keys, texts, strict=True)]
    return "{" + form.comma.join(pairs) + "}"


def _scalar(form: JsonStyle, data: bytes, kind: int, pos: int) -> str:
    number = _NUMBERS.get(kind)
    if number is not None:
        return str(number.unpack_from(data, pos)[0])
    if kind == _STRING:
        size, pos = _size(data, pos)
        return form.string(_take(data, pos, size).decode())
    if kind == _LITERAL:
        return _LITERALS[data[pos]]
    if kind == _DOUBLE:
        return form.double(_F64.unpack_from(data, pos)[0])
    if kind == _OPAQUE:
        return _opaque(form, data, pos)
    raise UnsupportedEvent(f"a JSON value of type 0x{kind:02x}, which is not known")


def _opaque(form: JsonStyle, data: bytes, pos: int) -> str:
    column_type = data[pos]
    size, pos = _size(data, pos + 1)
    value = _take(data, pos, size)
    if column_type in DECIMAL_TYPES:
        return values.decimal_text(value)
    if column_type in TEMPORAL_TYPES:
        packed = _I64.unpack(value)[0]
        return f'"{values.temporal_text(column_type, packed, trim=form.trim_fractions)}"'
    encoded = b64encode(value).decode()
    if not form.opaque_type:
        return f'"{encoded}"'
    lines = [encoded[i : i + 76] for i in range(0, len(encoded), 76)]  # the server breaks lines, and escapes the breaks
    return f'"base64:type{column_type}:' + "\\n".join(lines) + '"'


def _size(data: bytes, pos: int) -> tuple[int, int]:
    """A length in groups of seven bits, and the offset behind it."""
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


def _take(data: bytes, pos: int, size: int) -> bytes:
    if pos + size > len(data):
        raise IndexError(f"{size} bytes at {pos} of {len(data)}")
    return data[pos : pos + size]


def _tree(data: bytes, kind: int, pos: int) -> Node:
    """The value at ``pos`` as a tree that can be changed; its leaves stay in the bytes."""
    if kind > _LARGE_ARRAY:
        return Leaf(data, kind, pos)
    keys, values = _members(data, kind, pos)
    nodes = [_tree(data, value_kind, offset) for value_kind, offset in values]
    return nodes if kind > _LARGE_OBJECT else dict(zip(keys, nodes, strict=True))


def _node_text(form: JsonStyle, node: Node) -> str:
    if isinstance(node, Leaf):
        return _scalar(form, node.data, node.kind, node.offset)
    if isinstance(node, list):
        return f"[{form.comma.join(_node_text(form, element) for element in node)}]"
    members = sorted(node.items(), key=lambda member: (len(member[0]), member[0]))  # the server's order
    return "{" + form.comma.join(form.string(k.decode()) + form.colon + _node_text(form, v) for k, v in members) + "}"
