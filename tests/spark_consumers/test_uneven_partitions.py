"""Topics with several partitions, of which one is read further than the others."""

from __future__ import annotations

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
NOTE = {"type": "string", "optional": True, "field": "note"}
SIZE = {"type": "int32", "optional": False, "default": 5, "field": "size"}


def test_records_from_before_a_new_column_take_no_values_from_it(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID], key=["id"])
    for number in range(10):
        topic.change("c", None, {"id": 10 + number}, number, partition=1)
    topic.columns = [ID, NOTE, SIZE]
    topic.change("c", None, {"id": 1, "note": "a", "size": 1}, 100)
    topic.change("c", None, {"id": 2, "note": "b", "size": 2}, 101, partition=1)
    assert run(topic.records, max_records=3)["p.d.t"].error is None
    old = [{"id": 10 + number, "note": None, "size": 5} for number in range(10)]
    rows = [{"id": 1, "note": "a", "size": 1}, {"id": 2, "note": "b", "size": 2}]
    same_rows(rows_of(str(tmp_path / "p.d.t")), [*old, *rows])
