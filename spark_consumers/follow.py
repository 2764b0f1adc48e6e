"""Tables that follow their topics: a streaming query, whose micro-batches are applied by the jobs of the batch run.

stop = threading.Event()
stream = TableStream(spark, KafkaSource(spark, {"bootstrap.servers": "localhost:9092"}), settings)
stream.run({"processingTime": "10 seconds"}, stop)

One query reads the offsets of all topics. A pool of threads applies them, each thread one table at a time. As in a
batch run, the table and its stored state show which records a table has; a query's checkpoint therefore belongs to only
one start, and is in a temporary directory.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rowtide.spark_consumers.errors import TablesError
from rowtide.spark_consumers.job import TopicSelection, first_lines
from rowtide.spark_consumers.kafka.naming import table_name
from rowtide.spark_consumers.kafka.source import KafkaSource
from rowtide.spark_consumers.lag import Lags, Offsets
from rowtide.spark_consumers.outcome import Outcome
from rowtide.spark_consumers.settings import Settings
from rowtide.spark_consumers.upkeep import ScheduledUpkeep

MOST_OFFSETS = 500_000
"""Offsets of a micro-batch. The tables with few changes wait until a large one has applied its part of them."""

_EARLIEST = -2
_MOST_ATTEMPTS = 10
_LONGEST_PAUSE = 60.0
_WAIT = 1
"""Seconds between two checks of the query."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The result of a micro-batch.

    Attributes:
        number: of the micro-batch since the start.
        outcomes: of the tables that had new records, sorted by name.
        seconds: that it took.
        error: the reason why the query ended and is started again.
    """

    number: int
    outcomes: tuple[Outcome, ...]
    seconds: float
    error: str | None = None


@dataclass(slots=True)
class _Failure:
    """A failed table or query, and the time of its next attempt."""

    text: str
    attempts: int = 1
    due: float = field(default=0.0)

    @classmethod
    def after(cls, earlier: "_Failure | None", text: str) -> "_Failure":
        attempts = earlier.attempts + 1 if earlier is not None and earlier.text == text else 1
        return cls(text, attempts, time.monotonic() + min(2.0**attempts, _LONGEST_PAUSE))

    @property
    def is_due(self) -> bool:
        return self.attempts < _MOST_ATTEMPTS and time.monotonic() >= self.due


class TableStream:
    """Keeps the tables of a connector up to date until it is stopped.

    A table that fails does not stop the others. It is retried when its topic has new records, and after growing pauses,
    which are ten times as long while its error stays the same.

    Args:
        spark: a session with the Kafka package, and Delta Lake's if that is the format.
        source: the cluster.
        settings: of the run.
        topics: regular expression of whole topic names; by default the table topics of ``settings.prefix``.
        report: receives each micro-batch, from the thread of the query.
        most_offsets: the most offsets of all topics in a micro-batch.
        upkeep: the upkeep of the tables alongside the stream.

    Attributes:
        lags: the lag of each table behind its topic.

    Raises:
        SettingsError: a setting is wrong.
    """

    def __init__(
        self,
        spark: SparkSession,
        source: KafkaSource,
        settings: Settings,
        topics: str | None = None,
        report: Callable[[MicroBatch], None] = lambda _batch: None,
        most_offsets: int = MOST_OFFSETS,
        upkeep: ScheduledUpkeep | None = None,
    ) -> None:
        self.lags = Lags()
        self._spark, self._source, self._settings = spark, source, settings
        self._selection = TopicSelection(spark, source, settings, topics)
        self._report, self._most, self._upkeep = report, most_offsets, upkeep
        self._pool = ThreadPoolExecutor(max_workers=settings.parallel, thread_name_prefix="table")
        self._busy = threading.Lock()  # held while tables are updated
        self._stopped = False
        self._numbers = 0
        self._ends: dict[str, Offsets] = {}
        self._skipped: set[str] = set()
        self._failures: dict[str, _Failure] = {}

    @property
    def failures(self) -> Mapping[str, str]:
        """The errors of the tables that could not be updated at the last attempt, by topic."""
        return {topic: failure.text for topic, failure in list(self._failures.items())}

    def run(self, trigger: Mapping[str, Any], stop: threading.Event) -> None:
        """Update the tables until ``stop`` is set, or, with the trigger ``availableNow``, until all records are read.

        Args:
            trigger: arguments of Spark's ``DataStreamWriter.trigger``.
            stop: ends the run after the micro-batch that is being applied.

        Raises:
            TablesError: Kafka does not answer at the start, or the query fails repeatedly.
        """
        failure: _Failure | None = None
        try:
            while not self._stopped and not stop.is_set():
                numbers = self._numbers
                try:
                    self._run_query(trigger, stop)
                except (TablesError, PySparkException, Py4JError) as error:
                    text = str(error) if isinstance(error, TablesError) else f"the query failed: {first_lines(error)}"
                    failure = _Failure.after(None if self._numbers > numbers else failure, text)
                    if numbers == self._numbers == 0 or failure.attempts >= _MOST_ATTEMPTS:
                        raise error if isinstance(error, TablesError) else TablesError(text) from error
                    self._report(MicroBatch(self._numbers, (), 0.0, text))
                    stop.wait(max(failure.due - time.monotonic(), 0.0))
                else:
                    if self._upkeep is not None and not stop.is_set():
                        self._upkeep.finish()
                    return
        finally:
            if self._upkeep is not None:
                self._upkeep.close()
            self._pool.shutdown()

    def _run_query(self, trigger: Mapping[str, Any], stop: threading.Event) -> None:
        with tempfile.TemporaryDirectory(prefix="rowtide-tables-", ignore_cleanup_errors=True) as checkpoint:
            frame = self._source.stream(self._selection.pattern, self._starts(), self._most)
            offsets = Path(checkpoint, "offsets")
            query = (
                frame.writeStream.queryName("rowtide tables")
                .foreachBatch(lambda _frame, number: self._apply(offsets / str(number)))
                .option("checkpointLocation", Path(checkpoint).as_uri())
                .trigger(**trigger)
                .start()
            )
            try:
                self._watch(query, stop)
            finally:
                with self._busy:
                    self._stopped = stop.is_set()
                query.stop()

    def _watch(self, query: StreamingQuery, stop: threading.Event) -> None:
        seen, pause = 0.0, 2.0
        while not stop.is_set() and not query.awaitTermination(_WAIT):
            now = time.monotonic()
            if now - seen >= pause:
                try:
                    for topic, bounds in self._selection.bounds(sorted(self._ends)).items():
                        self.lags.seen(topic, {partition: end for partition, (_, end) in bounds.items()})
                except TablesError:
                    pass  # the query says so
                seen = time.monotonic()
                pause = max(2.0, 20 * (seen - now))
            if self._upkeep is not None:
                self._upkeep.after(())
            due = [topic for topic, failure in list(self._failures.items()) if failure.is_due]
            if due and self._busy.acquire(blocking=False):
                try:
                    self._update({topic: self._ends[topic] for topic in due})
                finally:
                    self._busy.release()

    def _starts(self) -> dict[str, dict[int, int]]:
        """Return, for each partition of the existing topics, the first offset that is not in its table yet."""
        topics = self._selection.topics()
        starts, others = {}, []
        for job in self._selection.jobs(topics) if topics else ():
            stored = job.state.load()
            # A planned batch is read again, so that its table is updated even if its topic has no more records.
            done = {} if stored.planned is not None else stored.done.offsets
            starts[job.name.topic] = {partition: done.get(partition, _EARLIEST) for partition in job.bounds}
            self._ends[job.name.topic] = dict(done)
            self.lags.applied(job.name.topic, done)
            if job.is_another_table:
                others.append(job.name.topic)
        if others:  # they fail now, not when they get new records
            with self._busy:
                self._update({topic: self._ends[topic] for topic in others})
        return starts

    def _apply(self, offsets: Path) -> None:
        """Apply a micro-batch: bring every table with new records up to its offsets."""
        ends = batch_ends(offsets.read_text(encoding="utf-8"))
        with self._busy:
            if not self._stopped:
                self._update({topic: found for topic, found in ends.items() if found != self._ends.get(topic)})

    def _update(self, ends: Mapping[str, Offsets]) -> None:
        started = time.monotonic()
        self._ends |= ends
        for topic, found in ends.items():
            self.lags.seen(topic, found)
        outcomes = self._outcomes(ends.keys() - self._skipped)
        for outcome in outcomes:
            topic = outcome.name.topic
            if outcome.error is not None:
                self._failures[topic] = _Failure.after(self._failures.get(topic), outcome.error)
                continue
            self._failures.pop(topic, None)
            self.lags.applied(topic, self._ends[topic])
            if outcome.skipped:
                self._skipped.add(topic)
        self._numbers += 1
        self._report(MicroBatch(self._numbers, tuple(outcomes), time.monotonic() - started))
        if self._upkeep is not None:
            self._upkeep.after(outcomes)

    def _outcomes(self, topics: AbstractSet[str]) -> list[Outcome]:
        """Update the tables of some topics."""
        try:
            present = topics & set(self._selection.topics())
            jobs = self._selection.jobs(sorted(present), self._ends) if present else []
            found = [done.result() for done in as_completed([self._pool.submit(job.run) for job in jobs])]
            gone = [(topic, f"topic {topic} no longer exists: its table stays as it is") for topic in topics - present]
        except (TablesError, PySparkException, Py4JError) as error:
            text = str(error) if isinstance(error, TablesError) else first_lines(error)
            found, gone = [], [(topic, text) for topic in topics]
        failed = [Outcome(table_name(topic, self._settings.prefix), error=text) for topic, text in gone]
        return sorted([*found, *failed], key=lambda outcome: str(outcome.name))


def batch_ends(text: str) -> dict[str, dict[int, int]]:
    """Return the ends of a micro-batch by topic and partition, from its file in the checkpoint's ``offsets``.

    The file has a line with its version, one with the batch's properties, and one for each source.
    """
    ends: Mapping[str, Mapping[str, int]] = json.loads(text.splitlines()[2])
    return {topic: {int(partition): end for partition, end in found.items()} for topic, found in ends.items()}
