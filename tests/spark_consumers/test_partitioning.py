"""Partitioned and clustered tables (``--partition-by``, ``--cluster-by``)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.partitioning import Expression, expression, require_columns, require_supported
from rowtide.spark_consumers.settings import ChangePolicy, TableRule
from tests.spark_consumers.test_renamed_columns import Structures, columns, row
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, same_rows

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
DAY = {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "field": "day"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("created", Expression("created")),
        (" `a b` ", Expression("a b")),
        ("Months( created )", Expression("created", "months")),
        ("day(`at`)", Expression("at", "days")),
        ("bucket(16, id)", Expression("id", "bucket", 16)),
        ("truncate(4,name)", Expression("name", "truncate", 4)),
    ],
)
def test_an_expression_is_a_column_or_a_transform_of_one(text: str, found: Expression) -> None:
    assert expression(text) == found
    assert expression(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", "a b", "months", "lower(name)", "bucket(id)", "bucket(0, id)", "days(3, at)", "days(at", "at)", "a;b"]
)
def test_anything_else_is_refused(text: str) -> None:
    if text == "months":
        assert expression(text) == Expression("months"), "a column"
        return
    with pytest.raises(ValueError, match="expected a column, or one of years"):
        expression(text)


@pytest.mark.parametrize(
    ("table_format", "partition_by", "cluster_by", "what"),
    [
        ("parquet", [Expression("a")], [], "--partition-by: Parquet tables have neither"),
        ("delta", [], [Expression("a", "days")], r"--cluster-by days\(`a`\): Delta Lake has columns only"),
        ("delta", [Expression("a")], [Expression("b")], "a table of Delta Lake has one of them"),
    ],
)
def test_what_a_format_does_not_have_is_refused(
    table_format: str, partition_by: list[Expression], cluster_by: list[Expression], what: str
) -> None:
    with pytest.raises(SettingsError, match=what):
        require_supported(table_format, partition_by, cluster_by)


def test_a_column_that_the_table_does_not_have_is_named() -> None:
    require_columns("d.t", [Expression("ID")], ["id"])
    with pytest.raises(
        SettingsError, match="has no column day, which --partition-by or --cluster-by names; there are id"
    ):
        require_columns("d.t", [Expression("day")], ["id", "text"])


def changed(topic: Topic, records: range) -> None:
    for number in records:
        row = {"id": number % 5, "text": f"{number % 3}", "day": 40 * number}
        topic.change("u", None, {column["field"]: row[column["field"]] for column in topic.columns}, number)


@pytest.mark.spark
def test_new_tables_of_delta_lake_are_partitioned_or_clustered(run, rows_of, spark, tmp_path) -> None:
    topics = [Topic(f"p.d.{name}", [ID, TEXT], key=["id"]) for name in ("parts", "clusters", "others")]
    parts, clusters, others = topics
    rules = [
        TableRule("p[.]d[.]parts", {"partition_by": [expression("text")]}),
        TableRule("p[.]d[.]c.*", {"cluster_by": [expression("text"), expression("id")]}),
    ]
    for more in (range(7), range(7, 20)):
        for topic in topics:
            changed(topic, more)
        outcomes = run([record for topic in topics for record in topic.records], rules=rules)
        assert [outcome.error for outcome in outcomes.values()] == [None] * 3
        for topic in topics:
            topic.columns = [{**ID, "type": "int64"}, TEXT]  # all rows are written anew
    for topic in topics:
        same_rows(rows_of(str(tmp_path / topic.name)), fold(topic.records))
    found = [
        spark.sql(f"DESCRIBE DETAIL delta.`{tmp_path / topic.name}`").collect()[0].asDict()
        for topic in (parts, clusters, others)
    ]
    assert [one["partitionColumns"] for one in found] == [["text"], [], []]
    assert [one["clusteringColumns"] for one in found] == [[], ["text", "id"], []]
    for topic in topics:
        topic.change("u", None, {"id": 1, "text": ""}, 20)
    outcomes = run([record for topic in topics for record in topic.records])
    assert outcomes[clusters.name].error is outcomes[others.name].error is None
    text = "table p.d.parts: a row has an empty text in column text, by which the table is partitioned"
    assert str(outcomes[parts.name].error).startswith(text), "Delta Lake turns it into a null"
    same_rows(rows_of(str(tmp_path / parts.name)), fold(parts.records[:-1]))
    same_rows(rows_of(str(tmp_path / clusters.name)), fold(clusters.records))


@pytest.mark.spark
@pytest.mark.nightly
def test_new_tables_of_iceberg_are_partitioned_and_sorted(run, rows_of, spark, tmp_path) -> None:
    from rowtide.spark_consumers.formats.upkeep import IcebergUpkeep
    from rowtide.spark_consumers.jvm.session import own_session
    from rowtide.spark_consumers.settings import Settings

    topic = Topic("p.d.t", [ID, TEXT, DAY], key=["id"])
    options: dict[str, Any] = {
        "format": "iceberg",
        "partition_by": [expression(text) for text in ("months(day)", "bucket(4, id)", "truncate(1, text)")],
        "cluster_by": [expression("TEXT"), expression("bucket(2, id)")],
    }
    for more in (range(7), range(7, 20), range(20, 25)):
        changed(topic, more)
        assert run(topic.records, **options)["p.d.t"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.t"), "iceberg"), fold(topic.records))
    kept = IcebergUpkeep(own_session(spark), Settings(str(tmp_path), str(tmp_path / "_rowtide"), **options))
    path = str(tmp_path / "p.d.t")
    table = kept._load(path)
    assert [str(one.transform()) for one in table.spec().fields()] == ["month", "bucket[4]", "truncate[1]"]
    assert [str(one.transform()) for one in table.sortOrder().fields()] == ["identity", "bucket[2]"]
    assert kept.optimize(path).before > 0
    assert kept.expire(path, ["other"], timedelta(hours=1)) is not None
    same_rows(rows_of(path, "iceberg"), fold(topic.records))
    lacking = {**options, "partition_by": [expression("nowhere")]}
    other = Topic("p.d.other", [ID], key=["id"])
    other.change("c", None, {"id": 1}, 1)
    assert "has no column nowhere" in str(run(other.records, **lacking)["p.d.other"].error)
    assert run(other.records, format="iceberg")["p.d.other"].error is None
    other.change("u", None, {"id": 1}, 2)
    lacking = {**options, "cluster_by": [expression("nowhere")]}
    assert "has no column nowhere" in str(run(other.records, **lacking)["p.d.other"].error)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_column_of_partitions_stays_whatever_a_later_run_is_told(run, rows_of, tmp_path, table_format) -> None:
    topic, history = Topic("p.d.t", columns("abc"), ["id"]), Structures("abc")
    policy = ChangePolicy(include=("column",))
    options: dict[str, Any] = {"format": table_format, "structures": history, "changes": policy}
    topic.change("c", None, row(1, a="x", b="y", c="z"), 1)
    assert run(topic.records, **options, partition_by=[expression("a")])["p.d.t"].error is None
    topic.columns, history.texts = columns("c"), ("abc", "--c")
    topic.change("c", None, row(2, c="n"), 2)
    outcome = run(topic.records, **options)["p.d.t"]
    assert (outcome.error, outcome.dropped) == (None, ("b",))
    found = [row(1, a="x", c="z"), row(2, a=None, c="n")]
    same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), found)
    topic.columns, history.texts = columns("a"), ("abc", "--c", "--a")  # c has the name of a
    topic.change("c", None, row(3, a="m"), 3)
    error = str(run(topic.records, **options)["p.d.t"].error)
    assert error.startswith("table p.d.t is partitioned, clustered or sorted by a, which MySQL has dropped"), error
    same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), found)
