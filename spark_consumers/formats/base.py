"""What a table's format must be able to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from rowtide.spark_consumers.rows.evolution import Columns, Evolution
from rowtide.spark_consumers.state import Commit


@dataclass(frozen=True, slots=True)
class Effect:
    """Rows that a step changed in the table."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: "Effect") -> "Effect":
        return Effect(self.inserted + other.inserted, self.updated + other.updated, self.deleted + other.deleted)


class TableFormat(Protocol):
    """Tables of one format, each in a directory.

    Every step that changes rows has a :class:`Commit`; a step whose commit the table already has changes nothing. That
    is what makes a batch safe to repeat.
    """

    def columns(self, path: str) -> Columns | None:
        """The table's columns, ``None`` if there is no table."""

    def read(self, path: str) -> DataFrame:
        """The table's rows."""

    def evolve(self, path: str, evolution: Evolution, commit: Commit) -> None:
        """Create the table, or add columns, widen types and fill what rows get that are there."""

    def upsert(
        self, path: str, rows: DataFrame, keys: Sequence[str], *, fresh: bool, replace: bool, commit: Commit
    ) -> Effect:
        """Insert, update or delete rows by key.

        Args:
            path: the table's directory.
            rows: the table's columns and :data:`rowtide.spark_consumers.rows.fold.DELETED`, one row for each key.
            keys: the key's columns.
            fresh: the table was made by this batch and is still empty.
            replace: remove all other rows.
            commit: identity of this step.
        """

    def exchange(
        self, path: str, removed: DataFrame | None, added: DataFrame, *, replace: bool, commit: Commit
    ) -> Effect:
        """Remove every row that equals one of ``removed`` (all rows with ``replace``), then add rows, in one step."""
