"""Which changes of structure may have changed existing rows without a record of it."""

import pytest

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion
from rowtide.spark_consumers.rows.alterations import alteration_notes, key_without_values, may_convert

ID, A, B = ("id", "int"), ("a", "int"), ("b", "int")
TEXT = ("t", "string")


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ([ID, A], [ID, B], "a and b"),
        ([ID, A, B], [ID, B, A], "a and b, b and a"),  # exchanged, or moved
        ([ID, A, B], [ID, B, ("c", "int")], "a and b, b and c"),  # a chain, or dropped and added
        ([ID, A], [ID, B, TEXT], "a and b, t"),
        ([ID, A], [ID, ("b", "bigint")], "a and b"),  # CHANGE a b BIGINT
        ([("id", None), ("a", None)], [ID, B], "a and b"),  # the state of an older release has no types
        ([ID, A, TEXT], [ID, TEXT, A], None),  # moved: exchanged names would have exchanged types
        ([ID, A], [ID, ("A", "int")], None),
        ([ID, A], [ID, A, B], None),
        ([ID, A, B], [ID, A], None),
        ([ID, A], [ID, A], None),
    ],
)
def test_names_that_may_be_those_of_other_values(old, new, names) -> None:
    notes = alteration_notes("d.t", [old, new])
    assert [f"({names})" in note for note in notes] == ([] if names is None else [True])
    assert all(note.startswith("d.t: ") and "incremental snapshot" in note for note in notes)


@pytest.mark.parametrize(
    ("old", "new", "converts"),
    [
        ("int", "bigint", False),
        ("bigint", "int", False),  # MySQL refuses values that are out of range
        ("int", "decimal(12,2)", False),
        ("int", "string", False),
        ("decimal(10,2)", "decimal(12,4)", False),
        ("decimal(10,2)", "decimal(5,2)", False),
        ("smallint", "boolean", False),
        ("date", "timestamp_ntz", False),
        ("decimal(10,2)", "decimal(12,0)", True),
        ("decimal(10,2)", "int", True),
        ("double", "float", True),
        ("double", "int", True),
        ("int", "float", True),  # has seven digits
        ("string", "int", True),  # 007
        ("timestamp_ntz", "date", True),
    ],
)
def test_types_whose_values_mysql_converts(old: str, new: str, converts: bool) -> None:
    assert may_convert(old, new) == converts
    notes = alteration_notes("d.t", [[("c", old)], [("C", new)]])
    assert [f"column C was changed from {old} to {new}" in note for note in notes] == [True] * converts


def test_each_change_is_noted_once() -> None:
    notes = alteration_notes("d.t", [[ID, A], [ID, B], [ID, B], [ID, ("b", "float")]])
    assert [note.split(" (")[0].split(". ")[0] for note in notes] == [
        "d.t: column names changed",
        "d.t: column b was changed from int to float",
    ]


def _version(*names: str, default: bool = False) -> ValueVersion:
    return ValueVersion(1, tuple(Column(name, "int", "INT", has_default=default) for name in names))


@pytest.mark.parametrize(
    ("key", "last_known", "versions", "column"),
    [
        (["number"], ["id", "a"], [_version("number", "a")], "number"),  # renamed, or AUTO_INCREMENT
        (["number"], None, [_version("id", "a"), _version("number", "a")], "number"),
        (["ID"], ["id"], [_version("Id", "a")], None),
        (["a"], ["id", "a"], [_version("id", "a")], None),  # another key, of columns with values
        (["id", "tenant"], ["id"], [_version("id", "tenant", default=True)], None),
        (["id"], ["id", "a"], [_version("id", "b")], None),
        (["id"], None, [_version("id")], None),
        (["id"], ["id"], [_version(), _version("id")], None),  # records of a delete may have no columns
        ([], ["a"], [_version("b")], None),
    ],
)
def test_columns_of_the_key_that_older_rows_have_no_value_in(key, last_known, versions, column) -> None:
    keys = [KeyVersion(1, _version(*key).columns)]
    found = key_without_values(keys, versions, last_known)
    assert (None if found is None else found[1].name) == column
