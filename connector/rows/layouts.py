"""The layout of column values in row images: for every binlog type, the Python source that decodes one value.

TABLE_MAP states a column's type and metadata; the table's structure adds what the binlog omits, such as the sign,
the character set or the labels of an ENUM. The result is the canonical value of a kind
(:mod:`rowtide.envelope.types.column_type`). This module only returns source lines, for
:mod:`rowtide.connector.rows.row_compiler`.

Layouts: MySQL's ``Field::pack`` and ``log_event_print_value``; source code documentation "Row Based Replication".
"""

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from rowtide.envelope.types.column_type import Bind, Kind
from rowtide.envelope.types.temporal_values import DAYS_BY_PACKED_DATE, MICROS_PER_DAY, InvalidDate

TINY, SHORT, LONG, FLOAT, DOUBLE, OLD_TIMESTAMP, LONGLONG, INT24 = 1, 2, 3, 4, 5, 7, 8, 9
DATE, OLD_TIME, OLD_DATETIME, YEAR, NEWDATE, VARCHAR, BIT = 10, 11, 12, 13, 14, 15, 16
TIMESTAMP2, DATETIME2, TIME2 = 17, 18, 19
COMPRESSED_BLOB, COMPRESSED_VARCHAR, VECTOR, JSON, NEWDECIMAL = 140, 141, 242, 245, 246
ENUM, SET, TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, VAR_STRING, STRING, GEOMETRY = (
    247, 248, 249, 250, 251, 252, 253, 254, 255,
)  # fmt: skip

INTEGERS = frozenset({TINY, SHORT, INT24, LONG, LONGLONG})
TEXTS = frozenset({VARCHAR, VAR_STRING, STRING, BLOB, TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, COMPRESSED_BLOB,
                   COMPRESSED_VARCHAR})  # fmt: skip

KINDS: dict[Kind, frozenset[int]] = {
    "int": INTEGERS,
    "decimal": frozenset({NEWDECIMAL}),
    "float": frozenset({FLOAT, DOUBLE}),
    "bit": frozenset({BIT}),
    "year": frozenset({YEAR}),
    "date": frozenset({DATE, NEWDATE}),
    "datetime": frozenset({DATETIME2, OLD_DATETIME}),
    "timestamp": frozenset({TIMESTAMP2, OLD_TIMESTAMP}),
    "time": frozenset({TIME2, OLD_TIME}),
    "text": TEXTS,
    "bytes": TEXTS,
    "enum": frozenset({ENUM}),
    "set": frozenset({SET}),
    "json": frozenset({JSON, BLOB, COMPRESSED_BLOB}),  # MariaDB's JSON is a text
    "geometry": frozenset({GEOMETRY, BLOB}),
    "vector": frozenset({VECTOR}),
    "uuid": frozenset({STRING}),
    "inet": frozenset({STRING}),
}
"""The binlog types that values of a kind can have; any other type means that the table's structure is wrong."""


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The layout of a column's values in a row image.

    Attributes:
        type: the real binlog type (ENUM, where the event has STRING).
        size: bytes of a value; of its length prefix unless `fixed`.
        fixed: whether every value has ``size`` bytes.
        precision: digits of a DECIMAL, digits of the fraction of a temporal type, or bits of a BIT.
        scale: the scale of a DECIMAL.
    """

    type: int
    size: int
    fixed: bool = True
    precision: int = 0
    scale: int = 0


_FIXED_SIZES = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8, FLOAT: 4, DOUBLE: 8, YEAR: 1, DATE: 3, NEWDATE: 3,
                OLD_TIMESTAMP: 4, OLD_TIME: 3, OLD_DATETIME: 8}  # fmt: skip
_TEMPORAL_SIZES = {TIMESTAMP2: 4, DATETIME2: 5, TIME2: 3}
_MAPPED = 0xFFFF
_RUNS = [slice(start, end) for start in range(8) for end in range(start + 1, 9)]
"""The runs of groups of an INET6."""
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def column_layout(type_code: int, metadata: int) -> ColumnLayout:
    """Return the layout of a column from its TABLE_MAP entry.

    Args:
        type_code: ``type`` of :class:`~rowtide.connector.protocol.events.table_structure.MappedColumn`.
        metadata: its ``metadata``.

    Raises:
        ValueError: the type is unknown, or one that rows cannot have.
    """
    if type_code in _FIXED_SIZES:
        return ColumnLayout(type_code, _FIXED_SIZES[type_code])
    if type_code in _TEMPORAL_SIZES:
        return ColumnLayout(type_code, _TEMPORAL_SIZES[type_code] + (metadata + 1) // 2, precision=metadata)
    if type_code == NEWDECIMAL:
        precision, scale = divmod(metadata, 256)
        whole = precision - scale
        size = whole // 9 * 4 + _DIGIT_BYTES[whole % 9] + scale // 9 * 4 + _DIGIT_BYTES[scale % 9]
        return ColumnLayout(type_code, size, precision=precision, scale=scale)
    if type_code == BIT:
        return ColumnLayout(type_code, (metadata + 7) // 8, precision=metadata)
    if type_code in {VARCHAR, VAR_STRING, COMPRESSED_VARCHAR, STRING}:
        return ColumnLayout(type_code, 1 if metadata < 256 else 2, fixed=False)
    if type_code in {ENUM, SET}:
        return ColumnLayout(type_code, metadata)
    if type_code in {TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, COMPRESSED_BLOB, JSON, GEOMETRY, VECTOR}:
        return ColumnLayout(type_code, metadata, fixed=False)
    raise ValueError(f"unknown binlog column type {type_code} with metadata {metadata:#06x}")


# --- from stored values to canonical ones ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnDecoding:
    """The decoding of a column's bytes, from the table's structure.

    Attributes:
        kind: the kind of the canonical value.
        unsigned: whether an integer is unsigned.
        text_decoder: decodes text in the column's character set; ``None`` for UTF-8.
        labels: the labels of an ENUM or SET.
        pad: n of a BINARY(n), whose trailing zeros the binlog omits; 0 for other types.
        json_text: converts MySQL's binary JSON to text, and no bytes to ``None``.
    """

    kind: Kind
    unsigned: bool = False
    text_decoder: Callable[[bytes], str] | None = None
    labels: Sequence[str] = ()
    pad: int = 0
    json_text: Callable[[bytes], str | None] | None = None


_STRUCT_CODES = {
    (TINY, False): "b", (TINY, True): "B", (SHORT, False): "h", (SHORT, True): "H",
    (LONG, False): "i", (LONG, True): "I", (LONGLONG, False): "q", (LONGLONG, True): "Q",
}  # fmt: skip


def struct_code(column: ColumnLayout, decoding: ColumnDecoding) -> str:
    """Return the :mod:`struct` code of a fixed-size value; ``Ns`` if :func:`fixed_source` decodes it from bytes."""
    code = _STRUCT_CODES.get((column.type, decoding.unsigned))
    if code is None:
        code = {FLOAT: "f", DOUBLE: "d", YEAR: "B"}.get(column.type)
    return code or f"{column.size}s"


def fixed_source(column: ColumnLayout, decoding: ColumnDecoding, v: str, bind: Bind) -> list[str]:
    """Return the lines that convert the variable ``v``, unpacked with :func:`struct_code`, to the canonical value."""
    simple = {
        DATE: [f"{v} = {bind(DAYS_BY_PACKED_DATE)}[{_little(v)}]"],
        NEWDATE: [f"{v} = {bind(DAYS_BY_PACKED_DATE)}[{_little(v)}]"],
        YEAR: [f"{v} = {v} and 1900 + {v}"],
        BIT: [f"{v} = {_big(v)}"],
        ENUM: [f"{v} = {bind(['', *decoding.labels])}[{_little(v)}]"],
        SET: [f"{v} = {bind(_SetTexts(decoding.labels))}[{_little(v)}]"],
        OLD_TIMESTAMP: [f"{v} = {_little(v)} * 1000000 or {bind(ZERO_DATE)}"],
        OLD_DATETIME: [f"{v} = {bind(old_datetime)}({_little(v)})"],
        OLD_TIME: [f"{v} = {bind(old_time)}({_little(v)})"],
    }
    if column.type in simple:
        return simple[column.type]
    if column.type == INT24:
        return [f"{v} = {_little(v, signed=not decoding.unsigned)}"]
    if column.type == NEWDECIMAL:
        return _decimal_source(column, v)
    if column.type == DATETIME2:
        return _datetime_source(column, v, bind)
    if column.type == TIMESTAMP2:
        return _timestamp_source(column, v, bind)
    if column.type == TIME2:
        return _time_source(column, v)
    return []


def variable_source(column: ColumnLayout, decoding: ColumnDecoding, v: str, bind: Bind) -> list[str]:
    """Return the source lines that convert ``v``, the bytes after a length prefix, to the canonical value."""
    lines = []
    if column.type in {COMPRESSED_BLOB, COMPRESSED_VARCHAR}:
        lines.append(f"{v} = {bind(uncompressed)}({v})")
    if decoding.kind == "text":
        decoder = decoding.text_decoder
        lines.append(f"{v} = {v}.decode('utf-8', 'replace')" if decoder is None else f"{v} = {bind(decoder)}({v})")
    elif decoding.kind == "bytes" and decoding.pad:
        lines.append(f"{v} = {v}.ljust({decoding.pad}, b'\\0')")
    elif decoding.kind == "json":
        lines.append(f"{v} = {bind(decoding.json_text)}({v})")
    elif decoding.kind == "vector":
        lines.append(f"{v} = {bind(floats)}({v})")
    elif decoding.kind == "uuid":
        lines.append(f"{v} = {bind(uuid_text)}({v})")
    elif decoding.kind == "inet":
        lines.append(f"{v} = {bind(inet6_text if decoding.pad == 16 else inet4_text)}({v})")
    return lines


def _little(v: str, *, signed: bool = False) -> str:
    return f"int.from_bytes({v}, 'little'{', signed=True' if signed else ''})"


def _big(v: str) -> str:
    return f"int.from_bytes({v}, 'big')"


def _decimal_source(column: ColumnLayout, v: str) -> list[str]:
    """Return the source for groups of nine digits in four bytes, big-endian: the top bit is the inverted sign."""
    top = 1 << (column.size * 8 - 1)
    whole = column.precision - column.scale
    digits = [whole % 9, *[9] * (whole // 9), *[9] * (column.scale // 9), column.scale % 9]
    terms, shift, weight = [], 0, 1
    for count in reversed(digits):
        if not count:
            continue
        bits = _DIGIT_BYTES[count] * 8
        part = f"({v} >> {shift})" if shift else v
        terms.append(f"({part} & {(1 << bits) - 1})" + (f" * {weight}" if weight > 1 else ""))
        shift, weight = shift + bits, weight * 10**count
    total = " + ".join(terms) or "0"
    return [
        f"{v} = {_big(v)} ^ {top}",
        f"if {v} & {top}:",
        f"    {v} ^= {(top << 1) - 1}",
        f"    {v} = -({total})",
        "else:",
        f"    {v} = {total}",
    ]


def _fraction(column: ColumnLayout, base: int) -> tuple[int, int]:
    """Return the number of bits of the fraction, and its unit in microseconds."""
    size = column.size - base
    return size * 8, (1, 10_000, 100, 1)[size]


def _datetime_source(column: ColumnLayout, v: str, bind: Bind) -> list[str]:
    bits, unit = _fraction(column, 5)
    fraction = f" + ({v} & {(1 << bits) - 1}) * {unit}" if bits else ""
    shifted = f"{v} >> {bits}" if bits else v
    return [
        f"{v} = {_big(v)} - {0x8000000000 << bits}",
        f"h = {shifted} & 0x1ffff" if not bits else f"h = {v} >> {bits} & 0x1ffff",
        f"h = ((h >> 12) * 3600 + (h >> 6 & 63) * 60 + (h & 63)) * 1000000{fraction}",
        f"d = {bind(MONTHS)}[{v} >> {bits + 17}]",
        f"{v} = d + h if d.__class__ is int else {bind(at_time)}(d, h)",
    ]


def _timestamp_source(column: ColumnLayout, v: str, bind: Bind) -> list[str]:
    bits, unit = _fraction(column, 4)
    if not bits:
        return [f"{v} = {_big(v)} * 1000000 or {bind(ZERO_DATE)}"]
    return [
        f"{v} = {_big(v)}",
        f"{v} = ({v} >> {bits}) * 1000000 + ({v} & {(1 << bits) - 1}) * {unit} or {bind(ZERO_DATE)}",
    ]


def _time_source(column: ColumnLayout, v: str) -> list[str]:
    bits, unit = _fraction(column, 3)
    fraction = f" + (h & {(1 << bits) - 1}) * {unit}" if bits else ""
    shift = f"(h >> {bits})" if bits else "h"
    return [
        f"{v} = {_big(v)} - {0x800000 << bits}",
        f"h = -{v} if {v} < 0 else {v}",
        f"h = (({shift} >> 12) * 3600 + ({shift} >> 6 & 63) * 60 + ({shift} & 63)) * 1000000{fraction}",
        f"{v} = -h if {v} < 0 else h",
    ]


ZERO_DATE = InvalidDate(0, 0, 0)


class _Months(dict[int, "int | InvalidDate"]):
    """Microseconds since the epoch at midnight, by DATETIME2's ``(year * 13 + month) << 5 | day``."""

    def __missing__(self, packed: int) -> "int | InvalidDate":
        year, month = divmod(packed >> 5, 13)
        found = DAYS_BY_PACKED_DATE[year << 9 | month << 5 | packed & 31]
        value = found * MICROS_PER_DAY if isinstance(found, int) else found
        if len(self) > 200_000:
            self.clear()
        self[packed] = value
        return value


MONTHS = _Months()


def at_time(day: InvalidDate, micros: int) -> InvalidDate:
    """Return an invalid date with a time of day."""
    return InvalidDate(day.year, day.month, day.day, micros)


class _SetTexts(dict[int, str]):
    """The text of a SET by its bits."""

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__()
        self._labels = labels

    def __missing__(self, bits: int) -> str:
        if len(self) > 10_000:
            self.clear()
        text = ",".join(label for place, label in enumerate(self._labels) if bits >> place & 1)
        self[bits] = text
        return text


def old_datetime(number: int) -> int | InvalidDate:
    """Return a DATETIME from before MySQL 5.6.4: the decimal number YYYYMMDDhhmmss."""
    day, clock = divmod(number, 1_000_000)
    found = DAYS_BY_PACKED_DATE[day // 10_000 << 9 | day // 100 % 100 << 5 | day % 100]
    micros = (clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100) * 1_000_000
    return found * MICROS_PER_DAY + micros if isinstance(found, int) else at_time(found, micros)


def old_time(number: int) -> int:
    """Return a TIME from before MySQL 5.6.4: the signed decimal number hhmmss in three bytes."""
    if number >= 1 << 23:
        number -= 1 << 24
    sign, number = (-1, -number) if number < 0 else (1, number)
    return sign * (number // 10_000 * 3600 + number // 100 % 100 * 60 + number % 100) * 1_000_000


def floats(stored: bytes) -> list[float]:
    """Return a VECTOR: little-endian float32 values."""
    return list(struct.unpack(f"<{len(stored) // 4}f", stored))


def uncompressed(stored: bytes) -> bytes:
    """Decompress a value of a MariaDB COMPRESSED column: a header byte, the uncompressed length, a zlib stream.

    With 0 as its header byte, or no bytes at all, the value is not compressed.

    Raises:
        ValueError: an unknown compression method, or damaged data.
    """
    if not stored or stored[0] == 0:
        return stored[1:]
    method, size = stored[0] >> 4, stored[0] & 7
    if method != 8:
        msg = f"the value of a COMPRESSED column has the unknown compression method {method}"
        raise ValueError(msg)
    length = int.from_bytes(stored[1 : 1 + size], "big")
    stream = zlib.decompressobj(wbits=-15 if stored[0] & 8 else 15)
    try:
        value = stream.decompress(stored[1 + size :], length + 1)
    except zlib.error as error:
        raise ValueError(f"the value of a COMPRESSED column cannot be decompressed: {error}") from None
    if len(value) != length:
        raise ValueError(f"the value of a COMPRESSED column does not have the {length} bytes that its header states")
    return value


def uuid_text(stored: bytes) -> str:
    """Return MariaDB's UUID from its sixteen bytes."""
    digits = stored.ljust(16, b"\0").hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def inet4_text(stored: bytes) -> str:
    """Return MariaDB's INET4 from its four bytes. Raises ``ValueError`` if there are more."""
    return str(IPv4Address(_padded(stored, 4, "an INET4")))


def inet6_text(stored: bytes) -> str:
    """Return MariaDB's INET6 from its sixteen bytes, in the server's form. Raises ``ValueError`` if there are more.

    It omits the first of the longest runs of zeros, also one of a single group, and has the dots of IPv4 after ``::``
    and ``::ffff:`` (``Inet6::to_string``).
    """
    stored = _padded(stored, 16, "an INET6")
    groups = struct.unpack(">8H", stored)
    omitted = max(_RUNS, key=lambda run: 0 if any(groups[run]) else run.stop - run.start)
    texts = [f"{group:x}" for group in groups]
    if omitted == slice(0, 6) or (omitted == slice(0, 5) and groups[5] == _MAPPED):
        texts[6:] = [str(IPv4Address(stored[12:]))]
    if any(groups[omitted]):
        return ":".join(texts)
    return f"{':'.join(texts[: omitted.start])}::{':'.join(texts[omitted.stop :])}"


def _padded(stored: bytes, size: int, what: str) -> bytes:
    if len(stored) > size:  # the message of the ipaddress module would show the value
        raise ValueError(f"{what} of {len(stored)} bytes")
    return stored.ljust(size, b"\0")
