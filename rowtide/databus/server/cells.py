"""The text of every value in the cells of databus' messages: MySQL's text in base64, and null for NULL.

The texts are the same in the topic and in dumps: numbers with all their digits, ENUM and SET as labels, TIMESTAMP in
UTC, text in UTF-8. Values of binary columns are bytes.
"""

import struct
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rowtide.connector.protocol.json.binary import SERVER, json_text
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.json.java_numbers import decimal_text, double_text, float_text
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.schema import STRING
from rowtide.envelope.table import RecordColumn
from rowtide.envelope.types.column_type import ColumnType, Fallback, str_expression
from rowtide.envelope.types.temporal_values import (
    DATE_TEXT_BY_DAY,
    MICROS_PER_DAY,
    InvalidDate,
    time_of_day,
)

_FORM = JsonFormat("BASE64", replace_null_with_default=False)


def image_columns(records: Sequence[RecordColumn], columns: Sequence[Column]) -> list[Column]:
    """Return the columns of row images, with cells as their output.

    Args:
        records: the columns that are published.
        columns: all columns of the images.
    """
    published = {record.index: record for record in records}
    found = []
    for index, column in enumerate(columns):
        record = published.get(index)
        if record is None:
            found.append(replace(column, output=None))
            continue
        decoding = column.decoding
        if decoding.json_text is not None and record.column.data_type == "json":
            decoding = replace(decoding, json_text=_document)
        found.append(replace(column, decoding=decoding, output=cell_output(record), absent_value=None))
    return found


def cell_output(record: RecordColumn) -> ColumnOutput:
    """Return the output of a column as a cell."""
    kind = record.type.kind
    converted = ColumnType(STRING, kind, _conversion(record), str_expression)
    return ColumnOutput(record.column.name, converted, Fallback("null", _refuse), None, STRING, _FORM)


def _refuse(value: object, error: Exception) -> None:
    raise error


def _conversion(record: RecordColumn) -> Callable[[Any], str]:
    """Return the function from a column's canonical value to its cell."""
    column = record.column
    match record.type.kind:
        case "int" | "bit":
            return _of(str)
        case "year":
            return _of("{:04d}".format)
        case "decimal":
            scale = column.scale or 0
            return _of(lambda unscaled: decimal_text(unscaled, scale))
        case "float":
            text = float_text if column.data_type == "float" else double_text
            return _of(lambda number: text(number).removesuffix(".0"))
        case "date":
            return _of(_date)
        case "datetime" | "timestamp":
            return _of(partial(_moment, column.fsp))
        case "time":
            return _of(partial(_time, column.fsp))
        case "bytes" | "geometry":
            return _cell
        case "vector":
            return lambda numbers: _cell(struct.pack(f"<{len(numbers)}f", *numbers))
        case _:
            return _of(str)


def _of(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: _cell(text(value).encode())


def _cell(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _document(stored: bytes) -> str | None:
    return json_text(stored, SERVER) if stored else None


def _date(value: int | InvalidDate) -> str:
    return str(replace(value, micros=0)) if isinstance(value, InvalidDate) else DATE_TEXT_BY_DAY[value]


def _moment(digits: int, value: int | InvalidDate) -> str:
    if isinstance(value, InvalidDate):
        return f"{_date(value)} {time_of_day(value.micros, digits)}"
    return f"{DATE_TEXT_BY_DAY[value // MICROS_PER_DAY]} {time_of_day(value % MICROS_PER_DAY, digits)}"


def _time(digits: int, micros: int) -> str:
    sign = "-" if micros < 0 else ""
    return sign + time_of_day(abs(micros), digits)
