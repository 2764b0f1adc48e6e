"""Selects the decoder of result sets: compiled code if available; otherwise, and for buffers that it refuses, Python.

Compiled code refuses a buffer if a row is damaged or a conversion fails. The buffer is then decoded in Python, whose
result or error is used.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from rowtide.connector.rows import text_protocol_rows
from rowtide.connector.rows.native.description import log_python_columns
from rowtide.connector.rows.native.implementation import native
from rowtide.connector.rows.native.result_columns import result_descriptions
from rowtide.connector.rows.text_protocol_rows import ResultColumn, ResultReader, Rows
from rowtide.envelope.json.text import string_text


def result_text_reader(
    columns: Sequence[ResultColumn],
    key: Sequence[int],
    names: Sequence[str],
    key_constants: Sequence[tuple[str, str]] = (),
    *,
    verify: bool = False,
) -> ResultReader:
    """Return the functions for a result set; see :func:`text_protocol_rows.result_text_reader` for the arguments."""
    python = partial(text_protocol_rows.result_text_reader, columns, key, names, key_constants, verify=verify)
    # A custom query may return other columns, or the same ones in a different order.
    if native is None or [column.column.name.lower() for column in columns] != [name.lower() for name in names]:
        return python()
    separate_keys = frozenset(index for index in key if columns[index].output.differs_in_key)
    described = result_descriptions(columns, separate_keys, verify=verify)
    log_python_columns([(one, column.output) for one, column in zip(described, columns, strict=True)])
    fields = [(columns[index].output.field, b"", index) for index in key]
    fields += [(name, text.encode(), -1) for name, text in key_constants]
    before = tuple(
        (f"{',' if place else ''}{string_text(name)}:".encode() + text, index)
        for place, (name, text, index) in enumerate(fields)
    )
    decode = native.RowDecoder(tuple(described), (), before, "texts").packets
    in_python = cache(python)  # compiled when it is needed first

    def rows(buffer: bytes) -> tuple[Rows, int]:
        found = decode(buffer)
        return in_python().rows(buffer) if found is None else found

    def row(payload: bytes) -> tuple[Any, ...]:
        return in_python().row(payload)

    return ResultReader(rows, row)
