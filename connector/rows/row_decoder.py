"""Selects the decoder of row images: compiled code if available; otherwise, and for events that it refuses, Python.

Compiled code refuses a whole event if bytes are missing or a conversion fails. The event is then decoded again in
Python, whose result or error is used.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Literal

from rowtide.connector.rows import row_compiler
from rowtide.connector.rows.native.description import Description, log_python_columns
from rowtide.connector.rows.native.image_columns import text_descriptions, value_descriptions
from rowtide.connector.rows.native.implementation import native
from rowtide.connector.rows.row_compiler import Column, KeyValueRows, TextRows, ValueRows
from rowtide.envelope.json.text import string_text

_Rows = Callable[[bytes, int, int], Any]


def text_rows(
    columns: Sequence[Column],
    key: Sequence[int],
    *present: Sequence[bool],
    key_constants: Sequence[tuple[str, str]] = (),
    carry: bool = False,
) -> TextRows:
    """Return the function that returns JSON text; the arguments are those of :func:`row_compiler.text_rows`."""
    python = partial(row_compiler.text_rows, columns, key, *present, key_constants=key_constants, carry=carry)
    if not _is_regular(present, carry=carry):
        return python()
    described = text_descriptions(columns, row_compiler.separate_keys(columns, key))
    fields: list[tuple[bytes, int]] = []
    for index in key:
        if (output := columns[index].output) is not None:
            fields.append((_before(output.field, fields), index))
    for name, text in key_constants:
        fields.append((_before(name, fields) + text.encode(), -1))
    return _compiled(described, columns, present, fields, "texts", python)


def key_value_rows(
    columns: Sequence[Column], key: Sequence[int], *present: Sequence[bool], carry: bool = False
) -> KeyValueRows:
    """Return the function for converted values; the arguments are those of :func:`row_compiler.key_value_rows`."""
    python = partial(row_compiler.key_value_rows, columns, key, *present, carry=carry)
    if not _is_regular(present, carry=carry):
        return python()
    described = value_descriptions(columns, row_compiler.separate_keys(columns, key))
    fields = [(b"", index) for index in key if columns[index].output is not None]
    return _compiled(described, columns, present, fields, "key values", python)


def value_rows(columns: Sequence[Column], *present: Sequence[bool]) -> ValueRows:
    """Return the function for the values of rows; the arguments are those of :func:`row_compiler.value_rows`."""
    python = partial(row_compiler.value_rows, columns, *present)
    if not _is_regular(present, carry=False):
        return python()
    described = value_descriptions(columns, every=True, cached=False)
    return _compiled(described, columns, present, [], "values", python)


def _is_regular(present: Sequence[Sequence[bool]], *, carry: bool) -> bool:
    """Return whether compiled code can decode such images: it has no values of an earlier image, and needs a column."""
    return native is not None and any(map(any, present)) and not (carry and len(present) > 1)


def _before(field: str, fields: Sequence[object]) -> bytes:
    return f"{',' if fields else ''}{string_text(field)}:".encode()


def _compiled(
    described: Sequence[Description],
    columns: Sequence[Column],
    present: Sequence[Sequence[bool]],
    key: Sequence[tuple[bytes, int]],
    mode: Literal["texts", "key values", "values"],
    python: Callable[[], _Rows],
) -> _Rows:
    assert native is not None
    log_python_columns([(one, column.output) for one, column in zip(described, columns, strict=True)])
    images = tuple(bytes(map(int, image)) for image in present)
    decode = native.RowDecoder(tuple(described), images, tuple(key), mode).images
    in_python = cache(python)  # compiled by the first event that needs it

    def rows(event: bytes, start: int, end: int) -> Any:
        found = decode(event, start, end)
        return in_python()(event, start, end) if found is None else found

    return rows
