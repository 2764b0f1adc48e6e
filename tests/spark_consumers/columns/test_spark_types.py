"""Common types, and quoting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.spark_consumers.columns.spark_types import common_type, literal, quote

_TYPES = st.sampled_from(
    [
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"),
        *("timestamp", "timestamp_ntz", "array<float>"),
        *("decimal(5,2)", "decimal(10,0)", "decimal(38,10)", "decimal(20,0)"),
    ]
)


@given(_TYPES, _TYPES)
def test_a_common_type_does_not_depend_on_the_order_and_stays(first: str, second: str) -> None:
    common = common_type(first, second)
    assert common == common_type(second, first)
    assert common_type(first, first) == first
    if common is not None:
        assert common_type(common, first) == common
        assert common_type(common, second) == common


@pytest.mark.parametrize(
    ("small", "large", "common"),
    [
        ("int", "bigint", "bigint"),
        ("boolean", "smallint", "smallint"),
        ("bigint", "decimal(20,0)", "decimal(20,0)"),
        ("decimal(10,2)", "decimal(12,4)", "decimal(12,4)"),
        ("decimal(38,2)", "decimal(38,10)", "string"),
        ("int", "string", "string"),
        ("float", "double", "double"),
        ("bigint", "double", None),  # not exact
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("double", "string", None),  # Spark prints other digits than MySQL
        ("binary", "string", None),
    ],
)
def test_common_types(small: str, large: str, common: str | None) -> None:
    assert common_type(small, large) == common


def test_names_and_text_are_quoted() -> None:
    assert quote("a`b") == "`a``b`"
    assert literal("it's \\") == "'it\\'s \\\\'"
