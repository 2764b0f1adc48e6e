"""Tables of changes (``--append``) and tables that keep deleted rows (``--soft-delete``)."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.spark_consumers.columns.metadata import metadata_fields
from rowtide.spark_consumers.settings import Keyless, Layout
from tests.support.kafka.change_topics import Topic

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
OTHERS = [pytest.param(name, marks=pytest.mark.nightly) for name in ("iceberg", "parquet")]


def row(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "text": text}


def soft_topic() -> Topic:
    """Return changes of which every prefix has another result, with a deletion and its tombstone in any batch."""
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    for number in range(3):
        topic.change("r", None, row(number, "a"), 10)
    topic.change("d", row(0, "a"), None, 20)
    topic.tombstone({"id": 0})
    topic.change("c", None, row(5, "short"), 30)
    topic.change("d", row(5, "short"), None, 40)
    topic.tombstone({"id": 5})
    topic.change("c", None, row(0, "again"), 50)
    topic.change("c", None, row(6, "emptied"), 55)
    topic.change("t", None, None, 60)
    topic.change("c", None, row(2, "after"), 70)
    topic.change("d", row(2, "after"), None, 80)
    topic.tombstone({"id": 2})
    topic.change("c", None, row(7, "last"), 90)
    return topic


EXPECTED = [
    (0, "again", True), (1, "a", True), (2, "after", True), (5, "short", True), (6, "emptied", True), (7, "last", False)
]  # fmt: skip


@pytest.mark.parametrize("table_format", ["delta", *OTHERS])
@pytest.mark.parametrize("most", [None, pytest.param(1, marks=pytest.mark.nightly)], ids=["one batch", "many"])
def test_deleted_rows_stay_and_are_marked_whatever_the_batches(run, rows_of, tmp_path, table_format, most) -> None:
    topic = soft_topic()
    settings: dict[str, Any] = {"format": table_format, "layout": Layout.SOFT_DELETE, "max_records": most}
    for end in (3, 4, len(topic.records)):
        assert run(topic.records[:end], **settings)["p.d.t"].error is None
        if end == 4:  # the deletion without its tombstone
            rows = rows_of(str(tmp_path / "p.d.t"), table_format)
            assert [found["id"] for found in rows if found["__deleted"]] == [0]
    rows = rows_of(str(tmp_path / "p.d.t"), table_format)
    assert sorted((found["id"], found["text"], found["__deleted"]) for found in rows) == EXPECTED


def test_a_tombstone_alone_marks_its_row_and_a_key_that_moved_leaves_its_old_row(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    settings: dict[str, Any] = {"layout": Layout.SOFT_DELETE, "metadata": metadata_fields(["op", "pos"])}
    topic.change("c", None, row(1, "a"), 10)
    topic.change("c", None, row(2, "b"), 20)
    assert run(topic.records, **settings)["p.d.t"].error is None
    topic.tombstone({"id": 1})
    topic.tombstone({"id": 9})
    topic.change("d", row(2, "b"), None, 30)
    topic.tombstone({"id": 2})
    topic.change("c", None, row(3, "b"), 30)
    assert run(topic.records, **settings)["p.d.t"].error is None
    found = [tuple(found[name] for name in ("id", "text", "__deleted", "__op", "__source_pos"))
             for found in rows_of(str(tmp_path / "p.d.t"))]  # fmt: skip
    assert sorted(found) == [(1, "a", True, "c", 10), (2, "b", True, "d", 30), (3, "b", False, "c", 30)]


@pytest.mark.parametrize("table_format", ["delta", *OTHERS])
def test_a_crash_after_any_step_marks_nothing_twice(run, rows_of, tmp_path, monkeypatch, table_format) -> None:
    from rowtide.spark_consumers.batch import _Step
    from rowtide.spark_consumers.state import StateStore

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    topic, steps = soft_topic(), []
    settings: dict[str, Any] = {"format": table_format, "layout": Layout.SOFT_DELETE}
    assert run(topic.records[:3], **settings)["p.d.t"].error is None
    apply = _Step.apply

    def last_step_fails(step: _Step, *arguments: Any) -> Any:
        steps.append(step)
        return fail() if len(steps) == 2 else apply(step, *arguments)

    for name, function in ((_Step, last_step_fails), (StateStore, fail)):
        with monkeypatch.context() as patched:
            patched.setattr(name, "apply" if name is _Step else "finish", function)
            with pytest.raises(ZeroDivisionError):
                run(topic.records, **settings)
    assert run(topic.records, **settings)["p.d.t"].error is None
    rows = rows_of(str(tmp_path / "p.d.t"), table_format)
    assert sorted((found["id"], found["text"], found["__deleted"]) for found in rows) == EXPECTED


@pytest.mark.parametrize("table_format", ["delta", *OTHERS])
def test_every_change_of_a_table_with_a_key_is_a_row_once(run, rows_of, tmp_path, monkeypatch, table_format) -> None:
    from rowtide.spark_consumers import batch
    from rowtide.spark_consumers.rows import multiset

    for module in (batch, multiset):
        monkeypatch.setattr(module, "REPETITION_WINDOW", 4)
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    settings: dict[str, Any] = {"format": table_format, "layout": Layout.APPEND}
    topic.change("t", None, None, 5)
    topic.change("r", None, row(1, "a"), 10)
    topic.change("c", None, row(4, "e"), 12)
    repeated = [topic.change("u", row(1, "a"), row(1, "b"), 20), topic.change("d", row(1, "b"), None, 30)]
    topic.tombstone({"id": 1})
    repeated.append(topic.change("t", None, None, 40))
    repeated.append(topic.change("c", None, row(3, "d"), 45, partition=1))  # its offset is lower than all of these
    assert run(topic.records, **settings)["p.d.t"].error is None
    for record in repeated:
        topic.again(record)
    topic.change("c", None, row(2, "c"), 50, partition=1)
    assert run(topic.records, **settings)["p.d.t"].error is None
    rows = rows_of(str(tmp_path / "p.d.t"), table_format)
    assert sorted((found["__source_pos"], found["__op"], found["id"], found["text"]) for found in rows) == [
        (5, "t", None, None), (10, "r", 1, "a"), (12, "c", 4, "e"), (20, "u", 1, "b"), (30, "d", 1, "b"),
        (40, "t", None, None), (45, "c", 3, "d"), (50, "c", 2, "c"),
    ]  # fmt: skip


@pytest.mark.nightly
def test_another_layout_of_a_table_that_exists_is_refused(run, rows_of, tmp_path) -> None:
    topics = [Topic(f"p.d.{name}", [ID, TEXT], key=["id"]) for name in ("rows", "append", "soft", "history")]
    layouts = list(zip(topics, Layout, strict=True))
    for topic, layout in layouts:
        topic.change("c", None, row(1, "a"), 10)
        assert run(topic.records, layout=layout)[topic.name].error is None
        topic.change("c", None, row(2, "a"), 20)
    for topic, layout in layouts:
        before = rows_of(str(tmp_path / topic.name))
        for other in {*Layout} - {layout}:
            error = str(run(topic.records, layout=other)[topic.name].error)
            assert f"table {topic.name} was built with" in error
            assert f"--restart {topic.name}" in error
        assert rows_of(str(tmp_path / topic.name)) == before
        assert run(topic.records, layout=layout)[topic.name].error is None


def test_tables_without_a_key_have_no_marks_and_no_mixture(run, tmp_path) -> None:
    bag = Topic("p.d.bag", [ID])
    bag.change("c", None, {"id": 1}, 10)
    error = str(run(bag.records, layout=Layout.SOFT_DELETE)["p.d.bag"].error)
    assert "table p.d.bag: it has no key, which --soft-delete needs to find a deleted row" in error
    assert not (tmp_path / "p.d.bag").exists()
    settings: dict[str, Any] = {"layout": Layout.SOFT_DELETE, "keyless": Keyless.APPEND}
    assert run(bag.records, **settings)["p.d.bag"].error is None, "a log of its changes"
    bag.key = ["id"]  # ALTER TABLE ... ADD PRIMARY KEY
    bag.change("c", None, {"id": 2}, 20)
    assert "table p.d.bag was built with --append" in str(run(bag.records, **settings)["p.d.bag"].error)
    mixed = Topic("p.d.mixed", [ID])
    mixed.change("c", None, {"id": 1}, 10)
    mixed.key = ["id"]
    mixed.change("c", None, {"id": 2}, 20)
    error = str(run(mixed.records, keyless=Keyless.APPEND)["p.d.mixed"].error)
    assert "only a part of its records has a key" in error


@pytest.mark.nightly
def test_another_layout_is_refused_also_after_a_crash_of_the_first_batch(run, rows_of, tmp_path, monkeypatch) -> None:
    """Fields of the metadata may have the columns of ``--append``, so that columns do not tell."""
    from rowtide.spark_consumers.state import StateStore

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    fields = metadata_fields(("op", "ts_ms", "file", "pos", "row"))
    for layout, other in ((Layout.HISTORY, Layout.ROWS), (Layout.SOFT_DELETE, Layout.ROWS), (Layout.ROWS, None)):
        topic = Topic(f"p.d.{layout}", [ID, TEXT], key=["id"])
        topic.change("c", None, row(1, "a"), 10)
        with monkeypatch.context() as patched:
            patched.setattr(StateStore, "finish", fail)
            with pytest.raises(ZeroDivisionError):
                run(topic.records, layout=layout, metadata=fields)
        if other is not None:
            error = run(topic.records, layout=other, metadata=fields)[topic.name].error
            assert f"was built with --{layout}, and this run is without" in str(error)
        topic.change("u", row(1, "a"), row(1, "b"), 20)
        assert run(topic.records, layout=layout, metadata=fields)[topic.name].error is None
        found = {"a": False, "b": True} if layout is Layout.HISTORY else {"b": None}
        rows = rows_of(str(tmp_path / topic.name))
        assert {one["text"]: one.get("__current") for one in rows} == found
