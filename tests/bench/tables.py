"""``rowtide tables`` beside a plain Spark job (``plain_tables.py``), in turns.

    python -m tests.bench.tables [build] [batch] [many] [--rows THOUSANDS] [--table THOUSANDS] [--tables N] [--rounds N]

``build``: the snapshot of the load, 1.75 rows for each of ROWS, becomes two tables; then a run with nothing new.
``batch``: 1 % of the rows of a table change: the newest, then rows of all its files. ``many``: small tables, of 20 rows
each; then a run with nothing new. In ``build`` and ``many`` each job has a Spark of its own (``table_jobs.py``); in
``batch`` both use that of rowtide.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MySQL  # noqa: E402

from tests.bench.connectors import TUNED, Rowtide  # noqa: E402
from tests.bench.load import Load  # noqa: E402
from tests.bench.measure import TopicWatch  # noqa: E402
from tests.bench.plain_tables import merge_changes  # noqa: E402
from tests.bench.runs import topics_of  # noqa: E402
from tests.bench.table_jobs import TableJob, Usage, measured, rowtide_session, update  # noqa: E402
from tests.support.connector_properties import connector_properties, history_topic  # noqa: E402
from tests.support.kafka.change_topics import Topic  # noqa: E402 - after the path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Jobs = Mapping[str, TableJob]
"""The jobs by their names, in the order of their turns."""

_SCHEMA = "bench"
_ROWS_OF_A_SMALL_TABLE = 20
_ROWS_OF_A_FILE = 1_000_000
_COLUMNS = [
    {"type": "int64", "optional": False, "field": "id"},
    *({"type": "string", "optional": True, "field": f"text_{number}"} for number in range(3)),
    *({"type": "int32", "optional": True, "field": f"number_{number}"} for number in range(3)),
]


class Bench:
    """Runs jobs and collects what they took.

    Args:
        folder: for the tables.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.figures: dict[str, list[Usage]] = {}

    def add(self, name: str, usage: Usage) -> None:
        """Add the figures of a run."""
        self.figures.setdefault(name, []).append(usage)
        click.echo(f"{name}: {usage.seconds:.1f} s, CPU {usage.cpu_s:.1f} s", err=True)

    def build(self, jobs: Jobs, topics: list[str], rounds: int) -> None:
        """Build tables from topics, in turns, each followed by a run with nothing new."""
        for number in range(rounds):
            self._build(jobs, "build", topics, number)
            self._update(jobs, "nothing new", topics, "build", number)

    def _build(self, jobs: Jobs, name: str, topics: list[str], number: int) -> None:
        for kind, job in jobs.items():
            self.add(f"{name}, {kind}", job.run(topics, self._path(name, kind, number)))

    def _update(self, jobs: Jobs, name: str, topics: list[str], built: str, number: int) -> None:
        usage = jobs["rowtide"].run(topics, self._path(built, "rowtide", number))
        self.add(f"{name}, rowtide", usage)

    def _path(self, name: str, kind: str, number: int) -> str:
        return str(self.folder / f"{name}-{kind}-{number}".replace(" ", "-"))

    def batch(self, spark: SparkSession, rows: int, rounds: int) -> None:
        """Change 1 % of the rows of a table, in turns, on equal tables: the newest, then rows in all of its files."""
        few = rows // 100
        self._table(spark, "batch", rows, few)
        plain, vectors = self.folder / "plain-batch", self.folder / "vectors"
        shutil.copytree(self.folder / "batch/t", plain)
        shutil.copytree(self.folder / "batch", vectors)
        spark.sql(f"ALTER TABLE delta.`{vectors}/t` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
        start = few
        for where, number in [("newest", f"{rows - few} + id % {few}"), ("anywhere", f"id * 7919 % {rows}")] * rounds:
            changed = spark.range(start, start + few).selectExpr("id AS offset", f"{number} AS id")
            start += few
            raw = messages(changed, "u").cache()
            raw.count()
            name = f"1 % of {rows:,} rows, {where}"
            self.add(f"{name}, plain", measured(spark, merge_changes, spark, raw, str(plain), "id"))
            self._merge(f"{name}, rowtide", spark, raw, "batch")
            self._merge(f"{name}, rowtide, deletion vectors", spark, raw, "vectors")
            raw.unpersist()

    def _table(self, spark: SparkSession, output: str, rows: int, few: int) -> None:
        """Build a table with a few rows by rowtide, and append the others as it would have written them."""
        first = messages(spark.range(few).selectExpr("id AS offset", "id"), "r")
        self._merge(f"table of {few:,} rows, rowtide", spark, first, output)
        texts = (f"sha2(concat('row ', id + {number}), 256) AS text_{number}" for number in range(3))
        numbers = (f"CAST(id % {number + 2} AS int) AS number_{number}" for number in range(3))
        rest = spark.range(few, rows, numPartitions=-(-rows // _ROWS_OF_A_FILE))
        rest.selectExpr("id", *texts, *numbers).write.format("delta").mode("append").save(
            str(self.folder / output / "t")
        )

    def _merge(self, name: str, spark: SparkSession, raw: DataFrame, output: str) -> None:
        from tests.support.frame_source import FrameSource

        self.add(name, measured(spark, update, spark, FrameSource(raw), str(self.folder / output), "t"))

    def many(self, jobs: Jobs, kafka: Kafka, tables: int, rounds: int) -> None:
        """Build small tables, in turns; then run with nothing new, and change a row of each."""
        topics = [f"small.d.t{number:05d}" for number in range(tables)]
        create_topics(kafka, topics)
        produce(kafka, topics, "r", _ROWS_OF_A_SMALL_TABLE)
        name = f"{tables} small tables"
        for number in range(rounds):
            self._build(jobs, name, topics, number)
        self._update(jobs, f"{name}, nothing new", topics, name, rounds - 1)
        produce(kafka, topics, "u", 1)
        self._update(jobs, f"{name}, one change in each", topics, name, rounds - 1)

    def table(self) -> str:
        """Return the first run of each kind and the medians of the later ones as a Markdown table."""
        lines = ["| run | first: seconds | CPU s | later: seconds | CPU s |", "| --- | --: | --: | --: | --: |"]
        for name, (first, *later) in self.figures.items():
            medians = [statistics.median(column) for column in zip(*map(astuple, later), strict=True)]
            cells = [f"{value:.1f}" for value in (*astuple(first), *medians)]
            lines.append(f"| {name} | {' | '.join(cells + ['–'] * (4 - len(cells)))} |")
        return "\n".join(lines)


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
@click.option(
    "--rounds", default=3, show_default=True, help="The figures are those of the first, and the medians of the others."
)
def main(runs: tuple[str, ...], rows: int, table: int, tables: int, rounds: int) -> None:
    """Measure ``rowtide tables`` beside a plain Spark job."""
    from tests.bench.__main__ import FastKafka

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-")))
        wanted = runs or ("build", "batch", "many")
        kafka = stack.enter_context(FastKafka())
        topics = snapshot(stack, kafka, Load(rows), folder) if "build" in wanted else []
        bench = Bench(folder)
        for run in wanted:  # each with Sparks of its own
            with ExitStack() as sparks:
                if run == "batch":
                    bench.batch(sparks.enter_context(rowtide_session()), table * 1000, rounds)
                    continue
                jobs = {kind: sparks.enter_context(TableJob(kind, kafka.bootstrap)) for kind in ("plain", "rowtide")}
                if run == "build":
                    bench.build(jobs, topics, rounds)
                else:
                    bench.many(jobs, kafka, tables, rounds)
        click.echo(bench.table())
        click.echo(f"load average {os.getloadavg()[0]:.0f}", err=True)


if __name__ == "__main__":
    main(prog_name="python -m tests.bench.tables")
