"""Batches in one pass, and those that turn out to need several: the table and the counters are the same."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, same_rows

if TYPE_CHECKING:
    from tests.support.recordings.recorded_tables import Recorded

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
ADDED = {"type": "string", "optional": True, "field": "added"}
ROWS = 40
"""More than the sample has at either end."""


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Take batches of any size for large ones, and return whether each was applied in one pass."""
    from rowtide.spark_consumers import job
    from rowtide.spark_consumers.batch import TableBatch

    found: list[bool] = []
    in_one_pass = TableBatch._apply_in_one_pass

    def apply(self: TableBatch, *arguments: Any) -> Any:
        applied = in_one_pass(self, *arguments)
        found.append(applied is not None)
        return applied

    monkeypatch.setattr(job, "is_small", lambda _records: False)
    monkeypatch.setattr(TableBatch, "_apply_in_one_pass", apply)
    return found


def snapshot(name: str = "p.d.t") -> Topic:
    """Return a topic with a snapshot."""
    topic = Topic(name, [ID, TEXT], key=["id"])
    for number in range(ROWS):
        topic.change("r", None, {"id": number, "text": f"row {number}"}, number)
    return topic


def change_rows(topic: Topic, seed: int) -> None:
    """Append changes of random rows: several of a row, deletions with and without tombstones, new rows."""
    chance, rows = random.Random(seed), {row["id"]: row for row in fold(topic.records)}
    for pos in range(1000, 1000 + ROWS):
        number = chance.randrange(ROWS + 10)
        old, new = rows.get(number), {"id": number, "text": f"at {pos}"}
        if old is None:
            topic.change("c", None, new, pos)
        elif pos % 3:
            topic.change("u", old, new, pos)
        else:
            topic.change("d", old, None, pos)
            if pos % 2:
                topic.tombstone({"id": number})
            del rows[number]
            continue
        rows[number] = new


def read(records: list[Recorded]) -> Counter[str]:
    """Return the number of records by operation."""
    return Counter(
        "tombstone" if record.value is None else json.loads(record.value)["payload"]["op"] for record in records
    )


@pytest.mark.parametrize("table_format", ["delta", pytest.param("parquet", marks=pytest.mark.nightly)])
def test_a_table_is_built_and_updated_in_one_pass(run, rows_of, tmp_path, passes, table_format) -> None:
    topic = snapshot()
    change_rows(topic, 1)
    built = len(topic.records)
    outcome = run(topic.records, format=table_format)["p.d.t"]
    assert (outcome.error, outcome.read) == (None, read(topic.records))
    same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), fold(topic.records))

    change_rows(topic, 2)
    outcome = run(topic.records, format=table_format)["p.d.t"]
    assert (outcome.error, outcome.read) == (None, read(topic.records[built:]))
    same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), fold(topic.records))
    assert passes == [True, True]


def moved_key(topic: Topic) -> None:
    """Write a key to a second partition."""
    topic.change("u", None, {"id": 7, "text": "here"}, 1999)
    topic.change("u", None, {"id": 7, "text": "moved"}, 2000, partition=1)


def truncation(topic: Topic) -> None:
    """Write a TRUNCATE, and rows after it."""
    topic.change("t", None, None, 2000)
    for number in range(ROWS):
        topic.change("c", None, {"id": number, "text": "again"}, 2001 + number)


def new_column(topic: Topic) -> None:
    """Write a record with another schema between others."""
    topic.columns = [ID, TEXT, ADDED]
    topic.change("u", None, {"id": 7, "text": "new column", "added": "x"}, 2000)
    topic.columns = [ID, TEXT]
    for number in range(ROWS):
        topic.change("u", None, {"id": 10 + number, "text": "dropped"}, 2001 + number)


def other_form(topic: Topic) -> None:
    """Write a record whose schemas are written in another way."""
    record = topic.change("u", None, {"id": 7, "text": "spaces"}, 2000)
    record.value = str(record.value).replace('{"schema":', '{ "schema" : ', 1)
    for number in range(ROWS):
        topic.change("u", None, {"id": 10 + number, "text": "usual"}, 2001 + number)


@pytest.mark.nightly
def test_a_batch_that_differs_from_its_sample_takes_several_passes(run, rows_of, tmp_path, passes) -> None:
    built, new = (moved_key, new_column), (truncation, other_form)
    topics = {write: snapshot(f"p.d.{write.__name__}") for write in (*built, *new)}
    run([record for write in built for record in topics[write].records])
    assert passes == [True] * 2
    for write, topic in topics.items():
        change_rows(topic, 3)
        write(topic)
    outcomes = run([record for topic in topics.values() for record in topic.records])
    assert passes[2:] == [False] * 4
    for write, topic in topics.items():
        outcome = outcomes[topic.name]
        assert (outcome.error, outcome.read) == (None, read(topic.records[ROWS if write in built else 0 :]))
        found = [without_added(row) for row in rows_of(str(tmp_path / topic.name))]
        same_rows(found, [without_added(row) for row in fold(topic.records)])


def without_added(row: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the snapshot."""
    return {name: value for name, value in row.items() if name != "added"}


def test_an_unknown_operation_is_an_error(run, passes) -> None:
    topic = snapshot()
    topic.change("x", None, {"id": 1, "text": None}, 2000)
    change_rows(topic, 4)
    outcome = run(topic.records)["p.d.t"]
    assert "unknown operation 'x'" in str(outcome.error)
    assert passes == [False]


def test_a_batch_that_a_crash_left_without_offsets_is_counted(run, rows_of, tmp_path, passes, monkeypatch) -> None:
    from rowtide.spark_consumers.jvm import driver
    from rowtide.spark_consumers.state import StateStore

    monkeypatch.setattr(driver, "_OBSERVATION_WAIT_S", 0.1)
    topic = snapshot()
    with monkeypatch.context() as patched:
        patched.setattr(StateStore, "finish", crash)
        with pytest.raises(ZeroDivisionError):
            run(topic.records)
    outcome = run(topic.records)["p.d.t"]
    assert (outcome.error, outcome.read) == (None, {"r": ROWS})
    assert passes == [True, True]
    same_rows(rows_of(str(tmp_path / "p.d.t")), fold(topic.records))


def crash(*_: object) -> None:
    """End the run."""
    raise ZeroDivisionError
