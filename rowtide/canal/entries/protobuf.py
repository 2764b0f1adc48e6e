"""Writes protobuf fields as proto2 does: a field that is set is written, even if it is 0, false or empty."""

from rowtide.envelope.protobuf.wire import LEN, VARINT, varint


def integer(field: int, number: int) -> bytes:
    """Return a field of an integer, enum or boolean type."""
    return varint(field << 3 | VARINT) + varint(number)


def tag(field: int) -> bytes:
    """Return the tag of a field of bytes, text or an embedded message; the length follows it."""
    return varint(field << 3 | LEN)


def data(field: int, content: bytes) -> bytes:
    """Return a field of bytes, or of an embedded message."""
    return tag(field) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """Return a field of text. Java writes an unpaired surrogate as ``?``, and so does this."""
    return data(field, content.encode("utf-8", "replace"))
