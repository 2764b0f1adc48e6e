"""Topics with several partitions: older records that are read after newer ones of other partitions."""

from __future__ import annotations

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}


@pytest.mark.nightly  # test_rows_after_a_repeated_truncation_are_there_again is its short form
@pytest.mark.parametrize("table_format", ["delta", "parquet"])
@pytest.mark.parametrize("key", [["id"], []], ids=["key", "no key"])
def test_a_truncation_that_is_read_late_keeps_newer_rows_of_other_partitions(
    run, rows_of, tmp_path, table_format, key
) -> None:
    topic = Topic("p.d.t", [ID], key=key)
    topic.change("c", None, {"id": 0}, 10)
    for number in range(1, 60):
        topic.change("c", None, {"id": number}, 10 * number, partition=1)
    assert run(topic.records, format=table_format)["p.d.t"].error is None
    topic.change("t", None, None, 301)
    topic.change("c", None, {"id": 100}, 305)
    topic.change("c", None, {"id": 101}, 700, partition=1)
    assert run(topic.records, format=table_format)["p.d.t"].error is None
    expected = [{"id": number} for number in (*range(31, 60), 100, 101)]
    same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), expected)
    # A partition that lags even more: what precedes the TRUNCATE is not added, in whatever run it comes
    for pos in (200, 290, 650):
        topic.change("c", None, {"id": 1000 + pos}, pos, partition=2)
        assert run(topic.records, format=table_format)["p.d.t"].error is None
        assert run(topic.records, format=table_format)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), [*expected, {"id": 1650}])


def test_rows_of_batches_that_max_records_cuts_survive_a_truncation_before_them(run, rows_of, tmp_path) -> None:
    topics = [Topic("p.d.keyed", [ID], key=["id"]), Topic("p.d.bag", [ID])]
    for topic in topics:
        for number in range(8):
            topic.change("c", None, {"id": number}, number)
        topic.change("t", None, None, 50)
        topic.change("c", None, {"id": 8}, 51)
        for number in range(10, 14):
            topic.change("c", None, {"id": number}, 30 + 10 * (number - 10), partition=1)
    records = [record for topic in topics for record in topic.records]
    outcomes = run(records, max_records=3)
    for topic in topics:
        assert outcomes[topic.name].error is None
        same_rows(rows_of(str(tmp_path / topic.name)), [{"id": 8}, {"id": 13}])


def test_an_older_record_of_a_key_that_moved_to_another_partition_changes_nothing(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    old, new = {"id": 1, "text": "old"}, {"id": 1, "text": "new"}
    topic.change("c", None, {"id": 2, "text": "a"}, 10)
    topic.change("u", old, new, 200, partition=1)
    topic.change("d", {"id": 3, "text": "a"}, None, 210, partition=1)
    topic.tombstone({"id": 3}, partition=1)
    topic.change("c", None, {"id": 4, "text": "new"}, 220, partition=1)
    assert run(topic.records)["p.d.t"].error is None
    topic.change("c", None, old, 100)  # the partition lagged
    topic.change("c", None, {"id": 3, "text": "a"}, 110)
    topic.change("d", {"id": 4, "text": "old"}, None, 120)
    topic.tombstone({"id": 4})
    topic.change("u", {"id": 2, "text": "a"}, {"id": 2, "text": "b"}, 130)
    assert run(topic.records)["p.d.t"].error is None
    expected = [new, {"id": 2, "text": "b"}, {"id": 4, "text": "new"}]
    same_rows(rows_of(str(tmp_path / "p.d.t")), expected)


def test_a_tombstone_that_is_read_late_deletes_no_row_of_another_partition(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID], key=["id"])
    topic.change("d", {"id": 1}, None, 10)
    topic.change("c", None, {"id": 1}, 20, partition=1)
    assert run(topic.records)["p.d.t"].error is None
    topic.tombstone({"id": 1})
    topic.change("c", None, {"id": 2}, 30)
    assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": 1}, {"id": 2}])


def test_a_truncation_is_an_error_if_newer_rows_of_another_partition_cannot_be_read_again(
    run, rows_of, tmp_path
) -> None:
    topic = Topic("p.d.t", [ID], key=["id"])
    topic.change("c", None, {"id": 1}, 1)
    for number in range(10, 20):
        topic.change("c", None, {"id": number}, number, partition=1)
    assert run(topic.records)["p.d.t"].error is None
    topic.change("t", None, None, 12)
    kept = [record for record in topic.records if record.partition == 0 or record.offset >= 5]
    error = str(run(kept)["p.d.t"].error)
    assert "a TRUNCATE was read after newer records of partition 1" in error
    assert "--restart" in error
    assert len(rows_of(str(tmp_path / "p.d.t"))) == 11
    kept = [record for record in topic.records if record.partition == 0 or record.offset >= 2]
    assert run(kept)["p.d.t"].error is None, "the first remaining record precedes the TRUNCATE"
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": number} for number in range(13, 20)])


@pytest.mark.nightly  # half a minute; the next test has a fail-over, too
def test_records_of_another_server_after_a_failover_are_not_taken_for_older_ones(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    for partition in (0, 1):
        for number in range(5):
            topic.change("c", None, {"id": 10 * partition + number, "text": "a"}, number, partition=partition, file=900)
    assert run(topic.records)["p.d.t"].error is None
    for pos in (10_000_000, 10_000_010):
        topic.change("u", {"id": 1, "text": "a"}, {"id": 1, "text": str(pos)}, pos, file=3)
        assert run(topic.records, first=1)["p.d.t"].error is None
    topic.change("t", None, None, 10_000_020, file=3)
    topic.change("c", None, {"id": 7, "text": "a"}, 10_000_030, file=3)
    assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": 7, "text": "a"}])


def test_a_key_that_moved_does_not_bring_back_old_rows_of_other_keys_from_before_a_failover(
    run, rows_of, tmp_path
) -> None:
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    for number in (1, 2):
        topic.change("c", None, {"id": number, "text": "old"}, 500, file=900)
    topic.change("u", {"id": 2, "text": "old"}, {"id": 2, "text": "new"}, 600, file=900, partition=1)
    topic.change("u", {"id": 1, "text": "old"}, {"id": 1, "text": "new"}, 100, file=3)
    assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": 1, "text": "new"}, {"id": 2, "text": "new"}])


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_rows_after_a_repeated_truncation_are_there_again(run, rows_of, tmp_path, partitions) -> None:
    topic = Topic("p.d.t", [ID])
    topic.change("c", None, {"id": 1}, 10)
    repeated = [topic.change("t", None, None, 20), topic.change("c", None, {"id": 2}, 30)]
    if partitions == 2:
        topic.change("c", None, {"id": 3}, 40, partition=1)
    assert run(topic.records)["p.d.t"].error is None
    for record in repeated:
        topic.again(record)
    assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": 2}, *([{"id": 3}] if partitions == 2 else [])])


@pytest.mark.nightly
def test_no_partition_is_read_far_ahead_of_another_one(run, rows_of, tmp_path, monkeypatch) -> None:
    from rowtide.spark_consumers.state import StateStore

    topic = Topic("p.d.t", [ID], key=["id"])
    for number in range(9):
        topic.change("c", None, {"id": number}, number)
        topic.change("c", None, {"id": 100 + number}, 3 * number, partition=1)
    planned = []
    plan = StateStore.plan
    monkeypatch.setattr(StateStore, "plan", lambda store, batch: (planned.append(batch.ranges), plan(store, batch)))
    assert run(topic.records, max_records=3)["p.d.t"].error is None
    assert planned == [{0: (0, 3), 1: (0, 3)}, {0: (3, 6)}, {0: (6, 9), 1: (3, 6)}, {1: (6, 9)}]
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": 100 * p + number} for p in (0, 1) for number in range(9)])
