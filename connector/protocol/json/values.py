"""Formats single values of binary JSON (doubles, decimals, times, strings), in Debezium's and in the server's style."""

import math
import re
from decimal import Decimal
from json.encoder import encode_basestring

DECIMAL_TYPES = frozenset({0, 246})
TEMPORAL_TYPES = frozenset({7, 10, 11, 12, 17, 18, 19})
DATE_TYPE, DATETIME_TYPE = 10, 12
_TIME_TYPES = frozenset({11, 19})

_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_ESCAPE = re.compile(r"\\(?:u00(..)|.)")


def server_string(text: str) -> str:
    """Return a quoted string; control characters as escapes with lower-case hex digits."""
    return encode_basestring(text)


def stream_string(text: str) -> str:
    """Return a quoted string; control characters as escapes with upper-case hex digits."""
    quoted = encode_basestring(text)
    if "\\u00" in quoted:
        return _ESCAPE.sub(lambda match: f"\\u00{match[1].upper()}" if match[1] else match[0], quoted)
    return quoted


def stream_double(value: float) -> str:
    """Return the shortest digits between 1e-3 and 1e7, otherwise the exact decimal expansion, as in Debezium's client.

    Raises:
        ValueError: it is infinite or not a number, which JSON lacks.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    if 1e-3 <= abs(value) < 1e7 or value == 0:
        return repr(value)
    return format(Decimal(value), "f")


def server_double(value: float) -> str:
    """Return the shortest digits, with an exponent beyond 15 digits before or after the point (``my_gcvt``).

    Raises:
        ValueError: it is infinite or not a number, which JSON lacks.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)  # digits before the decimal point
    if value == 0:
        text, point = "0", 1
    if -14 <= point <= 15:
        if point <= 0:
            text = "0." + "0" * -point + text
        elif point >= len(text):
            text = text + "0" * (point - len(text)) + ".0"
        else:
            text = text[:point] + "." + text[point:]
    else:
        fraction = "." + text[1:] if len(text) > 1 else ""
        text = f"{text[0]}{fraction}e{point - 1}"
    return "-" + text if sign else text


def decimal_text(data: bytes) -> str:
    """Return a decimal in the server's binary format, prefixed by precision and scale, with all digits of its scale."""
    precision, scale = data[0], data[1]
    negative = not data[2] & 0x80
    raw = bytearray(data[2:])
    raw[0] ^= 0x80
    if negative:
        raw = bytearray(byte ^ 0xFF for byte in raw)
    digits, pos = "", 0
    whole = precision - scale
    for size in [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9]:
        if size:
            width = _BYTES_OF_DIGITS[size]
            digits += str(int.from_bytes(raw[pos : pos + width], "big")).zfill(size)
            pos += width
    if pos != len(raw):
        raise IndexError(f"a decimal({precision},{scale}) of {len(raw)} bytes instead of {pos}")
    text = digits[:whole].lstrip("0") or "0"
    if scale:
        text += "." + digits[whole:]
    return "-" + text if negative else text


def temporal_text(kind: int, packed: int, *, trim: bool) -> str:
    """Return a DATE, TIME, DATETIME or TIMESTAMP from the server's packed number.

    Args:
        kind: the column type.
        packed: the number; its sign is that of a TIME.
        trim: remove trailing zeros of the fraction, and an empty fraction, instead of always writing six digits.
    """
    sign = "-" if packed < 0 else ""
    packed = abs(packed)
    micros, clock = packed & 0xFFFFFF, packed >> 24
    second, minute = clock & 0x3F, clock >> 6 & 0x3F
    if kind in _TIME_TYPES:
        text = f"{sign}{clock >> 12 & 0x3FF:02d}:{minute:02d}:{second:02d}"
    else:
        hour, day, months = clock >> 12 & 0x1F, clock >> 17 & 0x1F, clock >> 22
        text = f"{sign}{months // 13:04d}-{months % 13:02d}-{day:02d}"
        if kind == DATE_TYPE:
            return text
        text += f" {hour:02d}:{minute:02d}:{second:02d}"
    if not trim:
        return f"{text}.{micros:06d}"
    return f"{text}.{micros:06d}".rstrip("0") if micros else text
