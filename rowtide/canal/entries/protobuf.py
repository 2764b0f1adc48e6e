"""Writes and reads protobuf fields. In proto2, a field that is set is written, even if it is 0, false or empty.

Wire format: https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}
_VARINT_BITS = 70


def varint(number: int) -> bytes:
    """Return a number as a base-128 varint; a negative one as its 64-bit two's complement."""
    return _SMALL[number] if 0 <= number < len(_SMALL) else _varint(number)


def _varint(number: int) -> bytes:
    number &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_SMALL = [_varint(number) for number in range(1 << 12)]
"""Most numbers are lengths and tags."""


def integer(field: int, number: int) -> bytes:
    """Return a field of an integer, enum or boolean type."""
    return varint(field << 3 | _VARINT) + varint(number)


def tag(field: int) -> bytes:
    """Return the tag of a field of bytes, text or an embedded message; the length follows it."""
    return varint(field << 3 | _LENGTH)


def data(field: int, content: bytes) -> bytes:
    """Return a field of bytes, or of an embedded message."""
    return tag(field) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """Return a field of text. Java writes an unpaired surrogate as ``?``, and so does this."""
    return data(field, content.encode("utf-8", "replace"))


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message in their order.

    The number, and an unsigned integer, or the bytes of any other type.

    Raises:
        ValueError: the bytes are not a message.
    """
    at, end = 0, len(message)
    while at < end:
        key, at = _read_varint(message, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("a field has the number 0")
        if kind == _VARINT:
            value, at = _read_varint(message, at)
            yield number, value
            continue
        if kind == _LENGTH:
            size, at = _read_varint(message, at)
        elif kind in _FIXED_SIZES:
            size = _FIXED_SIZES[kind]
        else:
            raise ValueError(f"field {number} has the unknown wire type {kind}")
        if size > end - at:
            raise ValueError(f"field {number} needs {size} bytes, but has only {end - at}")
        yield number, message[at : at + size]
        at += size


def signed(number: int) -> int:
    """Return the signed integer that a varint of 64 bits stands for (types int32, int64)."""
    return number - (1 << 64) if number >> 63 else number


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, _VARINT_BITS, 7):
        if at >= len(message):
            raise ValueError("the message ends in the middle of a number")
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
    raise ValueError("a number has more than 10 bytes")
