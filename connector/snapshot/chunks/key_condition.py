"""SQL conditions for rows whose keys are known as canonical texts. Pure."""

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal

from rowtide.connector.protocol.charset import ambiguous_characters
from rowtide.connector.source.server_queries import quoted
from rowtide.envelope.settings import ValueSettings
from rowtide.schema_history.model import Column
from rowtide.schema_history.structure.type_names import BINARY_TYPES, CHARACTER_TYPES, INTEGERS

_INTEGERS = INTEGERS | {"year", "bit"}
_BYTES = BINARY_TYPES - {"binary"}
_FIRST_ADJUSTED, _CENTURY, _LAST_ADJUSTED, _YEARS = 1970, 2000, 2069, 100
_DIGITS = re.compile(r"-?[0-9.]+")
_FLOATING = re.compile(r"-?[0-9.]+(e[-+]?[0-9]+)?")
_ADDRESS = re.compile(r"[-0-9A-Fa-f:.]+")
_ADDRESSES = frozenset({"uuid", "inet4", "inet6"})
"""Types of MariaDB that are compared with a text by their bytes."""
_LENGTH = re.compile(r"\((\d+)\)")


def key_condition(
    columns: Sequence[Column], keys: Sequence[Sequence[str]], settings: ValueSettings | None = None
) -> str | None:
    """Return the condition for the rows of some keys; ``None`` if a key cannot be written exactly.

    Args:
        columns: the columns of the key.
        keys: for each key, the canonical texts of its values.
        settings: the settings of records, if the texts are values of records: several values of the server may be equal
            there.
    """
    conditions = []
    for key in keys:
        terms = []
        for column, text in zip(columns, key, strict=True):
            literal = _literal(column, text)
            if literal is None:
                return None
            other = None if settings is None else _other_value(column, text, settings)
            name = quoted(column.name)
            terms.append(f"{name} = {literal}" if other is None else f"{name} IN ({literal}, {other})")
        conditions.append("(" + " AND ".join(terms) + ")")
    return " OR ".join(conditions)


def value_in_records(column: Column, text: str, settings: ValueSettings) -> str:
    """Return the canonical text of the value in records for a value of the server; see :func:`key_condition`."""
    kind = column.data_type
    if text[0] == "t" and kind in ("date", "datetime") and settings.enable_time_adjuster and int(text[1:5]) < _YEARS:
        year = int(text[1:5])
        return f"t{year + (_CENTURY if year < _FIRST_ADJUSTED % _YEARS else _CENTURY - _YEARS)}{text[5:]}"
    if text[0] == "i" and kind == "bigint" and settings.bigint_unsigned_handling_mode == "long":
        return f"i{(int(text[1:]) + (1 << 63)) % (1 << 64) - (1 << 63)}"
    return text


def _other_value(column: Column, text: str, settings: ValueSettings) -> str | None:
    """Return another value that is the same in records, as a literal.

    ``enable.time.adjuster`` makes 2001 to 2069 of the years 1 to 69, and 1970 to 1999 of the years 70 to 99, and
    ``bigint.unsigned.handling.mode=long`` negative numbers of those from 2^63.
    """
    kind = column.data_type
    if text[0] == "t" and kind in ("date", "datetime") and settings.enable_time_adjuster:
        year = int(text[1:5])
        if _FIRST_ADJUSTED <= year <= _LAST_ADJUSTED and year != _CENTURY:
            return _literal(column, f"t{year % _YEARS:04}{text[5:]}")
    if text.startswith("i-") and kind == "bigint" and settings.bigint_unsigned_handling_mode == "long":
        return str((1 << 64) + int(text[1:]))
    return None


def _literal(column: Column, text: str) -> str | None:
    kind, tag, value = column.data_type, text[0], text[1:]
    match tag:
        case "i" | "b" if kind in _INTEGERS:
            return value
        case "i" | "d" | "s" if kind in ("decimal", "bigint"):  # also with the modes precise and string
            return _number(value)
        case "s" if kind in CHARACTER_TYPES and column.charset not in (None, "binary"):
            if not ambiguous_characters(column.charset).isdisjoint(value):
                return None
            try:
                return f"_utf8mb4 x'{value.encode().hex()}'"
            except UnicodeEncodeError:
                return None
        case "s" if kind in _ADDRESSES and _ADDRESS.fullmatch(value):
            return f"'{value}'"
        case "f" if kind == "double" and column.scale is None and _FLOATING.fullmatch(value):
            return value if "e" in value else f"{value}e0"  # without an exponent it would be a DECIMAL
        case "x" if kind in _BYTES:
            return f"x'{value}'"
        case "x" if kind == "binary":
            length = _LENGTH.search(column.column_type)
            return f"x'{value:0<{2 * int(length[1] if length else 1)}}'"
        case "t" if kind in ("date", "datetime", "timestamp"):
            return f"'{value.removesuffix('+00:00').replace('T', ' ')}'"
        case "h" if kind == "time":
            return f"'{clock_text(int(value))}'"
    return None


def _number(text: str) -> str | None:
    try:
        return format(Decimal(text), "f") if _DIGITS.fullmatch(text) else None
    except ArithmeticError:
        return None


def clock_text(micros: int) -> str:
    """Return a TIME, given in microseconds, in the server's form with six digits."""
    seconds, rest = divmod(abs(micros), 1_000_000)
    clock = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"
    return f"-{clock}" if dt.timedelta(microseconds=micros) < dt.timedelta() else clock
