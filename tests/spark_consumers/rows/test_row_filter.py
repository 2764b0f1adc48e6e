"""Tables that have only some of the rows (``--where``)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rowtide.spark_consumers.columns.conversion import ConverterSettings
from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.messages.versions import value_version
from rowtide.spark_consumers.rows.renames import renamed
from rowtide.spark_consumers.rows.row_filter import after_renames, former_names, names_in_filter, require_filter
from rowtide.spark_consumers.settings import Layout
from rowtide.spark_consumers.state import RowFilter
from tests.spark_consumers.test_renamed_columns import STEPS, Structures, _crash, columns, row
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.histories import histories
from tests.support.recordings.recorded_tables import same_rows

OTHERS = [pytest.param(name, marks=pytest.mark.nightly) for name in ("iceberg", "parquet")]


def after(found: RowFilter, *steps: dict[str, str]) -> dict[str, str]:
    for names in steps:
        found = after_renames(found, names)
    return dict(found.names)


def test_a_filter_knows_columns_by_the_names_from_when_the_table_was_built() -> None:
    plain = RowFilter("a = b")
    assert after(plain, {"a": "a", "b": "B"}) == {}
    assert after(plain, {"a": "x", "b": "b"}, {"x": "y", "b": "b"}) == {"a": "y"}
    assert after(plain, {"a": "b", "b": "a"}) == {"a": "b", "b": "a"}
    assert after(plain, {"a": "b", "b": "a"}, {"a": "b", "b": "a"}) == {"a": "a", "b": "b"}
    again = after(plain, {"a": "x"}, {"x": "x", "a": "z"})
    assert again == {"a": "x"}, "another column that got the name later"
    assert names_in_filter(["X", "b", "a"], RowFilter("", {"a": "x"})) == ["a", "b", "_rowtide_other_2"]


def test_a_new_table_may_be_filtered_by_names_of_older_records() -> None:
    topic = Topic("p.d.t", columns("ab"))
    version = value_version(1, topic._envelope(), ConverterSettings(numeric_decimals=False), "p.d.t")
    version = replace(version, columns=renamed(version.columns, {"id": "id", "a": "c", "b": "b"}))
    assert former_names(["c", "b"], [version]) == {"a": "c"}
    assert former_names(["c", "a"], [version]) == {}, "a new column"


@pytest.mark.spark
@pytest.mark.parametrize("table_format", ["delta", *OTHERS])
def test_rows_come_and_go_as_they_match(run, spark, rows_of, tmp_path, table_format) -> None:
    """Updates in and out, deletes, a rename of the column, a TRUNCATE, and each batch once more."""
    topic, path, history = Topic("p.d.t", columns("ab"), ["id"]), str(tmp_path / "p.d.t"), Structures("ab")
    given: dict[str, Any] = {"format": table_format, "structures": history, "where": "a = 'eu' OR b = 'x'"}

    def update(*expected: dict[str, Any], **others: Any) -> Any:
        outcome = run(topic.records, **{**given, **others})["p.d.t"]
        assert outcome.error is None
        same_rows(rows_of(path, table_format), expected)
        return outcome

    def change(old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        op = "u" if old and new else "c" if new else "d"
        topic.change(op, old, new, len(topic.records) + 1)

    eu = [row(number, a="eu", b=f"b{number}") for number in range(5)]
    us = [row(number, a="us", b=None) for number in range(5)]
    for new in (eu[0], us[1], eu[2], eu[3], us[4]):
        change(None, new)
    update(eu[0], eu[2], eu[3])
    change(eu[0], us[0])  # out
    change(us[1], eu[1])  # in
    change(eu[2], None)
    change(us[4], None)
    change(eu[3], us[3])
    change(us[3], row(3, a=None, b="x"))  # out and in
    update(eu[1], row(3, a=None, b="x"))
    topic.columns, history.texts = columns("cab"), ("ab", "cab")  # a and b got the names c and a, and b is new
    change(None, row(5, c="eu", a="b5", b=None))
    change(None, row(6, c="us", a="x", b=None))
    change(None, row(7, c="us", a="eu", b="x"))  # matches only by the names of other columns
    update(row(1, c="eu", a="b1", b=None), row(3, c=None, a="x", b=None), row(5, c="eu", a="b5", b=None),
           row(6, c="us", a="x", b=None))  # fmt: skip
    topic.change("t", None, None, 100)
    change(None, row(8, c="us", a="eu", b="x"))
    change(None, row(9, c="eu", a=None, b=None))
    for other, is_now in (("c = 'eu'", "with --where c = 'eu'"), (None, "without --where")):
        error = str(run(topic.records, **{**given, "where": other})["p.d.t"].error)
        assert f"was built with --where a = 'eu' OR b = 'x', and this run is {is_now}" in error
    update(row(9, c="eu", a=None, b=None))
    error = str(run(topic.records, **{**given, "where": "c = 'eu'"})["p.d.t"].error)
    assert "and this run is with --where c = 'eu'" in error, "also without new records"
    topic.columns, history.texts = columns("ab"), ("ab", "cab", "-ab")
    change(None, row(10, a="x", b=None))
    error = str(run(topic.records, **given)["p.d.t"].error)
    assert "column c, which --where a = 'eu' OR b = 'x' uses, was dropped in MySQL" in error
    same_rows(rows_of(path, table_format), [row(9, c="eu", a=None, b=None)])


@pytest.mark.spark
@pytest.mark.nightly
def test_a_filter_survives_a_crash_at_each_step_of_a_rename(run, rows_of, tmp_path, monkeypatch) -> None:
    for count, step in enumerate(STEPS):
        topic, history = Topic(f"p.d.t{count}", columns("ab"), ["id"]), Structures("ab")
        given: dict[str, Any] = {"structures": history, "where": "a = 'eu'"}
        for number, region in enumerate(["eu", "us", "eu", "us"]):
            topic.change("c", None, row(number, a=region, b="eu"), number)
        assert run(topic.records, **given)[topic.name].error is None
        topic.columns, history.texts = columns("bad"), ("ab", "bad")  # exchanged, and d is new
        topic.change("u", row(0, b="eu", a="eu", d=None), row(0, b="us", a="eu", d="d"), 20)
        topic.change("u", row(1, b="us", a="eu", d=None), row(1, b="eu", a="us", d="d"), 21)
        with monkeypatch.context() as patched:
            _crash(step, "delta", patched)
            with pytest.raises(ZeroDivisionError):
                run(topic.records, **given)
        assert run(topic.records, **given)[topic.name].error is None
        topic.change("c", None, row(5, b="us", a="eu", d=None), 22)
        topic.change("c", None, row(6, b="eu", a="us", d=None), 23)
        assert run(topic.records, **given)[topic.name].error is None
        expected = [row(1, b="eu", a="us", d="d"), row(2, b="eu", a="eu", d=None), row(6, b="eu", a="us", d=None)]
        same_rows(rows_of(str(tmp_path / topic.name)), expected)


@pytest.mark.spark
def test_tables_without_a_key_and_of_changes_have_only_what_matches(run, rows_of, tmp_path) -> None:
    bag, log = Topic("p.d.bag", columns("a")), Topic("p.d.log", columns("a"), ["id"])
    pairs = [(None, "eu"), (None, "us"), ("eu", "us"), ("us", "eu"), ("us", None), (None, "us"), (None, "eu")]
    for pos, (old, new) in enumerate(pairs):
        images = (None if old is None else row(1, a=old), None if new is None else row(1, a=new))
        for topic in (bag, log):
            topic.change("c" if old is None else "d" if new is None else "u", *images, pos)
    log.change("t", None, None, 50)
    assert run(bag.records, where="a = 'eu'")["p.d.bag"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.bag")), [row(1, a="eu"), row(1, a="eu")])
    outcome = run(log.records, where="a = 'eu' OR id IS NULL", layout=Layout.APPEND)["p.d.log"]
    assert outcome.error is None
    found = [(one["__source_pos"], one["__op"], one["a"]) for one in rows_of(str(tmp_path / "p.d.log"))]
    assert sorted(found) == [(0, "c", "eu"), (2, "u", "us"), (3, "u", "eu"), (6, "c", "eu"), (50, "t", None)]


@pytest.mark.spark
@pytest.mark.parametrize("table_format", ["delta", *OTHERS])
@pytest.mark.parametrize("most", [None, pytest.param(1, marks=pytest.mark.nightly)], ids=["one batch", "many"])
def test_deleted_rows_and_versions_are_those_of_the_whole_table_that_match(
    run, rows_of, tmp_path, table_format, most
) -> None:
    """In the table, out of it, in again, deleted in either state, read again, emptied; in two runs."""
    given: dict[str, Any] = {"format": table_format, "where": "a LIKE 'eu%'", "max_records": most}
    found: dict[Layout, list[dict[str, Any]]] = {}
    for layout in (Layout.SOFT_DELETE, Layout.HISTORY):
        topic = Topic(f"p.d.{layout}", columns("a"), ["id"])
        path, places = str(tmp_path / topic.name), iter(range(1, 100))

        def change(number: int, *values: str | None, topic: Topic = topic, places: Any = places) -> None:
            for old, new in pairwise(values):
                op = "c" if old is None else "d" if new is None else "u"
                topic.change(op, old and row(number, a=old), new and row(number, a=new), next(places))
            if values[-1] is None:
                topic.tombstone({"id": number})

        change(1, None, "eu1", "us", "us2", "eu2")
        change(2, None, "us", "us2")
        change(3, None, "eu", "us", None)
        change(4, None, "eu", None)
        change(5, None, "eu", "eu5")
        change(6, None, "eu6")
        change(7, None, "us", "eu", "us7")
        assert run(topic.records, **given, layout=layout)[topic.name].error is None
        change(1, "eu2", "us3")
        change(2, "us2", "eu")
        change(4, None, "us", None)
        change(5, "eu5", None)
        topic.change("r", None, row(6, a="eu6"), next(places))  # a version that is not new
        topic.change("r", None, row(7, a="us7"), next(places))
        assert run(topic.records, **given, layout=layout)[topic.name].error is None
        if layout is Layout.SOFT_DELETE:
            marks = {one["id"]: (one["a"], one["__deleted"]) for one in rows_of(path, table_format)}
            assert marks == {2: ("eu", False), 5: ("eu5", True), 6: ("eu6", False)}
        topic.change("t", None, None, next(places))
        change(7, None, "eu7", "us7")
        change(8, None, "us8", "eu8")
        assert run(topic.records, **given, layout=layout)[topic.name].error is None
        found[layout] = rows_of(path, table_format)
    marks = {one["id"]: (one["a"], one["__deleted"]) for one in found[Layout.SOFT_DELETE]}
    assert marks == {2: ("eu", True), 5: ("eu5", True), 6: ("eu6", True), 8: ("eu8", False)}
    every = [one.flat(["id", "a"]) for one in histories(topic.records)]
    kept = [(*one[:2], one[2][2], one[3] and one[3][2]) for one in every if one[1].startswith("eu")]
    places = ("id", "a", "__valid_from_pos", "__valid_to_pos")
    assert sorted(kept) == sorted(tuple(one[name] for name in places) for one in found[Layout.HISTORY])
    assert len({one[0] for one in kept}) == 8


@pytest.mark.spark
def test_what_is_not_a_condition_on_a_row_is_refused(spark) -> None:
    def refused(sql: str, *structures: set[str], is_new: bool = False, names: dict[str, str] | None = None) -> str:
        kinds = (("id", "int"), ("a", "string"), ("at", "date"))
        try:
            require_filter(spark, "d.t", RowFilter(sql, names or {}), kinds, structures, is_new=is_new)
        except SettingsError as error:
            return str(error)
        return ""

    every = {"id", "a", "at"}
    for sql, what in [
        ("region = 'eu'", "cannot be used: [UNRESOLVED_COLUMN"),
        ("a = ", "cannot be used: [PARSE_SYNTAX_ERROR]"),
        ("id", "on the columns id, a, at"),
        ("count(*) > 1", "cannot be used"),
        ("a > rand()", "must depend on the row alone"),
        ("at > current_date()", "must depend on the row alone"),
        ("a = current_user()", "must depend on the row alone"),
        ("id IN (SELECT 1)", "must depend on the row alone"),
    ]:
        error = refused(sql, every)
        assert f"table d.t: --where {sql}" in error
        assert what in error
    for sql in ("`A` LIKE '%current_date()%'", "id IN (1, 2) AND at > DATE'2026-01-01'", "id % 2 = 0 OR a IS NULL"):
        assert refused(sql, every) == ""
    assert refused("b = 'x'", every, names={"b": "a"}) == ""
    # Rows from before a column have its default. What is dropped has no value any more.
    lacking = "column a, which --where a = 'x' uses, was dropped in MySQL"
    assert refused("a = 'x'", {"id"}, every, is_new=True) == ""
    assert lacking in refused("a = 'x'", {"id"}, every)
    assert lacking in refused("a = 'x'", every, {"id"}, every, is_new=True)
    assert lacking in refused("a = 'x'", {"id"}, is_new=True)
    assert refused("id > 1", every, {"id"}) == ""
