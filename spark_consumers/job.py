"""The batch job that brings every table with new records up to date.

spark = build_session(delta=True, master="local[*]")
source = KafkaSource(spark, {"bootstrap.servers": "localhost:9092"})
settings = Settings(output="/data/tables", state="/data/tables/_rowtide", prefix="shop")
for outcome in update_tables(spark, source, settings):
    print(outcome)
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from threading import Lock

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rowtide.spark_consumers.batch import TableBatch
from rowtide.spark_consumers.columns.unavailable import unavailable_value
from rowtide.spark_consumers.errors import (
    ComputedColumnsError,
    EmptyPartitionError,
    LayoutError,
    ProjectionError,
    RowFilterError,
    SettingsError,
    StateError,
    TablesError,
    UnavailableValueError,
)
from rowtide.spark_consumers.formats import FORMATS, TableFormat
from rowtide.spark_consumers.jvm.driver import text_with_causes
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.jvm.session import SessionOfThread, fit_session, is_small
from rowtide.spark_consumers.jvm.turns import turn
from rowtide.spark_consumers.kafka.claim_checks import ClaimCheckSource
from rowtide.spark_consumers.kafka.naming import TableName, check_directories, join, table_topics, turn_path
from rowtide.spark_consumers.kafka.offsets import (
    LastRecord,
    Range,
    Ranges,
    before,
    count,
    ends,
    new_ranges,
    require,
    require_records,
    require_topic,
)
from rowtide.spark_consumers.kafka.source import Message, RecordSource
from rowtide.spark_consumers.messages.earlier import Earlier, level
from rowtide.spark_consumers.messages.records import connector_prefix
from rowtide.spark_consumers.messages.registered import RegisteredSource, undecodable
from rowtide.spark_consumers.outcome import Outcome
from rowtide.spark_consumers.partitioning import empty_text_column, require_supported
from rowtide.spark_consumers.rows.computed import require_same_computed
from rowtide.spark_consumers.rows.projection import require_same_columns
from rowtide.spark_consumers.rows.row_filter import require_same_filter
from rowtide.spark_consumers.settings import Keyless, Layout, Settings
from rowtide.spark_consumers.state import Batch, StateStore, StoredState, stored_topics
from rowtide.topics.java_regex import InvalidPatternError, compile_java

Progress = Callable[[TableName, int, int], None]
"""Receives a table, the records that are applied, and those to apply in this run; from the threads of the tables."""

_SAMPLE = 10
"""Offsets at either end of a partition; some of them are transaction markers instead of records."""
_SAMPLED_PARTITIONS = 8
_SHARED: dict[str, Lock] = {}
"""The locks of tables that have the rows of several topics, whose jobs take turns."""


def update_tables(
    spark: SparkSession,
    source: RecordSource,
    settings: Settings,
    topics: str | None = None,
    progress: Progress = lambda _name, _done, _all: None,
) -> Iterator[Outcome]:
    """Bring the tables of all matching topics up to date, once.

    Args:
        spark: a session with the Kafka package, and Delta Lake's if that is the format.
        source: the source of the records.
        settings: of the run.
        topics: regular expression of whole topic names; by default the table topics of ``settings.prefix``.
        progress: receives the progress of each table.

    Yields:
        The outcome of each table when it is complete. An error of one table does not stop the others.

    Raises:
        TablesError: no table can be updated: Kafka does not answer, no topic matches, or a setting is wrong.
    """
    jobs = table_jobs(spark, source, settings, topics)
    pool = ThreadPoolExecutor(max_workers=settings.parallel, thread_name_prefix="table")
    try:
        for done in as_completed([pool.submit(job.run, progress) for job in jobs]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C no further table is started


def restart_tables(
    spark: SparkSession, source: RecordSource, settings: Settings, names: Collection[str], topics: str | None = None
) -> None:
    """Delete tables with their stored offsets: the next run builds them from the first offset of their topics.

    Raises:
        SettingsError: a name is not that of a table of the topics.
        StateError: another run is updating a table.
    """
    if not names:
        return
    jobs = {str(job.name): job for job in table_jobs(spark, source, settings, topics)}
    for name in names:
        if name not in jobs:
            raise SettingsError(f"--restart {name}: no topic has this table; there are {', '.join(sorted(jobs))}")
    for name in names:
        jobs[name].restart()


def table_jobs(spark: SparkSession, source: RecordSource, settings: Settings, topics: str | None) -> "list[TableJob]":
    """Return a job for each topic that matches.

    Raises:
        TablesError: Kafka does not answer, no topic matches, or a setting is wrong.
    """
    selection = TopicSelection(spark, source, settings, topics)
    found = selection.topics()
    if not found:
        raise SettingsError(f"no topic matches {selection.pattern}: has the connector written anything yet?")
    return selection.jobs(found)


class TopicSelection:
    """The topics of a run, and the jobs of their tables.

    Args:
        spark: the session of the run.
        source: the source of the records.
        settings: of the run.
        topics: regular expression of whole topic names; by default the table topics of ``settings.prefix``.

    Raises:
        SettingsError: a setting is wrong.
    """

    def __init__(self, spark: SparkSession, source: RecordSource, settings: Settings, topics: str | None) -> None:
        if topics is None and settings.prefix is None:
            raise SettingsError("no topics are selected: give --topic-prefix, --topics or --config")
        if settings.format not in FORMATS:
            raise SettingsError(f"format {settings.format!r} is unknown; the formats are {', '.join(FORMATS)}")
        if settings.catalog is not None and settings.format != "iceberg":
            raise SettingsError(f"--catalog {settings.catalog} needs --format iceberg, not {settings.format}")
        if settings.table_properties and settings.format == "parquet":
            raise SettingsError("--table-property: Parquet tables have no properties")
        for one in (settings, *(replace(settings, **rule.fields) for rule in settings.rules)):
            require_supported(one.format, one.partition_by, one.cluster_by)
        if settings.format == "parquet" and any(rule.shard_column is not None for rule in settings.rules):
            raise SettingsError(
                "shard-column: a table in Parquet has the rows of one topic; use --format delta or iceberg"
            )
        self.pattern = topics if topics is not None else table_topics(settings.prefix or "")
        try:
            compile_java(self.pattern)
        except InvalidPatternError as error:
            raise SettingsError(f"--topics is not a regular expression: {error}") from error
        if settings.claim_checks is not None:
            source = ClaimCheckSource(source, settings.claim_checks)
        if settings.registry is not None:
            source = RegisteredSource(source, settings.registry, settings.schemas)
        FORMATS[settings.format](spark, settings)
        self._spark, self._source, self._settings = spark, source, settings
        self._check_prefixes = topics is None
        self._session = SessionOfThread(spark)

    def topics(self) -> list[str]:
        """Return the topics that match, sorted."""
        return self._source.topics(self.pattern)

    def unused_rules(self) -> list[str]:
        """Return why rules of the settings apply to no table; nothing while there are no topics."""
        found = self.topics() if self._settings.rules else []
        return self._settings.unused_rules(found) if found else []

    def bounds(self, topics: Collection[str]) -> Mapping[str, Ranges]:
        """Return the first available offset and the readable end of each partition, by topic."""
        return self._source.bounds(topics)

    def jobs(self, topics: Collection[str], ends: Mapping[str, Mapping[int, int]] | None = None) -> "list[TableJob]":
        """Return the jobs of some topics.

        Args:
            topics: that exist.
            ends: the offsets of each topic at which its job stops reading; ``None`` reads all records.
        """
        names = [self._settings.table(topic) for topic in topics]
        places: dict[tuple[str, str], TableName] = {}
        for name in names:
            if (other := places.setdefault(name.place, name)) is not name and not self._settings.share(name, other):
                raise SettingsError(
                    f"topics {other.topic} and {name.topic} would both be table {name.path}: give them different names "
                    f"(into), name a shard-column for both in one element of tables in --job, or exclude one with "
                    f"--topics"
                )
        if self._settings.catalog is None:
            check_directories([*places.values()], self._settings.output, self._settings.state)
        bounds, ids = self._source.bounds(topics), self._source.topic_ids(topics)
        return [
            TableJob(
                self._spark,
                self._source,
                self._settings.of(str(name)),
                name,
                bounds[name.topic],
                ids.get(name.topic),
                check_prefix=self._check_prefixes and name.may_have_longer_prefix,
                session=self._session,
                ends=None if ends is None else ends[name.topic],
            )
            for name in names
        ]


@dataclass(frozen=True, slots=True)
class TableJob:
    """The update of one table.

    Attributes:
        spark: the session of the run.
        source: the source of the records.
        settings: of the run.
        name: of the table.
        bounds: of the topic, when the run started.
        topic_id: Kafka's id of the topic; ``None`` if the source has none.
        check_prefix: omit the topic if its records come from a connector with a longer ``topic.prefix``.
        session: of the thread that runs the job.
        ends: the offsets at which the job stops reading; ``None`` reads all records.
    """

    spark: SparkSession
    source: RecordSource
    settings: Settings
    name: TableName
    bounds: Ranges
    topic_id: str | None = None
    check_prefix: bool = False
    _: KW_ONLY
    session: Callable[[], SparkSession]
    ends: Mapping[int, int] | None = None

    @property
    def is_another_table(self) -> bool:
        """Whether the table was built with another layout, filter or other columns, as far as its state shows."""
        try:
            require_same_rows(str(self.name), self.state.load().done, self.settings)
        except (LayoutError, RowFilterError, ProjectionError, ComputedColumnsError):
            return True
        return False

    @property
    def path(self) -> str:
        """The path of the table: see :class:`rowtide.spark_consumers.formats.TableFormat`."""
        return self._table(self.spark).path(self.name)

    @property
    def state(self) -> StateStore:
        """The stored offsets."""
        return StateStore(HadoopFiles(self.spark), join(self.settings.state, self.name.topic))

    def run(self, progress: Progress = lambda _name, _done, _all: None) -> Outcome:
        """Bring the table up to date. Errors are returned in the outcome."""
        outcome = Outcome(self.name)
        started = time.monotonic()
        try:
            with self._turn():
                self._run(outcome, progress)
        except TablesError as error:
            outcome.error = str(error)
        except (PySparkException, Py4JError, OSError) as error:
            text = text_with_causes(error)
            lacking, damaged = unavailable_value(text), undecodable(text, self.name.topic)
            if damaged is not None:
                outcome.error = str(damaged)
            elif (column := empty_text_column(text)) is not None:
                outcome.error = str(EmptyPartitionError(str(self.name), column))
            elif lacking is None:
                outcome.error = f"table {self.name}: {first_lines(error)}"
            else:
                outcome.error = str(UnavailableValueError(str(self.name), self.name.topic, *lacking))
                self._forget_plan()
        outcome.seconds = time.monotonic() - started
        return outcome

    def _forget_plan(self) -> None:
        """Let the next run read further, where the row may have another value, unless the table already has a part."""
        planned = self.state.load().planned
        if planned is None:
            return
        table = self._table(self.spark)
        newest = table.newest_commit(self.path, planned.app_id)
        # A table whose log was cleaned may have a part, too.
        unknown = newest is None and planned.number > 1 and table.exists(self.path)
        if not unknown and (newest is None or newest.batch < planned.number):
            self.state.forget(planned)

    def restart(self) -> None:
        """Delete the table and its offsets: the next run builds it from the first offset of the topic."""
        with self._turn():
            self.state.reset()
            table, shard = self._table(self.spark), self.settings.shard
            if shard is None or not self._others():
                table.delete(self.path)
            elif table.exists(self.path):
                self.state.begin_again()  # the table keeps the commits of this topic
                table.delete_rows(self.path, shard.rows())

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Exclude other runs and processes, and the jobs of other topics whose rows the table has."""
        is_shared = self.settings.shard is not None
        path = turn_path(self.settings.state, self.name, is_shared=is_shared)
        with (
            self.state.lock(),
            _SHARED.setdefault(path, Lock()) if is_shared else nullcontext(),
            turn(HadoopFiles(self.spark), path),
        ):
            yield

    def _others(self) -> list[Batch]:
        """Return the last batches of the other topics whose rows the table has."""
        if self.settings.shard is None:
            return []
        stored = shared_states(HadoopFiles(self.spark), self.settings, self.name).items()
        batches = [one.planned or one.done for topic, one in stored if topic != self.name.topic]
        return [batch for batch in batches if batch.layout is not None]

    def _table(self, session: SparkSession) -> TableFormat:
        return FORMATS[self.settings.format](session, self.settings)

    def _run(self, outcome: Outcome, progress: Progress) -> None:
        stored = self.state.load()
        target = None if self.name.target is None else self.name.path
        for batch in filter(None, (stored.done, stored.planned)):
            require_topic(self.name.topic, batch.topic_id, self.topic_id)
            if batch.number:
                self._require_shard_column(batch)
            if batch.number and batch.table != target:
                raise StateError(
                    f"table {self.name} was built as {batch.table or self.name}, and this run names it "
                    f"{target or self.name}: give it the name as before (into in --job), or remove the table of that "
                    f"name and build it under the new one with --restart {self.name}"
                )
        if last := stored.done.last:
            at = {partition: (record.offset, record.offset + 1) for partition, record in last.items()}
            require_records(self.name.topic, last, self._last_records(self.bounds, at))
        if self._is_current(stored):
            self._check(stored, self._table(self.spark))
            require_same_rows(str(self.name), stored.done, self.settings)
            return
        session = self.session()
        bounds = self.bounds
        if self.ends is None:  # earlier tables may have taken long
            bounds = self.source.bounds([self.name.topic])[self.name.topic]
        if self.check_prefix and self._is_of_another_connector(session, bounds, outcome):
            return
        table = self._table(session)
        self._check(stored, table)
        done = stored.done if self.topic_id is None else replace(stored.done, topic_id=self.topic_id, last={})
        built = done.columns is not None
        step = TableBatch(
            session, table, self.path, self.settings, outcome, self.state.amend, len(bounds), built, done.truncation,
            done.layout,
        )  # fmt: skip
        if stored.planned is not None:
            # The previous run ended between plan and completion: repeat the same ranges under the same number.
            require(self.name.topic, bounds, stored.planned.ranges)
            done = self._apply(step, stored.planned, bounds, outcome)
        left = count(new_ranges(self.name.topic, bounds, done.offsets))
        applied = 0
        while ranges := self._new_ranges(bounds, done.offsets):
            progress(self.name, applied, left)
            cut = [partition for partition, (_, end) in ranges.items() if end < bounds[partition][1]]
            planned = replace(done, table=target, shard_column=self._shard_column).next(
                level(partial(self.source.read, session, self.name.topic), ranges, cut)
            )
            self.state.plan(planned)
            done = self._apply(step, planned, bounds, outcome)
            applied += count(planned.ranges)

    def _is_current(self, stored: StoredState) -> bool:
        """Return whether the table had exactly the records that the topic had when the run started.

        Another run may have read more since then. Only fresh bounds show whether the topic was recreated instead.
        """
        if stored.is_new or stored.planned is not None:
            return False
        done = stored.done.offsets
        return done.keys() <= self.bounds.keys() and all(
            done.get(partition, first) == end
            or (self.ends is not None and self.ends.get(partition, first) <= done.get(partition, first) < end)
            for partition, (first, end) in self.bounds.items()
        )

    def _new_ranges(self, bounds: Ranges, done: Mapping[int, int]) -> dict[int, Range]:
        """Return the offsets to read next."""
        found = new_ranges(self.name.topic, bounds, done, self.settings.max_records)
        if self.ends is None:
            return found
        limited = {p: (first, min(end, self.ends.get(p, first))) for p, (first, end) in found.items()}
        return {p: (first, end) for p, (first, end) in limited.items() if first < end}

    def _apply(self, step: TableBatch, batch: Batch, bounds: Ranges, outcome: Outcome) -> Batch:
        fit_session(step.spark, count(batch.ranges), step.table.size(self.path))
        raw = self.source.read(step.spark, self.name.topic, batch.ranges)
        if is_small(count(batch.ranges)):
            raw = raw.coalesce(1)  # a single partition is grouped and joined without shuffles
        topic = self.name.topic
        earlier = Earlier(
            topic, partial(self.source.read, step.spark, topic), before(bounds, batch.ranges, batch.offsets)
        )
        done = step.apply(raw, batch, earlier, self._sample(batch))
        if self.topic_id is None:
            done = replace(done, last={**batch.last, **self._last_records(bounds, batch.ranges)})
        outcome.add_ranges(batch.ranges)
        self.state.finish(done)
        return done

    def _last_records(self, bounds: Ranges, ranges: Ranges) -> Mapping[int, LastRecord]:
        """Return the last record of each range, without offsets that the topic does not have."""
        present = {
            partition: (max(start, bounds[partition][0]), min(end, bounds[partition][1]))
            for partition, (start, end) in ranges.items()
            if partition in bounds
        }
        present = {partition: (start, end) for partition, (start, end) in present.items() if start < end}
        return self.source.last_records(self.name.topic, present) if present else {}

    def _sample(self, batch: Batch) -> Iterable[Message] | None:
        """Return some messages of a large batch."""
        if is_small(count(batch.ranges)):
            return None
        largest = sorted(batch.ranges.items(), key=lambda item: item[1][0] - item[1][1])
        return self.source.sample(self.name.topic, ends(dict(largest[:_SAMPLED_PARTITIONS]), _SAMPLE))

    def _is_of_another_connector(self, session: SparkSession, bounds: Ranges, outcome: Outcome) -> bool:
        ranges = {partition: found for partition, found in bounds.items() if found[0] < found[1]}
        if not ranges:
            return False
        prefix = connector_prefix(self.source.read(session, self.name.topic, ranges))
        if prefix is None or not prefix.startswith(f"{self.settings.prefix}."):
            return False
        outcome.skipped = True
        outcome.notes.append(
            f"topic {self.name.topic} is skipped: its records come from the connector with topic.prefix {prefix}"
        )
        return True

    def _check(self, stored: StoredState, table: TableFormat) -> None:
        exists = table.exists(self.path)
        is_first = stored.is_new and stored.planned is None
        if exists and is_first and self._is_shared_by_others(table):
            return
        if exists and is_first:
            raise StateError(
                f"table {self.name} exists at {self.path}, but {self.settings.state} holds no offsets for it: "
                f"give the --state it was built with, or build it again with --restart {self.name}"
            )
        if not exists and is_first and table.has_files(self.path):
            raise StateError(
                f"table {self.name}: {self.path} has files, but is not a table in the format {self.settings.format}: "
                f"give the --format it was built with, remove the files, or choose another --output"
            )
        if not exists and not stored.is_new and stored.done.columns is not None:
            raise StateError(
                f"table {self.name} is missing from {self.path}, but {self.settings.state} holds offsets for it: "
                f"restore it, or build it again with --restart {self.name}"
            )

    def _is_shared_by_others(self, table: TableFormat) -> bool:
        """Return whether the table has the rows of other topics, and none of this one.

        Raises:
            LayoutError, RowFilterError, ProjectionError, ComputedColumnsError, StateError: this run writes other rows.
        """
        others, shard = self._others(), self.settings.shard
        for other in others:
            self._require_shard_column(other)
            require_same_rows(str(self.name), other, self.settings)
        return bool(others) and shard is not None and table.read(self.path).where(shard.rows()).isEmpty()

    @property
    def _shard_column(self) -> str | None:
        return None if self.settings.shard is None else self.settings.shard.column

    def _require_shard_column(self, batch: Batch) -> None:
        """Require that the rows of a batch name their table in MySQL as this run does.

        Raises:
            StateError: they do not.
        """
        if batch.shard_column != self._shard_column:
            was, is_now = (
                "without shard-column" if column is None else f"with shard-column {column}"
                for column in (batch.shard_column, self._shard_column)
            )
            raise StateError(
                f"table {self.name} was built {was}, and this run is {is_now}: set it in --job as before, or build the "
                f"table again with --restart for each of its shards"
            )


def shared_states(files: HadoopFiles, settings: Settings, name: TableName) -> dict[str, StoredState]:
    """Return the stored offsets, by topic, of all topics whose rows a table has.

    Args:
        files: the file system.
        settings: of the run.
        name: of one of the topics.
    """
    stored = stored_topics(files, settings.state)
    shared = [topic for topic in stored if topic == name.topic or settings.share(settings.table(topic), name)]
    return {topic: StateStore(files, join(settings.state, topic)).load() for topic in shared}


def require_same_rows(table: str, done: Batch, settings: Settings) -> None:
    """Require that a table was built with the layout, the filter and the columns of this run, as its state shows.

    Args:
        table: its name, for errors.
        done: the last finished batch.
        settings: of the table in this run.

    Raises:
        LayoutError: its rows have another layout.
        RowFilterError: its rows are those of another filter.
        ProjectionError, ComputedColumnsError: its columns are others.
    """
    may_be_log = done.layout == Layout.APPEND and settings.keyless is Keyless.APPEND  # depends on the records' keys
    if done.layout not in (None, settings.layout) and not may_be_log:
        raise LayoutError(table, done.layout, settings.layout)
    if done.columns is None and done.layout is None:
        return
    require_same_filter(table, done.where, settings.where)
    require_same_columns(table, done.projection, settings.columns)
    require_same_computed(table, done.computed, settings.computed)


def first_lines(error: Exception) -> str:
    """Return the text of a Spark error without its stack trace, and that of its first cause."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    causes = [line for line in lines[3:] if line.startswith("Caused by: ")]
    return " ".join([*lines[:3], *causes[-1:]])[:800]
