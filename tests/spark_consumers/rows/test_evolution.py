"""The columns of tables after ALTER TABLE."""

from dataclasses import replace
from itertools import permutations

import pytest

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.errors import TypeConflictError
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion
from rowtide.spark_consumers.rows.evolution import Image, evolve, row_expression


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


def test_an_added_column_has_its_default_in_existing_rows() -> None:
    plan = evolve("t", (("id", "int"),), [], [_value(_column("ID"), _column("c", "bigint", "7L"))], ("id",))
    assert plan.after == (("id", "int"), ("c", "bigint"))
    assert plan.added == (("c", "bigint"),)
    assert plan.fills == {"c": "7L"}


def test_a_column_that_is_added_again_loses_its_old_values() -> None:
    before = (("id", "int"), ("c", "int"))
    plan = evolve("t", before, [], [_value(_column("id")), _value(_column("id"), _column("c"), version=2)], ("id", "c"))
    assert plan.fills == {"c": "CAST(NULL AS int)"}


def test_a_column_of_records_that_were_read_too_early_keeps_its_values() -> None:
    before, last = (("id", "int"), ("c", "int"), ("d", "int")), ("id",)
    versions = [_value(_column("id"), _column("c"), replace(_column("d", "bigint", "5L"), optional=False))]
    plan = evolve("t", before, [], versions, last, uneven=True)
    assert plan.fills == {"d": "coalesce(CAST(`d` AS bigint), 5L)"}
    assert evolve("t", before[:1], [], versions, last, uneven=True).fills == {"d": "5L"}


def test_a_dropped_column_stays() -> None:
    before = (("id", "int"), ("gone", "int"))
    plan = evolve("t", before, [], [_value(_column("id"))], ("id", "gone"))
    assert plan.after == before
    assert plan.fills == {}, "existing rows keep their values"


def test_a_wider_type_widens_the_column() -> None:
    plan = evolve("t", (("id", "int"),), [], [_value(_column("id", "bigint"))], ("id",))
    assert plan.widened == (("id", "int", "bigint"),)


def test_a_probable_rename_is_reported() -> None:
    plan = evolve("t", (("id", "int"), ("a", "int")), [], [_value(_column("id"), _column("b"))], ("id", "a"))
    assert "a and b" in plan.notes[0]


def test_types_without_a_common_type_are_an_error() -> None:
    with pytest.raises(
        TypeConflictError, match=r"table db\.t, column c: .* have type binary, the table has int.*--restart"
    ):
        evolve("db.t", (("c", "int"),), [], [_value(_column("c", "binary"))], None)


def test_a_column_keeps_its_type_by_choice() -> None:
    before, versions = (("id", "int"), ("c", "int")), [_value(_column("id", "bigint"), _column("c", "binary"))]
    fixed = evolve("t", before, [], versions, ("id", "c"), fixed_types=True)
    assert (fixed.after, fixed.widened) == (before, ())
    tolerant = evolve("t", before, [], versions, ("id", "c"), tolerant=True)
    assert tolerant.widened == (("id", "int", "bigint"),)
    row = row_expression(fixed, versions, 0, Image("after", "false"), {})
    assert "CAST(try_cast(e.after.`id` AS int) AS bigint) <=> e.after.`id`" in row


@pytest.mark.parametrize("order", list(permutations(["int", "bigint", "decimal(20,0)"])))
def test_all_versions_of_a_batch_count(order: tuple[str, ...]) -> None:
    versions = [_value(_column("c", kind), version=number) for number, kind in enumerate(order)]
    assert evolve("t", None, [], versions, None).after == (("c", "decimal(20,0)"),)


@pytest.mark.parametrize(
    ("columns", "value"),
    [
        ("c", "e.after.`c`"),
        ("c -", "e.after.`c`"),
        ("c - 7", "7"),
        ("- 7 -", "7"),
        ("c - 7 - 8", "8"),
        ("c 7", "e.after.`c`"),
    ],
)
def test_a_row_has_the_default_of_the_last_time_that_its_column_was_added(columns: str, value: str) -> None:
    found = {
        "c": (_column("c"),),
        "-": (_column("id"),),
        "7": (_column("c", default="7"),),
        "8": (_column("c", default="8"),),
    }
    versions = [_value(*found[name], version=number) for number, name in enumerate(columns.split())]
    evolution = evolve("t", (("c", "int"),), [], versions, ("c",))
    row = row_expression(evolution, versions, 0, Image("after", "false"), {})
    assert f"'c', {value}" in row
