"""Column values in mysql-replication's form: the conversion of each column of a table."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import orjson
from pymysqlreplication.constants import NONE_SOURCE
from pymysqlreplication.json_binary import JsonDiff, JsonDiffOperation

from rowtide.connector.errors import SchemaError
from rowtide.connector.protocol import charset
from rowtide.connector.protocol.events.table_structure import MappedColumn
from rowtide.connector.protocol.json.binary import json_value
from rowtide.connector.protocol.json.diff import read_diffs
from rowtide.connector.protocol.json.values import DECIMAL_TYPES, decimal_text
from rowtide.connector.records.codecs.python_values import python_conversion
from rowtide.connector.rows.column_kinds import column_kind
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import JSON, KINDS, ColumnDecoding, column_layout
from rowtide.connector.rows.native.implementation import native
from rowtide.connector.rows.partial_update import split_differences
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.schema import STRING
from rowtide.envelope.types.column_type import ColumnType, Fallback, Form, Kind, identity, str_expression
from rowtide.envelope.types.temporal_values import InvalidDate
from rowtide.schema_history import model
from rowtide.schema_history.server.charsets import unicode_text

_UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8"})
_FORM = JsonFormat("BASE64", replace_null_with_default=False)
_TIME_TYPES, _DATE_TYPES = frozenset({11, 19}), frozenset({7, 10, 12, 17, 18})
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - mysql-replication's have no zone
_OBJECT_FORMS = {
    "date": Form("date object"),
    "datetime": Form("datetime object"),
    "timestamp": Form("datetime object"),
    "time": Form("timedelta object"),
}


@dataclass(frozen=True, slots=True)
class NoneSource:
    """A value that users see as ``None``, with the reason in ``none_sources``."""

    reason: str


ABSENT = NoneSource(NONE_SOURCE.COLS_BITMAP)
_NO_DATE = NoneSource(NONE_SOURCE.OUT_OF_DATE_RANGE)
_NO_DATETIME = NoneSource(NONE_SOURCE.OUT_OF_DATETIME2_RANGE)
_NO_LABEL = NoneSource(NONE_SOURCE.EMPTY_SET)
_SAME_DOCUMENT = NoneSource(NONE_SOURCE.JSON_PARTIAL_UPDATE)


def value_columns(mapped: Sequence[MappedColumn], table: model.Table) -> list[Column]:
    """Return the columns of a table's row images, with mysql-replication's values as their output.

    Raises:
        SchemaError: the type of a column in the TABLE_MAP does not match the structure.
    """
    return [_column(found, column, table) for found, column in zip(mapped, table.row_columns, strict=True)]


def may_be_none(column: Column) -> bool:
    """Return whether users may see ``None`` for a value in the images of a column."""
    return column.nullable or column.decoding.kind in {"date", "datetime", "timestamp", "set", "json"}


def with_differences(columns: Sequence[Column]) -> list[Column]:
    """Return the columns for images whose documents may be differences."""
    return [
        replace(column, decoding=replace(column.decoding, json_text=_document_or_differences))
        if column.layout.type == JSON
        else column
        for column in columns
    ]


def _column(mapped: MappedColumn, column: model.Column, table: model.Table) -> Column:
    kind = column_kind(column)
    if kind == "json" and mapped.type != JSON:
        kind = "text"  # MariaDB's
    elif kind == "text" and column.charset == "binary":
        kind = "bytes"
    if mapped.type not in KINDS[kind]:
        raise SchemaError(
            f"table {table.id}, column {column.name}: the row events have type {mapped.type}, but the column is a "
            f"{column.column_type} in its structure, which does not match the binlog"
        )
    decode: charset.Decoder | None = None
    if kind == "text" and column.charset is not None and column.charset not in _UTF8:
        decode = charset.charset_decoder(column.charset)
    decoding = ColumnDecoding(
        kind,
        unsigned=column.unsigned if mapped.unsigned is None else mapped.unsigned,
        text_decoder=decode,
        labels=tuple(map(unicode_text, column.labels)),
        pad=_padding(column),
        json_text=_document if kind == "json" else None,
    )
    converted = ColumnType(STRING, kind, _conversion(kind, column), str_expression, object_form=_OBJECT_FORMS.get(kind))
    output = ColumnOutput(column.name, converted, Fallback("null", _refuse), None, STRING, _FORM)
    return Column(column_layout(mapped.type, mapped.metadata), decoding, mapped.nullable, output, absent_value=ABSENT)


def _padding(column: model.Column) -> int:
    if column.data_type == "inet6":
        return 16
    return (column.length or 0) if column.data_type == "binary" else 0


def _refuse(_value: object, error: Exception) -> None:
    raise error


def _conversion(kind: Kind, column: model.Column) -> Callable[[Any], Any]:
    """Return the function from a column's canonical value to mysql-replication's."""
    match kind:
        case "decimal" | "time":
            return python_conversion(kind, column)
        case "bit":
            return partial(_bits, column.length or 1)
        case "date":
            return partial(_calendar, python_conversion(kind, column), _NO_DATE)
        case "datetime" | "timestamp":
            return partial(_calendar, _moment, _NO_DATETIME)
        case "set":
            return _members
        case _:
            return identity


def _bits(count: int, value: int) -> str:
    return f"{value:0{count}b}"


def _calendar(convert: Callable[[int], Any], missing: NoneSource, value: int | InvalidDate) -> Any:
    return missing if isinstance(value, InvalidDate) else convert(value)


def _moment(micros: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:  # damaged bytes can hold more than 24 hours
        raise ValueError("a date and time after the end of the year 9999") from None


def _members(text: str) -> set[str] | NoneSource:
    return set(text.split(",")) if text else _NO_LABEL


def _document(stored: bytes) -> Any:
    """Return the document; ``None`` for no bytes, as in a row that is older than its column."""
    if not stored:
        return None
    if native is not None:
        # In the server's style, which distinguishes a DOUBLE from a whole number
        text = native.json_text(stored, True, True)
        if text is not None:
            return _in_bytes(orjson.loads(text))
    return json_value(stored, _opaque)


def _in_bytes(value: Any) -> Any:
    """Return a document with its texts as bytes."""
    kind = value.__class__
    if kind is str:
        return value.encode()
    if kind is dict:
        return {key.encode(): _in_bytes(one) for key, one in value.items()}
    return list(map(_in_bytes, value)) if kind is list else value


def _document_or_differences(stored: bytes) -> Any:
    """Return the document, or its changes: one ``JsonDiff``, or a list of several."""
    parts = split_differences(stored)
    if parts is None:
        return _document(stored)
    found = [
        JsonDiff(JsonDiffOperation(operation), path, None if value is None else _document(value))
        for operation, path, value in read_diffs(parts[1])
    ]
    if not found:
        return _SAME_DOCUMENT
    return found[0] if len(found) == 1 else found


def _opaque(column_type: int, stored: bytes) -> Any:
    """Return the Python value of a type that JSON lacks; mysql-replication has a DATE as a ``datetime``, too."""
    if column_type in DECIMAL_TYPES:
        return Decimal(decimal_text(stored))
    if column_type not in _TIME_TYPES | _DATE_TYPES:
        return stored
    packed = int.from_bytes(stored, "little", signed=True)
    micros, clock = abs(packed) & 0xFFFFFF, abs(packed) >> 24
    second, minute = clock & 0x3F, clock >> 6 & 0x3F
    if column_type in _TIME_TYPES:
        hour = clock >> 12 & 0x3FF
        if packed >= 0 and hour < 24:
            return dt.time(hour, minute, second, micros)
        time = dt.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)
        return -time if packed < 0 else time
    (year, month), day, hour = divmod(clock >> 22, 13), clock >> 17 & 0x1F, clock >> 12 & 0x1F
    try:
        return dt.datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001 - it has no zone
    except ValueError:
        return f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}"
