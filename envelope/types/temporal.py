"""The Connect types of DATE, TIME, DATETIME, TIMESTAMP and YEAR."""

from dataclasses import replace
from typing import Any

from rowtide.envelope.json.text import string_text, value_text
from rowtide.envelope.settings import Stage, ValueSettings
from rowtide.envelope.types import temporal_values
from rowtide.envelope.types.column_type import (
    Bind,
    ColumnDescription,
    ColumnType,
    Fallback,
    Form,
    Kind,
    call_expression,
    identity,
    str_expression,
    via_connect_value,
)
from rowtide.envelope.types.temporal_values import InvalidDate, TemporalEncoding

ZERO_DATE_KINDS: frozenset[Kind] = frozenset({"date", "datetime", "timestamp"})
"""The kinds that can be invalid dates (``zero.date.handling.mode``)."""


def _temporal(
    encoding: TemporalEncoding, kind: Kind, adjusted: temporal_values.TwoDigitYears | None = None
) -> ColumnType:
    """Return the type of an encoding; ``adjusted`` for ``enable.time.adjuster``."""

    def convert(value: int | InvalidDate) -> Any:
        if isinstance(value, InvalidDate):
            return None
        return encoding.convert(adjusted.adjust(value) if adjusted and value < adjusted.before else value)

    def expression(variable: str, bind: Bind, fallback: Fallback) -> str:
        def text(value: int | InvalidDate) -> str:
            if isinstance(value, InvalidDate):
                return fallback.text
            try:
                return value_text(encoding.schema, convert(value))
            except ValueError as error:
                fallback.on_error(value, error)
                return fallback.text

        slow = f"{bind(text)}({variable})"
        if not encoding.expression:
            return slow
        modern = f" and {variable} >= {adjusted.before}" if adjusted else ""
        return f"({encoding.expression.format(v=variable)} if {variable}.__class__ is int{modern} else {slow})"

    form = Form(encoding.form, encoding.digits, adjusted.before if adjusted else None)
    return ColumnType(encoding.schema, kind, convert, expression, encoding.epoch, form)


def _is_partial(value: object) -> bool:
    return isinstance(value, InvalidDate) and bool(value.year or value.month or value.day or value.micros)


def distinct_in_keys(found: ColumnType) -> ColumnType:
    """Return the type of a key's column, where only one invalid date, ``0000-00-00``, can be null."""

    def convert(value: Any) -> Any:
        if _is_partial(value):
            raise ValueError(f"{value} is not a date of the calendar, and null would stand for several different keys")
        return found.convert(value)

    partial = via_connect_value(found.schema, convert)

    def expression(variable: str, bind: Bind, fallback: Fallback) -> str:
        usual = found.expression(variable, bind, fallback)
        return f"({partial(variable, bind, fallback)} if {bind(_is_partial)}({variable}) else {usual})"

    return replace(found, convert=convert, expression=expression)


def date_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of DATE by ``time.precision.mode``."""
    adjusted = temporal_values.DATE_YEARS if settings.enable_time_adjuster else None
    return _temporal(temporal_values.date_encoding(settings.time_precision_mode), "date", adjusted)


def time_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of TIME by ``time.precision.mode``."""
    return _temporal(temporal_values.time_encoding(settings.time_precision_mode), "time")


def datetime_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of DATETIME by ``time.precision.mode``."""
    adjusted = temporal_values.DATETIME_YEARS if settings.enable_time_adjuster else None
    return _temporal(
        temporal_values.datetime_encoding(settings.time_precision_mode, column.length or 0), "datetime", adjusted
    )


def timestamp_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of TIMESTAMP: text in UTC."""
    trimmed = stage == "snapshot" and not settings.canonical
    encoding = temporal_values.timestamp_encoding(column.length or 0, trimmed=trimmed)
    zoned = _temporal(encoding, "timestamp")
    if settings.connector == "mariadb" and stage == "stream" and settings.zero_date_handling_mode == "epoch":
        # In the stream, Debezium writes MariaDB's zero timestamp as 1970, even if null is allowed.

        def convert(value: int | InvalidDate) -> Any:
            return encoding.convert(0 if isinstance(value, InvalidDate) else value)

        return replace(zoned, convert=convert, expression=call_expression(lambda value: string_text(convert(value))))
    return zoned


YEAR = ColumnType(temporal_values.YEAR, "year", identity, str_expression, form=Form("integer"))
