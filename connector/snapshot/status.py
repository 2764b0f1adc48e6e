"""The progress of snapshots, as numbers for metrics, log lines and a progress bar. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from rowtide.schema_history.model import TableId


class SnapshotProgress(Protocol):
    """Receives the progress of a snapshot."""

    def tables(self, tables: Sequence[TableId]) -> None:
        """Report that the rows of these tables will be read, in this order."""
        ...

    def added(self, names: Iterable[str]) -> None:
        """Report that the rows of these tables (``db.table``) will be read after the known ones."""
        ...

    def left(self, names: Collection[str]) -> None:
        """Report that these tables are not read, or no longer."""
        ...

    def rows(self, table: TableId | str, done: int, estimated: int | None, *, finished: bool) -> None:
        """Report that ``done`` rows of a table were read, of an estimated number.

        ``None`` if the server has no estimate.
        """
        ...

    def stuck(self, table: str, problem: str) -> None:
        """Report that a table makes no progress until further rows of it are read."""
        ...


@dataclass(slots=True)
class TableProgress:
    """The progress of a table.

    Attributes:
        done: rows that were read.
        estimated: rows of the table, as the server estimates; ``None`` if it has no estimate.
        finished: whether all rows were read.
        rate: rows per second since its first rows; 0 if unknown.
        problem: the reason why it makes no progress; ``None`` if it does.
    """

    done: int = 0
    estimated: int | None = None
    finished: bool = False
    rate: float = 0.0
    problem: str | None = None
    _first: tuple[int, float] | None = None

    @property
    def state(self) -> Literal["WAITING", "READING", "FINISHED"]:
        """The state of the table."""
        return "FINISHED" if self.finished else "READING" if self.done else "WAITING"

    def read(self, done: int, estimated: int | None, now: float, *, finished: bool) -> None:
        """Set the progress at a time in seconds."""
        self.done, self.estimated, self.finished = done, estimated, finished
        self.problem = None
        if self._first is None and done:
            self._first = done, now
        rows, since = self._first or (0, now)
        if now > since:
            self.rate = (done - rows) / (now - since)


class SnapshotStatus:
    """The progress of snapshots so far: a ``SnapshotProgress``. One thread writes it, any thread may read it.

    Args:
        clock: seconds since any moment.

    Attributes:
        by_name: the tables whose rows are read by ``db.table``, in the order of reading; empty before a snapshot.
    """

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.by_name: Mapping[str, TableProgress] = {}
        self._clock = clock

    def tables(self, tables: Sequence[TableId]) -> None:
        """Start with the tables whose rows an initial or a blocking snapshot reads."""
        self.by_name = {str(table): TableProgress() for table in tables}

    def added(self, names: Iterable[str]) -> None:
        """Report that further tables will be read; finished ones are no longer shown."""
        unfinished = {name: rows for name, rows in self.by_name.items() if not rows.finished}
        self.by_name = unfinished | {name: TableProgress() for name in names}

    def left(self, names: Collection[str]) -> None:
        """Report that tables are not read, or no longer."""
        self.by_name = {name: rows for name, rows in self.by_name.items() if name not in names}

    def rows(self, table: TableId | str, done: int, estimated: int | None, *, finished: bool) -> None:
        """Set the progress of a table."""
        name = str(table)
        if name not in self.by_name:  # a blocking snapshot has come in between
            self.by_name = {**self.by_name, name: TableProgress()}
        self.by_name[name].read(done, estimated, self._clock(), finished=finished)

    def stuck(self, table: str, problem: str) -> None:
        """Set the reason why a table makes no progress."""
        if table in self.by_name:
            self.by_name[table].problem = problem

    @property
    def done(self) -> int:
        """The number of rows that were read, of all tables."""
        return sum(rows.done for rows in self.by_name.values())

    @property
    def complete(self) -> bool:
        """Whether a snapshot read rows, and has read all of them."""
        return bool(self.by_name) and all(rows.finished for rows in self.by_name.values())
