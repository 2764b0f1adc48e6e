"""Column types: the source text that renders a value says what its Connect value says, in every mode."""

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
from rowtide.envelope.settings import ValueSettings
from rowtide.envelope.types.column_type import ColumnType, Fallback
from rowtide.envelope.types.mapping import column_type
from rowtide.envelope.types.numbers import unscaled_text, wrap_long
from rowtide.envelope.types.spatial import GEOMETRIES
from rowtide.envelope.types.temporal_values import MICROS_PER_DAY, InvalidDate
from rowtide.envelope.types.text import escaped_label, labels


@dataclass(frozen=True)
class Facet:
    """A column as Debezium sees it."""

    type_name: str
    jdbc_type: int
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    enum_values: tuple[str, ...] = ()
    name: str = "c"


DATES = st.integers(-719162, 2932896)  # 0001-01-01 to 9999-12-31
MOMENTS = st.integers(-719162 * MICROS_PER_DAY, 2932897 * MICROS_PER_DAY - 1)
VALUES: dict[str, tuple[Facet, st.SearchStrategy[Any]]] = {
    "tinyint": (Facet("TINYINT", -6), st.integers(-128, 127)),
    "boolean": (Facet("BOOLEAN", 16), st.integers(-128, 127)),
    "smallint unsigned": (Facet("SMALLINT UNSIGNED", 5), st.integers(0, 65535)),
    "int unsigned": (Facet("INT UNSIGNED ZEROFILL", 4), st.integers(0, 2**32 - 1)),
    "bigint": (Facet("BIGINT", -5), st.integers(-(2**63), 2**63 - 1)),
    "bigint unsigned": (Facet("BIGINT UNSIGNED", -5), st.integers(0, 2**64 - 1)),
    "decimal": (Facet("DECIMAL", 3, 65, 30), st.integers(-(10**65) + 1, 10**65 - 1)),
    "float": (Facet("FLOAT", 6), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "double": (Facet("DOUBLE", 8), st.floats(allow_nan=False, allow_infinity=False)),
    "bit(1)": (Facet("BIT", -7, 1), st.integers(0, 1)),
    "bit(33)": (Facet("BIT", -7, 33), st.integers(0, 2**33 - 1)),
    "year": (Facet("YEAR", 4), st.sampled_from([0, 1901, 2155])),
    "date": (Facet("DATE", 91), DATES),
    "datetime(3)": (Facet("DATETIME", 93, 3), MOMENTS),
    "datetime(6)": (Facet("DATETIME", 93, 6), MOMENTS),
    "timestamp(6)": (Facet("TIMESTAMP", 2014, 6), st.integers(0, 2**32 * 10**6)),
    "time": (Facet("TIME", 92), st.integers(-3020399 * 10**6, 3020399 * 10**6)),
    "text": (Facet("VARCHAR", 12, 20), st.text()),
    "binary": (Facet("VARBINARY", -3, 20), st.binary()),
    "enum": (Facet("ENUM", 1, 1, enum_values=("'a'", "'b,c'", "''")), st.sampled_from(["a", "b,c", ""])),
    "set": (Facet("SET", 1, 1, enum_values=("'a'", "'b'")), st.sampled_from(["", "a", "a,b"])),
    "json": (Facet("JSON", 1111), st.sampled_from(['{"a":1}', "[]", '"\\u0000"'])),
    "geometry": (Facet("GEOMETRY", 1111), st.binary(min_size=4)),
    "point": (Facet("POINT", 1111), st.binary(min_size=25, max_size=25).filter(lambda b: not _nan(b))),
    "vector": (Facet("VECTOR", 1111), st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False))),
    "uuid": (Facet("UUID", 1111), st.uuids().map(str)),
    "inet6": (Facet("INET6", 1111), st.ip_addresses(v=6).map(str)),
}
SETTINGS = [
    ValueSettings(decimal, bigint, time, adjuster, binary, connector=connector)
    for (decimal, bigint), time, adjuster, binary, connector in itertools.product(
        [("precise", "long"), ("double", "precise"), ("string", "long")],
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
    """What the type's source text gives for a value."""
    names: dict[str, Any] = {"x": value}

    def bind(thing: object) -> str:
        name = f"_{len(names)}"
        names[name] = thing
        return name

    fallback = Fallback("FALLBACK", lambda _value, error: failures.append(error))
    return str(eval(found.expression("x", bind, fallback), names))


@given(data=st.data())
@pytest.mark.parametrize("name", VALUES)
def test_rendering_says_what_the_connect_value_says(name: str, data: st.DataObject) -> None:
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


@pytest.mark.parametrize("name", ["date", "datetime(3)", "datetime(6)"])
@pytest.mark.parametrize("settings", SETTINGS[::4])
def test_a_value_off_the_calendar_takes_what_is_kept_for_it(name: str, settings: ValueSettings) -> None:
    found = column_type(VALUES[name][0], settings, "stream")
    assert found is not None
    assert found.convert(InvalidDate(2024, 2, 31)) is None
    assert rendered(found, InvalidDate(0, 0, 0), []) == "FALLBACK"


def test_a_type_that_nobody_knows_has_no_form() -> None:
    assert column_type(Facet("GEOGRAPHY", 1111), ValueSettings(), "stream") is None


@pytest.mark.parametrize("name", sorted(GEOMETRIES))
def test_every_geometry_has_the_form_of_a_geometry(name: str) -> None:
    found = column_type(Facet(name, 1111), ValueSettings(), "stream")
    assert found is not None
    assert found.schema.name == "io.debezium.data.geometry.Geometry"
    assert found.convert(b"\xe6\x10\0\0\1") == {"wkb": b"\1", "srid": 4326}


@given(st.integers(-(2**80), 2**80))
def test_unscaled_numbers_are_javas_shortest_two_complement(number: int) -> None:
    import base64

    data = base64.b64decode(json.loads(unscaled_text(number)))
    assert int.from_bytes(data, "big", signed=True) == number
    assert len(data) == 1 or int.from_bytes(data[1:], "big", signed=True) != number


@given(st.integers(0, 2**64 - 1))
def test_an_unsigned_bigint_wraps_as_javas_long_does(number: int) -> None:
    assert wrap_long(number) % 2**64 == number
    assert -(2**63) <= wrap_long(number) < 2**63


def test_a_float_beyond_its_range_is_infinite() -> None:
    assert to_float32(1e39) == math.inf
    assert to_float32(-1e39) == -math.inf


def test_labels_are_as_they_were_written_and_their_separator_is_escaped() -> None:
    assert labels(Facet("ENUM", 1, enum_values=("'a''b'", "'c\\'d'", "plain"))) == ("a'b", "c'd", "plain")
    assert escaped_label("a,b\\") == "a\\,b\\\\"


@pytest.mark.parametrize(
    ("name", "stored"), [("GEOMETRY", b""), ("POINT", b""), ("POINT", bytes(9)), ("POLYGON", b"12")]
)
def test_what_is_no_geometry_cannot_be_converted(name: str, stored: bytes) -> None:
    made = column_type(Facet(name, 1111), ValueSettings(), "stream")
    assert made is not None
    with pytest.raises(ValueError, match="is no"):
        made.convert(stored)


def test_a_json_without_bytes_takes_what_is_kept_for_it() -> None:
    found = column_type(Facet("JSON", 1111), ValueSettings(), "stream")
    assert found is not None
    assert found.epoch == "{}"
    assert rendered(found, None, []) == "FALLBACK"
