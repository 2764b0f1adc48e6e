"""Default values of columns in record schemas, parsed from the default in the schema history.

Debezium stores the text of a default without its quotes, and 1970-01-01 00:00:00 for CURRENT_TIMESTAMP. The schema has
no default if the text cannot be parsed.
"""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from rowtide.envelope.types.column_type import ColumnDescription, ColumnType, Kind
from rowtide.envelope.types.numbers import wrap_long
from rowtide.envelope.types.temporal_values import DAYS_BY_PACKED_DATE, MICROS_PER_DAY, InvalidDate
from rowtide.schema_history.model import DebeziumColumn

_INTRODUCER = re.compile(r"_[a-z0-9]+\s*'(.*)'", re.DOTALL | re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_DATETIME = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?")
_TIME = re.compile(r"(-)?(\d+):(\d{1,2})(?::(\d{1,2}))?(?:\.(\d+))?")
_BITS = re.compile(r"[01]*")
_EXACT = Context(prec=100)
"""Enough for the 65 digits of a DECIMAL; Python's default is 28."""


def default_value(column: DebeziumColumn, column_type: ColumnType, *, exact: bool = False) -> Any:
    """Return the Connect value of a column's default, ``None`` if it has none or it cannot be represented.

    Args:
        column: Debezium's description of the column, with the text of the default.
        column_type: the Connect type of the column.
        exact: whether the year 0000 stays (``rowtide.values=exact``).
    """
    if column_type.is_custom:
        return column_type.custom_default
    text = column.default_expression
    if text is None:
        return None
    if column_type.kind not in {"text", "enum", "set", "json", "bytes"}:
        text = text.strip()
    introduced = _INTRODUCER.fullmatch(text)
    if introduced:
        text = introduced[1]
    try:
        if exact and column_type.kind == "year" and text == "0000":
            return 0
        value = _READERS[column_type.kind](text, column)
    except (ValueError, InvalidOperation):
        return None
    if value is None:
        return None
    if isinstance(value, InvalidDate):
        return None if column.optional else column_type.epoch
    if column_type.kind == "enum":
        return value  # streamed labels are escaped, a default is not
    if column_type.kind == "timestamp" and value == 0:  # CURRENT_TIMESTAMP, stored as 1970 in the history
        return None if column.optional else column_type.epoch
    if column_type.convert is wrap_long:
        value = min(value, 2**63 - 1)  # a default is limited to Java's long, values wrap around
    try:
        return column_type.convert(value)
    except (ValueError, OverflowError):
        return None


def _integer(text: str, column: ColumnDescription) -> int:
    if text.lower() in {"true", "false"}:
        return int(text.lower() == "true")
    return int(Decimal(text).to_integral_value(ROUND_HALF_UP))


def _decimal(text: str, column: ColumnDescription) -> int:
    if text.lower() in {"true", "false"}:
        text = "1" if text.lower() == "true" else "0"
    scale = column.scale or 0
    return int(Decimal(text).scaleb(scale, _EXACT).quantize(Decimal(1), ROUND_HALF_UP, _EXACT)) if text else 0


def _bits(text: str, column: ColumnDescription) -> int:
    if (column.length or 1) == 1:
        return int(text) if text.isdigit() else int(text.lower() == "true")
    return int(text, 2) if _BITS.fullmatch(text) and text else 0


def _year(text: str, column: ColumnDescription) -> int:
    year = int(text)
    if 0 <= year <= 69:
        return year + 2000
    return year + 1900 if 70 <= year <= 99 else year


def _date(text: str, column: ColumnDescription) -> int | InvalidDate:
    match = _DATE.match(text)
    if match is None:
        raise ValueError(text)
    return DAYS_BY_PACKED_DATE[int(match[1]) << 9 | int(match[2]) << 5 | int(match[3])]


def _datetime(text: str, column: ColumnDescription) -> int | InvalidDate:
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    days = DAYS_BY_PACKED_DATE[int(match[1]) << 9 | int(match[2]) << 5 | int(match[3])]
    if isinstance(days, InvalidDate):
        return days
    hours, minutes, seconds = (int(match[group] or 0) for group in (4, 5, 6))
    return days * MICROS_PER_DAY + ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + _fraction(match[7])


def _fraction(digits: str | None) -> int:
    return int((digits or "").ljust(6, "0")[:6])


def _time(text: str, column: ColumnDescription) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    seconds = (int(match[2]) * 60 + int(match[3])) * 60 + int(match[4] or 0)
    micros = seconds * 1_000_000 + _fraction(match[5])
    return -micros if match[1] else micros


_READERS: dict[Kind, Callable[[str, ColumnDescription], Any]] = {
    "int": _integer,
    "decimal": _decimal,
    "float": lambda text, column: float(text),
    "bit": _bits,
    "year": _year,
    "date": _date,
    "datetime": _datetime,
    "timestamp": _datetime,
    "time": _time,
    "bytes": lambda text, column: text.encode(),
    **dict.fromkeys(("text", "enum", "set", "json", "uuid", "inet"), lambda text, column: text),
    **dict.fromkeys(("geometry", "vector"), lambda text, column: None),
}
