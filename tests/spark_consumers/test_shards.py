"""Tables of several databases in one topic, which ByLogicalTableRouter tells apart by a field of the key."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.spark_consumers.settings import ChangeKind, ChangePolicy
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import Recorded, same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
FIELD = "__dbz__physicalTableIdentifier"


class Shards(Topic):
    """A topic whose keys also have the table."""

    table = "s1"

    def _key_schema(self) -> list[Any]:
        return [*super()._key_schema(), {"type": "string", "optional": False, "field": FIELD}]

    def _write(self, partition: int, key: Any, payload: Any) -> Recorded:
        return super()._write(partition, key and {**key, FIELD: self.table}, payload)


def test_rows_of_each_database_are_kept_apart_and_a_truncation_stops_the_table(run, rows_of, tmp_path) -> None:
    topic = Shards("p.d.t", [ID, TEXT], key=["id"])
    for number, topic.table in enumerate(("s1", "s2")):
        for key in (1, 2):
            topic.change("c", None, {"id": key, "text": topic.table}, 10 * key + number)
    topic.table = "s1"
    topic.change("u", {"id": 1, "text": "s1"}, {"id": 1, "text": "new"}, 30)
    topic.change("d", {"id": 2, "text": "s1"}, None, 31)
    topic.tombstone({"id": 2})
    assert run(topic.records)["p.d.t"].error is None
    expected = [
        {"id": 1, "text": "new", FIELD.lower(): "s1"},
        {"id": 1, "text": "s2", FIELD.lower(): "s2"},
        {"id": 2, "text": "s2", FIELD.lower(): "s2"},
    ]
    same_rows(rows_of(str(tmp_path / "p.d.t")), expected)
    topic.change("t", None, None, 40)
    error = str(run(topic.records)["p.d.t"].error)
    assert f"its keys have {FIELD}, which rows do not have" in error
    assert "--exclude-changes truncate.table" in error
    same_rows(rows_of(str(tmp_path / "p.d.t")), expected)
    ignored = ChangePolicy(exclude=(ChangeKind.TRUNCATE_TABLE,))
    assert run(topic.records, changes=ignored)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), expected)
