"""How a snapshot goes on, as numbers for metrics, log lines and a progress bar. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowtide.schema_history.model import TableId


@dataclass(slots=True)
class TableRows:
    """How far a table is.

    Attributes:
        done: rows that were read.
        estimated: rows that there are, by the server's estimate; ``None`` if it gives none.
        finished: whether all rows were read.
    """

    done: int = 0
    estimated: int | None = None
    finished: bool = False


class SnapshotStatus:
    """Is told how a snapshot goes on (``SnapshotProgress``), and remembers it; one thread writes, any may read.

    Args:
        show: called with this object after every change.

    Attributes:
        table_rows: the tables whose rows are read, in that order; empty before a snapshot.
    """

    def __init__(self, show: "Callable[[SnapshotStatus], None] | None" = None) -> None:
        self.table_rows: dict[TableId, TableRows] = {}
        self._show = show

    def tables(self, tables: Sequence[TableId]) -> None:
        """A snapshot begins to read rows."""
        self.table_rows = {table: TableRows() for table in tables}
        self._changed()

    def rows(self, table: TableId, done: int, estimated: int | None, *, finished: bool) -> None:
        """Rows of a table were read."""
        rows = self.table_rows[table]
        rows.done, rows.estimated, rows.finished = done, estimated, finished
        self._changed()

    @property
    def finished_tables(self) -> int:
        """How many tables are read."""
        return sum(rows.finished for rows in self.table_rows.values())

    @property
    def done(self) -> int:
        """Rows that were read, in all."""
        return sum(rows.done for rows in self.table_rows.values())

    @property
    def complete(self) -> bool:
        """Whether there was a snapshot of rows and all of them were read."""
        return bool(self.table_rows) and all(rows.finished for rows in self.table_rows.values())

    def _changed(self) -> None:
        if self._show is not None:
            self._show(self)
