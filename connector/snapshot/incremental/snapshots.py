"""Snapshots alongside the stream, in the reader's thread: handles signals, and emits the chunks."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from rowtide.connector.errors import SignalError, SnapshotError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import with_renamed
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import RowsRequest, SnapshotRequest, StopRequest
from rowtide.connector.signals.snapshots import Window
from rowtide.connector.snapshot.incremental import requests
from rowtide.connector.snapshot.incremental.carried_state import CarriedState
from rowtide.connector.snapshot.incremental.read_chunks.attempts import Attempts
from rowtide.connector.snapshot.incremental.read_chunks.chunk_records import ClosedWindows, row_batches
from rowtide.connector.snapshot.incremental.read_chunks.kept_rows import gone_rows, kept_rows, record_event
from rowtide.connector.snapshot.incremental.read_chunks.pending import PendingChunks
from rowtide.connector.snapshot.incremental.reading.chunk_reader import ChunkReader, ScanStep
from rowtide.connector.snapshot.incremental.reports import SETTLED, Reports, ScanStatus
from rowtide.connector.snapshot.incremental.scan import Failed, Mark, ReadChunk, Scan
from rowtide.connector.snapshot.incremental.scan_start import NoUsableKey, new_scan
from rowtide.connector.snapshot.incremental.state import IncrementalTable
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.connector.snapshot.view.stream_order import is_comparable, stream_position
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.topics.filters import CapturedNames

log = logging.getLogger(__name__)

_KEYS_AT_ONCE = 2_000
"""Requested keys in one query. Servers compare each row of the table with all of them if they are many more."""
_MAX_KEYS = 500_000
"""The most keys in the journal. After a transaction with more rows, chunks are read again, and are smaller."""


class IncrementalSnapshots:
    """Reads tables in chunks alongside the stream, and emits their rows between its transactions.

    All methods are called in the reader's thread. It is the
    :class:`~rowtide.connector.signals.snapshots.SnapshotsOnDemand` for incremental snapshots.

    Args:
        settings: of the records.
        tables: every table's structure, as the stream has it.
        reader: reads chunks in other threads.
        chunk_size: rows of the first chunk of a table.
        clock: nanoseconds since the epoch.
        progress: receives the progress.

    Attributes:
        watched: the table whose row events must be passed to :meth:`observe`, if any.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        reader: ChunkReader,
        chunk_size: int,
        clock: Callable[[], int],
        progress: SnapshotProgress | None = None,
    ) -> None:
        self.watched: TableId | None = None
        self._settings = settings
        self._tables = tables
        self._names = CapturedNames(settings.tables, tables.exists)
        self._reader = reader
        self._clock = clock
        self._reports = Reports(settings, clock, progress)
        self._topics: TopicOwners | None = None
        self._carried = CarriedState()
        self._pending = PendingChunks(settings.connector)
        self._scan: Scan | None = None
        self._windows = ClosedWindows()
        self._attempts = Attempts(chunk_size)

    # --- the stream -----------------------------------------------------------------------------------------------

    def attach(self, pipeline: Pipeline) -> None:
        """Continue with a new stream: chunks that were read with the previous one are read again.

        Args:
            pipeline: that of the new stream. The snapshot in its start offset is continued.
        """
        if self._carried.attach(pipeline.progress):
            self._reports.resumed(self._carried.current)
        self._abandon()

    @property
    def progress(self) -> Progress | None:
        """The position in the stream; ``None`` before the first one."""
        return self._carried.progress

    @property
    def tables(self) -> tuple[IncrementalTable, ...]:
        """The tables that remain to be read."""
        return self._carried.tables

    @property
    def active(self) -> bool:
        """Whether there is a table to read."""
        return self._carried.active

    def observe(self, event: Rows, structure: TableStructure, table: Table) -> None:
        """Record the keys of a row event whose records are emitted, of the table that is :attr:`watched`."""
        scan, journal = self._scan, self._pending.journal
        if scan is None or self.progress is None:
            return
        skip_unchanged = self._settings.skip_unchanged
        record_event(journal, scan, event, structure, table, skip_unchanged=skip_unchanged)
        self._pending.recorded(self.progress)
        if len(journal) > _MAX_KEYS:
            log.info("more than %d rows of table %s have changed: its last chunk is read again", _MAX_KEYS, scan.name)
            self._attempts.too_large(scan.size)
            self._abandon()

    def emitted(self, topic: str) -> None:
        """Note that records were emitted whose keys are not known: those of an XA transaction."""
        letters = self._settings.dead_letters
        if self._scan is not None and topic in (self._scan.table.topic, None if letters is None else letters.topic):
            self._record_unknown()

    def omitted(self, table: TableId | None) -> None:
        """Note a skipped row event: rows read from its table may be older, and would replace a replayed dead letter."""
        if table in (self.watched, None):
            self._record_unknown()

    def _record_unknown(self) -> None:
        """Record a change of rows whose keys are not known: chunks read before it are read again."""
        if self._scan is not None and self.progress is not None:
            self._pending.journal.record_unknown()
            self._pending.recorded(self.progress)

    def changed(self, table: TableId) -> None:
        """Note that a statement has changed or truncated a table: rows already read from it may be older."""
        if table == self.watched and self._scan is not None and self._tables.table(*self._id) is self._scan.structure:
            self._abandon()

    def renamed(self, former: TableId, now: TableId) -> None:
        """Note that a statement has renamed a table: if the new name is captured, unread rows are read under it."""
        if self.progress is None or not self._names.captures(now.database, now.table):
            return
        remains = self._tables.exists(former.database, former.table)
        swap = self._names.helped(former.database, former.table) is not None
        state = self._carried.current.renamed(former, now, remains=remains, swap=swap)
        self.progress.carried = with_renamed(self.progress.carried, former, now, remains=remains)
        if state != self._carried.current:
            self._abandon()
            self._carried.change(state)
            self._reports.renamed(former, now, remains=remains)

    @property
    def due(self) -> bool:
        """Whether :meth:`run` has something to do: a worker has found something, or the stream has reached a chunk.

        Not while the stream comes to a transaction whose first part was emitted before the start: a server
        that lags may not have it yet, so a chunk could have older rows.
        """
        progress = self.progress
        if not self.active or progress is None or not progress.passed_start:
            return False
        if self._scan is None or self._reader.found:
            return True
        return self._pending.may_be_passed(progress)

    def run(self, pipeline: Pipeline) -> Iterator[Output]:
        """Emit the rows of the chunks that the stream has passed. Call it between two transactions."""
        at, position = pipeline.offset(), stream_position(pipeline)
        if not self.active or not is_comparable(position):
            return
        self._take_found(position)
        yield from self._outputs(at, position)
        self._reader.mark(self._mark(position))

    def close(self) -> None:
        """End the threads."""
        self._reader.close()

    def _mark(self, position: SourceOffset) -> Mark:
        return Mark(self._pending.journal.number, position)

    def _outputs(self, at: SourceOffset, position: SourceOffset) -> Iterator[Output]:
        pending = self._pending
        while self.active:
            if self._scan is None:
                yield from self._begin(at, position)
            elif self._tables.table(*self._id) is not self._scan.structure:
                self._structure_changed(self._scan)
            elif pending.failure is not None and pending.is_passed(pending.failure.end, position):
                yield from self._failed(pending.failure, at)
            elif pending.failure is None and self._is_complete(self._scan):
                yield from self._scanned("SUCCEEDED" if self._carried.first.rows else "EMPTY", at)
            elif (chunk := pending.passed(position)) is not None:
                yield from self._emit(self._scan, chunk, at)
            else:
                break

    def _take_found(self, position: SourceOffset) -> None:
        found = self._reader.found
        while found:
            scan, result = found.popleft()
            if scan is not self._scan:
                continue
            if result is ScanStep.TO_READ:
                self._reader.hold(scan, self._mark(position))
            elif result is ScanStep.BEGUN:
                begun = replace(self._carried.first, begun=True, last=scan.last, key=scan.key.signature)
                self._carried.change_first(replace(begun, estimated=scan.estimated))
            else:
                self._pending.add(result, position.server)

    def _is_complete(self, scan: Scan) -> bool:
        """Return whether all chunks are emitted."""
        return self._carried.first.begun and scan.cut and self._pending.next == scan.number

    def _captured(self) -> Iterator[TableId]:
        return (table for table in self._tables.names() if self._names.captures(table.database, table.table))

    # --- the scan of a table --------------------------------------------------------------------------------------

    @property
    def _id(self) -> tuple[str, str]:
        assert self._scan is not None
        return self._scan.structure.id.database, self._scan.structure.id.table

    def _begin(self, at: SourceOffset, position: SourceOffset) -> Iterator[Output]:
        """Start reading the first table, or continue after its last chunk."""
        first, settings = self._carried.first, self._settings
        structure = None if first.table is None else self._tables.table(first.table.database, first.table.table)
        if structure is None or not self._names.captures(structure.id.database, structure.id.table):
            yield from self._left_out("UNKNOWN_SCHEMA", requests.unknown_table(first.name, self._captured()), at)
            return
        self._topics = self._topics or TopicOwners(settings, self._tables)
        try:
            scan = new_scan(first, structure, settings, self._topics, self._attempts)
        except NoUsableKey as reason:
            if first.initial:
                raise SnapshotError(requests.lost_key(first.name, str(reason))) from None
            yield from self._left_out("NO_PRIMARY_KEY", requests.without_key(first, str(reason)), at)
            return
        if first.key not in (None, scan.key.signature):
            log.info("the key of table %s has changed: the table is read again from its beginning", first.name)
            self._carried.change_first(first.restarted())
        self._scan = scan
        self.watched = structure.id
        self._reader.read(self._scan, self._mark(position))

    def _abandon(self) -> None:
        """Drop chunks that were read but not emitted; the table continues after its last chunk."""
        self._reader.read(None)
        self._scan = self.watched = None
        self._pending.clear()
        self._windows.clear()

    def _structure_changed(self, scan: Scan) -> None:
        log.info("the structure of table %s has changed: its last chunk is read again", scan.name)
        self._abandon()
        self._attempts.structure_changed()
        self._reports.read_in_vain(self._carried.first.name, self._attempts, requests.ALTERED_TOO_OFTEN)

    def _rows_changed(self, scan: Scan) -> None:
        log.info("rows of table %s have changed: its last chunk is read again", scan.name)
        self._abandon()
        self._attempts.rows_changed()
        reason = requests.changed_too_often(holds=self._reader.holds, mariadb=self._settings.connector == "mariadb")
        self._reports.read_in_vain(self._carried.first.name, self._attempts, reason)

    def _failed(self, failure: Failed, at: SourceOffset) -> Iterator[Output]:
        self._abandon()
        if failure.rows is not None:
            self._attempts.too_large(failure.rows)
        elif not failure.lost:
            yield from self._refused(failure, at)

    def _refused(self, failure: Failed, at: SourceOffset) -> Iterator[Output]:
        """Read the last chunk again, or give up on the table."""
        attempts, name, reason = self._attempts, self._carried.first.name, failure.reason
        attempts.server_refused()
        if (
            not (attempts.exhausted or failure.hopeless) or self._carried.first.initial
        ):  # an initial snapshot skips no table
            log.warning("the last chunk of table %s is read again (try %d): %s", name, attempts.refused + 1, reason)
            return
        log.error("%s", requests.given_up(name, reason))
        yield from self._scanned("SQL_EXCEPTION", at, f"table {name} is not read completely: {reason}")

    def _left_out(self, status: ScanStatus, reason: str, at: SourceOffset) -> Iterator[Output]:
        log.warning("%s", reason)
        yield from self._scanned(status, at, reason)

    def _scanned(self, status: ScanStatus, at: SourceOffset, error: str | None = None) -> Iterator[Output]:
        """Note that the first table is done."""
        state, first = self._carried.current, self._carried.first
        self._abandon()
        self._attempts.next_table()
        if status == "SUCCEEDED":
            log.info("the %s snapshot has read %d rows of table %s", first.kind, first.rows, first.name)
        # A new table that is done is not new at the next start.
        self._carried.change(state.without_first(), [first] if status in SETTLED else [])
        yield from self._reports.scanned(state, status, self._carried.here(at), error)

    # --- the rows of a chunk --------------------------------------------------------------------------------------

    def _emit(self, scan: Scan, read: ReadChunk, at: SourceOffset) -> Iterator[Output]:
        pending = self._pending
        kept = kept_rows(scan, read, pending.journal, pending.since(read))
        gone = () if scan.requested is None else gone_rows(scan, read, pending.journal, pending.since(read))
        if kept is None or gone is None:
            self._rows_changed(scan)
            return
        carried, upper = self._carried, read.chunk.upper
        rows = carried.first.rows + sum(len(block.rows) for block in read.blocks)
        first = replace(carried.first, lower=upper or carried.first.lower, rows=rows)
        yield from self._reports.progress(carried.current, scan.key.columns, upper, carried.here(at))
        assert self.progress is not None
        event = self._windows.take(read.window) or self.progress.source_position()
        before = carried.here(at)
        carried.change_first(first)
        yield from row_batches(scan.table, kept, event, before, carried.here(at), self._clock, gone)
        pending.emitted()
        self._attempts.emitted(scan.size)
        pending.journal.prune(self._reader.taken(scan, read.chunk.number))

    # --- signals --------------------------------------------------------------------------------------------------

    def execute(self, request: SnapshotRequest, at: SourceOffset) -> Iterable[Output]:
        """Add tables to those that are read."""
        return self.add(requests.requested_tables(request, self._captured()), request.signal.id, at)

    def reread(self, request: RowsRequest, at: SourceOffset) -> Iterable[Output]:
        """Read rows again by their keys."""
        table = next((one for one in self._captured() if str(one) == request.collection), None)
        if table is None:
            raise SignalError(requests.unknown_table(request.collection, self._captured()))
        if "d" in self._settings.skipped_operations:
            raise SignalError("skipped.operations has d: the rows that do not exist cannot be deleted from the topic")
        wanted = IncrementalTable(str(table), table, request.signal.id, key_names=request.columns, keys=request.keys)
        structure = self._tables.table(table.database, table.table)
        try:
            if structure is not None:
                self._topics = self._topics or TopicOwners(self._settings, self._tables)
                new_scan(wanted, structure, self._settings, self._topics, self._attempts)
        except NoUsableKey as error:
            raise SignalError(f"table {table}: {error}") from None
        pieces = range(0, len(request.keys), _KEYS_AT_ONCE)
        parts = [replace(wanted, keys=request.keys[begin : begin + _KEYS_AT_ONCE]) for begin in pieces]
        return self.add(parts, request.signal.id, at)

    def add(self, tables: Sequence[IncrementalTable], request_id: str, at: SourceOffset) -> Iterable[Output]:
        """Read these tables after the tables that are already being read.

        Args:
            tables: the tables.
            request_id: the id of the notifications.
            at: the resume position.

        Raises:
            SignalError: there are too many tables.
        """
        names = list(dict.fromkeys(table.name for table in tables))
        wanted = replace(self._carried.current, tables=(*self.tables, *tables))
        wanted.require_room()
        self._carried.change(wanted)
        log.info("an incremental snapshot of %s begins", ", ".join(names))
        return list(self._reports.changed("STARTED", request_id, names, at))

    def stop(self, request: StopRequest, at: SourceOffset) -> Iterable[Output]:
        """Skip tables."""
        state = self._carried.current
        stopped = requests.stopped_tables(request, state)
        if not stopped:
            log.info("there is no incremental snapshot of these tables to stop")
            return ()
        left = tuple(table for table in state.tables if table not in stopped)
        if state.tables[0] in stopped:
            self._abandon()
            self._attempts.next_table()
        self._carried.change(replace(state, tables=left, paused=state.paused and bool(left)), stopped)
        log.info("the incremental snapshot of %s is stopped", ", ".join(table.name for table in stopped))
        return list(self._reports.stopped(stopped, at))

    def pause(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Read no more chunks."""
        self._abandon()
        return self._paused(at, paused=True)

    def resume(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Continue reading."""
        return self._paused(at, paused=False)

    def _paused(self, at: SourceOffset, *, paused: bool) -> Iterable[Output]:
        state = self._carried.current
        if not state.tables or state.paused is paused:
            return ()
        self._carried.change(replace(state, paused=paused))
        signal_id = state.tables[0].signal_id
        return list(self._reports.changed("PAUSED" if paused else "RESUMED", signal_id, state.names(signal_id), at))

    def window(self, window_id: str, kind: Window) -> None:
        """Keep the position of the last row of a window for the ``source`` of its chunk's rows."""
        if kind != "open" and self._scan is not None and self.progress is not None:
            self._windows.add(window_id, self.progress.source_position())
