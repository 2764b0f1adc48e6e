"""Hashes equal to Java's ``hashCode`` and Debezium's ``MurmurHash3``, for partitions and the order of maps."""

import struct
from collections.abc import Callable, Iterable
from typing import Any

from rowtide.envelope.json.text import decimal_scale
from rowtide.envelope.schema import Schema

_CONNECT = "org.apache.kafka.connect.data."
_MILLIS = {f"{_CONNECT}Date": 86_400_000, f"{_CONNECT}Time": 1, f"{_CONNECT}Timestamp": 1}
"""Types that are ``java.util.Date``, and the milliseconds of their units."""
_INT, _LONG = (1 << 32) - 1, (1 << 64) - 1


def java_hash(schema: Schema, value: Any) -> int:
    """Return ``value.hashCode()`` of Connect's object of a value, as an unsigned number of 32 bits.

    Args:
        schema: its schema.
        value: the value, which is not null.

    Raises:
        ValueError: it is a struct or a map.
    """
    if schema.is_decimal:
        magnitude = _polynomial(_words(abs(value)), 0)
        return (31 * (-magnitude if value < 0 else magnitude) + decimal_scale(schema)) & _INT
    if schema.name in _MILLIS:
        return _of_long(value * _MILLIS[schema.name])
    make = _HASHES.get(schema.type)
    if make is None:
        raise ValueError(f"a {schema.type} has no hash: name fields within it")
    return make(value) & _INT


def murmur_hash(schema: Schema, value: Any) -> int:
    """Return ``MurmurHash3.getInstance().hash(value)`` as an unsigned number of 32 bits; see :func:`java_hash`."""
    if schema.type == "string":
        return _murmur(value.encode("utf-8", "replace"))
    return _murmur(java_hash(schema, value).to_bytes(4, "little"))


def java_string_hash(value: str) -> int:
    """Return ``value.hashCode()`` of a string as an unsigned number of 32 bits."""
    return _polynomial(memoryview(value.encode("utf-16-le", "surrogatepass")).cast("H"), 0)


def _of_long(value: int) -> int:
    bits = value & _LONG
    return (bits ^ bits >> 32) & _INT


def _words(value: int) -> list[int]:
    """Return the words of 32 bits of a number, the highest first."""
    return [value >> shift & _INT for shift in reversed(range(0, value.bit_length(), 32))]


def _polynomial(values: Iterable[int], first: int) -> int:
    made = first
    for value in values:
        made = (31 * made + value) & _INT
    return made


def _of_bytes(value: bytes) -> int:
    """Return the hash of a ``ByteBuffer``, which begins with the last byte."""
    return _polynomial(reversed(_signed_bytes(value)), 1)


def _signed_bytes(value: bytes) -> memoryview:
    return memoryview(value).cast("b")


def _bits(kind: str, value: float) -> int:
    nan: bool = value != value  # noqa: PLR0124 - Java has one NaN only
    return int.from_bytes(struct.pack(f">{kind}", float("nan") if nan else value), "big")


_HASHES: dict[str, Callable[[Any], int]] = {
    "boolean": lambda value: 1231 if value else 1237,
    "int8": int,
    "int16": int,
    "int32": int,
    "int64": _of_long,
    "float": lambda value: _bits("f", value),
    "double": lambda value: _of_long(_bits("d", value)),
    "string": java_string_hash,
    "bytes": _of_bytes,
}


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _LONG


class _Murmur:
    """The state of ``MurmurHash3_x64_64``."""

    def __init__(self) -> None:
        self.h1, self.h2 = 0x9368E53C2F6AF274 ^ 9001, 0x586DCD208F7CD3FD ^ 9001
        self.c1, self.c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def mix(self, k1: int, k2: int) -> None:
        """Mix 16 bytes in."""
        self.h1 = ((self.h1 ^ _rotated(k1 * self.c1 & _LONG, 23) * self.c2 & _LONG) + self.h2) & _LONG
        self.h2 = _rotated(self.h2, 41)
        self.h2 = ((self.h2 ^ _rotated(k2 * self.c2 & _LONG, 23) * self.c1 & _LONG) + self.h1) & _LONG
        self.h1 = (self.h1 * 3 + 0x52DCE729) & _LONG
        self.h2 = (self.h2 * 3 + 0x38495AB5) & _LONG
        self.c1 = (self.c1 * 5 + 0x7B7D159C) & _LONG
        self.c2 = (self.c2 * 5 + 0x6BCE6396) & _LONG


def _signed(data: bytes) -> int:
    """Return up to 8 signed bytes as a number, as Debezium does with those after the last 16."""
    made = 0
    for at, byte in enumerate(_signed_bytes(data)):
        made ^= (byte << 8 * at) & _LONG
    return made


def _final(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _LONG
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _LONG
    return value ^ value >> 33


def _murmur(data: bytes) -> int:
    state = _Murmur()
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        state.mix(int.from_bytes(data[at : at + 8], "little"), int.from_bytes(data[at + 8 : at + 16], "little"))
    if len(data) > whole:
        state.mix(_signed(data[whole : whole + 8]), _signed(data[whole + 8 :]))
    h2 = state.h2 ^ len(data)
    h1 = (state.h1 + h2) & _LONG
    h2 = (h2 + h1) & _LONG
    return (_final(h1) + _final(h2) & _LONG) >> 32
