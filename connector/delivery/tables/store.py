"""The interface of a store in which a sink keeps tables."""

from collections.abc import Sequence
from typing import Any, Protocol

from rowtide.connector.delivery.tables.offsets import TableOffsets
from rowtide.connector.delivery.tables.pending import Image
from rowtide.connector.delivery.tables.type_changes import Fitting
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.model import Column, TableId

OURS = "made by rowtide"
"""The comment of tables that a sink has made: only those are replaced."""


class TableStore(Protocol):
    """Tables and a position, which change together in transactions. Only one process has it open at a time.

    All methods except :meth:`open` and :meth:`close` are called in a transaction, and see its changes.

    Attributes:
        errors: the errors of its library and of the disk.
    """

    errors: tuple[type[Exception], ...]

    @property
    def offsets(self) -> TableOffsets:
        """The position."""

    def may_pass(self, error: Exception) -> bool:
        """Return whether an error may be temporary, such as that of a full disk."""

    def open(self) -> None:
        """Prepare to write.

        Raises:
            DeliveryError: another process has it open, or it cannot be written.
        """

    def close(self) -> None:
        """Release everything."""

    def begin(self, offset: SourceOffset) -> None:
        """Begin a transaction with the position after it."""

    def commit(self) -> None:
        """Store the transaction and its position."""

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""

    def interrupt(self) -> None:
        """Make a transaction of another thread fail, if possible."""

    def made(self) -> list[TableId]:
        """Return the tables that the sink has created."""

    def exists(self, table: TableId) -> bool:
        """Return whether a table exists."""

    def is_empty(self, table: TableId) -> bool:
        """Return whether a table has no rows."""

    def columns(self, table: TableId) -> dict[str, str]:
        """Return the names and types of a table's columns."""

    def type_of(self, column: Column) -> str:
        """Return the type of a column in this store."""

    def has(self, table: TableId, column: str, value: int | None) -> bool:
        """Return whether a row has a value, a number or NULL, in a column."""

    def all_fit(self, table: TableId, column: str, fitting: Fitting) -> bool:
        """Return whether all values of a column except NULL are in a range."""

    def create(self, table: TableId, columns: Sequence[Column]) -> None:
        """Create a table that does not exist.

        Raises:
            DeliveryError: it cannot have this name, or another program has a table of this name.
        """

    def drop(self, table: TableId) -> None:
        """Delete a table, if it exists.

        Raises:
            DeliveryError: the sink has not created it.
        """

    def rename(self, former: TableId, table: TableId) -> None:
        """Rename a table."""

    def truncate(self, table: TableId) -> None:
        """Delete all rows."""

    def alter(self, table: TableId, pairs: Sequence[tuple[Column | None, Column]], values: dict[str, Any]) -> None:
        """Change the columns of a table.

        Args:
            table: the table.
            pairs: each new column, preceded by the column that currently has its values; ``None`` for an added column.
            values: the values of the added columns in all rows.
        """

    def insert(self, table: TableId, columns: Sequence[Column], rows: Sequence[Image]) -> None:
        """Add rows."""

    def replace(
        self, table: TableId, columns: Sequence[Column], keys: Sequence[Column], rows: dict[Image, Image | None]
    ) -> None:
        """Set the row of each key, or delete it."""

    def update(self, table: TableId, columns: Sequence[Column], keys: Sequence[Column], rows: Sequence[Image]) -> int:
        """Set the given columns, including those of the key, in existing rows, and return the number of these rows."""

    def delete(self, table: TableId, columns: Sequence[Column], images: Sequence[Image], counts: Sequence[int]) -> int:
        """Delete as many rows of each image as counted, and return the number of deleted rows."""
