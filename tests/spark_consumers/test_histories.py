"""Tables of all versions of rows (``--history``)."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowtide.spark_consumers.columns.metadata import metadata_fields
from rowtide.spark_consumers.settings import ChangeKind, ChangePolicy, Keyless, Layout
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.histories import Place, histories

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
NOTE = {"type": "string", "optional": True, "field": "note", "default": "none"}
OTHERS = [pytest.param(name, marks=pytest.mark.nightly) for name in ("iceberg", "parquet")]


def row(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "text": text}


def place(found: dict[str, Any], side: str) -> Place | None:
    micros, *rest = (found[f"__valid_{side}{name}"] for name in ("", "_file", "_pos", "_row"))
    if side == "to":
        assert found["__current"] == (micros is None)
    return None if micros is None else (micros // 1000, *rest)


def versions(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    found = [(*(one[name] for name in names or ("id", "text")), place(one, "from"), place(one, "to")) for one in rows]
    return sorted(found, key=repr)


def expected(topic: Topic, *names: str) -> list[tuple[Any, ...]]:
    return sorted((one.flat(names or ("id", "text")) for one in histories(topic.records)), key=repr)


def at(pos: int, row: int = 0, file: int | None = 1) -> Place:
    return pos, file, pos, row


@pytest.fixture
def keep(run, rows_of, tmp_path):
    """Return a function that runs with ``--history`` and returns the versions in the table."""

    def rows(
        topic: Topic, end: int | None = None, names: tuple[str, ...] = (), **options: Any
    ) -> list[tuple[Any, ...]]:
        outcome = run(topic.records[:end], layout=Layout.HISTORY, **options)[topic.name]
        assert outcome.error is None
        return versions(rows_of(str(tmp_path / topic.name), options.get("format", "delta")), *names)

    return rows


@pytest.mark.parametrize("table_format", ["delta", *OTHERS])
def test_versions_begin_and_end_where_records_say_it(keep, table_format) -> None:
    topic, options = Topic("p.d.t", [ID, TEXT], key=["id"]), {"format": table_format}
    for number in range(3):
        topic.change("r", None, row(number, "a"), 10)
    topic.change("u", row(0, "a"), row(0, "b"), 20)  # two versions in the same event
    topic.change("u", row(0, "b"), row(0, "c"), 20, row=1)
    begin = [(0, "a", at(10), at(20)), (0, "b", at(20), at(20, 1))]
    others = [(number, "a", at(10), None) for number in (1, 2)]
    assert keep(topic, **options) == [*begin, (0, "c", at(20, 1), None), *others]
    topic.change("d", row(1, "a"), None, 30)
    topic.tombstone({"id": 1})
    topic.change("c", None, row(1, "again"), 40)
    topic.change("d", row(2, "a"), None, 50)  # its key changes to 5
    topic.tombstone({"id": 2})
    topic.change("c", None, row(5, "a"), 50)
    topic.change("t", None, None, 60, file=2)
    topic.change("c", None, row(0, "d"), 70, file=2)
    topic.change("r", None, row(0, "d"), 80, file=2)  # an incremental snapshot reads it again
    found = [
        *begin, (0, "c", at(20, 1), at(60, file=2)), (0, "d", at(70, file=2), None),
        (1, "a", at(10), at(30)), (1, "again", at(40), at(60, file=2)),
        (2, "a", at(10), at(50)), (5, "a", at(50), at(60, file=2)),
    ]  # fmt: skip
    assert keep(topic, **options) == found == expected(topic)
    topic.change("t", None, None, 90, file=2)
    assert keep(topic, **options) == expected(topic), "a batch of a TRUNCATE alone"


@pytest.mark.nightly
def test_columns_of_later_structures_have_their_default_in_current_versions_only(keep) -> None:
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    for number in range(4):
        topic.change("c", None, row(number, "a"), 10 + number)
    topic.change("u", row(0, "a"), row(0, "b"), 20)  # what has ended has no column that is added later
    early = len(topic.records)
    topic.change("u", row(3, "a"), row(3, "c"), 25)  # neither if it ends in the batch that adds the column
    topic.columns = [ID, TEXT, NOTE]
    topic.change("u", {**row(1, "a"), "note": "none"}, {**row(1, "b"), "note": "mine"}, 30)
    topic.columns = [ID, TEXT]
    topic.change("u", row(2, "a"), row(2, "b"), 40)
    topic.columns = [ID, {**TEXT, "type": "int32"}, NOTE]  # text keeps its type, which is wider
    topic.change("u", {"id": 3, "text": 1, "note": "none"}, {"id": 3, "text": 2, "note": "none"}, 50)
    names = ("id", "text", "note")
    found = [
        (0, "a", None, at(10), at(20)), (0, "b", "none", at(20), None),
        (1, "a", "none", at(11), at(30)), (1, "b", "none", at(30), None),
        (2, "a", "none", at(12), at(40)), (2, "b", "none", at(40), None),
        (3, "2", "none", at(50), None), (3, "a", None, at(13), at(25)), (3, "c", "none", at(25), at(50)),
    ]  # fmt: skip
    assert keep(topic, early, ("id", "text")) == expected_until(topic, early)
    assert keep(topic, None, names) == found


def expected_until(topic: Topic, end: int) -> list[tuple[Any, ...]]:
    return sorted((one.flat(("id", "text")) for one in histories(topic.records[:end])), key=repr)


@pytest.mark.nightly
def test_a_renamed_column_has_its_new_name_in_all_versions(keep) -> None:
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    history = [{"id": 1, "text": 2}, {"id": 1, "words": 2}]
    options: dict[str, Any] = {"structures": lambda _topic: history, "names": ("id", "words")}
    topic.change("c", None, row(1, "a"), 10)
    topic.change("u", row(1, "a"), row(1, "b"), 20)
    topic.change("c", None, row(2, "a"), 25)
    keep(topic, structures=options["structures"])
    topic.columns = [ID, {**TEXT, "field": "words"}]
    topic.change("u", {"id": 1, "words": "b"}, {"id": 1, "words": "c"}, 30)
    assert keep(topic, **options) == [
        (1, "a", at(10), at(20)), (1, "b", at(20), at(30)), (1, "c", at(30), None), (2, "a", at(25), None)
    ]  # fmt: skip


def test_repeated_records_are_known_by_content_and_place_and_rereads_by_content(keep, monkeypatch) -> None:
    from rowtide.spark_consumers import batch
    from rowtide.spark_consumers.rows import multiset

    for module in (batch, multiset):
        monkeypatch.setattr(module, "REPETITION_WINDOW", 6)
    columns = [ID, {**TEXT, "name": "io.debezium.data.Json"}, {"type": "float", "optional": True, "field": "f"}]
    topic = Topic("p.d.t", columns, key=["id"])

    def values(text: str, number: float) -> dict[str, Any]:
        return {"id": 1, "text": text, "f": number}

    topic.change("c", None, values('{"a":1}', 0.1), 10)
    repeated = [topic.change("u", values('{"a":1}', 0.1), values('{"a":1}', 3.1415927), 20)]
    repeated.append(topic.change("d", values('{"a":1}', 3.1415927), None, 30))
    repeated.append(topic.tombstone({"id": 1}))
    repeated.append(topic.change("c", None, values('{"a":1}', 3.1415927), 40))
    found = keep(topic)
    for record in repeated:
        topic.again(record)
    topic.change("r", None, values('{"a": 1}', 3.14159), 50)  # the server's text, and six digits
    assert keep(topic) == found
    topic.change("u", values('{"a":1}', 3.1415927), values('{"a":2}', 3.1415927), 40)  # the place of another change
    topic.change("r", None, values('{"a": 3}', 3.14159), 60)
    last = sorted(keep(topic), key=lambda one: one[2])[-3:]
    assert [(text, begin[0], end and end[0]) for _, text, begin, end in last] == [
        ('{"a":1}', 40, 40), ('{"a":2}', 40, 60), ('{"a": 3}', 60, None)
    ]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_a_crash_after_any_step_repeats_no_version(keep, run, monkeypatch, table_format) -> None:
    from rowtide.spark_consumers.batch import _Step
    from rowtide.spark_consumers.state import StateStore

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    topic, steps = Topic("p.d.t", [ID, TEXT], key=["id"]), []
    options: dict[str, Any] = {"format": table_format}
    topic.change("c", None, row(1, "a"), 10)
    topic.change("c", None, row(2, "b"), 20)
    keep(topic, **options)
    topic.change("u", row(1, "a"), row(1, "b"), 30)
    topic.change("t", None, None, 40)
    topic.key = ["text"]  # the key changes: the batch has two steps
    topic.change("c", None, row(3, "b"), 50)
    topic.tombstone({"text": "z"})  # of a row that there never was
    topic.change("u", row(3, "b"), row(4, "b"), 60)
    apply = _Step.apply

    def last_step_fails(step: _Step, *arguments: Any) -> Any:
        steps.append(step)
        return fail() if len(steps) == 2 else apply(step, *arguments)

    for owner, name, function in ((_Step, "apply", last_step_fails), (StateStore, "finish", fail)):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, function)
            with pytest.raises(ZeroDivisionError):
                run(topic.records, layout=Layout.HISTORY, **options)
    assert keep(topic, **options) == [
        (1, "a", at(10), at(30)), (1, "b", at(30), at(40)), (2, "b", at(20), at(40)),
        (3, "b", at(50), at(60)), (4, "b", at(60), None),
    ]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("table_format", ["delta", "iceberg", "parquet"])
def test_a_crash_after_a_column_was_added_leaves_no_default_in_ended_versions(
    keep, run, monkeypatch, table_format
) -> None:
    from rowtide.spark_consumers.batch import _Step

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    topic, options = Topic("p.d.t", [ID, TEXT], key=["id"]), {"format": table_format}
    for number in (1, 2):
        topic.change("c", None, row(number, "a"), 10 * number)
    keep(topic, **options)
    topic.change("u", row(1, "a"), row(1, "b"), 30)
    topic.columns = [ID, TEXT, NOTE]
    topic.change("c", None, {**row(3, "c"), "note": "mine"}, 40)
    with monkeypatch.context() as patched:
        patched.setattr(_Step, "apply", fail)
        with pytest.raises(ZeroDivisionError):
            run(topic.records, layout=Layout.HISTORY, **options)
    names = ("id", "text", "note")
    assert keep(topic, None, names, **options) == expected(topic, *names) == [
        (1, "a", None, at(10), at(30)), (1, "b", "none", at(30), None), (2, "a", "none", at(20), None),
        (3, "c", "mine", at(40), None),
    ]  # fmt: skip


@pytest.mark.nightly
def test_what_has_no_order_stops_the_table(run, keep) -> None:
    topic, options = Topic("p.d.t", [ID, TEXT], key=["id"]), {"layout": Layout.HISTORY}
    topic.change("c", None, row(1, "a"), 10)
    topic.change("c", None, row(2, "a"), 20, partition=1)
    keep(topic)
    topic.change("u", row(1, "a"), row(1, "b"), 30)
    topic.change("u", row(2, "a"), row(2, "b"), 25, partition=1)
    found = keep(topic)
    assert found == [
        (1, "a", at(10), at(30)), (1, "b", at(30), None), (2, "a", at(20), at(25)), (2, "b", at(25), None)
    ]  # fmt: skip
    topic.change("t", None, None, 40)
    assert "has 2 partitions and a TRUNCATE" in str(run(topic.records, **options)["p.d.t"].error)
    ignored = ChangePolicy(exclude=(ChangeKind.TRUNCATE_TABLE,))
    assert keep(topic, changes=ignored) == found
    topic.change("u", row(1, "b"), row(1, "c"), 27, partition=1)  # older than the change in the other partition
    error = str(run(topic.records, **options)["p.d.t"].error)
    assert "records of the same key are in several partitions of its topic" in error
    compacted = Topic("p.d.compacted", [ID, TEXT], key=["id"])
    compacted.change("c", None, row(1, "a"), 10)
    compacted.change("c", None, row(2, "a"), 20)
    compacted.tombstone({"id": 3})
    compacted.tombstone({"id": 2})
    error = str(run(compacted.records, **options)["p.d.compacted"].error)
    assert "has a tombstone without the record of the deletion at partition 0, offset 3" in error


@pytest.mark.nightly
def test_tables_without_a_key_have_no_history_and_metadata_is_of_the_begin(run, rows_of, keep, tmp_path) -> None:
    bag = Topic("p.d.bag", [ID])
    bag.change("c", None, {"id": 1}, 10)
    error = str(run(bag.records, layout=Layout.HISTORY)["p.d.bag"].error)
    assert "table p.d.bag: it has no key, by which --history finds the versions of a row" in error
    assert run(bag.records, layout=Layout.HISTORY, keyless=Keyless.APPEND)["p.d.bag"].error is None
    topic, fields = Topic("p.d.t", [ID, TEXT], key=["id"]), metadata_fields(["op", "kafka.offset"])
    topic.change("r", None, row(1, "a"), 10, file=None)
    keep(topic, metadata=fields)
    topic.change("u", row(1, "a"), row(1, "b"), 20)
    topic.change("d", row(1, "b"), None, 30)
    names = ("id", "text", "__op", "__kafka_offset")
    assert keep(topic, None, names, metadata=fields) == [
        (1, "a", "r", 0, at(10, file=None), at(20)), (1, "b", "u", 1, at(20), at(30))
    ]  # fmt: skip
    topic.columns = [ID, {**TEXT, "field": "__VALID_TO"}]
    topic.change("c", None, {"id": 1, "__VALID_TO": "x"}, 40)
    error = str(run(topic.records, layout=Layout.HISTORY, metadata=fields)["p.d.t"].error)
    assert "has a column __valid_to in MySQL, which --history needs" in error


ROUNDS = int(os.environ.get("ROWTIDE_CAMPAIGN", "3"))
CHANGES = st.lists(
    st.tuples(st.sampled_from("rccuuuddt+*"), st.integers(0, 5), st.sampled_from("ab"), st.integers(0, 3)),
    min_size=1,
    max_size=60,
)
"""``+`` adds a column, and then drops it, ``*`` writes the last records again."""


def written(name: str, changes: list[tuple[str, int, str, int]], partitions: int) -> Topic:
    topic, structures = Topic(name, [ID, TEXT], key=["id"]), 0
    for pos, (what, number, text, size) in enumerate(changes, 1):
        if partitions > 1 and what in "t+":  # which have no order
            continue
        if what == "+":
            topic.columns = [ID, TEXT, NOTE] if structures == 0 else [ID, TEXT]
            structures += 1
            continue
        if what == "*":
            again = [one for one in topic.records[len(topic.records) - size :] if '"op":"r"' not in str(one.value)]
            for record in again[1:] if again and again[0].value is None else again:
                topic.again(record)
            continue
        after = {**row(number, text), "note": text * 2} if len(topic.columns) == 3 else row(number, text)
        images = (None if what in "rct" else after, None if what in "dt" else after)
        topic.change(what, *images, pos, partition=number % partitions)
        if what == "d":
            topic.tombstone({"id": number}, partition=number % partitions)
    return topic


@pytest.mark.nightly
@pytest.mark.parametrize(("table_format", "partitions"), [("delta", 1), ("delta", 2), ("iceberg", 1), ("parquet", 1)])
def test_any_changes_in_any_batches_give_the_versions_that_they_give_one_by_one(
    run, rows_of, tmp_path, table_format, partitions
) -> None:
    numbers, options = count(), {"layout": Layout.HISTORY, "format": table_format}

    @settings(max_examples=5 * ROUNDS, suppress_health_check=[HealthCheck.too_slow])
    @given(CHANGES, st.lists(st.integers(1, 60), max_size=3))
    def compare(changes: list[tuple[str, int, str, int]], cuts: list[int]) -> None:
        topic = written(f"p.d.t{next(numbers)}", changes, partitions)
        for end in sorted({*(cut for cut in cuts if cut < len(topic.records)), len(topic.records)} - {0}):
            (outcome,) = run(topic.records[:end], **options).values()
            assert outcome.error is None
        names = ("id", "text", "note")
        rows = rows_of(str(tmp_path / topic.name), table_format) if (tmp_path / topic.name).exists() else []
        assert versions([{"note": None, **one} for one in rows], *names) == expected(topic, *names)

    compare()
