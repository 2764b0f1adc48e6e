"""Debezium's own column converters: TinyIntOneToBoolean, JdbcSinkDataTypes and ZeroDateFallback.

Where Debezium changes a value without need, these keep it: Debezium's JdbcSinkDataTypes reads text as UTF-8 whatever
its character set, and returns the number of an ENUM's label in the stream; ZeroDateFallback replaces the first value of
each nullable column.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from rowtide.envelope.custom_converter import CustomConverter, Registration, RelationalColumn
from rowtide.envelope.schema import BOOLEAN, FLOAT32, FLOAT64, INT16, STRING, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.topics.filters import Patterns
from rowtide.topics.java_regex import InvalidPatternError

_CHARACTER_SET = "__debezium.source.column.character_set"
_TINYINT = ("TINYINT", "TINYINT UNSIGNED")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DATE = Schema("int32", name="io.debezium.time.Date", version=1)
_MILLIS = Schema("int64", name="io.debezium.time.Timestamp", version=1)
_MICROS = Schema("int64", name="io.debezium.time.MicroTimestamp", version=1)
_ZONED = Schema("string", name="io.debezium.time.ZonedTimestamp", version=1)


class TinyIntOneToBooleanConverter:
    """Makes TINYINT(1) columns booleans: true if the number is positive."""

    def __init__(self, options: Options) -> None:
        self._selects = _selector(options, "selector", everything=True)
        self._checks_length = options.boolean("length.checker", default=True)

    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        """Register the schema and the function of a selected column."""
        if column.type_name not in _TINYINT or (self._checks_length and column.length != 1):
            return
        if self._selects(column):
            registration.register(BOOLEAN, _positive)


class JdbcSinkDataTypesConverter:
    """Gives selected columns the same type in snapshot and stream, for sinks that create tables from it."""

    def __init__(self, options: Options) -> None:
        self._booleans, self._reals, self._strings = (
            _selector(options, f"selector.{kind}") for kind in ("boolean", "real", "string")
        )
        self._double = options.boolean("treat.real.as.double", default=True)

    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        """Register the schema and the function of a selected column."""
        if self._booleans(column):
            registration.register(INT16, lambda value: int(_positive(value)))
        elif self._reals(column):
            registration.register(FLOAT64 if self._double else FLOAT32, _real)
        elif self._strings(column):
            parameters = () if column.charset is None else ((_CHARACTER_SET, column.charset),)
            registration.register(replace(STRING, parameters=parameters), _string)


class ZeroDateFallbackConverter:
    """Writes a configured value, or null, for dates that do not exist, such as ``0000-00-00``, and for NULL."""

    def __init__(self, options: Options) -> None:
        self._selects = _selector(options, "selector", everything=True)
        self._targets = {name.upper() for name in options.items("target.types")} or set(_FALLBACKS)
        for unknown in sorted(self._targets - _FALLBACKS.keys()):
            options.problem("target.types", f"must be of {', '.join(_FALLBACKS)}, not {unknown!r}")
        self._fallbacks = {
            kind: _fallback(options, f"fallback.{kind.lower()}", read) for kind, read in _FALLBACKS.items()
        }
        self._of_columns: dict[str, str] = {}
        for name, text in options.others().items():
            if not (name.startswith("column.") and name.endswith(".fallback")):
                options.problem(name, "this option does not exist")
                continue
            self._of_columns[name.removeprefix("column.").removesuffix(".fallback")] = text
            if not any(_reads(text, read) for read in _FALLBACKS.values()):
                options.problem(name, f"must be a date, a date and time, or NULL, not {text!r}")

    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        """Register the schema and the function of a selected column."""
        kind = column.type_name
        if kind not in self._targets or not self._selects(column):
            return
        fallback, own = self._fallbacks[kind], self._of_columns.get(f"{column.table}.{column.name}")
        if own is not None:
            fallback = None if _is_null(own) else _FALLBACKS[kind](own.strip())
        schema, convert = _temporal(kind, micros=(column.length or 0) >= 4)
        written = None if fallback is None else convert(fallback)
        registration.register(
            schema.with_optional(fallback is None),
            lambda value: written if isinstance(value, str) else convert(value),
            null=written,
            default=written,
        )


def _selector(options: Options, name: str, *, everything: bool = False) -> Callable[[RelationalColumn], bool]:
    """Return the selection of ``database.table.column``; without the option all columns, or none."""
    text = (options.optional_text(name) or "").strip()
    if not text:
        return lambda _column: everything
    try:
        patterns = Patterns.parse(text)
    except InvalidPatternError as error:
        options.problem(name, str(error))
        return lambda _column: False
    return lambda column: patterns.match(f"{column.table}.{column.name}")


def _positive(value: Any) -> bool:
    if isinstance(value, str):
        return int(value) > 0 if _INTEGER.fullmatch(value) else value.lower() == "true"
    return isinstance(value, int | float | Decimal) and int(value) > 0


def _real(value: Any) -> float:
    return float(value) if isinstance(value, int | float | Decimal | str) else 0.0


def _string(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def _is_null(text: str | None) -> bool:
    return text is None or text.strip().upper() in ("", "NULL")


def _datetime(text: str) -> dt.datetime:
    return dt.datetime.strptime(text, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - a DATETIME has no zone


def _timestamp(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is None or "T" not in text:
        raise ValueError(text)
    return found.astimezone(dt.UTC)


_FALLBACKS: Mapping[str, Callable[[str], Any]] = {
    "DATE": dt.date.fromisoformat,
    "DATETIME": _datetime,
    "TIMESTAMP": _timestamp,
}
_EXAMPLES = {"DATE": "1970-01-01", "DATETIME": "1970-01-01 00:00:00", "TIMESTAMP": "1970-01-01T00:00:00Z"}


def _reads(text: str, read: Callable[[str], Any]) -> bool:
    try:
        return _is_null(text) or read(text.strip()) is not None
    except ValueError:
        return False


def _fallback(options: Options, name: str, read: Callable[[str], Any]) -> Any:
    """Return the fallback of a type; ``None`` for null."""
    text = options.optional_text(name)
    if text is None or _is_null(text):
        return None
    if _reads(text, read):
        return read(text.strip())
    example = _EXAMPLES[name.removeprefix("fallback.").upper()]
    options.problem(name, f"must be NULL or have the form {example}, not {text!r}")
    return None


def _temporal(kind: str, *, micros: bool) -> tuple[Schema, Callable[[Any], Any]]:
    """Return the schema of a type, and the function from a date to its value."""
    if kind == "DATE":
        return _DATE, lambda date: (date - dt.date(1970, 1, 1)).days
    if kind == "TIMESTAMP":
        return _ZONED, _zoned
    step = dt.timedelta(microseconds=1) if micros else dt.timedelta(milliseconds=1)
    epoch = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a DATETIME has no zone
    return (_MICROS if micros else _MILLIS), lambda moment: (moment - epoch) // step


def _zoned(moment: dt.datetime) -> str:
    """Return a time in the format of Java's ``ISO_OFFSET_DATE_TIME``: without zeros at the end of a fraction."""
    text = moment.replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"


_CLASSES: Mapping[str, Callable[[Options], CustomConverter]] = {
    "TinyIntOneToBooleanConverter": TinyIntOneToBooleanConverter,
    "JdbcSinkDataTypesConverter": JdbcSinkDataTypesConverter,
    "ZeroDateFallbackConverter": ZeroDateFallbackConverter,
}
DEBEZIUM: Mapping[str, Callable[[Options], CustomConverter]] = {
    f"io.debezium.connector.{package}.converters.{name}": made
    for package in ("binlog", "mysql", "mariadb")
    for name, made in _CLASSES.items()
}
"""The converters by the names of their classes, under each package that Debezium has or had them in."""
