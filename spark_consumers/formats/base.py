"""The interface of a table format."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.kafka.naming import TableName, join
from rowtide.spark_consumers.rows.evolution import Columns, Evolution
from rowtide.spark_consumers.rows.history import Ends
from rowtide.spark_consumers.rows.renames import Renames
from rowtide.spark_consumers.settings import Settings, Shard
from rowtide.spark_consumers.state import Commit


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The number of rows that a step changed in the table."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: "RowCounts") -> "RowCounts":
        return RowCounts(self.inserted + other.inserted, self.updated + other.updated, self.deleted + other.deleted)


def own_rows(rows: DataFrame, shard: Shard | None) -> DataFrame:
    """Return the rows of a topic, of those of its table; ``shard`` is ``None`` if the table has no others."""
    return rows if shard is None else rows.where(shard.rows())


class TableFormat(Protocol):
    """Tables of one format. The ``path`` of a table is its directory, or its name in a catalog.

    Every step that changes rows carries a :class:`Commit`, and a table that already has that commit ignores the step.
    A batch can therefore be repeated. Those that write rows raise
    :class:`rowtide.spark_consumers.errors.OverlappingRunsError` if the table has the commit from another plan.
    """

    def path(self, name: TableName) -> str:
        """Return the path of a table."""

    def exists(self, path: str) -> bool:
        """Return whether a table exists."""

    def has_files(self, path: str) -> bool:
        """Return whether there are files at the path of a missing table, as after a failed query."""

    def size(self, path: str) -> int:
        """Return the size of a table in bytes, 0 if it does not exist."""

    def delete(self, path: str) -> None:
        """Delete a table with its files, and the files that :meth:`has_files` finds."""

    def delete_rows(self, path: str, condition: str) -> None:
        """Delete the rows for which a condition in SQL is true."""

    def columns(self, path: str) -> Columns | None:
        """Return the table's columns, ``None`` if there is no table."""

    def placing_columns(self, path: str) -> Collection[str]:
        """Return the columns by which an existing table is partitioned, clustered or sorted: it cannot lose them."""

    def read(self, path: str) -> DataFrame:
        """Return the table's rows."""

    def newest_commit(self, path: str, app_id: str) -> Commit | None:
        """Return the newest commit of a state in the table; ``None`` if there is none."""

    def rename(self, path: str, renames: Renames, commit: Commit) -> str:
        """Rename and drop columns in one step, and return a note for the user, which may be empty."""

    def evolve(self, path: str, evolution: Evolution, commit: Commit) -> None:
        """Create the table, or add columns, widen types and fill existing rows."""

    def create(self, path: str, columns: Columns, rows: DataFrame, commit: Commit) -> RowCounts:
        """Create the table with its first rows, in one step.

        Args:
            path: of the table.
            columns: of the table.
            rows: these columns with their types, one row for each row of the table.
            commit: identity of this step.
        """

    def upsert(self, path: str, rows: DataFrame, keys: Sequence[str], *, replace: bool, commit: Commit) -> RowCounts:
        """Insert, update or delete rows by key.

        Args:
            path: of the table.
            rows: the table's columns and :data:`rowtide.spark_consumers.rows.changes.DELETED`, one row for each key.
            keys: the key's columns.
            replace: remove all other rows.
            commit: identity of this step.
        """

    def add_versions(self, path: str, rows: DataFrame, keys: Sequence[str], ends: Ends, commit: Commit) -> RowCounts:
        """Add versions of rows, and end current ones, in one step.

        Args:
            path: of the table.
            rows: the table's columns, and ``ENDS`` and ``KNOWN`` of :mod:`rowtide.spark_consumers.rows.history`; a key
                has at most one end.
            keys: the key's columns; none if there are no rows.
            ends: the changes that ends of versions make to their rows.
            commit: identity of this step.
        """

    def replace_rows(
        self, path: str, removed: DataFrame | None, added: DataFrame, *, replace: bool, commit: Commit
    ) -> RowCounts:
        """Remove every row that equals one of ``removed``, or all rows if ``replace``, and add rows, in one step."""


@dataclass(frozen=True, slots=True)
class DirectoryFormat:
    """Tables in directories of the output.

    Attributes:
        spark: a session for this table alone.
        settings: of the run.
    """

    spark: SparkSession
    settings: Settings

    def path(self, name: TableName) -> str:
        """Return the table's directory, absolute: Delta's SQL interprets a relative one as the name of a table."""
        return self._files.absolute(join(self.settings.output, name.path))

    def has_files(self, path: str) -> bool:
        """Return whether the directory has files."""
        return bool(self._files.names(path))

    def size(self, path: str) -> int:
        """Return the size of the directory in bytes."""
        return self._files.size(path)

    def delete(self, path: str) -> None:
        """Delete the directory."""
        self._files.delete(path)

    @property
    def _files(self) -> HadoopFiles:
        return HadoopFiles(self.spark)


def no_rows(spark: SparkSession, columns: Columns) -> DataFrame:
    """Return the contents of a table without rows.

    It is created in the JVM: tasks that read a list of Python rows need Python on each executor, even if it is empty.
    """
    return spark.range(0).selectExpr(*(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in columns))
