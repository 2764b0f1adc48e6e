"""Snapshots that signals start and control: what a stream needs of them, and which kind a signal concerns."""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from rowtide.connector.config import Configuration
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.signals.signal import Signal
from rowtide.connector.pipeline.signals.snapshot_requests import SnapshotRequest, StopRequest, snapshot_type
from rowtide.connector.pipeline.signals.snapshots import Window
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import with_unread
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.blocking.snapshots import BlockingSnapshots, SignalsThatCame
from rowtide.connector.snapshot.blocking.table_reader import TableReader
from rowtide.connector.snapshot.incremental.building import incremental_snapshots
from rowtide.connector.snapshot.incremental.snapshots import IncrementalSnapshots
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)


class RequestedSnapshots:
    """The incremental and the blocking snapshots of a stream.

    It is the :class:`~rowtide.connector.pipeline.signals.snapshots.SnapshotsOnDemand`. All methods are called in the
    reader's thread.

    Attributes:
        incremental: the incremental snapshots.
        blocking: the blocking snapshots.
        entered: tables that a statement has given a captured name, and whose rows are therefore not read.
    """

    def __init__(self, incremental: IncrementalSnapshots, blocking: BlockingSnapshots) -> None:
        self.incremental = incremental
        self.blocking = blocking
        self.entered: deque[TableId] = deque()

    def attach(self, pipeline: Pipeline, captured: CapturedTables) -> None:
        """Go on with a new stream."""
        captured.observer = self.incremental
        captured.on_entered = partial(self._entered, pipeline.progress)
        self.incremental.attach(pipeline)
        self.blocking.attach(pipeline, captured)

    def _entered(self, progress: Progress, table: TableId) -> None:
        """From the statement on, each offset has the table as unread."""
        log.info("%s has got a captured name (at %s:%d)", table, progress.file, progress.pos)
        progress.carried = with_unread(progress.carried, table)
        self.entered.append(table)

    @property
    def active(self) -> bool:
        """Whether there is something to read."""
        return self.incremental.active or self.blocking.active

    def close(self) -> None:
        """End the threads and close the connections."""
        self.incremental.close()
        self.blocking.close()

    def execute(self, request: SnapshotRequest, at: SourceOffset) -> Iterable[Output]:
        """Add the tables to the snapshots that are to be taken (``execute-snapshot``)."""
        if request.type == "blocking":
            return self.blocking.execute(request)
        return self.incremental.execute(request, at)

    def stop(self, request: StopRequest, at: SourceOffset) -> Iterable[Output]:
        """Leave out tables, or abort the snapshot (``stop-snapshot``)."""
        return (self.blocking if request.type == "blocking" else self.incremental).stop(request, at)

    def pause(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Read nothing until :meth:`resume` (``pause-snapshot``)."""
        if snapshot_type(signal) == "blocking":
            return self.blocking.pause(at)
        return self.incremental.pause(signal, at)

    def resume(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Read on (``resume-snapshot``)."""
        if snapshot_type(signal) == "blocking":
            return self.blocking.resume(at)
        return self.incremental.resume(signal, at)

    def window(self, window_id: str, kind: Window) -> None:
        """The stream has passed a row that an incremental snapshot wrote to the signal table."""
        self.incremental.window(window_id, kind)


def requested_snapshots(
    config: Configuration,
    settings: PipelineSettings,
    tables: Tables,
    start: SourceOffset,
    clock: Callable[[], int],
    progress: SnapshotProgress | None,
    stopped: Callable[[], bool],
    signals: SignalsThatCame,
) -> RequestedSnapshots:
    """The snapshots of a run.

    Args:
        config: the configuration.
        settings: of the records.
        tables: every table's structure, as the stream has it.
        start: the position at which the stream begins.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
        stopped: whether the connector stops.
        signals: carries out the signals that come while a blocking snapshot is taken.
    """
    semi_sync = config.streaming.semi_sync is not None
    reader = TableReader(config.database, settings, config.snapshot, tables, clock, progress, semi_sync=semi_sync)
    return RequestedSnapshots(
        incremental_snapshots(config, settings, tables, start, clock, progress),
        BlockingSnapshots(settings, reader, clock, stopped, signals),
    )
