"""Tables of Iceberg: crashes and other writers at every point, expired snapshots, catalogs, and other readers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
NOTE = {"type": "string", "optional": True, "field": "note", "default": "none"}
WIDE = {"type": "string", "optional": False, "field": "id"}
EXPIRE = "CALL other.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2999-01-01')"
"""All snapshots that no branch has."""


@pytest.fixture
def update(run) -> Callable[..., Any]:
    def of(topic: Topic, **settings: Any) -> Any:
        return run(topic.records, format="iceberg", **settings)[topic.name]

    return of


def metadata(table: Path) -> dict[str, Any]:
    version = (table / "metadata/version-hint.text").read_text().strip()
    return json.loads((table / f"metadata/v{version}.metadata.json").read_text())


def other_writer(spark, path: Path, statement: str) -> None:
    """Run a statement on a table as another program would, without its identity."""
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.other", "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set("spark.sql.catalog.other.type", "hadoop")
    session.conf.set("spark.sql.catalog.other.warehouse", str(path.parent))
    session.sql(statement.format(table=f"other.`{path.name}`")).collect()


def test_a_batch_is_merged_by_deletion_vectors_and_its_identity_outlives_its_snapshot(
    update, spark, rows_of, tmp_path, monkeypatch
) -> None:
    from rowtide.spark_consumers.state import StateStore

    topic, path = Topic("p.d.t", [ID, TEXT], ["id"]), tmp_path / "p.d.t"
    for number in range(20):
        topic.change("c", None, {"id": number, "text": "old"}, number)
    outcome = update(topic)
    assert (outcome.error, outcome.rows.inserted) == (None, 20)
    topic.change("u", {"id": 3, "text": "old"}, {"id": 3, "text": "new"}, 30)
    topic.change("d", {"id": 4, "text": "old"}, None, 31)
    topic.change("c", None, {"id": 99, "text": "new"}, 32)

    def crash(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(StateStore, "finish", crash)
        with pytest.raises(ZeroDivisionError):
            update(topic)
    found = metadata(path)
    assert found["format-version"] == 3
    assert not any(field["required"] for field in found["schemas"][-1]["fields"])
    newest = next(s for s in found["snapshots"] if s["snapshot-id"] == found["current-snapshot-id"])["summary"]
    assert newest["rowtide.commit"] == found["properties"]["rowtide.commit"]
    assert newest["added-dvs"] == "1"
    # Expiry leaves the last snapshot, which another program has written.
    other_writer(spark, path, "INSERT INTO {table} VALUES (1000, 'theirs')")
    other_writer(spark, path, EXPIRE)
    assert len(metadata(path)["snapshots"]) == 1
    assert update(topic).error is None
    expected = [*fold(topic.records), {"id": 1000, "text": "theirs"}]
    same_rows(rows_of(str(path), "iceberg"), expected)

    from pyiceberg.table import StaticTable

    version = (path / "metadata/version-hint.text").read_text().strip()
    table = StaticTable.from_metadata(f"{path}/metadata/v{version}.metadata.json")
    assert any(task.delete_files for task in table.scan().plan_files()), "no deletion vector is read"
    same_rows(table.scan().to_arrow().to_pylist(), expected)


@pytest.mark.nightly
def test_copies_on_write_by_choice(update, rows_of, tmp_path) -> None:
    topic, path = Topic("p.d.t", [ID, TEXT], ["id"]), tmp_path / "p.d.t"
    given = {"format-version": "2", "write.merge.mode": "copy-on-write"}
    for text in ("old", "new"):
        for number in range(3):
            topic.change("c", None, {"id": number, "text": text}, number)
        outcome = update(topic, table_properties=given)
        assert outcome.error is None
    assert (outcome.rows.inserted, outcome.rows.updated, outcome.rows.deleted) == (0, 3, 0)
    found = metadata(path)
    assert found["format-version"] == 2
    assert not any(int(s["summary"].get("total-delete-files", 0)) for s in found["snapshots"])
    same_rows(rows_of(str(path), "iceberg"), fold(topic.records))


@pytest.mark.parametrize("crashes", [pytest.param("before", marks=pytest.mark.nightly), "after", "other", "expiry"])
def test_a_step_is_published_once(update, spark, rows_of, tmp_path, monkeypatch, crashes) -> None:
    """A crash on either side of the commit that publishes a step, or a commit of another program before it.

    The other program adds a row, which must not be lost either, or deletes the staged snapshot with its files.
    """
    from rowtide.spark_consumers.formats.iceberg import IcebergFormat

    publish = IcebergFormat._publish
    topic, path = Topic("p.d.t", [ID]), tmp_path / "p.d.t"  # without a key, a row that is added twice is seen
    expected = []

    def change(position: int) -> None:
        topic.change("c", None, {"id": position}, position)
        expected.append({"id": position})

    change(0)
    assert update(topic).error is None
    change(1)
    if crashes in {"other", "expiry"}:
        calls = []

        def interrupted(self, *arguments):
            calls.append(1)
            if len(calls) == 1:
                if crashes == "expiry":
                    other_writer(spark, path, EXPIRE)
                else:
                    other_writer(spark, path, "INSERT INTO {table} VALUES (1000)")
                    expected.append({"id": 1000})
            return publish(self, *arguments)

        monkeypatch.setattr(IcebergFormat, "_publish", interrupted)
        outcome = update(topic)
        assert (outcome.error, outcome.rows.inserted, len(calls)) == (None, 1, 2)
    else:

        def crashed(self, *arguments):
            if crashes == "after":
                publish(self, *arguments)
            raise ZeroDivisionError

        with monkeypatch.context() as patched:
            patched.setattr(IcebergFormat, "_publish", crashed)
            with pytest.raises(ZeroDivisionError):
                update(topic)
        assert len(rows_of(str(path), "iceberg")) == (1 if crashes == "before" else 2)
        assert update(topic).error is None
    same_rows(rows_of(str(path), "iceberg"), expected)


def test_a_write_that_conflicts_with_a_commit_is_repeated(update, spark, rows_of, tmp_path, monkeypatch) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrameWriterV2

    topic, path = Topic("p.d.t", [ID]), tmp_path / "p.d.t"
    topic.change("c", None, {"id": 0}, 0)
    assert update(topic).error is None
    topic.change("c", None, {"id": 1}, 1)
    append = DataFrameWriterV2.append

    def conflicts(writer) -> None:
        monkeypatch.setattr(DataFrameWriterV2, "append", append)
        other_writer(spark, path, "INSERT INTO {table} VALUES (1000)")
        raise PySparkException("conflict")

    monkeypatch.setattr(DataFrameWriterV2, "append", conflicts)
    assert update(topic).error is None

    def fails(writer) -> None:
        raise PySparkException("no conflict")

    topic.change("c", None, {"id": 2}, 2)
    with monkeypatch.context() as patched:
        patched.setattr(DataFrameWriterV2, "append", fails)
        assert "no conflict" in update(topic).error
    assert update(topic).error is None
    same_rows(rows_of(str(path), "iceberg"), [{"id": number} for number in (0, 1, 2, 1000)])


@pytest.mark.nightly
def test_a_table_that_others_change_all_the_time_stops_with_an_error(
    update, spark, rows_of, tmp_path, monkeypatch
) -> None:
    from rowtide.spark_consumers.formats import iceberg

    topic, path = Topic("p.d.t", [ID]), tmp_path / "p.d.t"
    topic.change("c", None, {"id": 0}, 0)
    assert update(topic).error is None
    topic.change("c", None, {"id": 1}, 1)
    publish = iceberg.IcebergFormat._publish

    def interrupted(self, *arguments):
        other_writer(spark, path, "INSERT INTO {table} VALUES (1000)")
        return publish(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(iceberg, "_ATTEMPTS", 2)
        patched.setattr(iceberg.IcebergFormat, "_publish", interrupted)
        assert "was changed by another program during each of 2 attempts" in update(topic).error
    assert update(topic).error is None
    same_rows(rows_of(str(path), "iceberg"), [{"id": number} for number in (0, 1, 1000, 1000)])


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_new_values_of_existing_rows_appear_with_their_column(
    update, spark, rows_of, tmp_path, monkeypatch, partitions
) -> None:
    """A column with a default, and a type that Iceberg cannot promote, after a crash at either commit."""
    from rowtide.spark_consumers.formats.iceberg import IcebergFormat

    topic, path = Topic("p.d.t", [ID, TEXT], ["text"]), tmp_path / "p.d.t"
    for number in range(4):
        row = {"id": number, "text": f"row {number}"}
        topic.change("c", None, row, number, partition=number % partitions)
    assert update(topic).error is None
    topic.columns = [WIDE, TEXT, NOTE]
    old = {"id": "0", "text": "row 0", "note": "none"}
    topic.change("u", old, {**old, "id": "zero", "note": "new"}, 10)
    publish = IcebergFormat._publish

    def crashed(crash: int, theirs: int = 0) -> None:
        """Run until a number of steps, and let another program add a row before a smaller one."""
        calls = []

        def counted(self, *arguments):
            calls.append(1)
            if len(calls) == crash:
                raise ZeroDivisionError
            if len(calls) == theirs:
                other_writer(spark, path, "INSERT INTO {table} (id, text) VALUES (7, 'theirs')")
            return publish(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(IcebergFormat, "_publish", counted)
            with pytest.raises(ZeroDivisionError):
                update(topic)

    crashed(1)
    assert not any(row.get("note") for row in rows_of(str(path), "iceberg"))
    crashed(3, theirs=1)  # the second one repeats the first
    expected = [{"id": str(number), "text": f"row {number}", "note": "none"} for number in range(4)]
    expected.append({"id": "7", "text": "theirs", "note": "none"})
    same_rows(rows_of(str(path), "iceberg"), expected)
    assert update(topic).error is None
    expected[0] |= {"id": "zero", "note": "new"}
    same_rows(rows_of(str(path), "iceberg"), expected)
    assert [field["name"] for field in metadata(path)["schemas"][-1]["fields"]] == ["id", "text", "note"]


@pytest.mark.nightly
def test_tables_of_a_catalog(run, spark, tmp_path) -> None:
    from rowtide.spark_consumers.errors import SettingsError
    from rowtide.spark_consumers.job import TableJob
    from rowtide.spark_consumers.kafka.naming import TableName
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    topic = Topic("p.d.t", [ID, TEXT], ["id"])
    topic.change("c", None, {"id": 1, "text": "a"}, 1)
    given = {"format": "iceberg", "catalog": "lake", "prefix": "p"}
    with pytest.raises(SettingsError, match="--catalog lake: Spark has no such catalog"):
        run(topic.records, **given)
    with pytest.raises(SettingsError, match="needs --format iceberg, not delta"):
        run(topic.records, catalog="lake")
    for name, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop",
                        ".warehouse": str(tmp_path / "warehouse")}.items():  # fmt: skip
        spark.conf.set(f"spark.sql.catalog.lake{name}", value)
    try:
        assert (
            "has no database, which --catalog needs"
            in run(topic.records, format="iceberg", catalog="lake")["p.d.t"].error
        )
        assert run(topic.records, **given)["p.d.t"].error is None
        topic.change("u", {"id": 1, "text": "a"}, {"id": 1, "text": "b"}, 2)
        topic.change("c", None, {"id": 2, "text": "c"}, 3)
        assert run(topic.records, **given)["p.d.t"].error is None
        rows = spark.table("lake.d.t").collect()
        assert sorted(map(tuple, rows)) == [(1, "b"), (2, "c")]
        settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), **given)
        source, name = FrameSource(spark.range(0)), TableName("p.d.t", "d", "t")
        TableJob(spark, source, settings, name, {}, session=lambda: spark).restart()
        assert not spark.catalog.tableExists("lake.d.t")
        assert run(topic.records, **given)["p.d.t"].rows.inserted == 2
    finally:
        for name in ("", ".type", ".warehouse"):
            spark.conf.unset(f"spark.sql.catalog.lake{name}")
