"""The progress of a snapshot, as numbers for metrics, log lines and a progress bar. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rowtide.schema_history.model import TableId


@dataclass(slots=True)
class TableRows:
    """The progress of a table.

    Attributes:
        done: rows that were read.
        estimated: rows of the table, as the server estimates; ``None`` if it has no estimate.
        finished: whether all rows were read.
    """

    done: int = 0
    estimated: int | None = None
    finished: bool = False

    @property
    def state(self) -> Literal["WAITING", "READING", "FINISHED"]:
        """What is done with the table."""
        return "FINISHED" if self.finished else "READING" if self.done else "WAITING"


class SnapshotStatus:
    """The progress of a snapshot so far: a ``SnapshotProgress``. One thread writes it, any thread may read it.

    Args:
        on_change: called with this object after every change.

    Attributes:
        table_rows: the tables whose rows are read, in the order of reading; empty before a snapshot.
        by_name: the same by ``db.table``.
    """

    def __init__(self, on_change: "Callable[[SnapshotStatus], None] | None" = None) -> None:
        self.table_rows: dict[TableId, TableRows] = {}
        self.by_name: dict[str, TableRows] = {}
        self._on_change = on_change

    def tables(self, tables: Sequence[TableId]) -> None:
        """Start with the tables whose rows a snapshot reads."""
        self.table_rows = {table: TableRows() for table in tables}
        self.by_name = {str(table): rows for table, rows in self.table_rows.items()}
        self._changed()

    def rows(self, table: TableId, done: int, estimated: int | None, *, finished: bool) -> None:
        """Set the progress of a table."""
        rows = self.table_rows[table]
        rows.done, rows.estimated, rows.finished = done, estimated, finished
        self._changed()

    @property
    def finished_tables(self) -> int:
        """The number of tables that were read completely."""
        return sum(rows.finished for rows in self.table_rows.values())

    @property
    def done(self) -> int:
        """The number of rows that were read, of all tables."""
        return sum(rows.done for rows in self.table_rows.values())

    @property
    def complete(self) -> bool:
        """Whether a snapshot read rows, and has read all of them."""
        return bool(self.table_rows) and all(rows.finished for rows in self.table_rows.values())

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self)
