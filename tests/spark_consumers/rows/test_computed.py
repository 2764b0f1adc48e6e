"""Tables with computed columns (``--compute``)."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.spark_consumers.columns.metadata import metadata_fields
from rowtide.spark_consumers.settings import Layout
from tests.spark_consumers.test_renamed_columns import ID, STEPS, Structures, _crash, columns, row
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

OTHERS = [pytest.param(name, marks=pytest.mark.nightly) for name in ("iceberg", "parquet")]
LAYOUTS = [pytest.param(one, marks=pytest.mark.nightly) for one in (Layout.APPEND, Layout.SOFT_DELETE, None)]


@pytest.mark.parametrize("table_format", ["delta", *OTHERS])
def test_columns_are_computed_from_others_which_the_table_may_lack_through_all_changes(
    run, spark, rows_of, tmp_path, table_format
) -> None:
    """Exchanged names, a new column with a former name, deletions, a TRUNCATE, and another expression."""
    topic, path, history = Topic("p.d.t", columns("abc"), ["id"]), str(tmp_path / "p.d.t"), Structures("abc")
    given: dict[str, Any] = {
        "format": table_format,
        "structures": history,
        "columns": ["id", "c"],
        "computed": {"Both": "concat(a, '-', b)", "twice": "id * 2", "day": "date_add(DATE'2026-01-01', id)"},
        "where": "c <> 'no'",
    }

    def update(*expected: dict[str, Any]) -> None:
        outcome = run(topic.records, **given)["p.d.t"]
        assert outcome.error is None
        found = [{name: value for name, value in one.items() if name != "day"} for one in rows_of(path, table_format)]
        same_rows(found, expected)

    for number in range(3):
        topic.change("c", None, row(number, a=f"a{number}", b="b", c="c"), number)
    topic.change("c", None, row(3, a=None, b="b", c="c"), 3)
    topic.change("c", None, row(4, a="a4", b="b", c="no"), 4)
    update(*(row(number, c="c", both=f"a{number}-b", twice=2 * number) for number in range(3)),
           row(3, c="c", both=None, twice=6))  # fmt: skip
    assert {one["day"].isoformat() for one in rows_of(path, table_format)} == {f"2026-01-0{day}" for day in range(1, 5)}
    topic.columns, history.texts = columns("bacd"), ("abc", "bac", "bacd")  # exchanged, and d is new
    topic.change("u", row(0, b="a0", a="b", c="c", d=None), row(0, b="x", a="y", c="c", d="d"), 10)
    topic.change("d", row(1, b="a1", a="b", c="c", d=None), None, 11)
    topic.tombstone({"id": 1})
    update(row(0, c="c", both="x-y", twice=0), row(2, c="c", both="a2-b", twice=4), row(3, c="c", both=None, twice=6))
    other = {**given, "computed": {"twice": "id * 3"}}
    error = str(run(topic.records, **other)["p.d.t"].error)
    assert "was built with --compute Both=concat(a, '-', b) --compute twice=id * 2" in error
    assert "and this run is with --compute twice=id * 3. The table is as it was" in error
    topic.tombstone({"id": 3})
    update(row(0, c="c", both="x-y", twice=0), row(2, c="c", both="a2-b", twice=4))
    topic.change("t", None, None, 20)
    topic.change("c", None, row(7, b="p", a="q", c="c", d=None), 21)
    update(row(7, c="c", both="p-q", twice=14))
    topic.columns, history.texts = columns("acd"), ("abc", "bac", "bacd", "-acd")
    topic.change("c", None, row(8, a="q", c="c", d=None), 30)
    error = str(run(topic.records, **given)["p.d.t"].error)
    assert "column b, which --compute Both=concat(a, '-', b) uses, was dropped in MySQL" in error
    same_rows([{k: v for k, v in one.items() if k != "day"} for one in rows_of(path, table_format)],
              [row(7, c="c", both="p-q", twice=14)])  # fmt: skip


def test_a_computed_column_becomes_wider_with_its_source_and_can_partition_the_table(run, spark, rows_of, tmp_path):
    from rowtide.spark_consumers.partitioning import expression

    number = {"type": "int16", "optional": True, "field": "n"}
    topic, path = Topic("p.d.t", [ID, number], ["id"]), str(tmp_path / "p.d.t")
    given: dict[str, Any] = {"computed": {"m": "n", "part": "id % 2"}, "partition_by": [expression("part")]}
    topic.change("c", None, row(1, n=3), 1)
    assert run(topic.records, **given)["p.d.t"].error is None
    topic.columns = [ID, {**number, "type": "int64"}]
    topic.change("c", None, row(2, n=3 << 40), 2)
    outcome = run(topic.records, **given)["p.d.t"]
    assert (outcome.error, outcome.widened) == (None, (("n", "smallint", "bigint"), ("m", "smallint", "bigint")))
    same_rows(rows_of(path), [row(1, n=3, m=3, part=1), row(2, n=3 << 40, m=3 << 40, part=0)])
    assert {one.name for one in (tmp_path / "p.d.t").glob("part=*")} == {"part=0", "part=1"}


@pytest.mark.parametrize("layout", [Layout.HISTORY, *LAYOUTS])
def test_the_other_layouts_have_computed_columns(run, rows_of, tmp_path, layout) -> None:
    topic = Topic("p.d.t", columns("ab"), [] if layout is None else ["id"])
    given: dict[str, Any] = {
        "columns": ["id"], "layout": layout or Layout.ROWS, "computed": {"x": "upper(coalesce(a, 'none'))"},
        "metadata": metadata_fields(["op"]),
    }  # fmt: skip
    topic.change("c", None, row(1, a="a", b="b"), 1)
    topic.change("c", None, row(2, a=None, b="b"), 2)
    assert run(topic.records, **given)["p.d.t"].error is None
    topic.change("u", row(1, a="a", b="b"), row(1, a="c", b="b"), 3)
    topic.change("d", row(2, a=None, b="b"), None, 4)
    topic.change("r", None, row(1, a="c", b="b"), 5) if layout is Layout.HISTORY else None
    topic.change("t", None, None, 6) if layout is Layout.APPEND else None
    assert run(topic.records, **given)["p.d.t"].error is None
    rows = rows_of(str(tmp_path / "p.d.t"))
    assert all("a" not in one for one in rows)
    found = sorted((one["__op"], one["id"], one["x"]) for one in rows if one["id"] is not None)
    assert (
        found
        == {
            Layout.APPEND: [("c", 1, "A"), ("c", 2, "NONE"), ("d", 2, "NONE"), ("u", 1, "C")],
            Layout.SOFT_DELETE: [("d", 2, "NONE"), ("u", 1, "C")],
            Layout.HISTORY: [("c", 1, "A"), ("c", 2, "NONE"), ("u", 1, "C")],
            None: [("u", 1, "C")],
        }[layout]
    )
    assert [one["x"] for one in rows if one["id"] is None] == ([None] if layout is Layout.APPEND else [])


def test_what_cannot_be_computed_is_refused(run, tmp_path) -> None:
    topic = Topic("p.d.t", columns("ab"), ["id"])
    topic.change("c", None, row(1, a="a", b="b"), 1)
    for name, sql, what in [
        ("x", "a +", "--compute x=a + cannot be used: [PARSE_SYNTAX_ERROR]"),
        ("x", "no + 1", "--compute x=no + 1 cannot be used: [UNRESOLVED_COLUMN"),
        ("x", "count(*)", "--compute x=count(*) cannot be used: "),
        ("x", "a || rand()", "--compute x=a || rand() must depend on the row alone"),
        ("x", "current_date()", "must depend on the row alone"),
        ("x", "NULL", "--compute x=NULL has the type void: convert it by CAST"),
        ("A", "b", "table p.d.t has another column A: choose another name in --compute"),
        ("__op", "b", "table p.d.t has another column __op: "),
    ]:
        error = str(
            run(topic.records, computed={name: sql}, columns=["id"], metadata=metadata_fields(["op"]))["p.d.t"].error
        )
        assert what in error
        assert not (tmp_path / "p.d.t").exists()
    assert "It is an expression in Spark SQL on the columns id, a, b" in str(
        run(topic.records, computed={"x": "no"})["p.d.t"].error
    )
    fails = run(topic.records, computed={"x": "CAST(a AS int)"})["p.d.t"].error
    assert "[CAST_INVALID_INPUT]" in str(fails)


@pytest.mark.nightly
def test_computed_columns_survive_a_crash_at_each_step_of_a_rename(run, rows_of, tmp_path, monkeypatch) -> None:
    for count, step in enumerate(STEPS):
        topic, history = Topic(f"p.d.t{count}", columns("ab"), ["id"]), Structures("ab")
        given: dict[str, Any] = {"structures": history, "computed": {"x": "concat(a, '.')"}}
        topic.change("c", None, row(1, a="a", b="b"), 1)
        assert run(topic.records, **given)[topic.name].error is None
        topic.columns, history.texts = columns("bad"), ("ab", "bad")  # exchanged, and d is new
        topic.change("c", None, row(2, b="a2", a="b2", d="d"), 20)
        with monkeypatch.context() as patched:
            _crash(step, "delta", patched)
            with pytest.raises(ZeroDivisionError):
                run(topic.records, **given)
        assert run(topic.records, **given)[topic.name].error is None
        same_rows(
            rows_of(str(tmp_path / topic.name)),
            [row(1, b="a", a="b", d=None, x="a."), row(2, b="a2", a="b2", d="d", x="a2.")],
        )
