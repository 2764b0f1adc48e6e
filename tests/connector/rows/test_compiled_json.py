"""Compiled code and Python give the same text for MySQL's binary JSON, and the same errors for damaged documents."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowtide.connector.protocol.json.binary import server_text, stream_text
from rowtide.connector.rows import layouts, row_compiler, row_decoder
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import ColumnDecoding, column_layout
from rowtide.connector.rows.native import implementation
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.settings import ValueSettings
from rowtide.envelope.types import mapping
from rowtide.envelope.types.column_type import Fallback
from tests.support.ddl.described_column import Described
from tests.support.mysql.json_documents import encode

pytestmark = pytest.mark.skipif(
    implementation.native is None, reason="the compiled row path was not built: run docker/setup"
)
TEXTS = st.text(max_size=30) | st.sampled_from(['"', "\\", "\n\x00\x1f\x7f", "é", "€uro", "\U0001f600", "x" * 200])


def temporal(made: tuple[int, int, int, int, int, int, bool]) -> bytes:
    """The server's packed number of a DATE, TIME, DATETIME or TIMESTAMP."""
    months, day, hour, minute, second, micros, negative = made
    packed = ((months << 5 | day) << 17 | hour << 12 | minute << 6 | second) << 24 | micros
    return struct.pack("<q", -packed if negative else packed)


def decimal(made: tuple[int, int, bool]) -> bytes:
    """A DECIMAL(5, 2) after its precision and scale."""
    whole, hundredths, negative = made
    raw = (whole << 8 | hundredths | 0x800000).to_bytes(3, "big")
    return b"\x05\x02" + (bytes(byte ^ 0xFF for byte in raw) if negative else raw)


MICROS = st.sampled_from([0, 1, 500_000, 999_999, 1_000_000])
MOMENTS = st.tuples(*(st.integers(0, n) for n in (129_999, 31, 31, 63, 63)), MICROS, st.booleans())
OPAQUE = st.one_of(
    st.tuples(
        st.sampled_from([0, 246]), st.tuples(st.integers(0, 1001), st.integers(0, 100), st.booleans()).map(decimal)
    ),
    st.tuples(st.sampled_from([0, 246]), st.binary(max_size=30)),
    st.tuples(st.sampled_from([7, 10, 11, 12, 17, 18, 19]), MOMENTS.map(temporal) | st.binary(max_size=9)),
    st.tuples(st.sampled_from([15, 252, 255]), st.binary(max_size=200)),
)
SIXTEEN_DIGITS = st.tuples(st.integers(0, 10**17), st.integers(8, 21)).map(lambda made: made[0] / 10 ** made[1])
BINARY_FRACTIONS = st.tuples(st.integers(0, 2**53), st.integers(28, 64)).map(lambda made: made[0] / 2 ** made[1])
NUMBERS = st.one_of(
    st.floats(), SIXTEEN_DIGITS, BINARY_FRACTIONS, st.integers(-(2**63), 2**64 - 1), st.integers(-300, 300)
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | OPAQUE,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=15,
)
DOCUMENTS = st.tuples(VALUES, st.booleans()).map(lambda made: encode(made[0], large=made[1]))


def json_column(text: Callable[[bytes], str | None]) -> Column:
    type_ = mapping.column_type(Described("JSON"), ValueSettings(), "stream")
    assert type_ is not None
    output = ColumnOutput("c", type_, Fallback("null", refuse), None, type_.schema, JsonFormat())
    return Column(column_layout(layouts.JSON, 4), ColumnDecoding("json", json_text=text), nullable=False, output=output)


def refuse(value: object, error: Exception) -> None:
    raise ValueError(f"{value!r} cannot be converted") from error


def images(*stored: bytes) -> bytes:
    return b"".join(b"\0" + len(one).to_bytes(4, "little") + one for one in stored)


def outcome(rows: Callable[..., Any], data: bytes) -> tuple[str, Any]:
    """What a function returns or raises."""
    try:
        return "rows", rows(data, 0, len(data))
    except Exception as error:  # noqa: BLE001 - whatever Python raises
        return type(error).__name__, str(error)


COLUMNS = json_column(stream_text), json_column(server_text)
CONVERTED = [
    replace(column, output=replace(column.output, type=replace(column.output.type, convert=lambda text: [text])))
    for column in COLUMNS
]
"""Columns whose values are objects that Python makes of the text."""


def row_functions(module: ModuleType) -> tuple[Callable[..., Any], ...]:
    values = [module.key_value_rows([column], [0], [True]) for column in (*COLUMNS, *CONVERTED)]
    return *(module.text_rows([column], [0], [True]) for column in COLUMNS), *values


PYTHON, COMPILED = row_functions(row_compiler), row_functions(row_decoder)


def assert_same(data: bytes) -> None:
    for compiled, python in zip(COMPILED, PYTHON, strict=True):
        assert outcome(compiled, data) == outcome(python, data)


@settings(max_examples=200)
@given(st.lists(DOCUMENTS | st.just(b""), min_size=1, max_size=3))
@example([encode(8388608.0009765625, large=False)])  # halfway between two numbers of sixteen digits
@example([encode([1e15, 1e16, 123456789012345.6, 1e-14, 1e-15, -0.0, 5e-324, 1.7976931348623157e308], large=False)])
@example([encode((246, b"\x05\x02\x7f\xff\xff"), large=False)])  # a negative zero
def test_texts_of_documents_are_the_same(stored: list[bytes]) -> None:
    assert_same(images(*stored))


@settings(max_examples=200)
@given(DOCUMENTS, st.integers(0, 2**16), st.binary(max_size=4), st.integers(0, 4))
def test_damaged_documents_have_the_same_outcome(whole: bytes, at: int, put: bytes, dropped: int) -> None:
    at %= len(whole)
    assert_same(images(whole[:at] + put + whole[at + dropped :]))


def nested(levels: int) -> bytes:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return encode(value, large=True)


@pytest.mark.parametrize("levels", [1, 99, 100, 101, 250])
def test_the_depth_of_compiled_code_is_bounded(levels: int) -> None:
    assert_same(images(nested(levels)))


def test_a_document_that_contains_itself_ends() -> None:
    """An array of two elements, which are the array itself."""
    array = b"\x02\0\x0a\0" + b"\x02\0\0" * 2
    assert_same(images(b"\x02" + array))
    assert outcome(COMPILED[0], images(b"\x02" + array))[0] == "RemoteProtocolError"


@pytest.mark.parametrize("column", COLUMNS)
def test_common_documents_need_no_python(column: Column) -> None:
    """Otherwise the compiled path would be correct, and slow."""

    def never(_stored: bytes) -> str:
        raise AssertionError("a common document was converted in Python")

    moment = temporal((2024 * 13 + 2, 29, 23, 59, 58, 250_000, False))
    document = {
        "number": 0.1, "large": 1e300, "small": -1e-5, "text": 'é"\n\U0001f600', "list": [1, -70_000, 2**63, None],
        "amount": (246, decimal((999, 99, True))), "at": (12, moment), "object": {"": {}},
    }  # fmt: skip
    assert implementation.native is not None
    described = row_decoder.text_descriptions([column], frozenset())[0]._replace(python=never)
    decoder = implementation.native.RowDecoder((described,), (b"\x01",), (), "texts")
    for large in (False, True):
        data = images(encode(document, large=large))
        assert decoder.images(data, 0, len(data)) is not None
