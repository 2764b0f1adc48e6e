"""TRUNCATE of a table whose topic has several partitions, which are read at different speeds."""

from __future__ import annotations

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}


def test_rows_before_a_truncation_do_not_come_back_however_late_their_partition_is_read(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID], key=["id"])
    topic.change("t", None, None, 100)
    topic.change("c", None, {"id": 1}, 101)
    for number in range(10):
        topic.change("c", None, {"id": 10 + number}, number, partition=1)
    topic.change("t", None, None, 50, partition=1)
    topic.change("c", None, {"id": 2}, 102, partition=1)
    assert run(topic.records, max_records=3)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": 1}, {"id": 2}])
    topic.change("c", None, {"id": 30}, 99, partition=1)
    topic.change("c", None, {"id": 3}, 103, partition=1)
    assert run(topic.records, max_records=3)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": 1}, {"id": 2}, {"id": 3}])


def test_a_topic_whose_first_records_are_truncations_gets_no_rows_from_before_them(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID], key=["id"])
    topic.change("t", None, None, 100)
    assert run(topic.records)["p.d.t"].error is None
    topic.change("c", None, {"id": 1}, 99, partition=1)
    topic.change("c", None, {"id": 2}, 101, partition=1)
    assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": 2}])
