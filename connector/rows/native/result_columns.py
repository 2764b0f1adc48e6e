"""Describes the columns of a result set to the compiled row path."""

from collections.abc import Sequence
from functools import partial

from rowtide.connector.rows.column_output import ColumnOutput, null_text
from rowtide.connector.rows.native.description import NO_MINIMUM, PYTHON, Description, Stored
from rowtide.connector.rows.text_cache import compile_text_cache, compile_text_function
from rowtide.connector.rows.text_protocol_rows import ResultColumn
from rowtide.connector.rows.text_protocol_values import ASCII_KINDS, CACHED_KINDS, value_source
from rowtide.envelope.json.text import string_text
from rowtide.envelope.types.column_type import Bind, Form, Kind

_STORED: dict[Kind, str] = {
    "int": "text of integer",
    "year": "text of integer",
    "decimal": "text of decimal",
    "date": "text of date",
    "datetime": "text of datetime",
    "timestamp": "text of datetime",
    "time": "text of time",
    "bit": "big endian",
    "text": "bytes",
    "enum": "bytes",
    "set": "bytes",
    "json": "bytes",
    "bytes": "bytes",
}


def result_descriptions(
    columns: Sequence[ResultColumn], separate_keys: frozenset[int], *, verify: bool
) -> list[Description]:
    """Describe the columns of a result set.

    Args:
        columns: the record's columns, which are those of the result set.
        separate_keys: indexes of columns with different text in the key.
        verify: verify that integers are integers, because the query is not rowtide's own.
    """
    found, first = [], True
    for index, column in enumerate(columns):
        found.append(_description(column, separate=index in separate_keys, first=first, verify=verify))
        first = first and not found[-1].in_row
    return found


def _description(column: ResultColumn, *, separate: bool, first: bool, verify: bool) -> Description:
    output = column.output
    stored, form = _form(column)
    return Description(
        stored,
        form.name,
        0,
        fixed=output.type.kind in ASCII_KINDS,
        nullable=True,
        published=True,
        in_row=output.in_value,
        scale=column.column.scale or 0 if output.type.kind == "decimal" else column.column.fsp,
        argument=form.argument,
        minimum=NO_MINIMUM if form.minimum is None else form.minimum,
        before=f"{'' if first else ','}{string_text(output.field)}:".encode(),
        null=null_text(output).encode(),
        absent=column.absent_text.encode(),
        python=_python(column, output, cached=not separate, verify=verify),
        key_python=_python(column, output.in_key, cached=False, verify=verify) if separate else None,
        key_null=output.in_key.fallback.text.encode(),
    )


def _form(column: ResultColumn) -> tuple[str, Form]:
    """Return the storage of values, and the form of their text."""
    output = column.output
    kind, form = output.type.kind, output.type.form
    numeric = output.schema.is_decimal and output.form.decimal_format != "BASE64"
    if form is None or form.name == "escaped label" or output.change is not None or numeric:
        return "otherwise", PYTHON
    if kind == "float":
        # FLOAT(M,D) has the schema of a double, but stores a float32
        return "text of float" if column.column.data_type == "float" else "text of double", form
    return (_STORED[kind], form) if kind in _STORED else ("otherwise", PYTHON)


def _python(column: ResultColumn, output: ColumnOutput, *, cached: bool, verify: bool) -> Stored:
    """Return the Python function of a column; a cache where the Python path has one."""
    lines = partial(_lines, column, output, verify=verify)
    if cached and output.type.kind in CACHED_KINDS:
        return compile_text_cache(lines)  # type: ignore[return-value] # compiled code looks values up in it
    return compile_text_function(lines)


def _lines(column: ResultColumn, output: ColumnOutput, bind: Bind, *, verify: bool) -> list[str]:
    decoded = ["v = v.decode('latin-1')"] if output.type.kind in ASCII_KINDS else []
    return [*decoded, *value_source(column.column, output, "v", bind, verify=verify), "v = str(v)"]
