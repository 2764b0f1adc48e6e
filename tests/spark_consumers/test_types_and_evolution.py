"""Types that hold two others, and tables that follow ALTER TABLE."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.spark_consumers.columns.conversion import Column, ConverterSettings, column_of
from rowtide.spark_consumers.columns.spark_types import common_type, literal, quote
from rowtide.spark_consumers.errors import TypeConflictError
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion
from rowtide.spark_consumers.rows.evolution import evolve

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


def _column(name: str, kind: str = "int", default: str = "NULL") -> Column:
    return Column(name, kind, kind.upper(), default=default)


def _value(*columns: Column, version: int = 1) -> ValueVersion:
    return ValueVersion(version, columns)


def test_a_new_table_has_the_order_of_the_newest_schema() -> None:
    old, new = _value(_column("id"), _column("gone")), _value(_column("new"), _column("id"), version=2)
    plan = evolve("t", None, [KeyVersion(1, (_column("id"),))], [old, new], None)
    assert plan.after == (("new", "int"), ("id", "int"), ("gone", "int"))
    assert plan.added == ()
    assert plan.fills == {}


def test_a_column_that_is_added_gets_its_default_in_the_rows_that_are_there() -> None:
    plan = evolve("t", (("id", "int"),), [], [_value(_column("ID"), _column("c", "bigint", "7L"))], ("id",))
    assert plan.after == (("id", "int"), ("c", "bigint"))
    assert plan.added == (("c", "bigint"),)
    assert plan.fills == {"c": "7L"}


def test_a_column_that_comes_back_forgets_its_former_values() -> None:
    before = (("id", "int"), ("c", "int"))
    plan = evolve("t", before, [], [_value(_column("id")), _value(_column("id"), _column("c"), version=2)], ("id", "c"))
    assert plan.fills == {"c": "NULL"}


def test_a_wider_type_widens_the_column() -> None:
    plan = evolve("t", (("id", "int"),), [], [_value(_column("id", "bigint"))], ("id",))
    assert plan.widened == (("id", "int", "bigint"),)


def test_a_probable_rename_is_told() -> None:
    plan = evolve("t", (("id", "int"), ("a", "int")), [], [_value(_column("id"), _column("b"))], ("id", "a"))
    assert "a and b" in plan.notes[0]


def test_types_without_a_common_one_are_an_error_with_the_way_out() -> None:
    with pytest.raises(
        TypeConflictError, match=r"table db\.t, column c: .* have type binary, the table has int.*--restart"
    ):
        evolve("db.t", (("c", "int"),), [], [_value(_column("c", "binary"))], None)


@pytest.mark.parametrize("order", list(permutations(["int", "bigint", "decimal(20,0)"])))
def test_all_versions_of_a_batch_count(order: tuple[str, ...]) -> None:
    versions = [_value(_column("c", kind), version=number) for number, kind in enumerate(order)]
    assert evolve("t", None, [], versions, None).after == (("c", "decimal(20,0)"),)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "int16"}, "smallint"),
        ({"type": "bytes"}, "binary"),
        ({"type": "string", "name": "io.debezium.data.Json"}, "string"),
        ({"type": "string", "name": "com.example.Unheard"}, "string"),
        ({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, "timestamp"),
        ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, "timestamp_ntz"),
        ({"type": "int32", "name": "io.debezium.time.Date"}, "date"),
        ({"type": "array", "items": {"type": "float"}}, "array<float>"),
        ({"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}}, "decimal(20,0)"),
        ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
          "parameters": {"scale": "2", "connect.decimal.precision": "10"}}, "decimal(10,2)"),
        ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
          "parameters": {"scale": "30", "connect.decimal.precision": "65"}}, "string"),
    ],
)  # fmt: skip
def test_types_of_columns(schema: dict[str, object], kind: str) -> None:
    assert column_of({**schema, "field": "c"}, ConverterSettings()).type == kind
