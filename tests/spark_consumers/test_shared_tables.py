"""Tables that have the rows of several tables of MySQL (``shard-column`` of ``--job``)."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.spark_consumers.settings import Keyless, Layout, TableRule
from tests.spark_consumers.test_renamed_columns import Structures, columns, row
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

RULE = TableRule(r"s\d[.](.*)", {}, "s.$1", "shard")
NOTE = {"type": "string", "optional": True, "field": "note", "default": "none"}
LAYOUTS = [
    pytest.param(one, marks=pytest.mark.nightly)
    for one in (Layout.SOFT_DELETE, Layout.HISTORY, Layout.APPEND, Layout.ROWS)
]


def shard(number: int, key: bool = True) -> Topic:
    return Topic(f"p.s{number}.t", columns("a"), ["id"] if key else [])


@pytest.mark.parametrize("table_format", ["delta", pytest.param("iceberg", marks=pytest.mark.nightly)])
def test_rows_with_one_key_in_several_shards_stay_apart(run, spark, frame_of, rows_of, tmp_path, table_format) -> None:
    from rowtide.spark_consumers.job import restart_tables
    from rowtide.spark_consumers.settings import Settings
    from rowtide.spark_consumers.stored_tables import stored_table
    from rowtide.spark_consumers.upkeep import Upkeep, keep_tables
    from tests.support.frame_source import FrameSource

    history = Structures("a", "b")
    given: dict[str, Any] = {"format": table_format, "prefix": "p", "rules": [RULE], "structures": history}
    topics = [shard(number) for number in range(1, 4)]
    first, second, third = topics

    def records() -> list[Any]:
        return [record for topic in topics for record in topic.records]

    def update(*expected: dict[str, Any], **others: Any) -> list[Any]:
        outcomes = run(records(), **{**given, **others})
        assert [one.error for one in outcomes.values()] == [None] * len(outcomes)
        same_rows(rows_of(str(tmp_path / "s/t"), table_format), expected)
        return [note for one in outcomes.values() for note in one.notes]

    def of(number: int, *rows: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**one, "shard": f"s{number}.t"} for one in rows]

    for topic in (first, second):
        for number in range(3):
            topic.change("c", None, row(number, a=topic.name), number)
    both = [row(number, a="p.s2.t") for number in range(3)]
    update(*of(1, *({**one, "a": "p.s1.t"} for one in both)), *of(2, *both))
    first.change("u", row(0, a="p.s1.t"), row(0, a="new"), 10)
    first.change("d", row(1, a="p.s1.t"), None, 11)
    first.tombstone({"id": 1})
    third.change("c", None, row(0, a="p.s3.t"), 1)  # a new shard, whose table has other columns
    third.columns = [*columns("a"), NOTE]
    third.change("c", None, row(1, a="p.s3.t", note="mine"), 2)
    rows_1 = [row(0, a="new", note=None), row(2, a="p.s1.t", note=None)]
    rows_2 = [{**one, "note": None} for one in both]
    rows_3 = [row(0, a="p.s3.t", note="none"), row(1, a="p.s3.t", note="mine")]
    update(*of(1, *rows_1), *of(2, *rows_2), *of(3, *rows_3))
    first.columns = [*columns("a"), NOTE]  # its rows get the default, and those of other shards stay
    first.change("c", None, row(5, a="x", note="x"), 20)
    rows_1 = [{**one, "note": "none"} for one in rows_1] + [row(5, a="x", note="x")]
    second.columns = columns("b")  # a renamed column is a new one, because others still have the old name
    second.change("u", row(1, b="p.s2.t"), row(1, b="y"), 20)
    rows_1, rows_3 = ([{**one, "b": None} for one in rows] for rows in (rows_1, rows_3))
    rows_2 = [row(0, a="p.s2.t", b=None, note=None), row(1, a=None, b="y", note=None),
              row(2, a="p.s2.t", b=None, note=None)]  # fmt: skip
    notes = update(*of(1, *rows_1), *of(2, *rows_2), *of(3, *rows_3))
    assert any("the table does not follow them" in note for note in notes)
    first.change("t", None, None, 30)
    first.change("c", None, row(7, a="z", note=None), 31)
    rows_1 = [row(7, a="z", note=None, b=None)]
    update(*of(1, *rows_1), *of(2, *rows_2), *of(3, *rows_3))
    output, state = str(tmp_path), str(tmp_path / "_rowtide")
    found = stored_table(spark, output, state, "p.s2.t", "p", iceberg=table_format == "iceberg")
    assert sorted(one[0] for one in found.rows((("id", "int"),))) == [0, 1, 2], "as verify reads it"
    settings = Settings(output, state, **given)
    restart_tables(spark, FrameSource(frame_of(records())), settings, ["s1.t"], "p[.].*")
    same_rows(rows_of(str(tmp_path / "s/t"), table_format), [*of(2, *rows_2), *of(3, *rows_3)])
    [kept] = keep_tables(spark, settings, Upkeep(optimize=True), "p[.].*")
    assert kept.error is None
    third.columns = [*columns("ab"), NOTE]
    third.change("d", rows_3[1], None, 40)
    update(*of(1, *rows_1), *of(2, *rows_2), *of(3, *rows_3[:1]))


@pytest.mark.parametrize("layout", [*LAYOUTS, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_truncate_of_a_shard_changes_only_its_rows_in_the_other_layouts(run, rows_of, tmp_path, layout) -> None:
    """``rows`` stands for a table without a key, ``None`` for one without a key whose changes are appended."""
    keyless = layout in (Layout.ROWS, None)
    topics = [shard(number, key=not keyless) for number in (1, 2)]
    given: dict[str, Any] = {
        "prefix": "p", "rules": [RULE], "layout": layout or Layout.ROWS,
        "keyless": Keyless.APPEND if layout is None else Keyless.APPLY,
    }  # fmt: skip
    for batch in range(2):
        for topic in topics:
            if batch == 0:
                topic.change("c", None, row(1, a="a"), 1)
                topic.change("c", None, row(2, a="a"), 2)
            else:
                topic.change("u", row(1, a="a"), row(1, a="b"), 3)
                topic.change("t", None, None, 4) if topic is topics[0] else None
                topic.change("c", None, row(3, a="c"), 5)
        outcomes = run([record for topic in topics for record in topic.records], **given)
        assert [one.error for one in outcomes.values()] == [None, None]
    rows = rows_of(str(tmp_path / "s/t"))
    flag = {Layout.SOFT_DELETE: "__deleted", Layout.HISTORY: "__current"}.get(layout, "__op")
    found = [sorted((one["id"] or 0, one["a"], one.get(flag)) for one in rows if one["shard"] == f"s{number}.t")
             for number in (1, 2)]  # fmt: skip
    log = [(1, "a", "c"), (1, "b", "u"), (2, "a", "c"), (3, "c", "c")]
    assert (
        found
        == {
            Layout.SOFT_DELETE: [
                [(1, "b", True), (2, "a", True), (3, "c", False)],
                [(1, "b", False), (2, "a", False), (3, "c", False)],
            ],
            Layout.HISTORY: [
                [(1, "a", False), (1, "b", False), (2, "a", False), (3, "c", True)],
                [(1, "a", False), (1, "b", True), (2, "a", True), (3, "c", True)],
            ],
            Layout.APPEND: [[(0, None, "t"), *log], log],
            None: [[(0, None, "t"), *log], log],
            Layout.ROWS: [[(3, "c", None)], [(1, "b", None), (2, "a", None), (3, "c", None)]],
        }[layout]
    )


def test_tables_that_cannot_be_one_say_why(run, tmp_path) -> None:
    topics = [shard(number) for number in (1, 2)]
    for topic in topics:
        topic.change("c", None, row(1, a="a"), 1)
    given: dict[str, Any] = {"prefix": "p", "rules": [RULE]}
    assert run(topics[0].records, **given)["p.s1.t"].error is None
    other = str(run(topics[1].records, **given, layout=Layout.APPEND)["p.s2.t"].error)
    assert "table s2.t was built without --append, --soft-delete and --history, and this run is with --append" in other
    plain = TableRule(RULE.pattern, {}, RULE.into)
    error = str(run(topics[0].records, prefix="p", rules=[plain])["p.s1.t"].error)
    assert "table s1.t was built with shard-column shard, and this run is without shard-column" in error
    renamed = TableRule(RULE.pattern, {}, RULE.into, "A")
    error = str(run(topics[1].records, prefix="p", rules=[renamed])["p.s2.t"].error)
    assert "table s2.t was built with shard-column shard, and this run is with shard-column A" in error
    taken = TableRule(RULE.pattern, {}, "x.t", "A")
    assert "the shard-column of --job: choose another one" in str(
        run(topics[1].records, prefix="p", rules=[taken])["p.s2.t"].error
    )
