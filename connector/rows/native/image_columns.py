"""Describes the columns of row images to the compiled row path."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rowtide.connector.protocol.charset import character_table
from rowtide.connector.protocol.json.binary import server_text, stream_text
from rowtide.connector.rows.column_output import ColumnOutput, null_text, null_value, value_expression
from rowtide.connector.rows.layouts import (
    BIT,
    COMPRESSED_BLOB,
    COMPRESSED_VARCHAR,
    DATE,
    DATETIME2,
    DOUBLE,
    ENUM,
    FLOAT,
    INTEGERS,
    NEWDATE,
    NEWDECIMAL,
    SET,
    TEXTS,
    TIME2,
    TIMESTAMP2,
    YEAR,
)
from rowtide.connector.rows.native.description import NO_MINIMUM, PYTHON, Description, Stored
from rowtide.connector.rows.native.implementation import native
from rowtide.connector.rows.row_compiler import CACHED_TYPES, Column, stored_text_lines, stored_value_lines
from rowtide.connector.rows.text_cache import compile_text_cache, compile_text_function
from rowtide.envelope.json.text import string_text
from rowtide.envelope.types.column_type import Form

_STORED = {
    YEAR: "year",
    NEWDECIMAL: "decimal",
    FLOAT: "float",
    DOUBLE: "double",
    DATE: "date",
    NEWDATE: "date",
    DATETIME2: "datetime",
    TIMESTAMP2: "timestamp",
    TIME2: "time",
    BIT: "big endian",
}
_DOCUMENTS = {stream_text: "binary json", server_text: "binary json in the server's style"}
"""The names of documents in compiled code, by the function in Python that converts them."""
_LARGEST_TABLE = 1024
"""Labels of an ENUM whose texts are prepared; those of a longer list are cached as they come."""


def text_descriptions(columns: Sequence[Column], separate_keys: frozenset[int]) -> list[Description]:
    """Describe columns whose values become JSON text; ``separate_keys`` have different text in the key."""
    found, first = [], True
    for index, column in enumerate(columns):
        separate = index in separate_keys
        found.append(_text_description(column, separate=separate, first=first))
        first = first and not found[-1].in_row
    return found


def value_descriptions(
    columns: Sequence[Column], separate_keys: frozenset[int] = frozenset(), *, every: bool = False, cached: bool = True
) -> list[Description]:
    """Describe columns whose values become Python objects.

    Args:
        columns: all columns of the table.
        separate_keys: indexes of columns with a different value in the key.
        every: whether rows also have the columns that only a key has.
        cached: cache values as texts are cached.
    """
    return [
        _value_description(column, separate=index in separate_keys, every=every, cached=cached)
        for index, column in enumerate(columns)
    ]


def _unpublished(column: Column) -> Description:
    layout = column.layout
    return Description("otherwise", PYTHON.name, layout.size, layout.fixed, column.nullable, False, False)


def _text_description(column: Column, *, separate: bool, first: bool) -> Description:
    layout, output = column.layout, column.output
    if output is None:
        return _unpublished(column)
    python = _python(column, partial(stored_text_lines, column, output), cached=not separate)
    stored, form, table = _text_form(column, output, python)
    return Description(
        stored,
        form.name,
        layout.size,
        layout.fixed,
        column.nullable,
        published=True,
        in_row=output.in_value,
        precision=layout.precision,
        scale=layout.scale,
        argument=form.argument,
        minimum=NO_MINIMUM if form.minimum is None else form.minimum,
        before=f"{'' if first else ','}{string_text(output.field)}:".encode(),
        null=null_text(output).encode(),
        absent=column.absent_text.encode(),
        python=python,
        table=table,
        key_python=_python(column, partial(stored_text_lines, column, output.in_key), cached=False)
        if separate
        else None,
        key_null=output.in_key.fallback.text.encode(),
    )


def _value_description(column: Column, *, separate: bool, every: bool, cached: bool) -> Description:
    layout, output = column.layout, column.output
    if output is None:
        return _unpublished(column)
    stored, form = _object_form(column, output)
    if stored == "otherwise" and column.decoding.json_text in _DOCUMENTS:
        text = partial(_compiled_json_text, column.decoding.json_text)
        column = replace(column, decoding=replace(column.decoding, json_text=text))
    return Description(
        stored,
        form,
        layout.size,
        layout.fixed,
        column.nullable,
        published=True,
        in_row=every or output.in_value,
        argument=column.decoding.pad,
        null=null_value(output),
        absent=column.absent_value,
        python=_python(column, partial(stored_value_lines, column, output), cached=cached and not separate),
        key_python=_python(column, partial(stored_value_lines, column, output.in_key), cached=False)
        if separate
        else None,
    )


def _compiled_json_text(in_python: Callable[[bytes], str | None], stored: bytes) -> str | None:
    """Return the same as a Python function, for values that compiled code does not convert, and damaged ones."""
    assert native is not None
    text: str | None = native.json_text(stored, in_python is server_text)
    return in_python(stored) if text is None else text


def _python(column: Column, lines: Callable[[Any], Sequence[str]], *, cached: bool) -> Stored:
    """Return the Python function of a column; a cache where the Python path has one."""
    if cached and column.layout.fixed and column.layout.type in CACHED_TYPES:
        return compile_text_cache(lines)  # type: ignore[return-value] # compiled code looks values up in it
    return compile_text_function(lines)


def _text_form(column: Column, output: ColumnOutput, python: Any) -> tuple[str, Form, tuple[bytes, ...] | None]:
    """Return the storage of values, the form of their text, and its table."""
    layout, decoding, form = column.layout, column.decoding, output.type.form
    otherwise = "otherwise", PYTHON, None
    if (
        form is None
        or output.change is not None
        or (output.schema.is_decimal and output.form.decimal_format != "BASE64")
    ):
        return otherwise
    if layout.type in INTEGERS:
        return "unsigned" if decoding.unsigned else "signed", form, None
    if layout.type in _STORED:
        return _STORED[layout.type], form, None
    if layout.type == ENUM:
        count = len(decoding.labels) + 1
        if count > _LARGEST_TABLE:
            return otherwise
        texts = (python[number.to_bytes(layout.size, "little")] if isinstance(python, dict)
                 else python(number.to_bytes(layout.size, "little")) for number in range(count))  # fmt: skip
        return "unsigned", Form("label"), tuple(text.encode() for text in texts)
    if layout.type == SET:
        return "unsigned", Form("labels"), tuple(string_text(label)[1:-1].encode() for label in decoding.labels)
    if decoding.json_text in _DOCUMENTS:
        return _DOCUMENTS[decoding.json_text], form, None
    if layout.type not in TEXTS - {COMPRESSED_BLOB, COMPRESSED_VARCHAR}:
        return otherwise
    if decoding.kind == "text":
        return _text_in_charset(column, form)
    if decoding.kind == "bytes":
        return "bytes", Form(form.name, decoding.pad), None
    return ("bytes", form, None) if decoding.kind == "json" else otherwise


def _text_in_charset(column: Column, form: Form) -> tuple[str, Form, tuple[bytes, ...] | None]:
    decode = column.decoding.text_decoder
    if decode is None:
        return "bytes", form, None
    characters = character_table(decode)
    if characters is None:
        return "otherwise", PYTHON, None
    is_ascii = characters[:128] == "".join(map(chr, range(128)))
    return "bytes", Form("mapped string", int(is_ascii)), tuple(string_text(one)[1:-1].encode() for one in characters)


def _object_form(column: Column, output: ColumnOutput) -> tuple[str, str]:
    """Return how values are stored, and the form of their objects if no function converts them."""
    layout, decoding, form = column.layout, column.decoding, output.type.object_form
    if form is not None and layout.type in _STORED and output.change is None and output.fallback_value is None:
        return _STORED[layout.type], form.name
    if value_expression(output, "v", lambda _: "") == "v":
        if layout.type in INTEGERS:
            return "unsigned" if decoding.unsigned else "signed", "int object"
        if layout.type in {FLOAT, DOUBLE}:
            return _STORED[layout.type], "float object"
        if layout.type in _STORED and layout.type != NEWDECIMAL:
            return _STORED[layout.type], "int object"
        if layout.type in TEXTS - {COMPRESSED_BLOB, COMPRESSED_VARCHAR}:
            if decoding.kind == "text" and decoding.text_decoder is None:
                return "bytes", "text object"
            if decoding.kind == "bytes":
                return "bytes", "bytes object"
        if decoding.json_text in _DOCUMENTS:
            return _DOCUMENTS[decoding.json_text], "text object"
    return "otherwise", PYTHON.name
