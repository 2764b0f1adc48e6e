"""The first commit of a table creates it."""

from pathlib import Path

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}


def test_a_new_table_is_one_commit_with_the_types_of_its_columns(run, spark, tmp_path) -> None:
    time = {"type": "int64", "optional": True, "field": "at", "name": "io.debezium.time.Timestamp"}
    topic = Topic("p.d.t", [ID, {**time, "field": "at time"}], ["id"])
    for number in range(3):
        topic.change("c", None, {"id": number, "at time": number}, number)
    topic.change("d", {"id": 1, "at time": 1}, None, 10)
    outcome = run(topic.records)["p.d.t"]
    assert (outcome.error, outcome.rows.inserted, outcome.rows.deleted) == (None, 2, 0)
    table = spark.read.format("delta").load(str(tmp_path / "p.d.t"))
    assert table.dtypes == [("id", "int"), ("at time", "timestamp_ntz")]
    assert all(field.nullable for field in table.schema.fields)
    assert len(list((tmp_path / "p.d.t/_delta_log").glob("*.json"))) == 1


def test_a_new_table_whose_first_write_failed_is_written_again(run, rows_of, tmp_path, monkeypatch) -> None:
    from rowtide.spark_consumers.formats.delta import DeltaFormat

    topic = Topic("p.d.t", [ID], ["id"])
    for number in range(3):
        topic.change("c", None, {"id": number}, number)

    def fail(_format: object, path: str, *_: object) -> None:
        (Path(path) / "_delta_log").mkdir(parents=True)
        (Path(path) / "part-00000.parquet").write_text("half a file")
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(DeltaFormat, "create", fail)
        with pytest.raises(ZeroDivisionError):
            run(topic.records)
    outcome = run(topic.records)["p.d.t"]
    assert (outcome.error, outcome.rows.inserted) == (None, 3)
    same_rows(rows_of(str(tmp_path / "p.d.t")), [{"id": number} for number in range(3)])


def test_no_table_is_created_among_other_files(run, tmp_path) -> None:
    topic = Topic("p.d.t", [ID], ["id"])
    topic.change("c", None, {"id": 1}, 1)
    (tmp_path / "p.d.t").mkdir()
    (tmp_path / "p.d.t/notes.txt").write_text("")
    assert "has files, but is not a table in the format delta" in str(run(topic.records)["p.d.t"].error)
    assert [file.name for file in (tmp_path / "p.d.t").iterdir()] == ["notes.txt"]
