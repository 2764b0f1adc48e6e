"""Writes protobuf fields. Canal's messages are proto2: a field that is set is written, also if it is 0, false or empty.

Wire format: https://protobuf.dev/programming-guides/encoding/
"""

_VARINT, _LENGTH = 0, 2


def varint(number: int) -> bytes:
    """A number as a base-128 varint; a negative one as its 64-bit two's complement."""
    if 0 <= number < 0x80:
        return bytes((number,))
    number &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field: int, number: int) -> bytes:
    """A field of an integer, enum or boolean type."""
    return varint(field << 3 | _VARINT) + varint(number)


def data(field: int, content: bytes) -> bytes:
    """A field of bytes, or of an embedded message."""
    return varint(field << 3 | _LENGTH) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """A field of text. Java writes an unpaired surrogate as ``?``, and so does this."""
    return data(field, content.encode("utf-8", "replace"))
