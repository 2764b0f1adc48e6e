"""Behaviors and kinds of changes of structure."""

import pytest

from rowtide.spark_consumers.errors import SchemaChangeError
from rowtide.spark_consumers.rows.evolution import Evolution
from rowtide.spark_consumers.rows.policy import changes_of, dropped, required, without_ignored
from rowtide.spark_consumers.rows.renames import Renames
from rowtide.spark_consumers.settings import ChangeKind, ChangePolicy, SchemaChange

ADD, ALTER, DROP, RENAME, TRUNCATE = ChangeKind
EVOLUTION = Evolution(
    (("id", "int"), ("new", "int")),
    (("id", "bigint"), ("new", "int"), ("more", "int")),
    {"more": "7", "new": "NULL"},
    (),
    Renames({"old": "new"}),
)


@pytest.mark.parametrize(
    ("behavior", "include", "exclude", "applied", "refused"),
    [
        ("evolve", (), (), {ADD, ALTER, RENAME, TRUNCATE}, set()),
        ("evolve", ("column",), (), {ADD, ALTER, DROP, RENAME}, set()),
        ("evolve", ("column", "table"), ("alter", "rename.column"), {ADD, DROP, TRUNCATE}, set()),
        ("try-evolve", (), ("truncate.table",), {ADD, ALTER, RENAME}, set()),
        ("lenient", ("column",), (), {ADD, ALTER}, set()),
        ("ignore", ("column",), (), set(), set()),
        ("exception", (), (), set(), {*ChangeKind}),
        ("exception", (), ("add.column",), set(), {ALTER, DROP, RENAME, TRUNCATE}),
        ("exception", ("drop",), (), set(), {DROP}),
    ],
)
def test_kinds_of_changes(behavior, include, exclude, applied, refused) -> None:
    policy = ChangePolicy(SchemaChange(behavior), include, exclude)
    assert {kind for kind in ChangeKind if policy.applies(kind)} == applied
    assert {kind for kind in ChangeKind if policy.refuses(kind)} == refused
    assert {kind for kind in ChangeKind if policy.ignores(kind)} == {*ChangeKind} - applied - refused


def test_a_refused_change_is_named() -> None:
    policy = ChangePolicy(SchemaChange.EXCEPTION, exclude=("add.column",))
    required("d.t", policy, [(ADD, "more int")])
    with pytest.raises(SchemaChangeError) as error:
        required("d.t", policy, changes_of(EVOLUTION, ["gone"]))
    expected = "rename.column (old to new), alter.column.type (id int to bigint), drop.column (gone)"
    assert f"table d.t: its structure changed: {expected}. " in str(error.value)
    assert "--exclude-changes rename.column" in str(error.value)
    assert changes_of(Evolution(None, EVOLUTION.after), []) == []


def test_an_ignored_column_is_not_in_the_table() -> None:
    policy = ChangePolicy(SchemaChange.IGNORE)
    found = without_ignored("d.t", EVOLUTION, policy, {"id"}, set())
    assert found.after == (("id", "bigint"), ("new", "int"))
    assert (found.added, found.fills) == ((), {})
    assert found.notes == ("d.t: the new column more is ignored",)
    with pytest.raises(SchemaChangeError, match=r"more, a column of the key.* --schema-change evolve"):
        without_ignored("d.t", EVOLUTION, policy, {"id", "more"}, set())
    assert without_ignored("d.t", EVOLUTION, ChangePolicy(), {"id"}, set()) == EVOLUTION


def test_dropped_columns_are_those_that_neither_the_newest_row_nor_a_key_has() -> None:
    assert dropped([["id", "A", "b"], ["id", "c"]], ["ID", "c"], ["b"]) == {"a"}
    found = without_ignored("d.t", EVOLUTION, ChangePolicy(include=("column",)), {"id"}, {"new"})
    assert found.after == (("id", "bigint"), ("more", "int"))
    assert found.fills == {"more": "7"}
