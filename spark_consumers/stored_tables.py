"""A table as ``rowtide tables`` has left it: its stored offsets, and its rows at the version that has them.

Nothing is written, not even to mend an interrupted run: ``rowtide verify`` reads tables that others use.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.errors import StateError
from rowtide.spark_consumers.formats.delta import LOG, SEARCHED_COMMITS, log_commits
from rowtide.spark_consumers.formats.parquet import COMMIT_FILE
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.jvm.session import own_session
from rowtide.spark_consumers.kafka.naming import join, table_name
from rowtide.spark_consumers.rows.evolution import Columns
from rowtide.spark_consumers.state import Batch, Commit, StateStore

_BYTES_OF_A_PARTITION = 16 << 20
"""Bytes of files whose rows are in the driver's memory at a time."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table and how far it is.

    Attributes:
        path: its directory.
        format: ``delta`` or ``parquet``.
        batch: the last finished batch, with the offsets after it.
        version: the version that is read; ``None`` for Parquet, which has none.
        others: later commits of other writers that this version has.
        spark: its own session.
    """

    path: str
    format: str
    batch: Batch
    version: int | None
    others: tuple[str, ...]
    spark: SparkSession

    def columns(self) -> Columns:
        """Return the names and types of the columns.

        Raises:
            StateError: the table cannot be read.
        """
        with self._errors():
            return tuple((field.name, field.dataType.simpleString()) for field in self._frame().schema.fields)

    def rows(self, columns: Columns) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some columns, of which a few files are in memory at a time.

        Dates are days and timestamps are microseconds since 1970, which do not depend on a time zone; FLOAT is text.

        Raises:
            StateError: the table cannot be read.
        """
        with self._errors():
            frame = self._frame().selectExpr(*(_readable(name, kind) for name, kind in columns))
            yield from frame.toLocalIterator()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (PySparkException, Py4JError) as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise StateError(f"{self.path} cannot be read: {' '.join(lines[:3])[:600]}") from error

    def is_replaced(self) -> bool:
        """Whether a Parquet table was written anew since it was opened: its old files are gone."""
        if self.version is not None:
            return False
        commit = Commit.from_json(HadoopFiles(self.spark).read(join(self.path, COMMIT_FILE)))
        return commit is None or commit.batch > self.batch.number

    def _frame(self) -> Any:
        reader = self.spark.read.format(self.format)
        return (reader if self.version is None else reader.option("versionAsOf", self.version)).load(self.path)


def stored_table(spark: SparkSession, output: str, state: str, topic: str, prefix: str | None) -> StoredTable:
    """Find the table of a topic.

    Args:
        spark: a session with Delta Lake.
        output: the directory of all tables.
        state: the directory of the stored offsets.
        topic: the topic.
        prefix: the connector's ``topic.prefix``.

    Raises:
        StateError: there is no table, or the stored offsets are not those of the table.
    """
    files = HadoopFiles(spark)
    path = files.absolute(join(output, table_name(topic, prefix).path))
    stored, names = StateStore(files, join(state, topic)).load(), files.names(path)
    batch, given = stored.done, "give the --state that it was built with, or build it with rowtide tables --restart"
    if not names and stored.is_new:
        raise StateError(f"there is no table at {path}, and {state} has no offsets for it: run rowtide tables")
    if not names:
        raise StateError(f"the table is missing from {path}, but {state} has offsets for it: restore it, or {given}")
    if stored.is_new:
        raise StateError(f"there are files at {path}, but {state} has no offsets for the table: {given}")
    session = own_session(spark)
    session.conf.set("spark.sql.files.maxPartitionBytes", str(_BYTES_OF_A_PARTITION))
    if LOG in names:
        version, others = _delta_version(files, path, batch)
        return StoredTable(path, "delta", batch, version, others, session)
    if COMMIT_FILE in names:
        commit = Commit.from_json(files.read(join(path, COMMIT_FILE)))
        if commit is None or commit.app_id != batch.app_id:
            raise StateError(f"{path} does not belong to the offsets in {state}: {given}")
        _require_plan(path, batch, commit)
        if commit.batch > batch.number:
            raise StateError(f"a run of rowtide tables has begun to write {path}: run rowtide tables again")
        return StoredTable(path, "parquet", batch, None, (), session)
    raise StateError(f"{path} has files, but neither those of Delta Lake nor those of Parquet by rowtide tables")


def _delta_version(files: HadoopFiles, path: str, batch: Batch) -> tuple[int, tuple[str, ...]]:
    """Return the last version before a later batch, and the commits of other writers after the batch in it.

    What others have written since is part of the table, so it is compared, too.
    """
    version: int | None = None
    others: list[str] = []
    for one in log_commits(files, path):
        if version is None:
            version = one.version
        if one.commit is None:
            if '"dataChange":true' in one.actions:
                others.append(f"version {one.version} ({one.info.get('operation', 'an unknown operation')})")
        elif one.commit.app_id != batch.app_id:
            raise StateError(
                f"{path} has the rows of another topic: its commit {one.version} is of {one.commit.app_id}, and the "
                f"stored offsets are of {batch.app_id}. Give the --state that it was built with"
            )
        elif one.commit.batch > batch.number:
            version, others = one.version - 1, []
        else:
            _require_plan(path, batch, one.commit)
            return version, tuple(reversed(others))
    raise StateError(
        f"the last {SEARCHED_COMMITS} commits of {path} have none of rowtide tables for the stored offsets: the table "
        "was made again by another writer, or its log was cleaned. Run rowtide tables when the topic has new records, "
        "or build it with --restart"
    )


def _require_plan(path: str, batch: Batch, commit: Commit) -> None:
    if commit.batch == batch.number and commit.plan_id != batch.plan_id:
        raise StateError(
            f"{path} was written by a run with other stored offsets (batch {batch.number}): give the --state that it "
            "was built with, or build it with rowtide tables --restart"
        )


def _readable(name: str, kind: str) -> str:
    column = quote(name)
    forms = {
        "date": f"unix_date({column})",
        "timestamp": f"unix_micros({column})",
        "timestamp_ntz": f"unix_micros(CAST({column} AS timestamp))",  # the session's time zone is UTC
        "float": f"CAST({column} AS string)",
    }
    return f"{forms.get(kind, column)} AS {column}"
