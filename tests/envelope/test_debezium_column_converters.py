"""Debezium's column converters: options, the columns that they select, and their values.

The recorded case ``column-converters`` holds them against Debezium's.
"""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.envelope.debezium_column_converters import DEBEZIUM
from rowtide.envelope.transforms.options import Options
from rowtide.testing import RelationalColumn, convert
from tests.support.recordings.golden import Case

PACKAGE = "io.debezium.connector.binlog.converters."


def made(name: str, **options: str) -> Any:
    found = Options("c.", {key.replace("_", "."): text for key, text in options.items()})
    converter = DEBEZIUM[f"{PACKAGE}{name}Converter"](found)
    assert not found.problems
    return converter


@pytest.mark.parametrize(
    ("type_name", "length", "options", "converted"),
    [
        ("TINYINT", 1, {}, True),
        ("TINYINT UNSIGNED", 1, {}, True),
        ("TINYINT", 4, {}, False),
        ("TINYINT UNSIGNED", None, {}, False),
        ("TINYINT UNSIGNED", None, {"length_checker": "false"}, True),
        ("INT", 1, {"length_checker": "false"}, False),
        ("TINYINT", 1, {"selector": r"SHOP\.orders\.paid, other"}, True),
        ("TINYINT", 1, {"selector": r"orders\.paid"}, False),
    ],
)
def test_the_columns_that_become_booleans(
    type_name: str, length: int | None, options: dict[str, str], converted: bool
) -> None:
    column = RelationalColumn("paid", "shop.orders", type_name, length=length)
    found = convert(made("TinyIntOneToBoolean", **options), column, 2)
    assert (found is not None and found.value) is converted


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("boolean", -1, 0), ("boolean", True, 1), ("boolean", "7", 1), ("boolean", "True", 1), ("boolean", "x", 0),
        ("boolean", b"1", 0), ("real", Decimal("1.5"), 1.5), ("real", "2.5", 2.5), ("real", dt.date(2024, 1, 1), 0.0),
        ("string", b"\xc3\xa9", "é"), ("string", 7, "7"), ("string", None, None),
    ],
)  # fmt: skip
def test_the_values_for_a_sink(kind: str, value: Any, wanted: Any) -> None:
    converter = made("JdbcSinkDataTypes", **{f"selector_{kind}": ".*"})
    found = convert(converter, RelationalColumn("v", "d.t", "VARCHAR"), value)
    assert found is not None
    assert found.value == wanted
    assert type(found.value) is type(wanted)


def test_a_real_can_be_single() -> None:
    converter = made("JdbcSinkDataTypes", selector_real=".*", treat_real_as_double="false")
    found = convert(converter, RelationalColumn("v", "d.t", "FLOAT"), 1.5)
    assert found is not None
    assert found.schema.type == "float"


@given(st.datetimes(dt.datetime(1000, 1, 1)), st.integers(0, 6))  # noqa: DTZ001 - a DATETIME has no zone
def test_dates_stay_what_they_are(moment: dt.datetime, length: int) -> None:
    converter = made("ZeroDateFallback", fallback_date="1999-12-31")
    found = convert(converter, RelationalColumn("v", "d.t", "DATETIME", length=length), moment)
    assert found is not None
    unit = dt.timedelta(microseconds=1) if length >= 4 else dt.timedelta(milliseconds=1)
    assert found.value == (moment - dt.datetime(1970, 1, 1)) // unit  # noqa: DTZ001
    for value, wanted in ((moment.date(), moment.date()), ("2024-00-10", dt.date(1999, 12, 31))):
        date = convert(converter, RelationalColumn("v", "d.t", "DATE"), value)
        assert date is not None
        assert dt.date(1970, 1, 1) + dt.timedelta(date.value) == wanted
    zoned = convert(converter, RelationalColumn("v", "d.t", "TIMESTAMP"), moment.replace(tzinfo=dt.UTC))
    assert zoned is not None
    assert dt.datetime.fromisoformat(zoned.value).replace(tzinfo=None) == moment
    assert not zoned.value.endswith("0Z") or "." not in zoned.value


def test_null_and_dates_of_no_calendar_become_the_fallback_of_the_column() -> None:
    options = {"fallback.timestamp": "2000-01-01T01:00:00+01:00", "column.d.t.v.fallback": "NULL"}
    found = Options("c.", options)
    converter = DEBEZIUM[f"{PACKAGE}ZeroDateFallbackConverter"](found)
    assert not found.problems
    for column, wanted in (("v", None), ("w", "2000-01-01T00:00:00Z")):
        for value in (None, "0000-00-00 00:00:00"):
            made_of = convert(converter, RelationalColumn(column, "d.t", "TIMESTAMP", optional=False), value)
            assert made_of is not None
            assert (made_of.value, made_of.schema.optional) == (wanted, wanted is None)
    assert convert(made("ZeroDateFallback", target_types="date"), RelationalColumn("v", "d.t", "TIMESTAMP"), "") is None


def test_all_problems_of_the_options_are_reported() -> None:
    properties = {
        "converters": "a,b,c",
        "a.type": f"{PACKAGE}TinyIntOneToBooleanConverter",
        "a.selector": "(",
        "a.length.checker": "yes",
        "b.type": "io.debezium.connector.mysql.converters.JdbcSinkDataTypesConverter",
        "b.selector.bool": ".*",
        "c.type": f"{PACKAGE}ZeroDateFallbackConverter",
        "c.fallback.date": "31.12.1999",
        "c.fallback.timestamp": "2000-01-01 00:00:00",
        "c.target.types": "DATE,TIME",
        "c.column.d.t.v.fallback": "zero",
        "c.column.d.t.v": "NULL",
    }
    with pytest.raises(ConfigurationError) as caught:
        from_properties(Case("keys").properties() | properties)
    for problem in (
        "a.selector: ",
        "a.length.checker: must be true or false",
        "b.selector.bool: this option does not exist; did you mean selector.boolean?",
        "c.fallback.date: must be NULL or have the form 1970-01-01, not '31.12.1999'",
        "c.fallback.timestamp: must be NULL or have the form 1970-01-01T00:00:00Z",
        "c.target.types: must be of DATE, DATETIME, TIMESTAMP, not 'TIME'",
        "c.column.d.t.v.fallback: must be a date",
        "c.column.d.t.v: this option does not exist",
    ):
        assert problem in str(caught.value), problem
