"""Blocking snapshots in the reader's thread: handles signals, and decides when rows are read."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pymysql

from rowtide.connector.backoff import backoff_s
from rowtide.connector.config import Configuration
from rowtide.connector.errors import ConnectorError, SnapshotError
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.notifications import Notifications, Notifier
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import with_read
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.snapshot_requests import SnapshotRequest, StopRequest
from rowtide.connector.snapshot.blocking.state import BlockingRequest, BlockingState
from rowtide.connector.snapshot.blocking.table_reader import SnapshotRefused, TableReader
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.connector.snapshot.view.opening import OpenSnapshot
from rowtide.connector.snapshot.view.stream_order import AwaitedPosition, has_passed, is_same, stream_position
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.schema_history.catalog.tables import Tables

log = logging.getLogger(__name__)

_MAX_TRIES = 8
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0

_AGGREGATE = "Blocking Snapshot"
"""``aggregate_type`` of notifications that have the id of the signal; Debezium's have a random one."""

SignalsThatCame = Callable[[Pipeline], Iterable[Output]]
"""Carries out the signals that have come by channels other than the stream."""


class BlockingSnapshots:
    """Takes blocking snapshots, one after the other. All methods are called in the reader's thread.

    Every offset lists the pending snapshots until their last record. After a crash or a lost connection, a snapshot
    starts again at the position that the stream has then reached.

    Args:
        settings: of the records.
        reader: reads the tables.
        clock: nanoseconds since the epoch.
        stopped: returns whether the connector stops.
        signals: carries out the signals that arrive while the stream pauses.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        reader: TableReader,
        clock: Callable[[], int],
        stopped: Callable[[], bool],
        signals: SignalsThatCame,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._notifications = Notifications(settings, clock)
        self._notifier = Notifier(settings, clock)
        self._stopped = stopped
        self._signals = signals
        self._captured: CapturedTables | None = None
        self._progress: Progress | None = None
        self._state: BlockingState | None = None
        self._view = contextlib.ExitStack()
        self._opened: OpenSnapshot | None = None
        self._end: SourceOffset | None = None
        self._awaited = AwaitedPosition(settings.connector)
        self._tries = 0
        self._wait_until = 0.0

    # --- the stream -----------------------------------------------------------------------------------------------

    def attach(self, pipeline: Pipeline, captured: CapturedTables) -> None:
        """Continue with a new stream; a snapshot in its start offset starts again."""
        self._progress, self._captured = pipeline.progress, captured
        if self._state is None:
            self._state = BlockingState.from_carried(pipeline.progress.carried)
            for request in self._state.requests:
                log.info("the blocking snapshot of %s starts over", ", ".join(request.collections))
        self._carry(self._state)
        self._close_view()

    @property
    def active(self) -> bool:
        """Whether a snapshot is pending."""
        return self._state is not None and bool(self._state.requests) and not self._state.paused

    @property
    def has_view(self) -> bool:
        """Whether a view is open, which may lock tables until its rows are read."""
        return self._opened is not None

    @property
    def due(self) -> bool:
        """Whether the stream has reached the position at which :meth:`run` continues."""
        progress = self._progress
        if not self.active or progress is None or not progress.passed_start:
            return False
        if self._end is None:
            return time.monotonic() >= self._wait_until
        return self._awaited.may_be_passed(progress.file, progress.end)

    def run(self, pipeline: Pipeline) -> Iterator[Output]:
        """Open the view of the first snapshot or, if the stream has reached the view's position, read the tables.

        Call this only between transactions.
        """
        if not self.active:
            return
        at, position = pipeline.offset(), stream_position(pipeline)
        request = self._current.requests[0]
        try:
            opened = self._view_at(request, position)
        except DatabaseUnreachableError as error:
            self._try_later(str(error))
        except SnapshotRefused as error:
            yield from self._given_up(request, str(error), at)
        except (SnapshotError, pymysql.MySQLError) as error:
            self._tries += 1
            if self._tries < _MAX_TRIES:
                self._try_later(_reason(error))
            else:
                yield from self._given_up(request, _reason(error), at)
        else:
            if opened is not None and not opened.tables:
                names = ", ".join(request.collections)
                yield from self._given_up(request, f"no captured table matches 'data-collections' ({names})", at)
            elif opened is not None:
                self._report_unmatched(request, opened)
                yield from self._taken(opened, request, at, pipeline)

    def _report_unmatched(self, request: BlockingRequest, opened: OpenSnapshot) -> None:
        for name in request.unmatched([table.id for table in opened.tables]):
            error = f"table {name} of the blocking snapshot is not captured, or does not exist"
            log.warning("%s", error)
            data = {"scanned_collection": name, "status": "UNKNOWN_SCHEMA"}
            self._notifier.keep(_AGGREGATE, "TABLE_SCAN_COMPLETED", data, request.signal_id, error)

    def close(self) -> None:
        """Close the view."""
        self._close_view()

    def _view_at(self, request: BlockingRequest, position: SourceOffset) -> OpenSnapshot | None:
        """Return the view if the stream is exactly at its position.

        The view is opened only when the stream has reached the end of the binlog: the server keeps the old rows of a
        view, so it should not be open while the stream catches up.
        """
        connector = self._settings.connector
        if self._end is None:
            self._end = self._reader.end_of_binlog()
        if not self._awaited.is_passed(self._end, position):
            return None
        if self._opened is None:
            opened = self._opened = self._view.enter_context(self._reader.open(request))
            self._end = self._reader.position(opened)
            if not has_passed(self._end, position, connector):
                raise SnapshotError(
                    "the server has not executed everything that the stream has read: is it a replica that lags?"
                )
            if not self._awaited.is_passed(self._end, position):
                return None
        if not is_same(position, self._end, connector) and not self._opened.view.single_tables:
            raise SnapshotError(
                "the transactions of the stream differ from those of the server from which the tables are read"
            )
        return self._opened

    def _taken(
        self, opened: OpenSnapshot, request: BlockingRequest, at: SourceOffset, pipeline: Pipeline
    ) -> Iterator[Output]:
        """Read the rows. Signals that arrive while they are read are carried out, and may end the snapshot."""
        assert self._captured is not None
        progress, event = pipeline.progress, pipeline.progress.source_position()
        log.info("the stream is paused for the blocking snapshot of %s", _names(opened))
        outputs = self._reader.outputs(opened, request, at, event, self._captured, self._notifications)
        complete = False
        try:
            with contextlib.closing(outputs):
                for output in outputs:
                    if not isinstance(output, Batch):
                        yield output
                        continue
                    if not complete and output.offset.snapshot is None:
                        complete = True
                        self._complete(request, opened)
                    yield output._replace(offset=replace(output.offset, carried=progress.carried))
                    if complete:
                        continue  # nothing is left to be interrupted
                    yield from self._signals(pipeline)
                    if self._stopped() or self._current.paused or self._current.requests[:1] != (request,):
                        log.info("the blocking snapshot of %s is interrupted", _names(opened))
                        self._reader.interrupted(opened)
                        self._close_view()
                        return
        except DatabaseUnreachableError as error:
            self._reader.interrupted(opened)
            self._try_later(str(error))
        except (ConnectorError, pymysql.MySQLError) as error:
            self._reader.interrupted(opened)
            yield from self._given_up(request, _reason(error), at)
        else:
            log.info("the blocking snapshot of %s is complete; the stream continues", _names(opened))
            self._notifier.keep(_AGGREGATE, "COMPLETED", {"data_collections": _names(opened)}, request.signal_id)
            self._begin_next()

    def _complete(self, request: BlockingRequest, opened: OpenSnapshot) -> None:
        """Change the fields of all offsets, starting with the last record."""
        assert self._progress is not None
        self._carry(self._current.without_first())
        tables = [table.id for table in opened.tables]
        filtered = request.queries(tables)
        whole = [table for table in tables if (table.database, table.table) not in filtered]
        self._progress.carried = with_read(self._progress.carried, whole)

    def _given_up(self, request: BlockingRequest, reason: str, at: SourceOffset) -> Iterator[Output]:
        log.error(
            "the blocking snapshot of %s, which signal %r requested, is NOT complete: %s. Correct the cause, and send "
            "the signal again", ", ".join(request.collections), request.signal_id, reason,
        )  # fmt: skip
        self._carry(self._current.without_first())
        self._begin_next()
        after = replace(at, carried=None if self._progress is None else self._progress.carried)
        data = {"signal_type": "execute-snapshot", "error": reason}
        yield from self._notifier.notify("Signal", "FAILED", data, after, signal_id=request.signal_id)
        yield from self._notifications.ended("ABORTED", after)

    def _try_later(self, reason: str) -> None:
        """Take the snapshot again from its beginning."""
        if self._stopped():
            log.info("the blocking snapshot was interrupted; the next start takes it again from the beginning")
        else:
            log.warning("the blocking snapshot starts over: %s", reason)
        self._close_view()
        self._wait_until = time.monotonic() + backoff_s(self._tries + 1, _FIRST_WAIT_S, _LONGEST_WAIT_S)

    def _begin_next(self) -> None:
        self._close_view()
        self._tries, self._wait_until = 0, 0.0

    def _close_view(self) -> None:
        self._view.close()
        self._opened = self._end = None
        self._awaited.clear()

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def _current(self) -> BlockingState:
        assert self._state is not None, "attach() comes first"
        return self._state

    def _carry(self, state: BlockingState) -> None:
        assert self._progress is not None
        self._state = state
        self._progress.carried = state.carried(self._progress.carried)

    # --- signals --------------------------------------------------------------------------------------------------

    def execute(self, request: SnapshotRequest) -> Iterable[Output]:
        """Add a snapshot after the pending ones."""
        self._carry(self._current.added(request))
        log.info("a blocking snapshot of %s was requested", ", ".join(request.collections.sources))
        return ()

    def stop(self, request: StopRequest, at: SourceOffset) -> Iterable[Output]:
        """Skip tables; the current snapshot starts again without them, or is aborted."""
        before = self._current
        self._carry(after := before.stopped(request))
        if after.requests[:1] != before.requests[:1]:
            self._begin_next()  # the view has other tables, which it may lock
        log.info(
            "%d of %d blocking snapshots are stopped", len(before.requests) - len(after.requests), len(before.requests)
        )
        left = {one.signal_id for one in after.requests}
        for one in before.requests:
            if one.signal_id not in left:
                self._notifier.keep(
                    _AGGREGATE, "ABORTED", {"data_collections": ",".join(one.collections)}, one.signal_id
                )
        if before.requests and not after.requests:
            return list(self._notifications.ended("ABORTED", at))
        return ()

    def pause(self, at: SourceOffset) -> Iterable[Output]:
        """Take no snapshots until :meth:`resume`; the stream continues."""
        return self._paused(at, paused=True)

    def resume(self, at: SourceOffset) -> Iterable[Output]:
        """Take the pending snapshots, starting with the interrupted one from its beginning."""
        return self._paused(at, paused=False)

    def _paused(self, at: SourceOffset, *, paused: bool) -> Iterable[Output]:
        if not self._current.requests or self._current.paused is paused:
            return ()
        self._carry(replace(self._current, paused=paused))
        if paused:
            self._close_view()  # it may lock tables
        return list(self._notifications.ended("PAUSED" if paused else "RESUMED", at))


def _names(opened: OpenSnapshot) -> str:
    return ", ".join(str(table.id) for table in opened.tables)


def _reason(error: Exception) -> str:
    return str(error.args[-1]) if isinstance(error, pymysql.MySQLError) else str(error)


def blocking_snapshots(
    config: Configuration,
    settings: PipelineSettings,
    tables: Tables,
    clock: Callable[[], int],
    progress: SnapshotProgress | None,
    stopped: Callable[[], bool],
    signals: SignalsThatCame,
) -> BlockingSnapshots:
    """Return the blocking snapshots of a run.

    Args:
        config: the configuration.
        settings: of the records.
        tables: every table's structure, as the stream has it.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
        stopped: returns whether the connector stops.
        signals: carries out the signals that arrive during a snapshot.
    """
    semi_sync = config.streaming.semi_sync is not None
    reader = TableReader(config.database, settings, config.snapshot, tables, clock, progress, semi_sync=semi_sync)
    return BlockingSnapshots(settings, reader, clock, stopped, signals)
