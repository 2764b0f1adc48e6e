"""Canal's columns: SQL types, the spelling of types, and the text of every value.

The forms are those of Canal's ``RowsLogBuffer`` and ``LogEventConvert``: MySQL's text where there is one, Java's for
FLOAT and DOUBLE, the index of an ENUM, the bits of a SET or BIT as a number, and a character for each byte of a BLOB.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from rowtide.canal.entries.entry import ABSENT, EntryColumn
from rowtide.connector.errors import SchemaError
from rowtide.connector.protocol import charset
from rowtide.connector.protocol.events.table_structure import MappedColumn
from rowtide.connector.protocol.json import binary, values
from rowtide.connector.rows import layouts
from rowtide.connector.rows.column_kinds import column_kind
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import ColumnDecoding, column_layout
from rowtide.connector.rows.row_compiler import Column as CompiledColumn
from rowtide.envelope.json.java_numbers import decimal_text, double_text, float_text
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.schema import STRING
from rowtide.envelope.types.column_type import ColumnType, Fallback, Kind, identity, str_expression
from rowtide.envelope.types.temporal_values import (
    DATE_TEXT_BY_DAY,
    MICROS_PER_DAY,
    InvalidDate,
    time_of_day,
)
from rowtide.schema_history import model

_BIT, _TINYINT, _BIGINT, _CHAR, _DECIMAL, _INTEGER, _SMALLINT, _REAL, _DOUBLE = -7, -6, -5, 1, 3, 4, 5, 7, 8
_VARCHAR, _DATE, _TIME, _TIMESTAMP, _OTHER, _BLOB, _CLOB = 12, 91, 92, 93, 1111, 2004, 2005
"""Numbers of java.sql.Types."""

_TEXT_TYPES = frozenset({"tinytext", "text", "mediumtext", "longtext"})
_UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8"})
_INTEGER_TYPES = {
    layouts.TINY: (_TINYINT, _SMALLINT, 0x7F),
    layouts.SHORT: (_SMALLINT, _INTEGER, 0x7FFF),
    layouts.INT24: (_INTEGER, _INTEGER, 0x7FFFFF),
    layouts.LONG: (_INTEGER, _BIGINT, 0x7FFFFFFF),
    layouts.LONGLONG: (_BIGINT, _DECIMAL, 0x7FFF_FFFF_FFFF_FFFF),
}
"""The SQL type of an integer, that of an unsigned one beyond the signed range, and that range."""
_SQL_TYPES: dict[Kind, tuple[int, int]] = {
    "decimal": (_DECIMAL, _DECIMAL),
    "bit": (_BIT, _BIT),
    "year": (_VARCHAR, _VARCHAR),
    "date": (_DATE, _DATE),
    "datetime": (_TIMESTAMP, _TIMESTAMP),
    "timestamp": (_TIMESTAMP, _TIMESTAMP),
    "time": (_TIME, _TIME),
    "enum": (_INTEGER, _INTEGER),
    "set": (_BIT, _BLOB),
    "json": (_VARCHAR, _OTHER),
    "uuid": (_CHAR, _CHAR),
    "inet": (_CHAR, _CHAR),
    "bytes": (_BLOB, _BLOB),
    "geometry": (_BLOB, _BLOB),
    "vector": (_BLOB, _BLOB),
}
"""The SQL types of a value and of NULL."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table: as entries describe them, and as row images are decoded.

    Attributes:
        described: the columns of the table's definition.
        compiled: all columns of row images; hidden ones have no output.
    """

    described: tuple[EntryColumn, ...]
    compiled: tuple[CompiledColumn, ...]


def table_columns(mapped: tuple[MappedColumn, ...], table: model.Table) -> TableColumns:
    """Return the columns of a table, whose structure must have the TABLE_MAP's number of columns.

    Raises:
        SchemaError: the type of a column in the TABLE_MAP does not match the structure.
    """
    described, compiled = [], []
    shown = len(table.columns)
    for index, (found, column) in enumerate(zip(mapped, table.row_columns, strict=True)):
        layout = column_layout(found.type, found.metadata)
        if index >= shown:
            compiled.append(CompiledColumn(layout, ColumnDecoding("bytes"), found.nullable, None))
            continue
        kind = column_kind(column)
        if found.type not in layouts.KINDS[kind]:
            raise SchemaError(
                f"table {table.id}, column {column.name}: the row events have type {found.type}, but the column is a "
                f"{column.column_type} in the schema history. The schema history does not match the binlog"
            )
        described.append(_described(index, column, kind, found.type, key=column.name in table.primary_key))
        decoding, output = _decoding(column, kind, found), _output(column, kind, _conversion(column, kind))
        compiled.append(CompiledColumn(layout, decoding, found.nullable, output, absent_value=ABSENT))
    return TableColumns(tuple(described), tuple(compiled))


@dataclass(frozen=True, slots=True)
class SelectedColumns:
    """The columns of a table, as entries describe them, and as the texts that a query returns are converted."""

    described: tuple[EntryColumn, ...]
    outputs: tuple[ColumnOutput, ...]


def selected_columns(table: model.Table) -> SelectedColumns:
    """Return the columns of a table whose rows are read by a query."""
    described, outputs = [], []
    for index, column in enumerate(table.columns):
        kind = column_kind(column)
        binlog_type = _BINLOG_TYPES.get(column.data_type, 0)
        described.append(_described(index, column, kind, binlog_type, key=column.name in table.primary_key))
        outputs.append(_output(column, kind, _selected(column, kind)))
    return SelectedColumns(tuple(described), tuple(outputs))


_BINLOG_TYPES = {
    "tinyint": layouts.TINY,
    "smallint": layouts.SHORT,
    "mediumint": layouts.INT24,
    "int": layouts.LONG,
    "bigint": layouts.LONGLONG,
    "float": layouts.FLOAT,
    "double": layouts.DOUBLE,
}


def _described(index: int, column: model.Column, kind: Kind, binlog_type: int, *, key: bool) -> EntryColumn:
    widest: int | None = None
    if kind == "int":
        plain, wide, most = _INTEGER_TYPES[binlog_type]
        null = plain
        widest = most if column.unsigned else None
    elif kind == "float":
        plain = null = wide = _REAL if binlog_type == layouts.FLOAT else _DOUBLE
    elif kind == "text" or (kind == "bytes" and not _spelled_as_bytes(column)):
        plain = null = wide = _text_type(column)
    else:
        plain, null = _SQL_TYPES[kind]
        wide = plain
    return EntryColumn(index, column.name, key, plain, null, wide, widest, mysql_type(column))


def _spelled_as_bytes(column: model.Column) -> bool:
    """Return whether a binary column is declared as one, and not as a CHAR or TEXT with CHARACTER SET binary."""
    return any(word in mysql_type(column) for word in ("binary", "blob"))


def _text_type(column: model.Column) -> int:
    if column.data_type in _TEXT_TYPES or column.data_type.endswith("blob"):
        return _CLOB
    return _CHAR if column.data_type in ("char", "binary") else _VARCHAR


def mysql_type(column: model.Column) -> str:
    """Return the type as the statement spells it, in lower case.

    ``dec(10,2) unsigned``, ``bool``, ``enum('a','b')``.
    """
    if column.labels:
        quoted = column.debezium.enum_values if column.debezium is not None else ()
        labels = [_ESCAPED.sub(_unescaped, label) for label in quoted] or [f"'{label}'" for label in column.labels]
        return f"{column.data_type}({','.join(labels)})"
    written = column.column_type if column.written is None else column.written
    precise = _FLOAT.fullmatch(written)
    if precise and int(precise[1]) > _FLOAT_DIGITS:
        return "double" + written[len("float") :]
    return written


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "'": "''"}


def _unescaped(found: re.Match[str]) -> str:
    return _CONTROLS.get(found[1], found[1])


_FLOAT = re.compile(r"float\((\d+)\).*")
_FLOAT_DIGITS = 24


def _decoding(column: model.Column, kind: Kind, mapped: MappedColumn) -> ColumnDecoding:
    decode: charset.Decoder | None = None
    if kind == "text" and column.charset is not None and column.charset not in _UTF8:
        decode = charset.charset_decoder(column.charset)
    count = len(column.labels)
    return ColumnDecoding(
        kind,
        unsigned=column.unsigned if mapped.unsigned is None else mapped.unsigned,
        text_decoder=decode,
        labels=[str(bit + 1 if kind == "enum" else 1 << bit) for bit in range(count)],
        pad=16 if column.data_type == "inet6" else 0,
        json_text=_json_text if kind == "json" else None,
    )


def _latin1(stored: bytes) -> str:
    return stored.decode("latin-1")


_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in (*range(32), *range(0x7F, 0xA1))},
    **{ord(char): f"\\{letter}" for char, letter in zip('"\n\r\\\t', '"nr\\t', strict=True)},
}


def _json_string(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _json_temporal(kind: int, packed: int) -> str:
    """Show a DATE with a time of day; both types have the same number format."""
    return values.temporal_text(values.DATETIME_TYPE if kind == values.DATE_TYPE else kind, packed, trim=False)


JSON_STYLE: Final = binary.JsonStyle(", ", ": ", _json_string, double_text, _json_temporal, True)
"""Canal's text of JSON documents."""


def _json_text(stored: bytes) -> str | None:
    return binary.json_text(stored, JSON_STYLE) if stored else None


# --- texts -------------------------------------------------------------------------------------------------------


def _output(column: model.Column, kind: Kind, conversion: Callable[[Any], str]) -> ColumnOutput:
    converted = ColumnType(STRING, kind, conversion, str_expression)
    return ColumnOutput(column.name, converted, Fallback("null", _refuse), None, STRING, _FORM)


_FORM = JsonFormat("BASE64", replace_null_with_default=False)


def _refuse(value: object, error: Exception) -> None:
    raise error


def _conversion(column: model.Column, kind: Kind) -> Callable[[Any], str]:
    """Return the function from a column's canonical value to its text."""
    match kind:
        case "int" | "bit":
            return str
        case "year":
            return _year
        case "decimal":
            return partial(_decimal, column.scale or 0)
        case "float":
            return float_text if column.data_type == "float" else double_text
        case "date":
            return _date
        case "datetime" | "timestamp":
            return partial(_moment, column.fsp)
        case "time":
            return partial(_time, column.fsp)
        case "enum":
            return _enum
        case "set":
            return _set
        case "bytes" if not _spelled_as_bytes(column):
            return _text_of_bytes
        case "bytes" | "geometry":
            return _latin1
        case "vector":
            return str
        case _:
            return identity


def _selected(column: model.Column, kind: Kind) -> Callable[[Any], str]:
    """Return the function from the result of a query to the text that the same value has in the binlog."""
    match kind:
        case "enum":
            return identity  # the index is selected
        case "set":
            return partial(_bits_of_labels, column.labels)
        case "bytes" if column.data_type == "binary":
            return _without_padding
        case _:
            return _conversion(column, kind)


def _bits_of_labels(labels: Sequence[str], joined: str) -> str:
    return str(sum(1 << labels.index(label) for label in joined.split(","))) if joined else "0"


def _without_padding(stored: bytes) -> str:
    return _latin1(stored.rstrip(b"\0"))


def _text_of_bytes(stored: bytes) -> str:
    """Return a CHAR or TEXT with CHARACTER SET binary: UTF-8 as with Canal, and like a BLOB if it is not UTF-8."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return _latin1(stored)


def _year(year: int) -> str:
    return f"{year:04d}"


def _decimal(scale: int, unscaled: int) -> str:
    """Return all digits except, in some cases, the last group of the fraction.

    Canal omits that group if it is zero and has fewer than nine digits.
    """
    last = scale % 9
    if not last or unscaled % 10**last:
        return decimal_text(unscaled, scale)
    text = decimal_text(unscaled // 10**last, scale - last)
    return text if scale > last else f"{text}.0"


def _date(value: int | InvalidDate) -> str:
    return _calendar(value) if isinstance(value, InvalidDate) else DATE_TEXT_BY_DAY[value]


def _moment(digits: int, value: int | InvalidDate) -> str:
    if isinstance(value, InvalidDate):
        return f"{_calendar(value)} {time_of_day(value.micros, digits)}"
    return f"{DATE_TEXT_BY_DAY[value // MICROS_PER_DAY]} {time_of_day(value % MICROS_PER_DAY, digits)}"


def _calendar(day: InvalidDate) -> str:
    return f"{day.year:04d}-{day.month:02d}-{day.day:02d}"


def _time(digits: int, micros: int) -> str:
    sign = "-" if micros < 0 else ""
    return sign + time_of_day(abs(micros), digits)


def _enum(index: str) -> str:
    return index or "0"


def _set(bits: str) -> str:
    """Return the sum of the members' bits; the decoder joins them as it joins labels."""
    return str(sum(map(int, bits.split(",")))) if bits else "0"
