"""Upkeep of the tables of ``rowtide tables``: on demand, or alongside a stream by a policy.

upkeep = Upkeep(optimize=True, vacuum=timedelta(days=7))
for outcome in keep_tables(spark, settings, upkeep):
    print(outcome)
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import timedelta

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rowtide.spark_consumers.errors import (
    ConflictError,
    SettingsError,
    StateError,
    TablesError,
    UnsafeRetentionError,
)
from rowtide.spark_consumers.formats.upkeep import UPKEEP, KeptFormat, Merged, Removed, hours
from rowtide.spark_consumers.job import first_lines, shared_states
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.jvm.session import SessionOfThread
from rowtide.spark_consumers.jvm.turns import turn
from rowtide.spark_consumers.kafka.naming import TableName, join, table_topics, turn_path
from rowtide.spark_consumers.outcome import Outcome
from rowtide.spark_consumers.settings import Settings
from rowtide.spark_consumers.state import StateStore, stored_topics
from rowtide.topics.java_regex import InvalidPatternError, compile_java

_LEAST: Mapping[tuple[str, str], tuple[timedelta, str]] = {
    ("iceberg", "vacuum"): (timedelta(days=1), "files of a write that has not ended look like orphans"),
    ("delta", "expire"): (timedelta(days=1), "transactions that are running need the commits since their start"),
    ("iceberg", "expire"): (timedelta(hours=1), "queries that are running need the snapshot that they began with"),
}
"""The least age of what is removed, and why. For Delta's VACUUM it is a property of each table."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The steps for each table, in this order.

    Attributes:
        optimize: merge small files.
        expire: expire versions older than this.
        vacuum: delete files that no version needs and that are older than this.
    """

    optimize: bool = False
    expire: timedelta | None = None
    vacuum: timedelta | None = None

    def __bool__(self) -> bool:
        return self.optimize or self.expire is not None or self.vacuum is not None

    def require_safe(self, table_format: str) -> None:
        """Require steps that the format supports, and ages at which nothing that may still be needed is removed.

        Raises:
            SettingsError: tables of the format need no upkeep.
            UnsafeRetentionError: an age is too short.
        """
        if self and table_format not in UPKEEP:
            raise SettingsError(
                f"--optimize, --vacuum and --expire are for Delta Lake and Iceberg. Tables in {table_format} need "
                "none: each batch rewrites a changed table and deletes the old files"
            )
        for step, age in (("vacuum", self.vacuum), ("expire", self.expire)):
            least, why = _LEAST.get((table_format, step), (timedelta(0), ""))
            if age is not None and age < least:
                raise UnsafeRetentionError(
                    f"--{step} {hours(age)}: {why}. Give {hours(least)} or more, or use the commands of "
                    f"{table_format} itself while nothing reads or writes the tables"
                )


@dataclass(frozen=True, slots=True)
class UpkeepSchedule:
    """The times at which a stream does the upkeep of a table.

    Attributes:
        batches: after this many micro-batches that changed the table; ``None`` for any number.
        seconds: after this time, if the table has changed; ``None`` for any time.
    """

    batches: int | None = 100
    seconds: float | None = None

    def is_due(self, batches: int, seconds: float) -> bool:
        """Return whether upkeep is due, after that many micro-batches and seconds since the first of them."""
        return (self.batches is not None and batches >= self.batches) or (
            self.seconds is not None and seconds >= self.seconds
        )


@dataclass(slots=True)
class UpkeepOutcome:
    """The result for one table; steps that were not requested, or failed, are ``None``.

    Attributes:
        name: of the table.
        merged: files that were merged.
        expired: expired versions, with their files.
        vacuumed: files that no version needed.
        given_up: why a step was given up in favour of another writer.
        error: why a step failed.
        seconds: duration.
    """

    name: TableName
    merged: Merged | None = None
    expired: Removed | None = None
    vacuumed: Removed | None = None
    given_up: str | None = None
    error: str | None = None
    seconds: float = 0.0

    def as_dict(self) -> Mapping[str, object]:
        """Return the outcome as a JSON object."""
        merged, expired, vacuumed = self.merged, self.expired, self.vacuumed
        return {
            "table": str(self.name),
            "optimize": merged and {"before": merged.before, "after": merged.after, "bytes": merged.written},
            "expire": expired and {"versions": expired.versions, "files": expired.files, "bytes": expired.bytes},
            "vacuum": vacuumed and {"files": vacuumed.files, "bytes": vacuumed.bytes},
            "given_up": self.given_up,
            "seconds": round(self.seconds, 3),
            "error": self.error,
        }


def keep_tables(
    spark: SparkSession, settings: Settings, upkeep: Upkeep, topics: str | None = None
) -> Iterator[UpkeepOutcome]:
    """Do the upkeep of all tables that have stored offsets, even alongside a stream that writes them.

    Args:
        spark: a session with the packages of the format.
        settings: of the run.
        upkeep: the steps to perform.
        topics: regular expression of whole topic names; by default the table topics of ``settings.prefix``.

    Yields:
        The outcome of each table. An error of one table does not stop the others.

    Raises:
        SettingsError: a setting is wrong, or there are no tables.
        UnsafeRetentionError: an age is too short.
    """
    upkeep.require_safe(settings.format)
    if topics is None and settings.prefix is None:
        raise SettingsError("no topics are selected: give --topic-prefix, --topics or --config")
    pattern = topics if topics is not None else table_topics(settings.prefix or "")
    try:
        expression = compile_java(pattern)
    except InvalidPatternError as error:
        raise SettingsError(f"--topics is not a regular expression: {error}") from error
    stored = stored_topics(HadoopFiles(spark), settings.state)
    found = [settings.table(name) for name in stored if expression.fullmatch(name)]
    names = {name.place: name for name in found}.values()  # a table may have the rows of several topics
    if not names:
        raise SettingsError(
            f"{settings.state} has no offsets of a topic that matches {pattern}: there are no tables yet"
        )
    keeper = _Keeper(spark, settings, upkeep)
    pool = ThreadPoolExecutor(max_workers=settings.parallel, thread_name_prefix="upkeep")
    try:
        for done in as_completed([pool.submit(keeper.keep, name) for name in names]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


class ScheduledUpkeep:
    """Upkeep alongside a stream: one table at a time, in a thread for which no micro-batch waits.

    Args:
        spark: the session of the stream.
        settings: of the run.
        upkeep: the steps to perform.
        schedule: the times of upkeep.
        report: receives each outcome, from the thread.

    Raises:
        SettingsError, UnsafeRetentionError: see :meth:`Upkeep.require_safe`.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        upkeep: Upkeep,
        schedule: UpkeepSchedule,
        report: Callable[[UpkeepOutcome], None],
    ) -> None:
        upkeep.require_safe(settings.format)
        self._keeper = _Keeper(spark, settings, upkeep)
        self._schedule, self._report = schedule, report
        self._changed: dict[TableName, _Changed] = {}
        self._running: set[TableName] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="upkeep")

    def after(self, outcomes: Iterable[Outcome]) -> None:
        """Note the tables that a micro-batch has changed, and begin the upkeep of all for which it is due.

        Any thread may call this, also without outcomes.
        """
        now = time.monotonic()
        with self._lock:
            for outcome in outcomes:
                if outcome.error is None and outcome.ranges:
                    self._changed.setdefault(outcome.name, _Changed(now)).batches += 1
            for name, changed in list(self._changed.items()):
                if name not in self._running and self._schedule.is_due(changed.batches, now - changed.since):
                    self._begin(name)

    def finish(self) -> None:
        """Do the upkeep of all changed tables, and wait for it."""
        with self._lock:
            for name in list(self._changed):
                self._begin(name)
        self._pool.shutdown()

    def close(self) -> None:
        """Stop after the current step."""
        self._keeper.stopped.set()
        self._pool.shutdown(cancel_futures=True)

    def _begin(self, name: TableName) -> None:
        del self._changed[name]
        self._running.add(name)
        self._pool.submit(self._run, name)

    def _run(self, name: TableName) -> None:
        outcome = self._keeper.keep(name)
        with self._lock:
            self._running.discard(name)
        self._report(outcome)


@dataclass(slots=True)
class _Changed:
    """A table that has changed since its last upkeep: when first, and by how many micro-batches."""

    since: float
    batches: int = 0


@dataclass(slots=True)
class _Keeper:
    """Does the upkeep of one table after the other."""

    spark: SparkSession
    settings: Settings
    upkeep: Upkeep
    stopped: threading.Event = field(default_factory=threading.Event)
    session: SessionOfThread = field(init=False)

    def __post_init__(self) -> None:
        self.session = SessionOfThread(self.spark)

    def keep(self, name: TableName) -> UpkeepOutcome:
        """Do the upkeep of a table. Errors are returned in the outcome."""
        outcome = UpkeepOutcome(name)
        started = time.monotonic()
        files = HadoopFiles(self.spark)
        state = StateStore(files, join(self.settings.state, name.topic))
        lock = turn_path(self.settings.state, name, is_shared=self.settings.share(name, name))
        try:
            table = UPKEEP[self.settings.format](self.session(), self.settings)
            path = table.path(name)
            with turn(files, lock):
                if not table.exists(path):
                    self._require_none(name, path, state)
                else:
                    for step in (self._optimize, self._expire, self._vacuum):
                        if not self.stopped.is_set():
                            step(table, path, name, outcome)
        except TablesError as error:
            outcome.error = str(error)
        except (PySparkException, Py4JError, OSError) as error:
            outcome.error = f"table {name}: {first_lines(error)}"
        outcome.seconds = time.monotonic() - started
        return outcome

    def _require_none(self, name: TableName, path: str, state: StateStore) -> None:
        if state.load().done.columns is not None:
            raise StateError(
                f"table {name}: there is no table in the format {self.settings.format} at {path}, but "
                f"{self.settings.state} holds offsets for it: give the --format and --output it was built with"
            )

    def _optimize(self, table: KeptFormat, path: str, _name: TableName, outcome: UpkeepOutcome) -> None:
        if self.upkeep.optimize:
            try:
                outcome.merged = table.optimize(path)
            except ConflictError as error:
                outcome.given_up = str(error)

    def _expire(self, table: KeptFormat, path: str, name: TableName, outcome: UpkeepOutcome) -> None:
        if self.upkeep.expire is not None:
            stored = shared_states(HadoopFiles(self.spark), self.settings, name).values()
            outcome.expired = table.expire(path, {one.done.app_id for one in stored}, self.upkeep.expire)

    def _vacuum(self, table: KeptFormat, path: str, _name: TableName, outcome: UpkeepOutcome) -> None:
        if self.upkeep.vacuum is not None:
            outcome.vacuumed = table.vacuum(path, self.upkeep.vacuum)
