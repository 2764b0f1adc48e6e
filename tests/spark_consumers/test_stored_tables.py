"""The version of a table that its stored offsets belong to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.change_topics import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtide.spark_consumers.outcome import Outcome
    from rowtide.spark_consumers.stored_tables import StoredTable

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}


def topic(name: str, first: int, end: int) -> Topic:
    made = Topic(name, [ID], ["id"])
    for number in range(first, end):
        made.change("c", None, {"id": number}, number)
    return made


def stored(spark: SparkSession, folder: Path, name: str = "a", *, iceberg: bool = False) -> StoredTable:
    from rowtide.spark_consumers.stored_tables import stored_table

    return stored_table(spark, str(folder), str(folder / "_rowtide"), name, None, iceberg=iceberg)


def ids(table: StoredTable) -> list[int]:
    return sorted(number for (number,) in table.rows(table.columns()))


def test_the_version_is_the_last_one_before_a_batch_that_is_not_finished(
    spark: SparkSession, run: Callable[..., dict[str, Outcome]], tmp_path: Path
) -> None:
    records = topic("a", 0, 4).records
    run(records[:2])
    spark.sql(f"DELETE FROM delta.`{tmp_path / 'a'}` WHERE id = 0")
    table = stored(spark, tmp_path)
    assert (ids(table), len(table.others)) == ([1], 1)
    assert "DELETE" in table.others[0]
    run(records)
    table = stored(spark, tmp_path)
    assert (ids(table), table.others, table.batch.offsets) == ([1, 2, 3], (), {0: 4})
    (tmp_path / "_rowtide/a/00000002.done.json").unlink()  # as if the run had been killed
    table = stored(spark, tmp_path)
    assert (ids(table), len(table.others), table.batch.offsets) == ([1], 1, {0: 2})


def test_a_table_of_other_offsets_is_refused(
    spark: SparkSession, run: Callable[..., dict[str, Outcome]], tmp_path: Path
) -> None:
    from rowtide.spark_consumers.errors import StateError

    run([*topic("a", 0, 2).records, *topic("b", 0, 2).records])
    with pytest.raises(StateError, match="there is no table at"):
        stored(spark, tmp_path, "c")
    done = tmp_path / "_rowtide/a/00000001.done.json"
    text = done.read_text()
    done.with_name(f".{done.name}.crc").unlink()
    done.write_text(json.dumps({**json.loads(text), "plan": "another"}))
    with pytest.raises(StateError, match="by a run with other stored offsets"):
        stored(spark, tmp_path)
    done.write_text(text)
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(StateError, match="the table is missing"):
        stored(spark, tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_text("")
    with pytest.raises(StateError, match="neither those of Delta Lake"):
        stored(spark, tmp_path)
    shutil.rmtree(tmp_path / "a")
    shutil.copytree(tmp_path / "b", tmp_path / "a")
    with pytest.raises(StateError, match="has the rows of another topic"):
        stored(spark, tmp_path)
    shutil.rmtree(tmp_path / "_rowtide/a")
    with pytest.raises(StateError, match="has no offsets for the table"):
        stored(spark, tmp_path)


def test_a_table_of_iceberg_is_read_at_one_snapshot_with_the_names_of_now(
    spark: SparkSession, run: Callable[..., dict[str, Outcome]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rowtide.spark_consumers.errors import StateError
    from rowtide.spark_consumers.formats.iceberg import IcebergFormat
    from rowtide.spark_consumers.settings import Settings
    from rowtide.spark_consumers.state import STEPS_OF_A_BATCH

    monkeypatch.setattr("rowtide.spark_consumers.stored_tables._PAUSE_S", 0.01)
    with pytest.raises(StateError, match="there is no table at"):
        stored(spark, tmp_path, iceberg=True)
    run(topic("a", 0, 2).records, format="iceberg")
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), format="iceberg")
    tables, path = IcebergFormat(spark.newSession(), settings), str(tmp_path / "a")
    for statement in (
        "DELETE FROM {} WHERE id = 0",
        "ALTER TABLE {} RENAME COLUMN id TO number",
        "ALTER TABLE {} ALTER COLUMN number TYPE bigint",
        "ALTER TABLE {} ADD COLUMN more int",
    ):
        tables.spark.sql(statement.format(tables._sql(path)))
    table = stored(spark, tmp_path, iceberg=True)
    tables.spark.sql(f"DELETE FROM {tables._sql(path)}")
    assert table.columns() == (("number", "bigint"), ("more", "int"))
    assert list(table.rows(table.columns())) == [(1, None)]
    assert [other.split(" ", 2)[2] for other in table.others] == ["(delete)"]
    commit = tables.newest_commit(path, table.batch.app_id)
    assert commit is not None
    begun = replace(commit, version=commit.version + STEPS_OF_A_BATCH).to_json()
    tables.spark.sql(f"ALTER TABLE {tables._sql(path)} SET TBLPROPERTIES ('rowtide.commit' = '{begun}')")
    with pytest.raises(StateError, match="has started to write"):
        stored(spark, tmp_path, iceberg=True)
