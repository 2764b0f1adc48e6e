"""Merges into Delta tables: files that are not read, deletion vectors, and commits of other writers."""

import json
from pathlib import Path

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": True, "field": "Id"}
TEXT = {"type": "string", "optional": True, "field": "text"}


def newest_commit(table: Path) -> dict[str, object]:
    last = max((table / "_delta_log").glob("*.json"))
    return next(json.loads(line)["commitInfo"] for line in last.read_text().splitlines() if "commitInfo" in line)


@pytest.fixture
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    from rowtide.spark_consumers.formats import delta

    monkeypatch.setattr(delta, "LARGE_TABLE", 0)


@pytest.mark.nightly
@pytest.mark.usefixtures("large_tables")
def test_a_merge_reads_no_files_outside_the_range_of_its_keys(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID, TEXT], ["Id"])
    table = tmp_path / "p.d.t"
    outside: set[Path] = set()
    for numbers in ([-(2**31), -5], [1, 2], [8, 2**31 - 1]):
        found = set(table.glob("*.parquet"))
        for number in numbers:
            topic.change("c", None, {"Id": number, "text": "old"}, 1)
        assert run(topic.records)["p.d.t"].error is None
        if numbers != [1, 2]:
            outside |= set(table.glob("*.parquet")) - found
    for file in outside:
        file.rename(file.with_suffix(".away"))
    topic.change("u", {"Id": 2, "text": "old"}, {"Id": 2, "text": "new"}, 2)
    topic.change("d", {"Id": 1, "text": "old"}, None, 2)
    assert run(topic.records)["p.d.t"].error is None
    for file in outside:
        file.with_suffix(".away").rename(file)
    same_rows(rows_of(str(table)), fold(topic.records))


@pytest.mark.usefixtures("large_tables")
@pytest.mark.nightly
def test_a_key_without_value_is_outside_every_range(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [ID, TEXT], ["Id"])
    for text in ("old", "new"):
        for number in (1, None, 2):
            topic.change("c", None, {"Id": number, "text": text}, 1)
        assert run(topic.records)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": number, "text": "new"} for number in (1, None, 2)])


@pytest.mark.nightly
def test_rows_of_a_table_with_deletion_vectors(run, spark, rows_of, tmp_path) -> None:
    keyed, bag = Topic("p.d.keyed", [ID, TEXT], ["Id"]), Topic("p.d.bag", [ID, TEXT])
    for topic in (keyed, bag):
        for number in range(20):
            topic.change("r", None, {"Id": number, "text": "a"}, number)
    run(keyed.records, table_properties={"delta.enableDeletionVectors": "true"})
    run(bag.records)
    spark.sql(f"ALTER TABLE delta.`{tmp_path}/p.d.bag` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    for topic in (keyed, bag):
        topic.change("u", {"Id": 3, "text": "a"}, {"Id": 3, "text": "b"}, 30)
        topic.change("d", {"Id": 4, "text": "a"}, None, 40)
        topic.change("c", None, {"Id": 99, "text": "a"}, 50)
    for _ in range(2):
        outcomes = run([*keyed.records, *bag.records])
        for topic in (keyed, bag):
            table = tmp_path / topic.name
            assert outcomes[topic.name].error is None
            assert int(newest_commit(table)["operationMetrics"]["numTargetDeletionVectorsAdded"]) == 1
            same_rows(rows_of(str(table)), fold(topic.records))
            topic.columns = [ID, TEXT, {"type": "int32", "field": "more", "default": 7}]
            topic.change("u", {"Id": 5, "text": "a", "more": 7}, {"Id": 5, "text": "a", "more": 8}, 60)


def test_the_commit_of_a_batch_is_found_below_those_of_other_writers(run, spark, tmp_path, monkeypatch) -> None:
    from rowtide.spark_consumers.state import StateStore

    topic = Topic("p.d.t", [ID])
    for number in range(3):
        topic.change("c", None, {"Id": number}, number)

    def crash(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(StateStore, "finish", crash)
        with pytest.raises(ZeroDivisionError):
            run(topic.records)
    path = str(tmp_path / "p.d.t")
    for metadata in ("", "not JSON", '{"app_id": "another", "version": 9}'):
        row = spark.createDataFrame([(9,)], "Id int")
        row.write.format("delta").mode("append").option("userMetadata", metadata).save(path)
    outcome = run(topic.records)["p.d.t"]
    assert (outcome.error, outcome.rows.inserted) == (None, 3)
    assert spark.read.format("delta").load(path).count() == 6


def test_rows_to_replace_are_read_once(spark, tmp_path) -> None:
    from rowtide.spark_consumers.formats.delta import DeltaFormat
    from rowtide.spark_consumers.jvm.session import own_session
    from rowtide.spark_consumers.settings import Settings
    from rowtide.spark_consumers.state import Commit

    session, path = own_session(spark), str(tmp_path / "t")
    table, rows = DeltaFormat(session, Settings(str(tmp_path), "")), session.range(9_000)
    table.create(path, (("id", "bigint"),), rows, Commit("a", 1))
    # Of rows that differ each time they are read, Delta would find other ones in its second pass, and refuse to merge.
    chance = session.range(9_000).where("rand() < 0.5")
    counts = table.replace_rows(path, chance, rows.limit(0), replace=False, commit=Commit("a", 2))
    assert 0 < counts.deleted < 9_000
    assert table.read(path).count() == 9_000 - counts.deleted
