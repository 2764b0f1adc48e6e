"""Protobuf's wire format: numbers, and the fields of a message (https://protobuf.dev/programming-guides/encoding/)."""

from collections.abc import Iterator
from typing import Any

VARINT, I64, LEN, I32 = 0, 1, 2, 5
"""The wire types, with their names in the specification."""
_FIXED_SIZES = {I64: 8, I32: 4}
_MOST_BITS = 70
"""Bits of the ten bytes of the longest number."""


def varint(value: int) -> bytes:
    """Return a number of up to 64 bits; a negative one takes ten bytes."""
    return _SMALL[value] if 0 <= value < len(_SMALL) else _varint(value)


def _varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = [_varint(value) for value in range(1 << 12)]
"""Most numbers are lengths and tags."""


def signed(value: int) -> int:
    """Return the signed number of 64 bits that a varint stands for (types int32, int64)."""
    return value - (1 << 64) if value >> 63 else value


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of up to 64 bits, and the place after it.

    Raises:
        ValueError: the bytes end within the number, or it is too long.
    """
    value = shift = 0
    while place < len(data) and shift < _MOST_BITS:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place
        shift += 7
    raise ValueError("the message ends within a number" if shift < _MOST_BITS else "a number has more than ten bytes")


def fields(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield the fields of a message in their order: number, wire type, and the unsigned number or the bytes.

    Raises:
        ValueError: the bytes are not a message.
    """
    place, end = 0, len(message)
    while place < end:
        tag, place = read_varint(message, place)
        number, wire = tag >> 3, tag & 7
        if not number:
            raise ValueError("a field has the number 0")
        if wire == VARINT:
            value, place = read_varint(message, place)
            yield number, wire, value
            continue
        if wire == LEN:
            size, place = read_varint(message, place)
        elif wire in _FIXED_SIZES:
            size = _FIXED_SIZES[wire]
        else:
            raise ValueError(f"field {number} has the unknown wire type {wire}")
        if size > end - place:
            raise ValueError(f"field {number} needs {size} bytes, but has only {end - place}")
        yield number, wire, message[place : place + size]
        place += size
