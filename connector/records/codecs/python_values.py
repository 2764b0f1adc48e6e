"""Converts the canonical values of binlog and result sets directly to Python values, without Connect's."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any

from rowtide.connector.records.change import Geometry, JsonText
from rowtide.connector.records.connect_values import conversion
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.envelope.json.java_numbers import float_text
from rowtide.envelope.table import RecordColumn
from rowtide.envelope.types.column_type import ColumnType, Fallback, Form, Kind, identity
from rowtide.envelope.types.temporal_values import EPOCH_ORDINAL, InvalidDate, time_of_day
from rowtide.schema_history.model import Column

_EXACT = Context(prec=100)
"""Enough for all 65 digits of a DECIMAL: Python's own context has 28."""
_TEXT_KINDS = frozenset({"text", "bytes", "enum", "set", "json", "uuid", "inet"})
_DATETIME_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a DATETIME has no zone
_TIMESTAMP_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


_OBJECT_FORMS: Mapping[Kind, Form] = {
    "date": Form("date object"),
    "datetime": Form("datetime object"),
    "timestamp": Form("utc datetime object"),
    "time": Form("timedelta object"),
}


def python_output(output: ColumnOutput, record: RecordColumn, *, documents: bool = True) -> ColumnOutput:
    """Return a column's output with Python values instead of Connect's.

    Text and bytes stay masked, hashed or truncated.

    Args:
        output: the column's output with Connect values.
        record: the column.
        documents: whether a column converter's JSON is a document; MariaDB's is text, as in its columns.
    """
    fallback = Fallback("null", output.fallback.on_error)
    if record.type.is_custom:
        return _converted(output, record.type, fallback, documents=documents)
    kind = record.type.kind
    python = replace(record.type, convert=python_conversion(kind, record.column), object_form=_OBJECT_FORMS.get(kind))
    change = record.mapper if record.type.kind in _TEXT_KINDS else None
    return replace(output, type=python, fallback=fallback, fallback_value=None, change=change, key=None)


def _converted(output: ColumnOutput, custom: ColumnType, fallback: Fallback, *, documents: bool) -> ColumnOutput:
    """Return the output of a column converter, whose schema determines the Python value, as for readers of records."""
    python = conversion(custom.schema, "connect", documents=documents)
    convert, null = custom.convert, custom.custom_null
    if python is None:
        return replace(output, fallback=fallback, fallback_value=null, key=None)

    def converted(value: Any) -> Any:
        result = convert(value)
        try:
            return None if result is None else python(result)
        except OverflowError as error:
            raise ValueError(f"Python has no such {custom.schema.name}: {error}") from error

    plain = replace(
        output,
        type=replace(custom, convert=converted),
        fallback=fallback,
        fallback_value=None if null is None else python(null),
        change=None,
        key=None,
    )
    if output.change is None:
        return plain
    return replace(
        output, fallback=fallback, fallback_value=null, key=plain
    )  # masked text is not a value of the schema


def python_conversion(kind: Kind, column: Column) -> Callable[[Any], Any]:
    """Return the function from a column's canonical value to its Python value; ``identity`` where they are the same."""
    match kind:
        case "decimal":
            return _decimal(column)
        case "float":
            return _single if column.data_type == "float" else identity
        case "bit":
            return bool if (column.length or 1) == 1 else identity
        case "date":
            return _date
        case "datetime":
            return _moment(_DATETIME_EPOCH, column.fsp)
        case "timestamp":
            return _moment(_TIMESTAMP_EPOCH, column.fsp)
        case "time":
            return _time
        case "json":
            # MariaDB's JSON is a synonym of LONGTEXT: a snapshot could not distinguish the two
            return _json if column.data_type == "json" else identity
        case "geometry":
            return _geometry
        case _:
            return identity


def _decimal(column: Column) -> Callable[[int], Decimal]:
    scale = column.scale or 0

    def decimal(unscaled: int) -> Decimal:
        return Decimal(unscaled).scaleb(-scale, _EXACT)

    return decimal


def _single(value: float) -> float:
    """Return the shortest number that is the same FLOAT: 1.1, not 1.100000023841858."""
    return float(float_text(value))


def _date(value: int | InvalidDate) -> dt.date | str:
    if isinstance(value, InvalidDate):
        return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    return dt.date.fromordinal(value + EPOCH_ORDINAL)


def _moment(epoch: dt.datetime, digits: int) -> Callable[[int | InvalidDate], dt.datetime | str]:
    def moment(value: int | InvalidDate) -> dt.datetime | str:
        if isinstance(value, InvalidDate):
            return f"{value.year:04d}-{value.month:02d}-{value.day:02d} {time_of_day(value.micros, digits)}"
        try:
            return epoch + dt.timedelta(microseconds=value)
        except OverflowError:  # damaged bytes can hold more than 24 hours
            raise ValueError("a date and time after the end of the year 9999") from None

    return moment


def _time(value: int) -> dt.timedelta:
    return dt.timedelta(microseconds=value)


def _json(text: str | None) -> JsonText | None:
    """Return the document; ``None`` for no bytes, as in a row that is older than its column."""
    return None if text is None else JsonText(text)


def _geometry(stored: bytes) -> Geometry:
    if len(stored) < 4:  # INSERT IGNORE leaves such
        raise ValueError(f"a geometry of {len(stored)} bytes has no SRID")
    return Geometry(stored[4:], int.from_bytes(stored[:4], "little"))
