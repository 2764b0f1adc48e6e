"""``rowtide tables`` beside a plain Spark job (``plain_tables.py``), in turns in one Spark session.

    python -m tests.bench.tables [build] [batch] [many] [--rows THOUSANDS] [--table THOUSANDS] [--tables N] [--rounds N]

``build``: the snapshot of the load, 1.75 rows for each of ROWS, becomes two tables; then a run with nothing new.
``batch``: 1 % of the rows of a table change: the newest, then rows of all its files. ``many``: small tables, of 20 rows
each; then a run with nothing new.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docker"), str(ROOT / "tests/support")]

from change_topics import Topic  # noqa: E402 - after the path
from connector_properties import connector_properties, history_topic  # noqa: E402
from rowtide_stack import Kafka, MySQL, spark_jars  # noqa: E402

from tests.bench.connectors import TUNED, Rowtide  # noqa: E402
from tests.bench.load import Load  # noqa: E402
from tests.bench.measure import TopicWatch, cpu_seconds  # noqa: E402
from tests.bench.plain_tables import build_table, merge_changes  # noqa: E402
from tests.bench.runs import topics_of  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rowtide.spark_consumers.kafka.source import RecordSource

_SCHEMA = "bench"
_ROWS_OF_A_SMALL_TABLE = 20
_ROWS_OF_A_FILE = 1_000_000
_COLUMNS = [
    {"type": "int64", "optional": False, "field": "id"},
    *({"type": "string", "optional": True, "field": f"text_{number}"} for number in range(3)),
    *({"type": "int32", "optional": True, "field": f"number_{number}"} for number in range(3)),
]


@contextmanager
def spark_session(cores: str = "*") -> Iterator[SparkSession]:
    """Start Spark as ``rowtide tables`` does."""
    from rowtide.spark_consumers.jvm.session import build_session

    session = build_session(
        delta=True,
        master=f"local[{cores}]",
        jars=",".join(map(str, spark_jars())),
        settings={
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


class Bench:
    """Runs jobs and collects their times.

    Args:
        spark: the session of all jobs.
        folder: for the tables.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.figures: dict[str, list[tuple[float, float]]] = {}
        self._pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())

    def measure(self, name: str, job: Callable[..., object], *arguments: object) -> None:
        """Run a job, and add its wall time and the processor time of Spark."""
        started, cpu = time.monotonic(), cpu_seconds(self._pid)
        job(*arguments)
        found = time.monotonic() - started, cpu_seconds(self._pid) - cpu
        self.figures.setdefault(name, []).append(found)
        click.echo(f"{name}: {found[0]:.1f} s, CPU {found[1]:.1f} s", err=True)

    def update(self, source: RecordSource, output: str, topics: str) -> int:
        """Update tables with rowtide, and return the number of records read.

        Raises:
            RuntimeError: a table was not updated.
        """
        from rowtide.spark_consumers.job import update_tables
        from rowtide.spark_consumers.settings import Settings

        path = str(self.folder / output)
        outcomes = list(update_tables(self.spark, source, Settings(path, f"{path}/_rowtide"), topics))
        failed = [outcome.error for outcome in outcomes if outcome.error]
        if failed:
            raise RuntimeError(failed[0])
        return sum(outcome.records for outcome in outcomes)

    def build(self, kafka: Kafka, topics: list[str], rounds: int) -> None:
        """Build tables from topics, in turns, each followed by a run with nothing new."""
        source, pattern = kafka_source(self.spark, kafka), "|".join(topics)
        for number in range(rounds):
            self.measure("build, plain", self._plain, kafka, topics, f"plain-{number}")
            self.measure("build, rowtide", self.update, source, f"built-{number}", pattern)
            self.measure("nothing new, rowtide", self.update, source, f"built-{number}", pattern)

    def _plain(self, kafka: Kafka, topics: list[str], output: str) -> None:
        for topic in topics:
            build_table(self.spark, kafka.bootstrap, topic, str(self.folder / output / topic))

    def batch(self, rows: int, rounds: int) -> None:
        """Change 1 % of the rows of a table, in turns, on equal tables: the newest, then rows in all of its files."""
        from rowtide.spark_consumers.kafka.source import FrameSource

        few = rows // 100
        self._table("batch", rows, few)
        plain, vectors = self.folder / "plain-batch", self.folder / "vectors"
        shutil.copytree(self.folder / "batch/t", plain)
        shutil.copytree(self.folder / "batch", vectors)
        self.spark.sql(f"ALTER TABLE delta.`{vectors}/t` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
        start = few
        for where, number in [("newest", f"{rows - few} + id % {few}"), ("anywhere", f"id * 7919 % {rows}")] * rounds:
            changed = self.spark.range(start, start + few).selectExpr("id AS offset", f"{number} AS id")
            start += few
            raw = messages(changed, "u").cache()
            raw.count()
            name = f"1 % of {rows:,} rows, {where}"
            self.measure(f"{name}, plain", merge_changes, self.spark, raw, str(plain), "id")
            self.measure(f"{name}, rowtide", self.update, FrameSource(raw), "batch", "t")
            self.measure(f"{name}, rowtide, deletion vectors", self.update, FrameSource(raw), "vectors", "t")
            raw.unpersist()

    def _table(self, output: str, rows: int, few: int) -> None:
        """Build a table with a few rows by rowtide, and append the others as it would have written them."""
        from rowtide.spark_consumers.kafka.source import FrameSource

        first = messages(self.spark.range(few).selectExpr("id AS offset", "id"), "r")
        self.measure(f"table of {few:,} rows, rowtide", self.update, FrameSource(first), output, "t")
        texts = (f"sha2(concat('row ', id + {number}), 256) AS text_{number}" for number in range(3))
        numbers = (f"CAST(id % {number + 2} AS int) AS number_{number}" for number in range(3))
        rest = self.spark.range(few, rows, numPartitions=-(-rows // _ROWS_OF_A_FILE))
        rest.selectExpr("id", *texts, *numbers).write.format("delta").mode("append").save(
            str(self.folder / output / "t")
        )

    def many(self, kafka: Kafka, tables: int, rounds: int) -> None:
        """Build small tables, in turns; then run with nothing new, and change a row of each."""
        source, pattern = kafka_source(self.spark, kafka), r"small\..*"
        topics = [f"small.d.t{number:05d}" for number in range(tables)]
        create_topics(kafka, topics)
        produce(kafka, topics, "r", _ROWS_OF_A_SMALL_TABLE)
        for number in range(rounds):
            self.measure(f"{tables} small tables, plain", self._plain, kafka, topics, f"plain-many-{number}")
            self.measure(f"{tables} small tables, rowtide", self.update, source, f"many-{number}", pattern)
        output = f"many-{rounds - 1}"
        self.measure(f"{tables} small tables, nothing new, rowtide", self.update, source, output, pattern)
        produce(kafka, topics, "u", 1)
        self.measure(f"{tables} small tables, one change in each, rowtide", self.update, source, output, pattern)

    def table(self) -> str:
        """Return the medians as a Markdown table."""
        lines = ["| run | seconds | CPU s |", "| --- | --: | --: |"]
        for name, found in self.figures.items():
            seconds, cpu = (statistics.median(column) for column in zip(*found, strict=True))
            lines.append(f"| {name} | {seconds:.1f} | {cpu:.1f} |")
        return "\n".join(lines)


def kafka_source(spark: SparkSession, kafka: Kafka) -> RecordSource:
    """Return the source that ``rowtide tables`` uses."""
    from rowtide.spark_consumers.kafka.source import KafkaSource

    return KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap})


def messages(rows: DataFrame, operation: str) -> DataFrame:
    """Return change events of one topic for rows with ``offset`` and ``id``, in the form of a Kafka source."""
    topic = Topic("t", _COLUMNS, ["id"])
    topic.change(operation, None, {column["field"]: "@" for column in _COLUMNS}, 4)
    key, value = (_with_values(str(text)) for text in (topic.records[0].key, topic.records[0].value))
    return rows.selectExpr(
        "'t' AS topic", "0 AS partition", "offset", f"CAST({key} AS binary) AS key", f"CAST({value} AS binary) AS value"
    )


def _with_values(message: str) -> str:
    """Return SQL of a message whose placeholders are values made from ``id`` and ``offset``."""
    parts = message.replace("'", "\\'").split('"@"')
    texts = (f"""concat('"', sha2(CAST(offset + {n} AS string), 256), '"')""" for n in range(3))
    values = ["id", *texts, *(f"offset % {n + 2}" for n in range(3))]
    pieces = [f"'{parts[0]}'"]
    for name, part in zip(values, parts[1:], strict=False):  # a key has only the first value
        pieces += [name, f"'{part}'"]
    return f"concat({', '.join(pieces)})"


def create_topics(kafka: Kafka, topics: list[str]) -> None:
    """Create topics of one partition."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for created in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        created.result()


def produce(kafka: Kafka, topics: list[str], operation: str, rows: int) -> None:
    """Write change events of small tables."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": "lz4"})
    for name in topics:
        topic = Topic(name, _COLUMNS, ["id"])
        for number in range(rows):
            row = {
                column["field"]: number if "text" not in str(column["field"]) else f"text {number}"
                for column in _COLUMNS
            }
            record = topic.change(operation, row if operation == "u" else None, row, number)
            producer.produce(name, record.value, record.key)
        producer.poll(0)
    producer.flush()


def snapshot(stack: ExitStack, kafka: Kafka, load: Load, folder: Path) -> list[str]:
    """Write the snapshot of the load to topics, and return their names."""
    with MySQL({"innodb_buffer_pool_size": "256M"}) as database:
        database.execute(f"CREATE DATABASE {_SCHEMA}")
        database.execute(*load.setup(), *load.changes(), database=_SCHEMA)
        history = history_topic(kafka.bootstrap, "tables-history")
        given = connector_properties("tables", database, _SCHEMA, history) | TUNED
        connector = Rowtide("tables", given, kafka.bootstrap)
        watch = TopicWatch(kafka.bootstrap)
        stack.callback(watch.close)
        topics = topics_of(connector, _SCHEMA, load.snapshot_rows)
        connector.start(folder)
        try:
            watch.wait(topics, connector.alive)
        finally:
            connector.stop()
    return list(topics)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("runs", nargs=-1, type=click.Choice(["build", "batch", "many"]))
@click.option("--rows", default=200, show_default=True, help="build: thousands of rows of each table of the load.")
@click.option("--table", default=10_000, show_default=True, help="batch: thousands of rows of the table.")
@click.option("--tables", default=500, show_default=True, help="many: number of tables.")
@click.option("--rounds", default=3, show_default=True, help="The figures are the medians of so many rounds.")
def main(runs: tuple[str, ...], rows: int, table: int, tables: int, rounds: int) -> None:
    """Measure ``rowtide tables`` beside a plain Spark job."""
    from tests.bench.__main__ import FastKafka

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-")))
        wanted = runs or ("build", "batch", "many")
        kafka = stack.enter_context(FastKafka())
        topics = snapshot(stack, kafka, Load(rows), folder) if "build" in wanted else []
        bench = Bench(stack.enter_context(spark_session()), folder)
        if "build" in wanted:
            bench.build(kafka, topics, rounds)
        if "batch" in wanted:
            bench.batch(table * 1000, rounds)
        if "many" in wanted:
            bench.many(kafka, tables, rounds)
        click.echo(bench.table())
        click.echo(f"load average {os.getloadavg()[0]:.0f}", err=True)


if __name__ == "__main__":
    main(prog_name="python -m tests.bench.tables")
