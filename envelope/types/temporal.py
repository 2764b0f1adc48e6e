"""The forms of dates, times and years."""

from dataclasses import replace
from typing import Any

from rowtide.envelope.json.text import string_text, value_text
from rowtide.envelope.settings import Stage, ValueSettings
from rowtide.envelope.types import temporal_values
from rowtide.envelope.types.column_type import Bind, ColumnFacet, ColumnType, Fallback, Kind, call, plain, same
from rowtide.envelope.types.temporal_values import OffCalendar, TemporalForm

ZERO_DATE_KINDS: frozenset[Kind] = frozenset({"date", "datetime", "timestamp"})
"""Kinds with values that no calendar has (``zero.date.handling.mode``)."""


def _temporal(form: TemporalForm, kind: Kind, adjusted: temporal_values.Adjusted | None = None) -> ColumnType:
    """The type of a form; ``adjusted`` if years before 100 are two-digit years (``enable.time.adjuster``)."""

    def convert(value: int | OffCalendar) -> Any:
        if isinstance(value, OffCalendar):
            return None
        return form.convert(adjusted.adjust(value) if adjusted and value < adjusted.before else value)

    def expression(variable: str, bind: Bind, fallback: Fallback) -> str:
        def text(value: int | OffCalendar) -> str:
            if isinstance(value, OffCalendar):
                return fallback.text
            try:
                return value_text(form.schema, convert(value))
            except ValueError as error:
                fallback.failed(value, error)
                return fallback.text

        slow = f"{bind(text)}({variable})"
        if not form.expression:
            return slow
        modern = f" and {variable} >= {adjusted.before}" if adjusted else ""
        return f"({form.expression.format(v=variable)} if {variable}.__class__ is int{modern} else {slow})"

    return ColumnType(form.schema, kind, convert, expression, form.epoch)


def date_type(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    """DATE, as ``time.precision.mode`` says."""
    adjusted = temporal_values.ADJUSTED_DATE if settings.enable_time_adjuster else None
    return _temporal(temporal_values.date_form(settings.time_precision_mode), "date", adjusted)


def time_type(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    """TIME, as ``time.precision.mode`` says."""
    return _temporal(temporal_values.time_form(settings.time_precision_mode), "time")


def datetime_type(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    """DATETIME, as ``time.precision.mode`` says."""
    adjusted = temporal_values.ADJUSTED_DATETIME if settings.enable_time_adjuster else None
    return _temporal(
        temporal_values.datetime_form(settings.time_precision_mode, column.length or 0), "datetime", adjusted
    )


def timestamp_type(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    """TIMESTAMP: text in UTC."""
    form = temporal_values.zoned_form(column.length or 0, trimmed=stage == "snapshot")
    zoned = _temporal(form, "timestamp")
    if settings.connector == "mariadb" and stage == "stream" and settings.zero_date_handling_mode == "epoch":
        # MariaDB's zero timestamp is 1970 in the stream, also where null is allowed.
        return replace(
            zoned,
            convert=lambda value: form.convert(0 if isinstance(value, OffCalendar) else value),
            expression=call(lambda value: string_text(form.convert(0 if isinstance(value, OffCalendar) else value))),
        )
    return zoned


YEAR = ColumnType(temporal_values.YEAR, "year", same, plain)
