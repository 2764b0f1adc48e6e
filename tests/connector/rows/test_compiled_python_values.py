"""Compiled code and Python make the same Python values of dates and times, and the same errors."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.connector.records.codecs.python_values import python_output
from rowtide.connector.rows import layouts, row_compiler, row_decoder
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import ColumnDecoding, column_layout
from rowtide.connector.rows.native import implementation
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.schema import STRING
from rowtide.envelope.table import RecordColumn
from rowtide.envelope.types.column_type import ColumnType, Fallback, Kind, identity, str_expression

pytestmark = pytest.mark.skipif(
    implementation.native is None, reason="the compiled row path was not built: run docker/setup"
)
TYPES: list[tuple[Kind, int, int]] = [
    ("date", layouts.DATE, 0),
    *(("datetime", layouts.DATETIME2, digits) for digits in (0, 2, 3, 6)),
    *(("timestamp", layouts.TIMESTAMP2, digits) for digits in (0, 2, 3, 6)),
    *(("time", layouts.TIME2, digits) for digits in (0, 2, 3, 6)),
]


def refuse(value: object, error: Exception) -> None:
    raise ValueError(f"{value!r} cannot be converted") from error


def column(kind: Kind, code: int, digits: int) -> Column:
    """A NOT NULL column whose values become Python's."""
    type_ = ColumnType(STRING, kind, identity, str_expression)
    structure = SimpleNamespace(fsp=digits, data_type=kind, scale=None, length=None)
    record = cast("RecordColumn", SimpleNamespace(type=type_, column=structure, mapper=None))
    output = python_output(ColumnOutput("c", type_, Fallback("null", refuse), None, STRING, JsonFormat()), record)
    return Column(column_layout(code, digits), ColumnDecoding(kind), nullable=False, output=output)


def stored(code: int, digits: int) -> st.SearchStrategy[bytes]:
    """Values that exist in the calendar, and any bytes."""
    size = column_layout(code, digits).size
    noise = st.binary(min_size=size, max_size=size)
    base = {layouts.DATETIME2: 5, layouts.TIME2: 3}.get(code, 4)
    part = st.integers(0, (0, 99, 9999, 999_999)[size - base] if code != layouts.DATE else 0)
    if code == layouts.DATE:
        date = st.tuples(st.integers(1, 9999), st.integers(1, 12), st.integers(1, 28))
        return noise | date.map(lambda d: (d[0] << 9 | d[1] << 5 | d[2]).to_bytes(3, "little"))
    if code == layouts.DATETIME2:
        parts = st.tuples(*(st.integers(*span) for span in ((1, 9999), (1, 12), (1, 28), (0, 23), (0, 59), (0, 59))))
        number = parts.map(
            lambda p: (((p[0] * 13 + p[1]) << 5 | p[2]) << 17 | p[3] << 12 | p[4] << 6 | p[5]) + (1 << 39)
        )
    elif code == layouts.TIME2:
        parts = st.tuples(*(st.integers(*span) for span in ((-838, 838), (0, 59), (0, 59))))
        number = parts.map(lambda p: (p[0] << 12 | p[1] << 6 | p[2]) + (1 << 23))
    else:
        number = st.integers(0, 2**32 - 1)
    bits = 8 * (size - base)
    return noise | st.tuples(number, part).map(lambda made: (made[0] << bits | made[1]).to_bytes(size, "big"))


def outcome(rows: Callable[..., Any], data: bytes) -> tuple[str, Any]:
    """What a function returns or raises."""
    try:
        return "rows", rows(data, 0, len(data))
    except Exception as error:  # noqa: BLE001 - whatever Python raises
        return type(error).__name__, str(error)


@pytest.mark.parametrize(("kind", "code", "digits"), TYPES)
@settings(max_examples=30)
@given(data=st.data())
def test_values_are_the_same(kind: Kind, code: int, digits: int, data: st.DataObject) -> None:
    made = column(kind, code, digits)
    images = b"".join(b"\0" + one for one in data.draw(st.lists(stored(code, digits), min_size=1, max_size=8)))
    expected = outcome(row_compiler.key_value_rows([made], [0], [True]), images)
    found = outcome(row_decoder.key_value_rows([made], [0], [True]), images)
    assert repr(found) == repr(expected)


@pytest.mark.parametrize(("kind", "code", "digits"), TYPES)
def test_common_values_need_no_python(kind: Kind, code: int, digits: int) -> None:
    """Otherwise the compiled path would be correct, and slow."""

    def never(_stored: bytes) -> Any:
        raise AssertionError("a common value was converted in Python")

    assert implementation.native is not None
    described = row_decoder.value_descriptions([column(kind, code, digits)])[0]._replace(python=never)
    decoder = implementation.native.RowDecoder((described,), (b"\x01",), ((b"", 0),), "key values")
    layout = column_layout(code, digits)
    packed = {layouts.DATE: (2024 << 9 | 2 << 5 | 29).to_bytes(3, "little"), layouts.TIME2: b"\x80\x10\x41"}
    moment = (((2024 * 13 + 2) << 5 | 29) << 17 | 23 << 12 | 59 << 6 | 58 | 1 << 39).to_bytes(5, "big")
    data = b"\0" + {**packed, layouts.DATETIME2: moment, layouts.TIMESTAMP2: b"\x65\0\0\0"}[code].ljust(
        layout.size, b"\0"
    )
    assert decoder.images(data, 0, len(data)) is not None
