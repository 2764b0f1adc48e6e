"""A table as ``rowtide tables`` left it: its stored offsets, and its rows at the version that has them.

Nothing is written, not even to repair an interrupted run: ``rowtide verify`` reads tables that others use.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.errors import StateError
from rowtide.spark_consumers.formats.base import own_rows
from rowtide.spark_consumers.formats.delta import LOG, SEARCHED_COMMITS, log_commits
from rowtide.spark_consumers.formats.iceberg import IcebergFormat
from rowtide.spark_consumers.formats.parquet import COMMIT_FILE
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.jvm.session import own_session
from rowtide.spark_consumers.kafka.naming import join, table_name
from rowtide.spark_consumers.rows.evolution import Columns
from rowtide.spark_consumers.settings import CURRENT, Layout, Settings, Shard
from rowtide.spark_consumers.state import Batch, Commit, StateStore

_BYTES_OF_A_PARTITION = 16 << 20
"""Bytes of files whose rows are in the driver's memory at a time."""
_GIVEN = "give the --state that it was built with, or build it with rowtide tables --restart"
_ATTEMPTS, _PAUSE_S = 20, 0.5
"""How often, and how long, to wait for the offsets of a table of Iceberg that is just being written."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table and its progress.

    Attributes:
        path: its directory.
        batch: the last finished batch, with the offsets after it.
        version: the version that is read, of Iceberg the id of the snapshot; ``None`` for Parquet, which has none.
        others: later commits of other writers that this version has.
        frame: makes the rows of this version.
        is_replaced: whether it was rewritten since it was opened, so that its old files no longer exist (Parquet).
    """

    path: str
    batch: Batch
    version: int | None
    others: tuple[str, ...]
    frame: Callable[[], DataFrame]
    is_replaced: Callable[[], bool] = lambda: False

    def columns(self) -> Columns:
        """Return the names and types of the columns.

        Raises:
            StateError: the table cannot be read.
        """
        with self._errors():
            return tuple((field.name, field.dataType.simpleString()) for field in self.frame().schema.fields)

    def rows(self, columns: Columns) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some columns, with a few files in memory at a time.

        From a table with all versions of its rows, only the current ones are returned.

        Dates are days and timestamps are microseconds since 1970, which do not depend on a time zone; FLOAT is text.

        Raises:
            StateError: the table cannot be read.
        """
        with self._errors():
            frame = self.frame()
            if self.batch.layout == Layout.HISTORY:
                frame = frame.where(CURRENT)
            frame = frame.selectExpr(*(_readable(name, kind) for name, kind in columns))
            yield from frame.toLocalIterator()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (PySparkException, Py4JError) as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise StateError(f"{self.path} cannot be read: {' '.join(lines[:3])[:600]}") from error


def stored_table(
    spark: SparkSession,
    output: str,
    state: str,
    topic: str,
    prefix: str | None,
    *,
    iceberg: bool = False,
    catalog: str | None = None,
) -> StoredTable:
    """Find the table of a topic.

    Args:
        spark: a session with the table's format.
        output: the directory of all tables.
        state: the directory of the stored offsets.
        topic: the topic.
        prefix: the connector's ``topic.prefix``.
        iceberg: whether it is an Iceberg table; otherwise, its files show the format.
        catalog: the catalog of Spark that has it (Iceberg); ``None`` if it is in the output.

    Raises:
        StateError: there is no table, or the stored offsets are not those of the table.
        SettingsError: Spark does not have the catalog.
    """
    files, name = HadoopFiles(spark), table_name(topic, prefix)
    store = StateStore(files, join(state, topic))
    stored = store.load()
    batch = stored.done
    if batch.table is not None:
        name = name.into(batch.table.replace("/", "."))
    shard = None if batch.shard_column is None else Shard(batch.shard_column, str(name))
    if iceberg:
        tables = IcebergFormat(own_session(spark), Settings(output, state, catalog=catalog))
        return _iceberg_table(tables, tables.path(name), store, state, shard)
    path = files.absolute(join(output, name.path))
    names = files.names(path)
    _require_both(path, state, exists=bool(names), is_new=stored.is_new)
    session = own_session(spark)
    session.conf.set("spark.sql.files.maxPartitionBytes", str(_BYTES_OF_A_PARTITION))
    if LOG in names:
        version, others = _delta_version(files, path, batch)
        reader = session.read.format("delta").option("versionAsOf", version)
        return StoredTable(path, batch, version, others, lambda: own_rows(reader.load(path), shard))
    if COMMIT_FILE in names:
        commit = Commit.from_json(files.read(join(path, COMMIT_FILE)))
        if commit is None or commit.app_id != batch.app_id:
            raise StateError(f"{path} does not belong to the offsets in {state}: {_GIVEN}")
        _require_plan(path, batch, commit)
        if commit.batch > batch.number:
            raise _started(path)

        def is_replaced() -> bool:
            now = Commit.from_json(files.read(join(path, COMMIT_FILE)))
            return now is None or now.batch > batch.number

        return StoredTable(path, batch, None, (), lambda: session.read.parquet(path), is_replaced)
    raise StateError(
        f"{path} has files, but neither those of Delta Lake nor those of Parquet by rowtide tables. Tables of Iceberg "
        "need --format iceberg"
    )


def _started(path: str) -> StateError:
    return StateError(f"a run of rowtide tables has started to write {path}: run rowtide tables again")


def _require_both(path: str, state: str, *, exists: bool, is_new: bool) -> None:
    """Raise ``StateError`` if there is no table, or there are no offsets for it."""
    if not exists and is_new:
        raise StateError(f"there is no table at {path}, and {state} has no offsets for it: run rowtide tables")
    if not exists:
        raise StateError(f"the table is missing from {path}, but {state} has offsets for it: restore it, or {_GIVEN}")
    if is_new:
        raise StateError(f"there are files at {path}, but {state} has no offsets for the table: {_GIVEN}")


def _iceberg_table(tables: IcebergFormat, path: str, store: StateStore, state: str, shard: Shard | None) -> StoredTable:
    """Find the current state of an Iceberg table.

    A run of ``rowtide tables`` stores its offsets just after its commit.
    """
    for left in range(_ATTEMPTS, -1, -1):
        stored = store.load()
        batch = stored.done
        _require_both(path, state, exists=tables.exists(path), is_new=stored.is_new)
        rows = tables.current_rows(path, batch.app_id)
        if rows.commit is None or rows.commit.app_id != batch.app_id:
            raise StateError(f"{path} does not belong to the offsets in {state}: {_GIVEN}")
        _require_plan(path, batch, rows.commit)
        if rows.commit.batch <= batch.number:
            break
        if not left:
            raise _started(path)
        time.sleep(_PAUSE_S)
    return StoredTable(path, batch, rows.snapshot, rows.others, lambda: own_rows(rows.frame, shard))


def _delta_version(files: HadoopFiles, path: str, batch: Batch) -> tuple[int, tuple[str, ...]]:
    """Return the last version before a later batch, and the commits of other writers after the batch in it.

    Later changes by other writers are part of the table, so they are compared, too.
    """
    version: int | None = None
    others: list[str] = []
    for one in log_commits(files, path):
        if version is None:
            version = one.version
        if one.commit is None:
            if '"dataChange":true' in one.actions:
                others.append(f"version {one.version} ({one.info.get('operation', 'an unknown operation')})")
        elif one.commit.app_id != batch.app_id and batch.shard_column is not None:
            continue  # a commit of another topic changes none of these rows
        elif one.commit.app_id != batch.app_id:
            raise StateError(
                f"{path} has the rows of another topic: its commit {one.version} comes from {one.commit.app_id}, but "
                f"the stored offsets come from {batch.app_id}. Give the --state that it was built with"
            )
        elif one.commit.batch > batch.number:
            version, others = one.version - 1, []
        else:
            _require_plan(path, batch, one.commit)
            return version, tuple(reversed(others))
    raise StateError(
        f"the last {SEARCHED_COMMITS} commits of {path} have none of rowtide tables for the stored offsets: the table "
        "was re-created by another writer, or its log was truncated. Run rowtide tables when the topic has new "
        "records, or build it with --restart"
    )


def _require_plan(path: str, batch: Batch, commit: Commit) -> None:
    if commit.batch == batch.number and commit.plan_id != batch.plan_id:
        raise StateError(f"{path} was written by a run with other stored offsets (batch {batch.number}): {_GIVEN}")


def _readable(name: str, kind: str) -> str:
    column = quote(name)
    forms = {
        "date": f"unix_date({column})",
        "timestamp": f"unix_micros({column})",
        "timestamp_ntz": f"unix_micros(CAST({column} AS timestamp))",  # the session's time zone is UTC
        "float": f"CAST({column} AS string)",
    }
    return f"{forms.get(kind, column)} AS {column}"
