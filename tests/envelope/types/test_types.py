"""Column types: the generated source renders the same text as the Connect value, in every mode."""

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.envelope.json.java_numbers import to_float32
from rowtide.envelope.json.text import value_text
from rowtide.envelope.settings import BigintUnsignedMode, BoolMode, Stage, ValueSettings
from rowtide.envelope.types.column_type import ColumnType, Fallback
from rowtide.envelope.types.mapping import column_type
from rowtide.envelope.types.numbers import unscaled_text, wrap_long
from rowtide.envelope.types.spatial import GEOMETRIES
from rowtide.envelope.types.temporal_values import MICROS_PER_DAY, InvalidDate
from rowtide.envelope.types.text import escaped_label, labels


@dataclass(frozen=True)
class Description:
    """A column as Debezium describes it."""

    type_name: str
    jdbc_type: int
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    enum_values: tuple[str, ...] = ()
    name: str = "c"


STAGES: tuple[Stage, Stage] = ("snapshot", "stream")
BOOL_MODES: tuple[BoolMode, BoolMode] = ("boolean", "int16")
DATES = st.integers(-719162, 2932896)  # 0001-01-01 to 9999-12-31
MOMENTS = st.integers(-719162 * MICROS_PER_DAY, 2932897 * MICROS_PER_DAY - 1)
VALUES: dict[str, tuple[Description, st.SearchStrategy[Any]]] = {
    "tinyint": (Description("TINYINT", -6), st.integers(-128, 127)),
    "boolean": (Description("BOOLEAN", 16), st.integers(-128, 127)),
    "smallint unsigned": (Description("SMALLINT UNSIGNED", 5), st.integers(0, 65535)),
    "int unsigned": (Description("INT UNSIGNED ZEROFILL", 4), st.integers(0, 2**32 - 1)),
    "bigint": (Description("BIGINT", -5), st.integers(-(2**63), 2**63 - 1)),
    "bigint unsigned": (Description("BIGINT UNSIGNED", -5), st.integers(0, 2**64 - 1)),
    "decimal": (Description("DECIMAL", 3, 65, 30), st.integers(-(10**65) + 1, 10**65 - 1)),
    "float": (Description("FLOAT", 6), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "double": (Description("DOUBLE", 8), st.floats(allow_nan=False, allow_infinity=False)),
    "bit(1)": (Description("BIT", -7, 1), st.integers(0, 1)),
    "bit(33)": (Description("BIT", -7, 33), st.integers(0, 2**33 - 1)),
    "year": (Description("YEAR", 4), st.sampled_from([0, 1901, 2155])),
    "date": (Description("DATE", 91), DATES),
    "datetime(3)": (Description("DATETIME", 93, 3), MOMENTS),
    "datetime(6)": (Description("DATETIME", 93, 6), MOMENTS),
    "timestamp(6)": (Description("TIMESTAMP", 2014, 6), st.integers(0, 2**32 * 10**6)),
    "time": (Description("TIME", 92), st.integers(-3020399 * 10**6, 3020399 * 10**6)),
    "text": (Description("VARCHAR", 12, 20), st.text()),
    "binary": (Description("VARBINARY", -3, 20), st.binary()),
    "enum": (Description("ENUM", 1, 1, enum_values=("'a'", "'b,c'", "''")), st.sampled_from(["a", "b,c", ""])),
    "set": (Description("SET", 1, 1, enum_values=("'a'", "'b'")), st.sampled_from(["", "a", "a,b"])),
    "json": (Description("JSON", 1111), st.sampled_from(['{"a":1}', "[]", '"\\u0000"'])),
    "geometry": (Description("GEOMETRY", 1111), st.binary(min_size=4)),
    "point": (Description("POINT", 1111), st.binary(min_size=25, max_size=25).filter(lambda b: not _nan(b))),
    "vector": (Description("VECTOR", 1111), st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False))),
    "uuid": (Description("UUID", 1111), st.uuids().map(str)),
    "inet6": (Description("INET6", 1111), st.ip_addresses(v=6).map(str)),
}
SETTINGS = [
    ValueSettings(decimal, bigint, time, adjuster, binary, connector=connector)
    for (decimal, bigint), time, adjuster, binary, connector in itertools.product(
        [("precise", "long"), ("double", "precise"), ("string", "long_exact"), ("string", "string")],
        ["adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"],
        [True, False],
        ["bytes", "base64", "base64-url-safe", "hex"],
        ["mysql", "mariadb"],
    )
]


def _nan(data: bytes) -> bool:
    import struct

    return any(not math.isfinite(number) for number in struct.unpack_from("<dd", data, 9))


def rendered(found: ColumnType, value: Any, failures: list[Exception]) -> str:
    """Return the text that the generated source renders for a value."""
    names: dict[str, Any] = {"x": value}

    def bind(thing: object) -> str:
        name = f"_{len(names)}"
        names[name] = thing
        return name

    fallback = Fallback("FALLBACK", lambda _value, error: failures.append(error))
    return str(eval(found.expression("x", bind, fallback), names))


@given(data=st.data())
@pytest.mark.parametrize("name", VALUES)
def test_the_rendered_text_equals_that_of_the_connect_value(name: str, data: st.DataObject) -> None:
    facet, values = VALUES[name]
    settings = data.draw(st.sampled_from(SETTINGS))
    stage = data.draw(st.sampled_from(["snapshot", "stream"]))
    found = column_type(facet, settings, stage)
    assert found is not None
    value = data.draw(values)
    failures: list[Exception] = []
    text = rendered(found, value, failures)
    try:
        expected = value_text(found.schema, found.convert(value))
    except ValueError:
        assert (text, len(failures)) == ("FALLBACK", 1)
    else:
        assert (text, failures) == (expected, [])
        json.loads(text)


@pytest.mark.parametrize(
    ("mode", "written"),
    [("long", [-1, 2**63 - 1]), ("long_exact", [None, 2**63 - 1]), ("string", [str(2**64 - 1), str(2**63 - 1)])],
)
def test_the_limit_of_a_bigint_unsigned(mode: BigintUnsignedMode, written: list[object]) -> None:
    settings = ValueSettings(bigint_unsigned_handling_mode=mode)
    found = column_type(VALUES["bigint unsigned"][0], settings, "stream")
    assert found is not None
    for number, expected in zip((2**64 - 1, 2**63 - 1), written, strict=True):
        failures: list[Exception] = []
        text = rendered(found, number, failures)
        if expected is None:
            assert text == "FALLBACK"
            assert "bigint.unsigned.handling.mode=precise (a decimal) or string keeps it" in str(failures[0])
        else:
            assert (text, failures) == (json.dumps(expected), [])


@pytest.mark.parametrize("number", [-128, -1, 0, 1, 2, 101, 127])
def test_a_bool_that_is_neither_0_nor_1(number: int) -> None:
    failures: list[Exception] = []
    facet = VALUES["boolean"][0]
    boolean, int16 = (column_type(facet, ValueSettings(bool_handling_mode=mode), "stream") for mode in BOOL_MODES)
    assert boolean is not None
    assert int16 is not None
    text = rendered(boolean, number, failures)
    assert text == {0: "false", 1: "true"}.get(number, "FALLBACK")
    assert ["rowtide.bool.handling.mode=int16" in str(error) for error in failures] == [True] * (number not in (0, 1))
    assert (int16.schema.type, rendered(int16, number, [])) == ("int16", str(number))


def test_exact_values_have_the_types_of_snapshots() -> None:
    exact = ValueSettings(exact=True, bool_handling_mode="int16")
    declared = {"BOOLEAN": (16, "int16"), "REAL": (7, "double")}
    for name, (jdbc, kind) in declared.items():
        for stage in STAGES:
            found = column_type(Description(name, jdbc), exact, stage)
            assert found is not None
            assert found.schema.type == kind
    texts = set()
    for stage in STAGES:
        found = column_type(VALUES["enum"][0], exact, stage)
        assert found is not None
        assert rendered(found, "b,c", []) == '"b,c"'
        found = column_type(VALUES["timestamp(6)"][0], exact, stage)
        assert found is not None
        texts.add(rendered(found, 500_000, []))
    assert texts == {'"1970-01-01T00:00:00.500000Z"'}


@pytest.mark.parametrize("name", ["date", "datetime(3)", "datetime(6)"])
@pytest.mark.parametrize("settings", SETTINGS[::4])
def test_an_invalid_date_is_replaced_by_the_fallback(name: str, settings: ValueSettings) -> None:
    found = column_type(VALUES[name][0], settings, "stream")
    assert found is not None
    assert found.convert(InvalidDate(2024, 2, 31)) is None
    assert rendered(found, InvalidDate(0, 0, 0), []) == "FALLBACK"


def test_an_unknown_type_has_no_column_type() -> None:
    assert column_type(Description("GEOGRAPHY", 1111), ValueSettings(), "stream") is None


@pytest.mark.parametrize("name", sorted(GEOMETRIES))
def test_every_spatial_type_is_a_geometry(name: str) -> None:
    found = column_type(Description(name, 1111), ValueSettings(), "stream")
    assert found is not None
    assert found.schema.name == "io.debezium.data.geometry.Geometry"
    assert found.convert(b"\xe6\x10\0\0\1") == {"wkb": b"\1", "srid": 4326}


@given(st.integers(-(2**80), 2**80))
def test_unscaled_numbers_have_the_shortest_twos_complement(number: int) -> None:
    import base64

    data = base64.b64decode(json.loads(unscaled_text(number)))
    assert int.from_bytes(data, "big", signed=True) == number
    assert len(data) == 1 or int.from_bytes(data[1:], "big", signed=True) != number


@given(st.integers(0, 2**64 - 1))
def test_an_unsigned_bigint_wraps_like_a_java_long(number: int) -> None:
    assert wrap_long(number) % 2**64 == number
    assert -(2**63) <= wrap_long(number) < 2**63


def test_a_float_beyond_its_range_is_infinite() -> None:
    assert to_float32(1e39) == math.inf
    assert to_float32(-1e39) == -math.inf


def test_labels_are_unquoted_and_their_separator_is_escaped() -> None:
    assert labels(Description("ENUM", 1, enum_values=("'a''b'", "'c\\'d'", "plain"))) == ("a'b", "c'd", "plain")
    assert escaped_label("a,b\\") == "a\\,b\\\\"


@pytest.mark.parametrize(
    ("name", "stored"), [("GEOMETRY", b""), ("POINT", b""), ("POINT", bytes(9)), ("POLYGON", b"12")]
)
def test_invalid_geometries_cannot_be_converted(name: str, stored: bytes) -> None:
    made = column_type(Description(name, 1111), ValueSettings(), "stream")
    assert made is not None
    with pytest.raises(ValueError, match="is no"):
        made.convert(stored)


def test_an_empty_json_is_replaced_by_the_fallback() -> None:
    found = column_type(Description("JSON", 1111), ValueSettings(), "stream")
    assert found is not None
    assert found.epoch == "{}"
    assert rendered(found, None, []) == "FALLBACK"
