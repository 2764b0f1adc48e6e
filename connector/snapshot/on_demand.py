"""Snapshots that signals start and control: the part that a stream needs, and the choice of the kind for a signal."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rowtide.connector.config import Configuration
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import with_unread
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import RowsRequest, SnapshotRequest, StopRequest, snapshot_type
from rowtide.connector.signals.snapshots import Window
from rowtide.connector.snapshot.blocking.state import BlockingState
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId

if TYPE_CHECKING:
    from rowtide.connector.snapshot.blocking.snapshots import BlockingSnapshots, SignalsThatCame
    from rowtide.connector.snapshot.incremental.snapshots import IncrementalSnapshots

log = logging.getLogger(__name__)


class RequestedSnapshots:
    """The incremental and the blocking snapshots of a stream.

    Few streams have one, so their implementation, which needs 1 MB of memory, is imported when it is first used: for a
    signal, for a snapshot in the start offset, and for tables that a statement renames.

    It is the :class:`~rowtide.connector.signals.snapshots.SnapshotsOnDemand`, and the
    :class:`~rowtide.connector.pipeline.captured_tables.RowObserver` as long as there are no incremental snapshots. All
    methods are called in the reader's thread.

    Args:
        make_incremental: makes the incremental snapshots.
        make_blocking: makes the blocking snapshots.

    Attributes:
        entered: tables that a statement has given a captured name, and whose rows are therefore not read.
    """

    def __init__(
        self, make_incremental: "Callable[[], IncrementalSnapshots]", make_blocking: "Callable[[], BlockingSnapshots]"
    ) -> None:
        self._make_incremental = make_incremental
        self._make_blocking = make_blocking
        self._incremental: IncrementalSnapshots | None = None
        self._blocking: BlockingSnapshots | None = None
        self._stream: tuple[Pipeline, CapturedTables] | None = None
        self.entered: deque[TableId] = deque()

    def attach(self, pipeline: Pipeline, captured: CapturedTables) -> None:
        """Continue with a new stream."""
        self._stream = pipeline, captured
        captured.on_entered = partial(self._entered, pipeline.progress)
        captured.observer = self if self._incremental is None else self._incremental
        carried = pipeline.progress.carried
        if self._incremental is not None:
            self._incremental.attach(pipeline)
        elif SnapshotState.is_in(carried):
            self._used_incremental()
        if self._blocking is not None:
            self._blocking.attach(pipeline, captured)
        elif BlockingState.is_in(carried):
            self._used_blocking()

    def _used_incremental(self) -> "IncrementalSnapshots":
        if self._incremental is None:
            assert self._stream is not None, "attach() comes first"
            pipeline, captured = self._stream
            captured.observer = self._incremental = self._make_incremental()
            self._incremental.attach(pipeline)
        return self._incremental

    def _used_blocking(self) -> "BlockingSnapshots":
        if self._blocking is None:
            assert self._stream is not None, "attach() comes first"
            self._blocking = self._make_blocking()
            self._blocking.attach(*self._stream)
        return self._blocking

    def _entered(self, progress: Progress, table: TableId) -> None:
        """Mark the table as unread in each offset after the statement."""
        log.info("%s now has a captured name (at %s:%d)", table, progress.file, progress.pos)
        progress.carried = with_unread(progress.carried, table)
        self.entered.append(table)

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether there is something to read."""
        incremental, blocking = self._incremental, self._blocking
        return (incremental is not None and incremental.active) or (blocking is not None and blocking.active)

    @property
    def has_view(self) -> bool:
        """Whether a blocking snapshot has a view open, which may lock tables until its rows are read."""
        return self._blocking is not None and self._blocking.has_view

    @property
    def due(self) -> bool:
        """Whether :meth:`run` has something to do."""
        incremental, blocking = self._incremental, self._blocking
        return (blocking is not None and blocking.due) or (incremental is not None and incremental.due)

    def run(self, pipeline: Pipeline) -> Iterator[Output]:
        """Read everything that can be read now. Call this between two transactions."""
        if self._blocking is not None and self._blocking.due:
            yield from self._blocking.run(pipeline)
        if self._incremental is not None and self._incremental.due:
            yield from self._incremental.run(pipeline)

    def close(self) -> None:
        """End the threads and close the connections."""
        if self._incremental is not None:
            self._incremental.close()
        if self._blocking is not None:
            self._blocking.close()

    # --- new tables -----------------------------------------------------------------------------------------------

    @property
    def progress(self) -> Progress | None:
        """The position in the stream; ``None`` before the first one."""
        return None if self._stream is None else self._stream[0].progress

    @property
    def tables(self) -> tuple[IncrementalTable, ...]:
        """The tables that incremental snapshots have not finished."""
        return () if self._incremental is None else self._incremental.tables

    def add(self, tables: Sequence[IncrementalTable], request_id: str, at: SourceOffset) -> Iterable[Output]:
        """Read these tables by an incremental snapshot; see :meth:`IncrementalSnapshots.add`."""
        return self._used_incremental().add(tables, request_id, at)

    # --- signals --------------------------------------------------------------------------------------------------

    def execute(self, request: SnapshotRequest, at: SourceOffset) -> Iterable[Output]:
        """Add the tables to the pending snapshots (``execute-snapshot``)."""
        if request.type == "blocking":
            return self._used_blocking().execute(request)
        return self._used_incremental().execute(request, at)

    def reread(self, request: RowsRequest, at: SourceOffset) -> Iterable[Output]:
        """Read rows again by their keys (``rowtide-reread-rows``)."""
        return self._used_incremental().reread(request, at)

    def stop(self, request: StopRequest, at: SourceOffset) -> Iterable[Output]:
        """Skip tables, or abort the snapshot (``stop-snapshot``)."""
        return (self._used_blocking() if request.type == "blocking" else self._used_incremental()).stop(request, at)

    def pause(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Read nothing until :meth:`resume` (``pause-snapshot``)."""
        if snapshot_type(signal) == "blocking":
            return self._used_blocking().pause(at)
        return self._used_incremental().pause(signal, at)

    def resume(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Continue reading (``resume-snapshot``)."""
        if snapshot_type(signal) == "blocking":
            return self._used_blocking().resume(at)
        return self._used_incremental().resume(signal, at)

    def window(self, window_id: str, kind: Window) -> None:
        """Note that the stream has passed a row that an incremental snapshot wrote to the signal table."""
        if self._incremental is not None:
            self._incremental.window(window_id, kind)

    # --- before the first incremental snapshot --------------------------------------------------------------------

    @property
    def watched(self) -> TableId | None:
        """No table, because none is being read."""
        return None

    def observe(self, event: Rows, structure: TableStructure, table: Table) -> None:
        """Do nothing."""

    def emitted(self, topic: str) -> None:
        """Do nothing."""

    def omitted(self, table: TableId | None) -> None:
        """Do nothing."""

    def changed(self, table: TableId) -> None:
        """Do nothing."""

    def renamed(self, former: TableId, now: TableId) -> None:
        """Note in all later offsets that a table with unread rows was renamed."""
        self._used_incremental().renamed(former, now)


def requested_snapshots(
    config: Configuration,
    settings: PipelineSettings,
    tables: Tables,
    start: SourceOffset,
    clock: Callable[[], int],
    progress: SnapshotProgress | None,
    stopped: Callable[[], bool],
    signals: "SignalsThatCame",
) -> RequestedSnapshots:
    """Return the snapshots of a run.

    Args:
        config: the configuration.
        settings: of the records.
        tables: every table's structure, as the stream has it.
        start: the position at which the stream begins.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
        stopped: returns whether the connector stops.
        signals: carries out the signals that arrive during a blocking snapshot.
    """

    def incremental() -> "IncrementalSnapshots":
        from rowtide.connector.snapshot.incremental.building import incremental_snapshots  # noqa: PLC0415 - by need

        return incremental_snapshots(config, settings, tables, start, clock, progress)

    def blocking() -> "BlockingSnapshots":
        from rowtide.connector.snapshot.blocking.snapshots import blocking_snapshots  # noqa: PLC0415 - by need

        return blocking_snapshots(config, settings, tables, clock, progress, stopped, signals)

    return RequestedSnapshots(incremental, blocking)
