"""The interface of a table format."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.rows.evolution import Columns, Evolution
from rowtide.spark_consumers.state import Commit


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The number of rows that a step changed in the table."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: "RowCounts") -> "RowCounts":
        return RowCounts(self.inserted + other.inserted, self.updated + other.updated, self.deleted + other.deleted)


class TableFormat(Protocol):
    """Tables of one format, each in a directory.

    Every step that changes rows carries a :class:`Commit`, and a table that already has that commit ignores the step.
    A batch can therefore be repeated. :meth:`create`, :meth:`upsert` and :meth:`replace_rows` raise
    :class:`rowtide.spark_consumers.errors.OverlappingRunsError` if the table has the commit from another plan.
    """

    def exists(self, path: str) -> bool:
        """Whether there is a table."""

    def columns(self, path: str) -> Columns | None:
        """Return the table's columns, ``None`` if there is no table."""

    def read(self, path: str) -> DataFrame:
        """Return the table's rows."""

    def newest_commit(self, path: str, app_id: str) -> Commit | None:
        """Return the newest commit of a state in the table; ``None`` if there is none."""

    def evolve(self, path: str, evolution: Evolution, commit: Commit) -> None:
        """Create the table, or add columns, widen types and fill existing rows."""

    def create(self, path: str, columns: Columns, rows: DataFrame, commit: Commit) -> RowCounts:
        """Create the table with its first rows, in one step.

        Args:
            path: the table's directory.
            columns: of the table.
            rows: these columns with their types, one row for each row of the table.
            commit: identity of this step.
        """

    def upsert(self, path: str, rows: DataFrame, keys: Sequence[str], *, replace: bool, commit: Commit) -> RowCounts:
        """Insert, update or delete rows by key.

        Args:
            path: the table's directory.
            rows: the table's columns and :data:`rowtide.spark_consumers.rows.changes.DELETED`, one row for each key.
            keys: the key's columns.
            replace: remove all other rows.
            commit: identity of this step.
        """

    def replace_rows(
        self, path: str, removed: DataFrame | None, added: DataFrame, *, replace: bool, commit: Commit
    ) -> RowCounts:
        """Remove every row that equals one of ``removed``, or all rows if ``replace``, and add rows, in one step."""


def no_rows(spark: SparkSession, columns: Columns) -> DataFrame:
    """Return the contents of a table without rows.

    It is made in the JVM: tasks that read a list of Python rows need Python on each executor, even if it is empty.
    """
    return spark.range(0).selectExpr(*(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in columns))
