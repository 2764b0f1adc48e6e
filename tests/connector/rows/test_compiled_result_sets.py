"""Result sets: the compiled row path and Python give the same rows, and the same errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.rows import text_protocol_decoder, text_protocol_rows
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.native import implementation
from rowtide.connector.rows.text_protocol_rows import ResultColumn
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.settings import ValueSettings
from rowtide.envelope.types import mapping
from rowtide.envelope.types.column_type import ColumnType, Fallback
from tests.support.ddl.described_column import Described

pytestmark = pytest.mark.skipif(
    implementation.native is None, reason="the compiled row path was not built: run docker/setup"
)


LABELS = ("'a'", "'b'")


@dataclass(frozen=True)
class Structure:
    """What the row compiler reads of a column's structure."""

    name: str
    data_type: str
    scale: int
    fsp: int
    zerofill: bool


def texts(pattern: str) -> st.SearchStrategy[bytes]:
    return st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii")).map(str.encode)


NUMBERS = st.integers(-(2**64), 2**64).map(lambda n: str(n).encode()) | texts("-?[0-9]{1,6}") | st.just(b"0")
DATES = texts("(1970|2024|0000|0099|9999)-(0[0-9]|1[0-3])-([0-2][0-9]|3[0-2])") | st.dates().map(
    lambda d: str(d).encode()
)
CLOCKS = texts("-?[0-9]{2,3}:[0-6][0-9]:[0-6][0-9]([.][0-9]{1,6})?")
STRINGS = st.text(max_size=9).map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=9)
LONG = st.integers(240, 300).map(lambda size: b"x" * size) | st.just("é".encode() * 40_000)
MODES = ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")


@dataclass(frozen=True)
class Case:
    """A type of columns, and the server's texts of its values."""

    type: ColumnType
    structure: Structure
    texts: st.SearchStrategy[bytes]


def case(described: Described, values: st.SearchStrategy[bytes], fsp: int = 0, **modes: Any) -> Case:
    type_ = mapping.column_type(described, ValueSettings(**modes), "snapshot")
    assert type_ is not None
    data_type = described.type_name.split()[0].lower()
    structure = Structure("c", data_type, described.scale or 0, fsp, "ZEROFILL" in described.type_name)
    return Case(type_, structure, values)


def cases() -> list[Case]:
    found = [
        case(Described("INT", 4), NUMBERS),
        case(Described("INT UNSIGNED ZEROFILL", 4), NUMBERS),
        case(Described("BIGINT UNSIGNED", -5), NUMBERS),
        *(
            case(Described("BIGINT UNSIGNED", -5), NUMBERS, bigint_unsigned_handling_mode=mode)
            for mode in ("long_exact", "precise", "string")
        ),
        case(Described("TINYINT", 16, 1), NUMBERS),
        case(Described("YEAR"), texts("[0-9]{4}")),
        case(Described("FLOAT", 6), texts("-?[0-9]{1,5}[.][0-9]{1,4}(e[-+]?[0-9]{1,2})?") | NUMBERS),
        case(Described("DOUBLE", 8), texts("-?[0-9]{1,9}([.][0-9]{1,9})?(e[-+]?[0-9]{1,3})?") | NUMBERS),
        case(Described("BIT", -7, 1), st.binary(max_size=1)),
        case(Described("BIT", -7, 12), st.binary(max_size=9)),
        case(Described("VARCHAR", 12), STRINGS | LONG),
        case(Described("ENUM", enum_values=LABELS), STRINGS),
        case(Described("SET", enum_values=LABELS), STRINGS),
        case(Described("JSON"), STRINGS | LONG),
        case(Described("VARBINARY", -3), STRINGS | LONG),
        case(Described("VARBINARY", -3), STRINGS, binary_handling_mode="hex"),
        case(Described("UUID"), texts("[0-9a-f]{8}")),
        case(Described("POINT"), st.binary(max_size=30)),
    ]
    for mode in ("precise", "double", "string"):
        for precision, scale in ((10, 0), (12, 2), (38, 10), (65, 30)):
            digits = texts(f"-?[0-9]{{1,{precision - scale}}}" + (f"[.][0-9]{{{scale}}}" if scale else ""))
            described = Described("DECIMAL", 3, precision, scale)
            found.append(case(described, digits | NUMBERS, decimal_handling_mode=mode))
    for mode in MODES:
        modes = {"time_precision_mode": mode, "enable_time_adjuster": mode == "connect"}
        found.append(case(Described("DATE", 91), DATES, **modes))
        for fsp in (0, 3, 6):
            clock = "([01][0-9]|2[0-4]):[0-6][0-9]:[0-6][0-9]" + (f"[.][0-9]{{{fsp}}}" if fsp else "")
            moments = st.tuples(DATES, texts(clock)).map(b" ".join)
            found.append(case(Described("DATETIME", 93, fsp), moments, fsp, **modes))
            found.append(case(Described("TIMESTAMP", 2014, fsp), moments, fsp, **modes))
            found.append(case(Described("TIME", 92, fsp), CLOCKS, fsp, **modes))
    return found


CASES = cases()


def refuse(value: object, error: Exception) -> None:
    raise ValueError(f"{value!r} cannot be converted") from error


def column(made_of: Case, name: str, *, masked: bool = False) -> ResultColumn:
    schema = made_of.type.schema.with_optional(True)
    change = (lambda value: "*" if isinstance(value, str) else value) if masked else None
    output = ColumnOutput(name, made_of.type, Fallback("null", refuse), None, schema, JsonFormat(), True, change)
    return ResultColumn(cast("Any", replace(made_of.structure, name=name)), output, '"absent"')


def encoded(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    size = len(value)
    if size < 251:
        return bytes([size]) + value
    return (b"\xfc" + size.to_bytes(2, "little") if size < 1 << 16 else b"\xfd" + size.to_bytes(3, "little")) + value


@st.composite
def result_set(draw: st.DrawFn) -> tuple[list[ResultColumn], list[int], bytes]:
    chosen = draw(st.lists(st.sampled_from(CASES), min_size=1, max_size=8))
    columns = [column(one, f"c{at}", masked=draw(st.integers(0, 6)) == 0) for at, one in enumerate(chosen)]
    keys = draw(st.lists(st.sampled_from(range(len(columns))), unique=True, max_size=2))
    buffer = b""
    for number in range(draw(st.integers(1, 3))):
        values = [None if draw(st.integers(0, 7)) == 0 else draw(one.texts) for one in chosen]
        payload = b"".join(map(encoded, values))
        if draw(st.integers(0, 9)) == 0:
            payload = draw(st.sampled_from([payload[:-1], payload + b"\x00", b"\xfe\x00\x00\x02\x00", b"\xff"]))
        buffer += len(payload).to_bytes(3, "little") + bytes([number]) + payload
    if draw(st.integers(0, 4)) == 0:
        buffer = buffer[: draw(st.integers(0, len(buffer)))]
    return columns, keys, buffer


def outcome(rows: Any, buffer: bytes) -> tuple[str, Any]:
    try:
        return "rows", rows(buffer)
    except Exception as error:  # noqa: BLE001 - whatever Python raises
        return type(error).__name__, str(error)


@given(result_set(), st.booleans())
def test_rows_are_the_same(made: tuple[list[ResultColumn], list[int], bytes], verify: bool) -> None:
    columns, keys, buffer = made
    names = [column.column.name.upper() for column in columns]
    constants = [("shard", '"s"')] if verify else []
    expected = outcome(
        text_protocol_rows.result_text_reader(columns, keys, names, constants, verify=verify).rows, buffer
    )
    assert (
        outcome(text_protocol_decoder.result_text_reader(columns, keys, names, constants, verify=verify).rows, buffer)
        == expected
    )


def test_other_columns_than_the_record_has_are_left_to_python() -> None:
    columns = [column(CASES[0], "a"), column(CASES[0], "b")]
    for names in (["b", "a"], ["a", "x", "b"], ["a"]):
        payload = b"".join(encoded(str(place).encode()) for place, _ in enumerate(names))
        buffer = len(payload).to_bytes(3, "little") + b"\0" + payload
        expected = text_protocol_rows.result_text_reader(columns, [0], names).rows(buffer)
        assert text_protocol_decoder.result_text_reader(columns, [0], names).rows(buffer) == expected


def test_a_negative_number_of_an_unsigned_column_stays_as_it_is() -> None:
    """A query of ``snapshot.select.statement.overrides`` can return one; only numbers from 2**63 on are wrapped."""
    columns = [column(case(Described("BIGINT UNSIGNED", -5), NUMBERS), "c")]
    for text, written in ((b"-1", "-1"), (b"1", "1"), (str(2**63).encode(), str(-(2**63)))):
        buffer = len(encoded(text)).to_bytes(3, "little") + b"\x00" + encoded(text)
        rows, _ = text_protocol_decoder.result_text_reader(columns, [], ["c"], verify=True).rows(buffer)
        assert rows == [("{}", f'{{"c":{written}}}')]
