"""The jobs that build tables: ``rowtide tables`` and the plain one, each in a process with a Spark of its own.

A process starts its Spark at once, and waits between its runs, so that two jobs can take turns.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rowtide_stack import spark_jars

from tests.bench.measure import cpu_seconds
from tests.bench.plain_tables import build_table

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from pyspark.sql import SparkSession

    from rowtide.spark_consumers.kafka.source import RecordSource

_LOCAL = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run took: elapsed time, and processor time of Spark's process, in seconds."""

    seconds: float
    cpu_s: float


def measured(spark: SparkSession, job: Callable[..., object], *arguments: object) -> Usage:
    """Run a job in Spark."""
    pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    started, cpu = time.monotonic(), cpu_seconds(pid)
    job(*arguments)
    return Usage(time.monotonic() - started, cpu_seconds(pid) - cpu)


@contextmanager
def rowtide_session() -> Iterator[SparkSession]:
    """Start Spark as ``rowtide tables`` does."""
    from rowtide.spark_consumers.jvm.session import build_session

    yield from _until_closed(build_session(delta=True, master="local[*]", jars=_jars(), settings=_LOCAL))


@contextmanager
def plain_session() -> Iterator[SparkSession]:
    """Start Spark with its defaults, Kafka and Delta Lake. There is no web UI, which would listen on all interfaces."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": _jars(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.enabled": "false",
        **_LOCAL,
    }
    yield from _until_closed(SparkSession.builder.master("local[*]").config(map=settings).getOrCreate())


def _until_closed(session: SparkSession) -> Iterator[SparkSession]:
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def _jars() -> str:
    return ",".join(map(str, spark_jars()))


def update(spark: SparkSession, source: RecordSource, path: str, topics: str) -> int:
    """Update tables with rowtide, and return the number of records read.

    Raises:
        RuntimeError: a table was not updated.
    """
    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.settings import Settings

    outcomes = list(update_tables(spark, source, Settings(path, f"{path}/_rowtide"), topics))
    failed = [outcome.error for outcome in outcomes if outcome.error]
    if failed:
        raise RuntimeError(failed[0])
    return sum(outcome.records for outcome in outcomes)


def _with_rowtide(spark: SparkSession, bootstrap: str, topics: Sequence[str], path: str) -> None:
    from rowtide.spark_consumers.kafka.source import KafkaSource

    update(spark, KafkaSource(spark, {"bootstrap.servers": bootstrap}), path, "|".join(topics))


def _by_hand(spark: SparkSession, bootstrap: str, topics: Sequence[str], path: str) -> None:
    for topic in topics:
        build_table(spark, bootstrap, topic, f"{path}/{topic}")


_JOBS = {"plain": (plain_session, _by_hand), "rowtide": (rowtide_session, _with_rowtide)}


class TableJob:
    """A job in a process of its own, until the context ends.

    Args:
        name: ``plain`` or ``rowtide``.
        bootstrap: address of the broker.
    """

    def __init__(self, name: str, bootstrap: str) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(name, bootstrap, theirs))
        self._process.start()
        theirs.close()
        self._pipe.recv()  # Spark has started

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()

    def run(self, topics: Sequence[str], path: str) -> Usage:
        """Bring the tables of some topics up to date in a folder.

        Raises:
            EOFError: the job failed; its process has shown the error.
        """
        self._pipe.send((topics, path))
        usage: Usage = self._pipe.recv()
        return usage


def _serve(name: str, bootstrap: str, pipe: Connection) -> None:
    """Run a job whenever the other process asks for it."""
    session, job = _JOBS[name]
    with session() as spark:
        pipe.send(None)
        while True:
            try:
                topics, path = pipe.recv()
            except EOFError:
                return
            pipe.send(measured(spark, job, spark, bootstrap, topics, path))
