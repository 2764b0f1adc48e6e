"""Converts literals of DEFAULT clauses to their value in the column, as text: ``1.5`` to ``1.50`` for DECIMAL(10,2)."""

import ipaddress
import re
import struct
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from math import isinf

from rowtide.schema_history.ddl.statements import Literal
from rowtide.schema_history.model import Column
from rowtide.schema_history.server import charsets
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.temporal import (
    Moment,
    number_to_datetime,
    parse_datetime,
    parse_time,
    year_text,
)
from rowtide.schema_history.structure.type_names import BINARY_TYPES, BLOBS, CHARACTER_TYPES, INTEGER_BYTES, INTEGERS
from rowtide.schema_history.structure.types import shown_bytes

_NUMBER_PREFIX = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_NOT_NUMERIC = re.compile(r"[^\d.]")
_MAX_PLAIN_EXPONENT = 15
_PAD_CHAR_TO_FULL_LENGTH = 1 << 31
_MAX_TIME = 8385959
"""838:59:59 as a number; MariaDB reads a greater number as a date with or without a time."""
_FLOAT_WIDTH = 12
_DOUBLE_WIDTH = 22


def literal_bytes(literal: Literal, ctx: Context) -> bytes:
    """Return the bytes of a hexadecimal, bit or string literal."""
    if literal.kind == "hex":
        digits = literal.value
        return bytes.fromhex("0" + digits if len(digits) % 2 else digits)
    if literal.kind == "bits":
        size = (len(literal.value) + 7) // 8
        return int(literal.value or "0", 2).to_bytes(size)
    if literal.national:
        return literal.value.encode("utf-8", "surrogateescape")
    if literal.charset:
        return literal.value.encode(charsets.codec(ctx.client_charset), "surrogateescape")
    return ctx.string_bytes(literal.value)


def literal_text(literal: Literal, ctx: Context, charset: str | None) -> str:
    """Return the characters of a literal.

    Numbers as text, hexadecimal digits in the character set of introducer or column.
    """
    if literal.kind == "number":
        return _number_as_text(literal.sign, literal.value)
    if literal.kind == "bool":
        return "1" if literal.value == "TRUE" else "0"
    if literal.kind in ("hex", "bits"):
        return _decode(literal_bytes(literal, ctx), literal.charset or charset)
    if literal.charset and literal.charset != "utf8mb3" and literal.kind == "string":
        introduced = charsets.charset_name(literal.charset)
        if introduced != ctx.client_charset and not literal.national:
            return _decode(literal_bytes(literal, ctx), introduced)
    if literal.kind == "string" and not literal.charset and not literal.national:
        return ctx.string_text(literal.value, charset)
    return literal.value


def _decode(data: bytes, charset: str | None) -> str:
    return charsets.decoded(data, charsets.charset_name(charset) if charset else "utf8mb4")


def number_text(sign: str, digits: str) -> str:
    """Return a number as MariaDB prints it in an expression: without leading zeros; an exponent is unchanged."""
    if "e" in digits.lower():
        return ("-" if sign == "-" else "") + digits
    return _number_as_text(sign, digits)


def _number_as_text(sign: str, digits: str) -> str:
    if "e" in digits.lower():
        return float_text(float(sign + digits), 17)
    digits = digits.removesuffix(".")
    whole, dot, fraction = digits.partition(".")
    whole = whole.lstrip("0") or "0"
    minus = "-" if sign == "-" and Decimal(digits or "0") else ""
    return minus + whole + dot + fraction


def number_of(literal: Literal, ctx: Context) -> Decimal:
    """Return the value of a literal in a numeric column."""
    if literal.kind == "bool":
        return Decimal(1 if literal.value == "TRUE" else 0)
    if literal.kind in ("hex", "bits"):
        if literal.charset or (ctx.mariadb and literal.kind == "hex" and not literal.raw.lower().startswith("0x")):
            return _prefix(_decode(literal_bytes(literal, ctx), "latin1"))
        return Decimal(int.from_bytes(literal_bytes(literal, ctx)))
    if literal.kind == "number":
        return Decimal(literal.sign + literal.value)
    text = literal_text(literal, ctx, None)
    if literal.kind in ("date", "time", "timestamp"):
        text = _NOT_NUMERIC.sub("", text)
    return _prefix(text)


def _prefix(text: str) -> Decimal:
    match = _NUMBER_PREFIX.match(text)
    try:
        return Decimal(match[1]) if match else Decimal(0)
    except InvalidOperation:
        return Decimal(0)


def value_text(literal: Literal, column: Column, ctx: Context) -> str:
    """Return the text of the literal's value in the column, without quotes.

    For BIT these are binary digits, for binary columns its bytes as Latin-1 characters.
    """
    name = column.data_type
    if name in INTEGERS:
        return _integer(number_of(literal, ctx), column)
    if name == "decimal":
        return _fixed(number_of(literal, ctx), column)
    if name in ("float", "double"):
        return _floating(number_of(literal, ctx), column)
    if name == "bit":
        return _bits(literal, ctx)
    if name == "year":
        return _year(literal, ctx)
    if name in ("date", "datetime", "timestamp", "time"):
        return _temporal(literal, column, ctx)
    if name in ("enum", "set"):
        return _labels(literal, column, ctx)
    if name in BINARY_TYPES:
        return _binary(literal, column, ctx)
    text = _float_in(literal, column) or literal_text(literal, ctx, column.charset)
    if name == "char":
        text = padded(text, column, ctx)
    if name in ("char", "varchar") and column.length is not None and len(text) > column.length:
        text = text[: column.length]
    if name in CHARACTER_TYPES and column.charset not in (None, "binary"):
        return charsets.representable(text, column.charset or "")
    if name in ("uuid", "inet6", "inet4"):
        return _address(name, text)
    return text


def _float_in(literal: Literal, column: Column) -> str | None:
    """Return a number with an exponent, shortened to the length of the column; ``None`` for other literals."""
    if literal.kind != "number" or "e" not in literal.value.lower() or column.length is None:
        return None
    return float_in(float(literal.sign + literal.value), column.length)


def padded(text: str, column: Column, ctx: Context) -> str:
    """Return the value of a CHAR without trailing spaces; with PAD_CHAR_TO_FULL_LENGTH in MySQL padded with spaces."""
    text = text.rstrip(" ")
    pads = not ctx.mariadb and ctx.dialect.sql_mode & _PAD_CHAR_TO_FULL_LENGTH
    return text.ljust(column.length or 0) if pads else text


def _address(name: str, text: str) -> str:
    if name == "uuid":
        digits = text.replace("-", "").lower()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def _rounded(number: Decimal, scale: int) -> Decimal:
    with localcontext() as local:
        local.prec = 400
        return number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def _integer(number: Decimal, column: Column) -> str:
    value = int(_rounded(number, 0))
    bits = 8 * INTEGER_BYTES[column.data_type]
    low, high = (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    text = str(min(max(value, low), high))
    return text.rjust(column.length or 0, "0") if column.zerofill else text


def _fixed(number: Decimal, column: Column) -> str:
    scale, length = column.scale or 0, column.length or 10
    value = _rounded(number, scale)
    limit = Decimal(10) ** (length - scale) - Decimal(1).scaleb(-scale)
    value = min(max(value, Decimal(0) if column.unsigned else -limit), limit)
    text = f"{value:f}" if value else f"{abs(value):f}"
    if column.zerofill:
        width = length + (1 if scale else 0)
        return text.rjust(width, "0")
    return text


def _floating(number: Decimal, column: Column) -> str:
    value = float(number)
    if column.data_type == "float":
        value = _as_float32(value)
    if column.unsigned and value < 0:
        value = 0.0
    if column.scale is not None and column.length is not None:
        text = f"{Decimal(repr(value)):.{column.scale}f}" if value else f"{0:.{column.scale}f}"
        if column.data_type == "float":
            text = f"{_rounded(Decimal(repr(float(number))), column.scale):f}"
        return text.rjust(column.length, "0") if column.zerofill else text
    text = float_text(value, 6 if column.data_type == "float" else 17)
    if column.zerofill:
        return text.rjust(_FLOAT_WIDTH if column.data_type == "float" else _DOUBLE_WIDTH, "0")
    return text


def _as_float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return 3.4028234663852886e38 if value > 0 else -3.4028234663852886e38


def float_text(value: float, digits: int) -> str:
    """Return a floating-point number as the servers print it: up to 15 places without an exponent."""
    if value == 0:
        return "0"
    if isinf(value):
        raise OverflowError("a floating-point number is too large")
    shortest = repr(value) if digits > 15 else f"{value:.{digits}g}"
    sign, mantissa, exponent = Decimal(shortest).normalize().as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, mantissa))
    point = len(significant) + exponent
    minus = "-" if sign else ""
    if -_MAX_PLAIN_EXPONENT + 1 <= point <= _MAX_PLAIN_EXPONENT:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{significant}"
        if point >= len(significant):
            return minus + significant.ljust(point, "0")
        return f"{minus}{significant[:point]}.{significant[point:]}"
    fraction = f".{significant[1:]}" if len(significant) > 1 else ""
    return f"{minus}{significant[0]}{fraction}e{point - 1}"


def float_in(value: float, width: int) -> str:
    """Return a floating-point number in at most ``width`` characters: with fewer digits or an exponent if necessary."""
    text = float_text(value, 17)
    if len(text) <= width or value == 0:
        return text
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent
    minus = "-" if sign else ""
    room = width - len(minus)
    power = f"e{point - 1}"
    if point > room or (point <= 0 and len(digits) == 1 and 1 + len(power) <= room):
        places = max(room - len(power) - 2, 0)
        mantissa = f"{abs(Decimal(repr(value)).scaleb(1 - point)):.{places}f}"
        return f"{minus}{mantissa}{power}"
    places = room - max(point, 1) - 1
    short = f"{abs(value):.{max(places, 0)}f}"
    short = short.rstrip("0").rstrip(".") if "." in short else short
    return short if short == "0" else minus + short


def _bits(literal: Literal, ctx: Context) -> str:
    if literal.kind == "string" or (literal.kind == "hex" and ctx.mariadb):
        number = int.from_bytes(literal_bytes(literal, ctx))
    else:
        number = int(_rounded(number_of(literal, ctx), 0))
    return f"{number:b}"


def _year(literal: Literal, ctx: Context) -> str:
    if literal.kind in ("date", "time", "timestamp"):
        moment = parse_datetime(literal.value, 0, rounds=False) if literal.kind != "time" else None
        return year_text(str(moment.year if moment else 0), from_string=False) or "0000"
    from_string = literal.kind == "string"
    text = literal_text(literal, ctx, None) if from_string else f"{number_of(literal, ctx):f}"
    return year_text(text, from_string) or "0000"


def _temporal(literal: Literal, column: Column, ctx: Context) -> str:
    rounds = not ctx.mariadb
    fsp = column.fsp
    numeric = literal.kind in ("number", "bool", "hex", "bits")
    text = literal_text(literal, ctx, None) if not numeric else f"{number_of(literal, ctx):f}"
    if column.data_type == "time":
        if numeric and ctx.mariadb and Decimal(text) > _MAX_TIME:
            moment = number_to_datetime(text, fsp, rounds)
            text = moment.text(fsp) if moment else text
        if literal.kind in ("date", "timestamp") and (moment := parse_datetime(text, 6, rounds)) is not None:
            text = moment.text(6)
        return parse_time(text, fsp, mariadb=ctx.mariadb) or "00:00:00"
    if column.data_type == "date":
        fsp, rounds = 6, False
    moment = number_to_datetime(text, fsp, rounds) if numeric else parse_datetime(text, fsp, rounds)
    moment = moment or Moment(0, 0, 0)
    return moment.date_text() if column.data_type == "date" else moment.text(fsp)


def _labels(literal: Literal, column: Column, ctx: Context) -> str:
    folded = {label.casefold(): label for label in reversed(column.labels)}
    exact = {label: label for label in column.labels}
    if literal.kind in ("number", "bool") and (ctx.mariadb or column.charset == "latin1"):
        # In MySQL a number selects a label by its position only in a column with the character set of numbers, latin1.
        return _labels_of_number(int(number_of(literal, ctx)), column)
    text = literal_text(literal, ctx, column.charset)
    if column.charset == "binary" and literal.kind == "string":
        text = shown_bytes(literal_bytes(literal, ctx))
    text = text.rstrip(" ")
    insensitive = (column.collation or "").endswith("_ci")
    known = {**folded, **exact} if insensitive else exact
    if column.data_type == "enum":
        found = known.get(text) if text in known else known.get(text.casefold()) if insensitive else None
        if found is None and text.isdigit() and 0 < int(text) <= len(column.labels):
            return column.labels[int(text) - 1]
        return found if found is not None else ""
    wanted = set()
    for part in text.split(",") if text else ():
        match = part if part in exact else known.get(part.casefold()) if insensitive else None
        if match is not None:
            wanted.add(match)
    return ",".join(label for label in column.labels if label in wanted)


def _labels_of_number(number: int, column: Column) -> str:
    if column.data_type == "enum":
        return column.labels[number - 1] if 0 < number <= len(column.labels) else ""
    return ",".join(label for bit, label in enumerate(column.labels) if number >> bit & 1)


def _binary(literal: Literal, column: Column, ctx: Context) -> str:
    if literal.kind in ("number", "bool"):
        data = (_float_in(literal, column) or literal_text(literal, ctx, None)).encode()
    elif ctx.mariadb and column.data_type in BLOBS and literal.kind == "string" and not literal.charset:
        data = ctx.string_text(literal.value, None).encode("utf-8", "surrogateescape")  # an expression, shown as text
    else:
        data = literal_bytes(literal, ctx)
    if column.length is not None:
        data = data[: column.length]
        if column.data_type == "binary":
            data = data.ljust(column.length, b"\0")
    return data.decode("latin-1")
