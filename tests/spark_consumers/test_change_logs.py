"""TRUNCATE in topics whose changes are appended as rows (``--keyless append``)."""

from __future__ import annotations

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}


@pytest.fixture
def append(run, rows_of, tmp_path):
    """Return a function that runs with ``--keyless append`` and returns operation, position and id of each row."""
    from rowtide.spark_consumers.settings import Keyless

    def rows(topic: Topic, **settings: object) -> list[tuple[str, int, int | None]]:
        outcome = run(topic.records, keyless=Keyless.APPEND, **settings)[topic.name]
        assert outcome.error is None
        if not (tmp_path / topic.name).exists():
            return []
        found = rows_of(str(tmp_path / topic.name))
        return sorted((row["__op"], row["__source_pos"], row["id"]) for row in found)

    return rows


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_a_truncation_that_is_alone_in_its_batch_is_a_row(append, partitions) -> None:
    topic = Topic("p.d.log", [ID])
    topic.change("c", None, {"id": 1}, 10)
    if partitions == 2:
        topic.change("c", None, {"id": 2}, 15, partition=1)
    rows = append(topic)
    topic.change("t", None, None, 20)
    rows.append(("t", 20, None))
    assert append(topic) == rows
    topic.change("t", None, None, 14)  # older than a record of the other partition
    assert sorted([*rows, ("t", 14, None)]) == append(topic)


@pytest.mark.nightly
@pytest.mark.parametrize("partitions", [1, 2])
def test_truncations_in_front_of_the_first_change_are_rows(append, partitions) -> None:
    topic = Topic("p.d.log", [ID])
    topic.change("t", None, None, 20)
    assert append(topic) == [], "it is not known yet whether the table has a key"
    topic.change("t", None, None, 30)
    assert append(topic) == []
    topic.change("c", None, {"id": 1}, 10 if partitions == 2 else 40, partition=partitions - 1)
    rows = [("c", topic_pos := 10 if partitions == 2 else 40, 1), ("t", 20, None), ("t", 30, None)]
    assert append(topic) == rows
    topic.change("c", None, {"id": 2}, topic_pos + 1, partition=partitions - 1)
    assert append(topic) == sorted([*rows, ("c", topic_pos + 1, 2)])


def test_a_truncation_with_other_columns_than_the_rows_beside_it_is_a_row(append) -> None:
    topic = Topic("p.d.log", [ID])
    topic.change("c", None, {"id": 1}, 10)
    topic.columns = [ID, TEXT]
    topic.change("t", None, None, 20)
    topic.columns = [ID]
    topic.change("t", None, None, 30)
    topic.change("c", None, {"id": 2}, 40)
    assert append(topic) == [("c", 10, 1), ("c", 40, 2), ("t", 20, None), ("t", 30, None)]


@pytest.mark.parametrize(
    "built", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["in two batches", "in one batch"]
)
def test_changes_that_a_connector_writes_again_are_rows_once(append, built) -> None:
    topic = Topic("p.d.log", [ID])
    for number in (1, 2):
        topic.change("c", None, {"id": number}, 10 * number)
    topic.change("t", None, None, 30)
    topic.change("c", None, {"id": 4}, 40)
    if built:
        append(topic)
    for record in topic.records[1:]:
        topic.again(record)
    assert append(topic) == [("c", 10, 1), ("c", 20, 2), ("c", 40, 4), ("t", 30, None)]


def test_a_truncation_without_a_schema_is_a_row(append) -> None:
    topic = Topic("p.d.log", [ID], schemas=False)
    schemas = {"p.d.log": {"value": topic._envelope()}}
    topic.change("c", None, {"id": 1}, 10)
    assert append(topic, schemas=schemas) == [("c", 10, 1)]
    topic.change("t", None, None, 20)
    assert append(topic, schemas=schemas) == [("c", 10, 1), ("t", 20, None)]


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_a_truncation_that_is_alone_in_its_batch_empties_a_table_with_a_key(run, rows_of, tmp_path, partitions) -> None:
    from rowtide.spark_consumers.settings import Keyless

    topic = Topic("p.d.t", [ID], key=["id"])
    for number in range(4):
        topic.change("c", None, {"id": number}, number, partition=number % partitions)
    topic.change("t", None, None, 10)
    for records in (topic.records[:-1], topic.records):
        assert run(records, keyless=Keyless.APPEND)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [])
