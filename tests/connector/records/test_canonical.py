"""Canonical texts: the same for equal values, and others for other ones."""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.records.canonical import canonical_values, is_equal, json_text, shown, value_text
from rowtide.connector.records.change import Geometry, JsonText
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.connector.snapshot.chunks.key_condition import key_condition
from rowtide.schema_history.model import Column

SCALARS = st.one_of(
    st.none(),
    st.integers(),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False),
    st.datetimes(),
    st.timedeltas(),
)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(one=SCALARS, other=SCALARS)
def test_values_of_a_type_have_the_same_text_only_if_they_are_equal(one: Any, other: Any) -> None:
    if type(one) is type(other):
        assert (value_text(one) == value_text(other)) == (one == other)
    assert shown(value_text(one))


@given(DOCUMENTS)
def test_the_spelling_of_a_document_does_not_count(document: Any) -> None:
    loose, tight = json.dumps(document, indent=2), json.dumps(document, ensure_ascii=False, sort_keys=True)
    assert json_text(loose) == json_text(tight)


@pytest.mark.parametrize(("one", "other"), [("[1]", "[2]"), ('{"a": 1}', '{"b": 1}'), ("null", "0"), ('"1"', "1")])
def test_other_documents_have_other_texts(one: str, other: str) -> None:
    assert value_text(JsonText(one)) != value_text(JsonText(other))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_with_debeziums_values_has_six_digits(value: float) -> None:
    (text,) = canonical_values(["float"], exact=False)
    printed = float(f"{value:.6g}")
    assert text(value) == text(printed) or struct.pack("<f", value) != struct.pack("<f", printed)
    (exact,) = canonical_values(["float"], exact=True)
    assert (exact(value) == exact(printed)) == (value == printed)


@pytest.mark.parametrize(
    ("snapshot", "stream", "same"),
    [
        ('{"a": ["base64:type15:Y\\nQ=="]}', '{"a":["YQ=="]}', True),
        ('"-838:08:38.772030"', '"-838:08:38.77203"', True),
        ('"2024-01-01 08:08:38.500000"', '"2024-01-01 08:08:38.5"', True),
        ('"08:08:38.000000"', '"08:08:38"', True),
        ('"base64:type15:YQ=="', '"YR=="', False),
        ('"08:08:38.100"', '"08:08:38.2"', False),
        ('"1.50"', '"1.5"', False),
        ('"v 08:08:38 1.50"', '"v 08:08:38 1.5"', False),
    ],
)
def test_debeziums_values_of_sql_in_documents_have_two_spellings(snapshot: str, stream: str, *, same: bool) -> None:
    (loose,), (exact,) = (canonical_values(["json"], exact=exact) for exact in (False, True))
    assert (loose(snapshot) == loose(stream)) is same
    assert exact(snapshot) != exact(stream)


def test_backslashes_in_labels_do_not_count_with_debeziums_values() -> None:
    (loose,), (exact,) = (canonical_values(["enum"], exact=exact) for exact in (False, True))
    assert loose("b\\,c") == loose("b,c") != loose("c")
    assert exact("b\\,c") != exact("b,c")


def test_zeros_at_the_end_of_a_binary_do_not_count() -> None:
    binary, varbinary = canonical_values(["binary", "varbinary"], exact=True)
    assert binary(b"a\0\0") == binary(b"a")
    assert varbinary(b"a\0\0") != varbinary(b"a")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, True, True), (1, Decimal("1.00"), True), (1.5, Decimal("1.5"), True), (5, "5", True), (0, None, False),
        (b"1", "1", False), (UNAVAILABLE, 1, False), (Geometry(b"\1", 0), Geometry(b"\1", 4326), False),
    ],
)  # fmt: skip
def test_a_type_that_was_altered_is_not_a_difference(one: Any, other: Any, equal: bool) -> None:
    assert is_equal(value_text(one), value_text(other)) == equal


def column(kind: str, charset: str | None = None) -> Column:
    return Column("c", kind, re.split("[( ]", kind)[0], False, charset=charset)


@pytest.mark.parametrize(
    ("of", "value", "condition"),
    [
        (column("bigint unsigned"), 18446744073709551615, "(`c` = 18446744073709551615)"),
        (column("decimal(10,2)"), Decimal("1.50"), "(`c` = 1.5)"),
        (column("varchar(9)", "latin1"), "a'\\b", "(`c` = _utf8mb4 x'61275c62')"),
        (column("binary(4)"), b"ab", "(`c` = x'61620000')"),
        (column("timestamp(3)"), dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "(`c` = '2024-01-02 03:04:05')"),
        (column("time(1)"), -dt.timedelta(hours=100, microseconds=100_000), "(`c` = '-100:00:00.100000')"),
        (column("date"), 19000, None),
        (column("float"), 1.5, None),
        (column("varbinary(4)"), "AQI=", None),
        (column("varchar(4)", "utf8mb4"), "\ud800", None),
    ],
)
def test_a_key_becomes_a_condition_only_if_it_is_exact(of: Column, value: Any, condition: str | None) -> None:
    assert key_condition([of], [[value_text(value)]]) == condition
