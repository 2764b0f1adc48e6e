"""Tables that have only some of the columns (``--columns``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rowtide.spark_consumers.columns.conversion import ConverterSettings
from rowtide.spark_consumers.errors import ProjectionError, SettingsError
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion, value_version
from rowtide.spark_consumers.rows.projection import (
    after_renames,
    chosen,
    of_new_table,
    require_key,
    require_same_columns,
)
from rowtide.spark_consumers.rows.renames import renamed
from rowtide.spark_consumers.settings import Layout
from rowtide.spark_consumers.state import ColumnNames, Projection
from tests.spark_consumers.test_renamed_columns import STEPS, Structures, _crash, columns, row
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

OTHERS = [pytest.param(name, marks=pytest.mark.nightly) for name in ("iceberg", "parquet")]


def version(names: str) -> ValueVersion:
    return value_version(1, Topic("p.d.t", columns(names))._envelope(), ConverterSettings(False), "p.d.t")


def after(*of: dict[str, str], given: str = "ac") -> list[str | None]:
    return [*after_renames(Projection(tuple(given), tuple(given)), ColumnNames(of, len(of) - 1)).current]


def test_chosen_columns_stay_chosen_under_other_names() -> None:
    assert after({"a": "a", "b": "b", "c": "C"}) == ["a", "C"]
    assert after({"a": "x", "b": "a", "c": "c"}) == ["x", "c"], "another column has the name"
    assert after({"a": "c", "c": "a"}) == ["c", "a"]
    assert after({"a": "c"}, {"c": "c"}) == ["c", None], "c was dropped, and a has its name"
    assert after({"a": "a", "x": "c"}, {"a": "a", "c": "c"}) == ["a", None]
    assert after({"a": "a"}, {"a": "a", "d": "c"}, {"a": "a", "c": "c"}) == ["a", None], "d was new in between"
    assert after({"a": "a"}, {"a": "a", "c": "c"}) == ["a", "c"], "dropped and added again"
    gone = Projection(("a",), (None,))
    assert after_renames(gone, ColumnNames([{"a": "a"}], 0)) == gone


def test_a_new_table_may_have_columns_by_names_of_older_records() -> None:
    older = replace(version("ab"), columns=renamed(version("ab").columns, {"id": "id", "a": "c", "b": "b"}))
    assert of_new_table("d.t", ["ID", "a"], [], [older]) == Projection(("ID", "a"), ("id", "c"))
    assert of_new_table("d.t", ["a"], [], [older, version("a")]).current == ("a",), "a new column"
    shard = KeyVersion(1, version("d").columns[1:])
    assert of_new_table("d.t", ["id", "d"], [shard], [older]).current == ("id", "d"), "a column that only keys have"
    with pytest.raises(SettingsError, match=r"names no, x, which its records do not have; they have id, c, b$"):
        of_new_table("d.t", ["no", "id", "x"], [], [older])
    assert [column.name for column in chosen(older.columns, Projection(("c",), ("C",)))] == ["c"]


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(SettingsError, match=r"--columns does not name id, which belongs to the key"):
        require_key("d.t", Projection(("a",), ("a",)), [KeyVersion(1, version("").columns)])
    found = Projection(("id", "a"), ("id", "x"))
    require_same_columns("d.t", found, ["A", "id"])
    require_same_columns("d.t", None, [])
    with pytest.raises(ProjectionError, match="built with --columns id,a, and this run is without --columns"):
        require_same_columns("d.t", found, [])


@pytest.mark.spark
@pytest.mark.parametrize("table_format", ["delta", *OTHERS])
def test_a_table_has_the_chosen_columns_through_all_changes(run, rows_of, tmp_path, table_format) -> None:
    """A rename by id, another column with the old name, a new and a dropped column."""
    topic, path, history = Topic("p.d.t", columns("abc"), ["id"]), str(tmp_path / "p.d.t"), Structures("abc")
    given: dict[str, Any] = {"format": table_format, "structures": history, "columns": ["a", "id"]}
    topic.change("c", None, row(1, a="a1", b="b1", c="c1"), 1)
    topic.change("c", None, row(2, a="a2", b="b2", c="c2"), 2)
    error = run(topic.records, **{**given, "columns": ["a", "b"]})["p.d.t"].error
    assert "--columns does not name id, which belongs to the key" in str(error)
    assert run(topic.records, **given)["p.d.t"].error is None
    same_rows(rows_of(path, table_format), [row(1, a="a1"), row(2, a="a2")])
    topic.columns, history.texts = columns("dacb"), ("abc", "dac", "dacb")  # a, b: d, a; a new b
    topic.change("u", row(1, d="a1", a="b1", c="c1", b=None), row(1, d="x1", a="b1", c="c1", b="n"), 20)
    topic.change("d", row(2, d="a2", a="b2", c="c2", b=None), None, 21)
    topic.change("c", None, row(3, d="a3", a="b3", c="c3", b="n"), 22)
    outcome = run(topic.records, **given)["p.d.t"]
    assert (outcome.error, outcome.renamed, outcome.added) == (None, (("a", "d"),), ())
    same_rows(rows_of(path, table_format), [row(1, d="x1"), row(3, d="a3")])
    assert "was built with --columns a,id, and this run is without" in str(
        run(topic.records, **{**given, "columns": ()})["p.d.t"].error
    )
    topic.columns, history.texts = columns("acb"), ("abc", "dac", "dacb", "-acb")
    topic.change("u", row(1, a="b1", c="c1", b="n"), row(1, a="b", c="c", b="b"), 30)
    outcome = run(topic.records, **given)["p.d.t"]
    assert outcome.error is None
    assert any("d of --columns was dropped" in note for note in outcome.notes)
    same_rows(rows_of(path, table_format), [row(1, d=None), row(3, d="a3")])


@pytest.mark.spark
@pytest.mark.nightly
def test_the_other_layouts_have_the_chosen_columns(run, rows_of, tmp_path) -> None:
    for layout in (Layout.APPEND, Layout.SOFT_DELETE, Layout.HISTORY, None):
        topic = Topic(f"p.d.{layout}", columns("ab"), [] if layout is None else ["id"])
        given: dict[str, Any] = {"columns": ["id", "b"], "layout": layout or Layout.ROWS, "where": "b <> 'no'"}
        topic.change("c", None, row(1, a="a", b="b"), 1)
        topic.change("c", None, row(1, a="c", b="b"), 2) if layout is None else None
        topic.change("u", row(1, a="a", b="b"), row(1, a="x", b="b"), 3)
        topic.change("u", row(1, a="x", b="b"), row(1, a="x", b="y"), 4)
        assert run(topic.records, **given)[topic.name].error is None
        topic.change("c", None, row(2, a="x", b="z"), 5)
        topic.change("d", row(2, a="x", b="z"), None, 6)
        assert run(topic.records, **given)[topic.name].error is None
        rows = rows_of(str(tmp_path / topic.name))
        assert all("a" not in one for one in rows)
        found = sorted((one["id"], one["b"]) for one in rows)
        assert (
            found
            == {
                Layout.APPEND: [(1, "b"), (1, "b"), (1, "y"), (2, "z"), (2, "z")],
                Layout.SOFT_DELETE: [(1, "y"), (2, "z")],
                Layout.HISTORY: [(1, "b"), (1, "b"), (1, "y"), (2, "z")],
                None: [(1, "b"), (1, "y")],
            }[layout]
        )


@pytest.mark.spark
@pytest.mark.nightly
def test_the_choice_survives_a_crash_at_each_step_of_a_rename(run, rows_of, tmp_path, monkeypatch) -> None:
    for count, step in enumerate(STEPS):
        topic, history = Topic(f"p.d.t{count}", columns("ab"), ["id"]), Structures("ab")
        given: dict[str, Any] = {"structures": history, "columns": ["id", "a"]}
        for number in range(3):
            topic.change("c", None, row(number, a=f"a{number}", b="b"), number)
        assert run(topic.records, **given)[topic.name].error is None
        topic.columns, history.texts = columns("bad"), ("ab", "bad")  # exchanged, and d is new
        topic.change("u", row(0, b="a0", a="b", d=None), row(0, b="x", a="y", d="d"), 20)
        with monkeypatch.context() as patched:
            _crash(step, "delta", patched)
            with pytest.raises(ZeroDivisionError):
                run(topic.records, **given)
        assert run(topic.records, **given)[topic.name].error is None
        topic.change("c", None, row(5, b="new", a="no", d="no"), 22)
        assert run(topic.records, **given)[topic.name].error is None
        expected = [row(0, b="x"), row(1, b="a1"), row(2, b="a2"), row(5, b="new")]
        same_rows(rows_of(str(tmp_path / topic.name)), expected)
