"""Tables whose columns go and come back within one batch: A, B, then A again."""

from __future__ import annotations

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
NOTE = {"type": "string", "optional": True, "field": "note", "default": "none"}


def write(topic: Topic, columns: list, ids: range, pos: int, text: str) -> None:
    """Insert rows with these columns."""
    topic.columns = columns
    for number in ids:
        row = {"id": number, "text": f"{text} {number}", "note": text}
        topic.change("c", None, {column["field"]: row[column["field"]] for column in columns}, pos + number)


@pytest.mark.parametrize("key", [["id"], pytest.param([], marks=pytest.mark.nightly)], ids=["key", "no key"])
@pytest.mark.parametrize(
    "built", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["existing table", "new table"]
)
def test_a_column_that_is_dropped_and_added_again_loses_its_values(run, rows_of, tmp_path, key, built) -> None:
    topic = Topic("p.d.t", [ID, TEXT, NOTE], key)
    write(topic, [ID, TEXT, NOTE], range(3), 100, "before")
    if built:
        assert run(topic.records)["p.d.t"].error is None
    write(topic, [ID, TEXT, NOTE], range(3, 6), 100, "still before")
    write(topic, [ID], range(6, 9), 200, "between")
    write(topic, [ID, TEXT, NOTE], range(9, 12), 300, "after")
    topic.change("d", {"id": 1, "text": None, "note": "none"}, None, 400)
    assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), fold(topic.records))


def test_a_column_that_is_added_and_dropped_gets_its_default_when_it_is_added_again(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID], ["id"])
    write(topic, [ID], range(2), 100, "before")
    write(topic, [ID, TEXT, NOTE], range(2, 4), 200, "first")
    write(topic, [ID], range(4, 6), 300, "between")
    assert run(topic.records)["p.d.t"].error is None
    write(topic, [ID, TEXT, NOTE], range(6, 8), 400, "second")
    assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), fold(topic.records))


@pytest.mark.parametrize("table_format", ["delta", pytest.param("parquet", marks=pytest.mark.nightly)])
def test_a_column_without_a_default_that_is_added_again_keeps_its_type(run, rows_of, tmp_path, table_format) -> None:
    topic = Topic("p.d.t", [ID], ["id"])
    write(topic, [ID, TEXT], range(2), 100, "before")
    write(topic, [ID], range(2, 4), 200, "between")
    assert run(topic.records, format=table_format)["p.d.t"].error is None
    write(topic, [{**ID, "type": "int64"}, TEXT], range(4, 6), 300, "after")
    for _ in range(2):
        assert run(topic.records, format=table_format)["p.d.t"].error is None
        same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), fold(topic.records))
        write(topic, [{**ID, "type": "int64"}, TEXT], range(6, 8), 400, "last")


def test_a_column_that_is_added_again_with_another_default_has_the_new_one(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID], ["id"])
    for pos, default in ((100, "first"), (300, "second")):
        write(topic, [ID], range(pos, pos + 2), pos, "without")
        write(topic, [ID, {**NOTE, "default": default}], range(pos + 2, pos + 4), pos + 10, "with")
    assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), fold(topic.records))


def test_records_from_before_a_dropped_column_that_are_written_again_do_not_add_it(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID, TEXT], ["id"])
    write(topic, [ID, TEXT], range(4), 100, "before")
    write(topic, [ID], range(4, 6), 200, "after")
    for record in topic.records[3:]:
        topic.again(record)
    write(topic, [ID], range(6, 8), 300, "last")
    assert run(topic.records)["p.d.t"].error is None
    rows = {row["id"]: row["text"] for row in rows_of(str(tmp_path / "p.d.t"))}
    assert rows == {number: f"before {number}" if number < 4 else None for number in range(8)}


def test_records_that_are_written_again_belong_to_their_first_time(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID, TEXT], ["id"])
    write(topic, [ID, TEXT], range(4), 100, "before")
    write(topic, [ID], range(4, 6), 200, "between")
    write(topic, [ID, TEXT], range(6, 8), 300, "after")
    for record in topic.records[2:]:
        topic.again(record)
    assert run(topic.records)["p.d.t"].error is None
    rows = {row["id"]: row["text"] for row in rows_of(str(tmp_path / "p.d.t"))}
    assert rows == {number: f"after {number}" if number > 5 else None for number in range(8)}
