"""Upkeep of tables: files are merged and removed, the state stays, and neither upkeep nor a stream undoes the other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.processes.worker_process import eventually
from tests.support.recordings.recorded_tables import same_rows

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
MONTH = 30 * 86_400


@pytest.mark.spark
@pytest.mark.parametrize(
    ("table_format", "batches"),
    [("delta", 3), pytest.param("iceberg", 6, marks=pytest.mark.nightly)],  # Iceberg merges from 5 files
)
def test_files_become_few_and_the_batch_of_a_table_stays_known(
    run, spark, rows_of, tmp_path, monkeypatch, table_format, batches
) -> None:
    from rowtide.spark_consumers import upkeep as module
    from rowtide.spark_consumers.formats import FORMATS
    from rowtide.spark_consumers.jvm.session import own_session
    from rowtide.spark_consumers.settings import Settings
    from rowtide.spark_consumers.state import StateStore

    monkeypatch.setattr(module, "_LEAST", {})
    topic, path = Topic("p.d.t", [ID, TEXT]), tmp_path / "p.d.t"  # without a key, a row that is added twice is seen
    properties = {"delta.deletedFileRetentionDuration": "interval 0 hours"} if table_format == "delta" else {}
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), format=table_format)

    def update() -> None:
        outcome = run(topic.records, format=table_format, table_properties=properties)["p.d.t"]
        assert outcome.error is None

    def crash(*_: object) -> None:
        raise ZeroDivisionError

    for number in range(batches):
        topic.change("c", None, {"id": number, "text": "x"}, number)
        if number == 1:
            topic.change("d", {"id": 0, "text": "x"}, None, 100)
        if number < batches - 1:
            update()
    with monkeypatch.context() as patched:
        patched.setattr(StateStore, "finish", crash)
        with pytest.raises(ZeroDivisionError):
            update()
    expected = Counter(row["id"] for row in rows_of(str(path), table_format))
    assert expected == Counter(range(1, batches))
    written = data_files(path)
    (path / "data").mkdir(exist_ok=True)
    (path / "data" / "lost.parquet").write_bytes(b"of a write that was killed")
    for file in path.rglob("*"):
        if file.is_file():
            age = MONTH if file.name.startswith(f"{batches - 1:020}") else 2 * MONTH  # the newest commit of Delta's log
            end_of_minute = (time.time() - age) // 60 * 60 - 0.01  # Delta removes what is older than a full minute
            os.utime(file, (end_of_minute, end_of_minute))
    table = FORMATS[table_format](own_session(spark), settings)
    commit = table.newest_commit(str(path), "rowtide-p.d.t")

    age = timedelta(0 if table_format == "delta" else 1)  # Iceberg itself refuses less
    wanted = module.Upkeep(optimize=True, expire=timedelta(0), vacuum=age)
    (outcome,) = module.keep_tables(spark, settings, wanted, ".*")

    assert (outcome.error, outcome.given_up) == (None, None)
    assert outcome.merged.before >= batches - 1
    assert outcome.merged.after == 1
    assert outcome.expired.versions >= batches - 1
    assert outcome.expired.bytes > 0
    assert outcome.vacuumed.files >= 1
    assert outcome.vacuumed.bytes > 0
    left = data_files(path)
    assert len(left) == 1
    assert not left & written
    assert table.newest_commit(str(path), "rowtide-p.d.t") == commit
    assert Counter(row["id"] for row in rows_of(str(path), table_format)) == expected
    update()  # repeats the batch that was interrupted, which the table has
    topic.change("c", None, {"id": 9, "text": "x"}, 200)
    update()
    assert Counter(row["id"] for row in rows_of(str(path), table_format)) == expected + Counter([9])


def data_files(path: Path) -> set[Path]:
    return {file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


@pytest.mark.spark
@pytest.mark.parametrize("rows_change", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_a_merge_is_repeated_after_an_optimisation_but_not_after_changed_rows(
    spark, rows_of, tmp_path, rows_change
) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F  # noqa: N812

    from rowtide.spark_consumers.formats.delta import DeltaFormat
    from rowtide.spark_consumers.jvm.session import own_session
    from rowtide.spark_consumers.rows.changes import DELETED
    from rowtide.spark_consumers.settings import Settings
    from rowtide.spark_consumers.state import Commit

    path, columns = str(tmp_path / "t"), (("id", "int"), ("text", "string"))
    begun, ended = str(tmp_path / "begun"), str(tmp_path / "ended")
    table = DeltaFormat(own_session(spark), Settings(str(tmp_path), str(tmp_path / "state")))
    rows = table.spark.range(3).selectExpr("CAST(id AS int) AS id", "'old' AS text")
    table.create(path, columns, rows, Commit("state", 1000, "plan"))
    table.replace_rows(
        path, None, rows.selectExpr("id + 10 AS id", "text"), replace=False, commit=Commit("state", 2000)
    )

    @F.udf(returnType="string", useArrow=False)
    def after_the_other(text: str) -> str:
        import time
        from pathlib import Path

        Path(begun).touch()
        while not Path(ended).exists():
            time.sleep(0.05)
        return text

    changed = table.spark.range(1, 2).selectExpr("CAST(id AS int) AS id", "'new' AS text", f"false AS {DELETED}")
    changed = changed.withColumn("text", after_the_other("text"))
    result: list[Any] = []

    def merge() -> None:
        try:
            result.append(table.upsert(path, changed, ["id"], replace=False, commit=Commit("state", 3000, "plan")))
        except (PySparkException, Py4JJavaError) as error:
            result.append(error)

    thread = threading.Thread(target=merge)
    thread.start()
    try:
        eventually(Path(begun).exists, "the merge reads its rows", 60)
        statement = "DELETE FROM {} WHERE id = 2" if rows_change else "OPTIMIZE {}"
        spark.newSession().sql(statement.format(f"delta.`{path}`")).collect()
    finally:
        Path(ended).touch()
        thread.join(60)
    old = [{"id": number, "text": "old"} for number in (0, 10, 11, 12)]
    if rows_change:
        assert "DELTA_CONCURRENT" in str(result[0])
        same_rows(rows_of(path), [*old, {"id": 1, "text": "old"}])
    else:
        assert (result[0].inserted, result[0].updated, result[0].deleted) == (0, 1, 0)
        same_rows(rows_of(path), [*old, {"id": 1, "text": "new"}, {"id": 2, "text": "old"}])
        assert table.newest_commit(path, "state") == Commit("state", 3000, "plan")


@pytest.mark.spark
def test_unsafe_ages_and_formats_without_upkeep_are_refused(run, spark, tmp_path) -> None:
    from rowtide.spark_consumers.errors import SettingsError, UnsafeRetentionError
    from rowtide.spark_consumers.settings import Settings
    from rowtide.spark_consumers.upkeep import Upkeep, keep_tables

    day, hour = timedelta(days=1), timedelta(hours=1)
    for table_format, wanted, text in (
        ("iceberg", Upkeep(vacuum=hour), "--vacuum 1h: .* look like orphans. Give 24h or more"),
        ("iceberg", Upkeep(expire=timedelta(minutes=1)), "--expire .* Give 1h or more"),
        ("delta", Upkeep(expire=hour), "--expire 1h: .* Give 24h or more"),
    ):
        with pytest.raises(UnsafeRetentionError, match=text):
            wanted.require_safe(table_format)
    with pytest.raises(SettingsError, match="Tables in parquet need none"):
        Upkeep(optimize=True).require_safe("parquet")
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"))
    with pytest.raises(SettingsError, match="there are no tables yet"):
        list(keep_tables(spark, settings, Upkeep(optimize=True), ".*"))
    topic = Topic("p.d.t", [ID])
    topic.change("c", None, {"id": 1}, 1)
    assert run(topic.records)["p.d.t"].error is None
    (outcome,) = keep_tables(spark, settings, Upkeep(vacuum=day), ".*")
    assert "--vacuum 24h: table" in outcome.error
    assert "delta.deletedFileRetentionDuration" in outcome.error
    other = Settings(str(tmp_path), str(tmp_path / "_rowtide"), format="iceberg")
    (outcome,) = keep_tables(spark, other, Upkeep(optimize=True), ".*")
    assert "no table in the format iceberg" in outcome.error


@pytest.mark.parametrize(
    ("error", "is_given_up"),
    [
        ("[DELTA_CONCURRENT_DELETE_READ] a file that was read was deleted", True),
        ("[DELTA_METADATA_CHANGED] the metadata was changed by a concurrent update", True),
        ("[DELTA_PROTOCOL_CHANGED] the protocol was changed by a concurrent update", True),
        ("[DELTA_TABLE_NOT_FOUND] there is no table", False),
    ],
)
def test_a_merge_of_files_is_given_up_if_a_batch_commits_first(error: str, is_given_up: bool) -> None:
    from pyspark.errors import PySparkException

    from rowtide.spark_consumers.errors import ConflictError
    from rowtide.spark_consumers.formats.upkeep import DeltaUpkeep
    from rowtide.spark_consumers.settings import Settings

    def sql(_statement: str) -> None:
        raise PySparkException(error)

    table = DeltaUpkeep(SimpleNamespace(sql=sql), Settings("out", "state"))
    with pytest.raises(ConflictError if is_given_up else PySparkException):
        table.optimize("t")


def test_upkeep_is_due_after_micro_batches_or_time() -> None:
    from rowtide.spark_consumers.upkeep import UpkeepSchedule

    assert [UpkeepSchedule().is_due(batches, 1e9) for batches in (99, 100)] == [False, True]
    by_time = UpkeepSchedule(batches=None, seconds=60)
    assert [by_time.is_due(1000, seconds) for seconds in (59, 60)] == [False, True]


@pytest.mark.spark
def test_processes_take_turns_on_a_local_disk_and_threads_do_not(spark, tmp_path) -> None:
    from rowtide.spark_consumers.errors import StateError
    from rowtide.spark_consumers.jvm.files import HadoopFiles
    from rowtide.spark_consumers.jvm.turns import turn

    files, path = HadoopFiles(spark), str(tmp_path / "t~upkeep")
    with turn(files, path), turn(files, path, wait=0):
        pass
    code = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with other:
        other.stdout.readline()
        with pytest.raises(StateError, match="has not ended"), turn(files, path, wait=0):
            pass
        other.stdin.close()
        with turn(files, path, wait=60):
            pass
