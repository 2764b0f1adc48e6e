"""The tables to read, in step with the offsets of the stream, which carry this state."""

from collections.abc import Sequence
from dataclasses import replace

from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import with_read
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState


class CarriedState:
    """The state of the incremental snapshots. Each change is in all offsets after it.

    Attributes:
        progress: the position in the stream; ``None`` before the first one.
    """

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self._state: SnapshotState | None = None

    def attach(self, progress: Progress) -> bool:
        """Continue with a new stream; return whether it is the first one, whose state is that of the start offset."""
        self.progress, first = progress, self._state is None
        self.change(SnapshotState.from_carried(progress.carried) if self._state is None else self._state)
        return first

    @property
    def tables(self) -> tuple[IncrementalTable, ...]:
        """The tables that remain to be read."""
        return () if self._state is None else self._state.tables

    @property
    def active(self) -> bool:
        """Whether there is a table to read."""
        return self._state is not None and bool(self._state.tables) and not self._state.paused

    @property
    def current(self) -> SnapshotState:
        """The state."""
        assert self._state is not None, "attach() comes first"
        return self._state

    @property
    def first(self) -> IncrementalTable:
        """The table that is being read."""
        return self.current.tables[0]

    def here(self, at: SourceOffset) -> SourceOffset:
        """Return the offset with the current state."""
        assert self.progress is not None
        return replace(at, carried=self.progress.carried)

    def change_first(self, first: IncrementalTable) -> None:
        """Change the current table."""
        self.change(self.current.with_first(first))

    def change(self, state: SnapshotState, done: Sequence[IncrementalTable] = ()) -> None:
        """Change the state.

        Args:
            state: the state.
            done: tables that count as read from now on.
        """
        assert self.progress is not None
        self._state = state
        self.progress.carried = state.carried(with_read(self.progress.carried, {table.table for table in done}))
