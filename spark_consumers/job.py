"""The batch job: every table that has news is brought up to date.

spark = build_session(delta=True, master="local[*]")
source = KafkaSource(spark, {"bootstrap.servers": "localhost:9092"})
settings = Settings(output="/data/tables", state="/data/tables/_rowtide", prefix="shop")
for outcome in update_tables(spark, source, settings):
    print(outcome)
"""

import re
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rowtide.spark_consumers.batch import TableBatch
from rowtide.spark_consumers.errors import SettingsError, StateError, TablesError
from rowtide.spark_consumers.formats import FORMATS
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.jvm.session import fit_partitions, own_session
from rowtide.spark_consumers.kafka.naming import TableName, join, table_name, table_topics
from rowtide.spark_consumers.kafka.offsets import count, ends, new_ranges, require
from rowtide.spark_consumers.kafka.source import RecordSource
from rowtide.spark_consumers.outcome import Outcome
from rowtide.spark_consumers.settings import Settings
from rowtide.spark_consumers.state import Batch, Remembered, StateStore

_LARGE_BATCH = 2_000
_SAMPLE = 10
"""Offsets at either end of a partition; some of them are not records but marks of transactions."""


def update_tables(
    spark: SparkSession, source: RecordSource, settings: Settings, topics: str | None = None
) -> Iterator[Outcome]:
    """Bring the tables of all matching topics up to date, once.

    Args:
        spark: with the Kafka package, and Delta Lake's if that is the format.
        source: of the records.
        settings: of the run.
        topics: regular expression of whole topic names; by default the per-table topics of ``settings.prefix``.

    Yields:
        The outcome of each table as soon as it is done. An error of one table does not stop the others.

    Raises:
        TablesError: nothing can be done at all: no Kafka, no topics, wrong settings.
    """
    jobs = table_jobs(spark, source, settings, topics)
    pool = ThreadPoolExecutor(max_workers=settings.parallel, thread_name_prefix="table")
    try:
        for done in as_completed([pool.submit(job.run) for job in jobs]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C no further table is begun


def restart_tables(
    spark: SparkSession, source: RecordSource, settings: Settings, names: Collection[str], topics: str | None = None
) -> None:
    """Forget tables, with their rows and offsets: the next run builds them from the beginning of their topics.

    Raises:
        SettingsError: a name is not that of a table of the topics.
    """
    if not names:
        return
    jobs = {str(job.name): job for job in table_jobs(spark, source, settings, topics)}
    for name in names:
        if name not in jobs:
            raise SettingsError(f"--restart {name}: no topic is of such a table; there are {', '.join(sorted(jobs))}")
    for name in names:
        jobs[name].restart()


def table_jobs(spark: SparkSession, source: RecordSource, settings: Settings, topics: str | None) -> "list[TableJob]":
    """A job for each topic that matches."""
    if topics is None and settings.prefix is None:
        raise SettingsError("say which topics: --topic-prefix, --topics or --config")
    if settings.format not in FORMATS:
        raise SettingsError(f"format {settings.format!r} is not known; there are {', '.join(FORMATS)}")
    pattern = topics if topics is not None else table_topics(settings.prefix or "")
    try:
        re.compile(pattern)
    except re.error as error:
        raise SettingsError(f"--topics {pattern} is not a regular expression: {error}") from error
    found = source.topics(pattern)
    if not found:
        raise SettingsError(f"no topic matches {pattern}: has the connector written anything yet?")
    return [TableJob(spark, source, settings, table_name(topic, settings.prefix)) for topic in found]


@dataclass(frozen=True, slots=True)
class TableJob:
    """Everything about one table of a run."""

    spark: SparkSession
    source: RecordSource
    settings: Settings
    name: TableName

    @property
    def path(self) -> str:
        """The table's directory, absolute: Delta's SQL takes a relative one for the name of a table."""
        return HadoopFiles(self.spark).absolute(join(self.settings.output, self.name.path))

    @property
    def state(self) -> StateStore:
        """The remembered offsets."""
        return StateStore(HadoopFiles(self.spark), join(self.settings.state, self.name.topic))

    def run(self) -> Outcome:
        """Bring the table up to date; an error is part of the outcome."""
        outcome = Outcome(self.name)
        started = time.monotonic()
        try:
            self._run(outcome)
        except TablesError as error:
            outcome.error = str(error)
        except (PySparkException, Py4JError, OSError) as error:
            outcome.error = f"table {self.name}: {first_lines(error)}"
        outcome.seconds = time.monotonic() - started
        return outcome

    def restart(self) -> None:
        """Forget the table and its offsets: the next run builds it from the beginning of the topic."""
        self.state.forget()
        HadoopFiles(self.spark).delete(self.path)

    def _run(self, outcome: Outcome) -> None:
        session = own_session(self.spark)
        table = FORMATS[self.settings.format](session)
        remembered = self.state.load()
        self._check(remembered, table.columns(self.path) is not None)
        bounds = self.source.bounds(self.name.topic)
        step = TableBatch(session, table, self.path, self.settings, outcome, len(bounds))
        done = remembered.done
        if remembered.planned is not None:
            # The run before ended between plan and mark: the same ranges under the same number, once more.
            require(self.name.topic, bounds, remembered.planned.ranges)
            done = self._do(step, remembered.planned, outcome)
        while ranges := new_ranges(self.name.topic, bounds, done.done, self.settings.max_records):
            planned = done.next(ranges)
            self.state.plan(planned)
            done = self._do(step, planned, outcome)

    def _do(self, step: TableBatch, batch: Batch, outcome: Outcome) -> Batch:
        fit_partitions(step.spark, count(batch.ranges), HadoopFiles(step.spark).size(self.path))
        raw = self.source.read(step.spark, self.name.topic, batch.ranges)
        done = step.apply(raw, batch, self._sample(step.spark, batch))
        outcome.add_ranges(batch.ranges)
        self.state.finish(done)
        return done

    def _sample(self, session: SparkSession, batch: Batch) -> DataFrame | None:
        """Some records of a batch that is worth it."""
        if count(batch.ranges) < _LARGE_BATCH:
            return None
        first, last = ends(batch.ranges, _SAMPLE)
        return self.source.read(session, self.name.topic, first).unionAll(
            self.source.read(session, self.name.topic, last)
        )

    def _check(self, remembered: Remembered, exists: bool) -> None:
        if exists and remembered.is_new and remembered.planned is None:
            raise StateError(
                f"table {self.name} exists at {self.path}, but {self.settings.state} remembers no offsets of it: "
                f"give the --state it was built with, or build it again with --restart {self.name}"
            )
        if not exists and not remembered.is_new and remembered.done.columns is not None:
            raise StateError(
                f"table {self.name} is gone from {self.path}, while {self.settings.state} remembers its offsets: "
                f"restore it, or build it again with --restart {self.name}"
            )


def first_lines(error: Exception) -> str:
    """An error of Spark without its stack."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3])[:600]
