"""The compiled row path and Python give the same rows, and the same errors, for all types, options and damages."""

from __future__ import annotations

import datetime as dt
import os
import struct
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.connector.protocol import charset
from rowtide.connector.rows import layouts, messages, row_compiler, row_decoder
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import ColumnDecoding, ColumnLayout, column_layout
from rowtide.connector.rows.native import implementation
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.settings import ValueSettings
from rowtide.envelope.types import mapping
from rowtide.envelope.types.column_type import ColumnType, Fallback, identity
from tests.support.ddl.described_column import Described

pytestmark = pytest.mark.skipif(
    implementation.native is None, reason="the compiled row path was not built: run docker/setup"
)


@dataclass(frozen=True)
class Case:
    """A type of columns: its layout, its decoding, its Connect type, and stored values."""

    layout: ColumnLayout
    decoding: ColumnDecoding
    type: ColumnType
    stored: st.SearchStrategy[bytes]


def modes(**choices: str) -> ValueSettings:
    return ValueSettings(**choices)  # type: ignore[arg-type]


def integers(size: int) -> st.SearchStrategy[bytes]:
    edges = st.sampled_from([0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1])
    return (edges | st.integers(0, 2 ** (8 * size) - 1)).map(lambda n: n.to_bytes(size, "little"))


def packed(size: int, *parts: tuple[int, int]) -> st.SearchStrategy[bytes]:
    """Big-endian numbers of several parts, each with its bits and its largest value."""
    fields = st.tuples(*(st.integers(0, most) for _bits, most in parts))

    def joined(values: tuple[int, ...]) -> bytes:
        number = 0
        for value, (bits, _most) in zip(values, parts, strict=True):
            number = number << bits | value & (1 << bits) - 1
        return number.to_bytes(size, "big")

    return fields.map(joined)


def decimals(precision: int, scale: int) -> st.SearchStrategy[bytes]:
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)

    def encoded(number: int) -> bytes:
        digits = f"{abs(number):0{precision}d}"
        whole, fraction = digits[: precision - scale], digits[precision - scale :]
        lead, full = len(whole) % 9, len(fraction) // 9 * 9
        groups = [whole[:lead], *(whole[at : at + 9] for at in range(lead, len(whole), 9))]
        groups += [*(fraction[at : at + 9] for at in range(0, full, 9)), fraction[full:]]
        data = b"".join(int(group).to_bytes(sizes[len(group)], "big") for group in groups if group)
        data = bytes([data[0] ^ 0x80]) + data[1:]
        return bytes(byte ^ 0xFF for byte in data) if number < 0 else data

    most = 10**precision - 1
    return st.integers(-most, most).map(encoded) | st.sampled_from([-1, 0, 1, 127, -128, most, -most]).filter(
        lambda number: abs(number) <= most
    ).map(encoded)


def fixed(
    code: int, metadata: int, type_: ColumnType, stored: st.SearchStrategy[bytes] | None = None, **decoding: Any
) -> Case:
    layout = column_layout(code, metadata)
    noise = st.binary(min_size=layout.size, max_size=layout.size)
    return Case(layout, ColumnDecoding(type_.kind, **decoding), type_, noise if stored is None else stored | noise)


def variable(code: int, metadata: int, type_: ColumnType, stored: st.SearchStrategy[bytes], **decoding: Any) -> Case:
    return Case(column_layout(code, metadata), ColumnDecoding(type_.kind, **decoding), type_, stored)


def typed(described: Described, settings: ValueSettings | None = None, stage: Any = "stream") -> ColumnType:
    found = mapping.column_type(described, settings or ValueSettings(), stage)
    assert found is not None
    return found


LABELS = ("a", 'say "b"', "c\\d", "é,f", "\U0001f600", "")
TEXT_PIECES = st.text(max_size=30) | st.sampled_from(['"', "\\", "\n\x00\x1f\x7f", "é", "€uro", "\U0001f600", "x" * 30])
TEXTS = TEXT_PIECES.map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=20)
TIME_MODES = ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
YEAR_MONTH_DAY = (17, 10000 * 13), (5, 31)
CLOCK = (5, 24), (6, 60), (6, 60)


def cases() -> list[Case]:
    found = []
    for code, size, name, jdbc in (
        (layouts.TINY, 1, "TINYINT", -6),
        (layouts.SHORT, 2, "SMALLINT", 5),
        (layouts.INT24, 3, "MEDIUMINT", 4),
        (layouts.LONG, 4, "INT", 4),
        (layouts.LONGLONG, 8, "BIGINT", -5),
    ):
        found.append(fixed(code, 0, typed(Described(name, jdbc)), integers(size)))
        unsigned = Described(f"{name} UNSIGNED", jdbc)
        found.extend(
            fixed(code, 0, typed(unsigned, modes(bigint_unsigned_handling_mode=mode)), integers(size), unsigned=True)
            for mode in ("long", "long_exact", "precise", "string")
        )
    found.append(fixed(layouts.TINY, 0, typed(Described("TINYINT", 16, 1)), integers(1)))
    found.append(fixed(layouts.YEAR, 0, typed(Described("YEAR"))))
    for precision, scale in ((1, 0), (5, 2), (9, 9), (10, 0), (18, 4), (20, 10), (38, 6), (39, 3), (65, 30)):
        for mode in ("precise", "double", "string"):
            type_ = typed(Described("DECIMAL", 3, precision, scale), modes(decimal_handling_mode=mode))
            found.append(fixed(layouts.NEWDECIMAL, precision << 8 | scale, type_, decimals(precision, scale)))
    floats = st.floats(width=32).map(lambda x: struct.pack("<f", x))
    sizes = st.floats(2.0**-11, 2.0**21, width=32).map(lambda x: struct.pack("<f", x))
    found.append(fixed(layouts.FLOAT, 4, typed(Described("FLOAT", 6)), floats | sizes))
    found.append(fixed(layouts.FLOAT, 4, typed(Described("FLOAT", 6, 7, 2)), floats))
    doubles = st.floats() | st.floats(1e-6, 1e18) | st.floats(-1e9, 1e9) | st.integers(-(2**60), 2**60).map(float)
    stored_doubles = doubles.map(lambda x: struct.pack("<d", x))
    found.append(fixed(layouts.DOUBLE, 8, typed(Described("DOUBLE", 8)), stored_doubles))
    halves = st.sampled_from([struct.pack("<d", x) for x in (3.14159217662, -1234.56785, 1e39, 16777217.0)])
    found.append(fixed(layouts.DOUBLE, 8, typed(Described("REAL", 7)), stored_doubles | halves))
    found.extend(fixed(layouts.BIT, bits, typed(Described("BIT", -7, bits))) for bits in (1, 5, 8, 12, 64))
    found.append(fixed(layouts.BIT, 12, typed(Described("BIT", -7, 5))))
    for mode in TIME_MODES:
        for adjust in (True, False):
            chosen = ValueSettings(time_precision_mode=mode, enable_time_adjuster=adjust)  # type: ignore[arg-type]
            dates = st.integers(0, 16).flatmap(
                lambda month: st.tuples(st.integers(0, 10000), st.just(month % 16), st.integers(0, 31))
            )
            stored = dates.map(lambda d: (d[0] << 9 | d[1] << 5 | d[2]).to_bytes(3, "little"))
            found.append(fixed(layouts.DATE, 0, typed(Described("DATE", 91), chosen), stored))
            for digits in (0, 1, 3, 6):
                size = (digits + 1) // 2
                part = (8 * size, (0, 99, 9999, 999999)[size])
                moments = packed(5 + size, (1, 1), *YEAR_MONTH_DAY, *CLOCK, part)
                type_ = typed(Described("DATETIME", 93, digits), chosen)
                found.append(fixed(layouts.DATETIME2, digits, type_, moments))
                type_ = typed(Described("TIMESTAMP", 2014, digits), chosen)
                found.append(fixed(layouts.TIMESTAMP2, digits, type_, packed(4 + size, (32, 2**32 - 1), part)))
                type_ = typed(Described("TIME", 92, digits), chosen)
                hours = [packed(3 + size, (1, 1), (11, most), (6, 59), (6, 59), part) for most in (24, 838)]
                found.append(fixed(layouts.TIME2, digits, type_, hours[0] | hours[1]))
    for code in (layouts.OLD_TIMESTAMP, layouts.OLD_DATETIME, layouts.OLD_TIME):
        name, jdbc = {7: ("TIMESTAMP", 2014), 12: ("DATETIME", 93), 11: ("TIME", 92)}[code]
        found.append(fixed(code, 0, typed(Described(name, jdbc, 0))))
    quoted = tuple("'" + label.replace("'", "''").replace("\\", "\\\\") + "'" for label in LABELS)
    exact = typed(Described("ENUM", enum_values=quoted), ValueSettings(exact=True))
    found.append(fixed(layouts.ENUM, 1, exact, st.integers(0, 7).map(lambda n: n.to_bytes(1, "little")), labels=LABELS))
    for name, code, size in (("ENUM", layouts.ENUM, 1), ("ENUM", layouts.ENUM, 2), ("SET", layouts.SET, 1)):
        type_ = typed(Described(name, enum_values=quoted))
        stored = st.integers(0, 7).map(lambda n, size=size: n.to_bytes(size, "little"))
        found.append(fixed(code, size, type_, stored, labels=LABELS))
    found.append(fixed(layouts.SET, 8, typed(Described("SET", enum_values=quoted)), labels=LABELS))
    for metadata, code in ((200, layouts.VARCHAR), (1200, layouts.VARCHAR), (1, layouts.BLOB), (4, layouts.BLOB)):
        text = typed(Described("VARCHAR", 12))
        found.append(variable(code, metadata, text, TEXTS))
        found.extend(
            variable(code, metadata, text, TEXTS, text_decoder=charset.charset_decoder(name))
            for name in ("latin1", "swe7", "cp1256", "gbk", "utf16", "ucs2", "keybcs2")
        )
        for mode in ("bytes", "base64", "base64-url-safe", "hex"):
            type_ = typed(Described("VARBINARY", -3), modes(binary_handling_mode=mode))
            found.append(variable(code, metadata, type_, st.binary(max_size=40)))
            found.append(variable(code, metadata, type_, st.binary(max_size=9), pad=10))
    utf8 = charset.charset_decoder("utf8mb4")
    json_text = {"json_text": lambda data: utf8(data) if data else None}
    found.append(variable(layouts.BLOB, 4, typed(Described("JSON")), TEXTS | st.just(b""), **json_text))
    found.append(variable(layouts.COMPRESSED_VARCHAR, 200, typed(Described("VARCHAR", 12)), st.binary(max_size=6)))
    found.append(variable(layouts.GEOMETRY, 4, typed(Described("POINT")), st.binary(max_size=30)))
    return found


CASES = cases()


def refuse(value: object, error: Exception) -> None:
    raise ValueError(f"{value!r} cannot be converted") from error


def accept(value: object, error: Exception) -> None:
    """Write the fallback instead."""


def masked(value: Any) -> Any:
    return "*" if isinstance(value, str) else value


@st.composite
def table(draw: st.DrawFn) -> tuple[list[Column], list[Case], list[int]]:
    """Columns, what they are made of, and the indexes of the key."""
    chosen = draw(st.lists(st.sampled_from(CASES), min_size=1, max_size=12))
    columns = []
    for number, case in enumerate(chosen):
        fallback = Fallback(draw(st.sampled_from(["null", "0", '"é"'])), draw(st.sampled_from([refuse, accept])))
        form = JsonFormat("NUMERIC") if draw(st.integers(0, 9)) == 0 else JsonFormat()
        change = masked if case.type.kind == "text" and draw(st.integers(0, 4)) == 0 else None
        name = draw(st.sampled_from(["c", "é", 'q"', "\\"])) + str(number)
        value = draw(st.sampled_from([None, None, 0])) if change is None else None
        schema = case.type.schema.with_optional(True)
        output = ColumnOutput(name, case.type, fallback, value, schema, form, draw(st.integers(0, 5)) > 0, change)
        if draw(st.integers(0, 9)) == 0:
            output = replace(output, key=replace(output, form=JsonFormat("NUMERIC"), change=None))
        published = draw(st.integers(0, 7)) > 0
        nullable = draw(st.booleans())
        columns.append(
            Column(case.layout, case.decoding, nullable, output if published else None, '"absent"', "absent")
        )
    keys = draw(st.lists(st.sampled_from(range(len(columns))), unique=True, max_size=3))
    return columns, chosen, keys


def image(draw: st.DrawFn, columns: list[Column], chosen: list[Case], present: list[bool]) -> bytes:
    nulls, bit, data = 0, 0, b""
    for column, case, held in zip(columns, chosen, present, strict=True):
        if not held:
            continue
        if draw(st.integers(0, 5)) == 0:
            nulls |= 1 << bit
        if not (column.nullable and nulls >> bit & 1):
            stored = draw(case.stored)
            if not column.layout.fixed:
                stored = stored[: 256**column.layout.size - 1]
                stored = len(stored).to_bytes(column.layout.size, "little") + stored
            data += stored
        bit += 1
    return nulls.to_bytes((sum(present) + 7) // 8, "little") + data


@st.composite
def event(draw: st.DrawFn) -> tuple[list[Column], list[int], list[list[bool]], bytes, int, int]:
    """A table with the images of an event, which may be damaged."""
    columns, chosen, keys = draw(table())
    every = st.lists(st.integers(0, 3).map(bool), min_size=len(columns), max_size=len(columns))
    present = [draw(every) for _ in range(draw(st.sampled_from([1, 1, 2])))]
    images = [image(draw, columns, chosen, held) for _ in range(draw(st.integers(1, 3))) for held in present]
    data = b"".join(images)
    damage = draw(st.integers(0, 5))
    if damage == 0:
        data = data[: draw(st.integers(0, len(data)))]
    elif damage == 1:
        data += draw(st.binary(min_size=1, max_size=4))
    head, tail = b"head", draw(st.sampled_from([b"", b"\x00\x01\x02\x03"]))
    return columns, keys, present, head + data + tail, len(head), len(head) + len(data)


def outcome(rows: Any, *arguments: Any) -> tuple[str, Any]:
    """What a function returns or raises."""
    try:
        return "rows", rows(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever Python raises
        return type(error).__name__, str(error)


def same(found: Any, expected: Any) -> bool:
    """Equal with the same types; not a number equals itself."""
    return repr(found) == repr(expected)


@given(event(), st.booleans())
def test_texts_are_the_same(made: tuple[Any, ...], carry: bool) -> None:
    columns, keys, present, data, start, end = made
    options = {"key_constants": [("shard", '"s"')] if carry else [], "carry": carry}
    expected = outcome(row_compiler.text_rows(columns, keys, *present, **options), data, start, end)
    assert outcome(row_decoder.text_rows(columns, keys, *present, **options), data, start, end) == expected


@given(event())
def test_values_are_the_same(made: tuple[Any, ...]) -> None:
    columns, keys, present, data, start, end = made
    for name, arguments in (("key_value_rows", (keys, *present)), ("value_rows", present)):
        expected = outcome(getattr(row_compiler, name)(columns, *arguments), data, start, end)
        found = outcome(getattr(row_decoder, name)(columns, *arguments), data, start, end)
        assert same(found, expected)


def plain(case: Case, name: str = "c") -> Column:
    kept = replace(case.type, convert=identity)
    output = ColumnOutput(name, kept, Fallback("null", refuse), None, case.type.schema, JsonFormat())
    return Column(case.layout, case.decoding, False, output)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type.kind}-{case.layout.type}-{case.layout.precision}")
@settings(max_examples=10)
@given(data=st.data())
def test_each_type_alone(case: Case, data: st.DataObject) -> None:
    column = plain(case)
    made = b""
    for stored in data.draw(st.lists(case.stored, min_size=1, max_size=20)):
        kept = stored if case.layout.fixed else stored[: 256**case.layout.size - 1]
        length = b"" if case.layout.fixed else len(kept).to_bytes(case.layout.size, "little")
        made += b"\x00" + length + kept
    for name, keys in (("text_rows", [[0]]), ("key_value_rows", [[0]]), ("value_rows", [])):
        expected = outcome(getattr(row_compiler, name)([column], *keys, [True]), made, 0, len(made))
        assert same(outcome(getattr(row_decoder, name)([column], *keys, [True]), made, 0, len(made)), expected)


def test_common_values_need_no_python() -> None:
    """Otherwise the compiled path would be correct, and slow."""

    def never(_stored: bytes) -> str:
        raise AssertionError("a common value was converted in Python")

    moment = int(dt.datetime(2024, 2, 29, 23, 59, 58, tzinfo=dt.UTC).timestamp())
    packed_date = ((2024 * 13 + 2) << 5 | 29) << 17 | 23 << 12 | 59 << 6 | 58 | 1 << 39
    values = {
        layouts.LONG: b"\x07\0\0\0", layouts.DOUBLE: struct.pack("<d", 1.25), layouts.FLOAT: struct.pack("<f", 0.1),
        layouts.DATE: (2024 << 9 | 2 << 5 | 29).to_bytes(3, "little"), layouts.BIT: b"\x01", layouts.YEAR: b"\x7c",
    }  # fmt: skip
    assert implementation.native is not None
    for case in CASES:
        code = case.layout.type
        data = values.get(code)
        if code == layouts.DATETIME2 and case.layout.precision == 0:
            data = packed_date.to_bytes(5, "big")
        if code == layouts.TIMESTAMP2 and case.layout.precision == 0:
            data = moment.to_bytes(4, "big")
        if data is None or len(data) != case.layout.size:
            continue
        described = row_decoder.text_descriptions([plain(case)], frozenset())[0]._replace(python=never)
        rows = implementation.native.RowDecoder((described,), (b"\x01",), (), "texts")
        assert rows.images(b"\0" + data, 0, 1 + len(data)) is not None, case


@given(
    st.lists(st.tuples(st.text(), st.text()), max_size=5),
    st.binary(max_size=9),
    st.text(max_size=9),
    st.integers(0, 2**40),
)
def test_messages_are_the_same(rows: list[tuple[str, str]], opening: bytes, text: str, first: int) -> None:
    for place in (0, 1):
        found = outcome(messages.message_parts, opening, rows, place, opening)
        assert found == outcome(messages.python_parts, opening, rows, place, opening)
    for before, after in ((rows, rows), (None, rows), (rows, None)):
        arguments = (opening, before, text, after, text, first, text)
        assert outcome(messages.message_values, *arguments) == outcome(messages.python_values, *arguments)


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=9), st.just([])), max_size=5)
)
def test_the_sizes_of_messages_are_the_same(made: list[tuple[bytes | None, bytes | None, list[Any]]]) -> None:
    assert messages.message_bytes(made) == messages.message_bytes(tuple(made)) == messages.python_bytes(made)


@pytest.mark.parametrize("damaged", [[(b"key", b"value")], [("key", b"value", [])], [(b"key", 1, [])], [None], None])
def test_the_size_of_anything_but_messages_is_an_error(damaged: Any) -> None:
    assert implementation.native is not None
    with pytest.raises((TypeError, ValueError)):
        implementation.native.message_bytes(damaged)


def test_an_environment_variable_forces_python() -> None:
    code = "from rowtide.connector.rows.native import implementation; print(implementation.NAME)"
    for value, name in (("1", "Python"), ("", "compiled")):
        environment = {**os.environ, "ROWTIDE_PURE_PYTHON": value}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == name


@pytest.mark.parametrize("arguments", [(b"ab", -1, 1), (b"ab", 1, 0), (b"ab", 0, 3), (bytearray(b"ab"), 0, 2)])
def test_offsets_outside_the_event_are_left_to_python(arguments: tuple[Any, ...]) -> None:
    assert implementation.native is not None
    described = row_decoder.text_descriptions([plain(CASES[0])], frozenset())
    rows = implementation.native.RowDecoder(tuple(described), (b"\x01",), (), "texts")
    assert rows.images(*arguments) is None
