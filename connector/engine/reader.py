"""The reader: from the server's stream through the pipeline into the event store. An edge: it runs in a thread.

It resumes after lost connections, writes history entries before the rows that need them, sends heartbeats, and advances
the stored offset while only tables change that are not captured.
"""

import time
from collections.abc import Callable, Iterable, Iterator, MutableSet, Sequence
from typing import Protocol

from rowtide.connector.config import Configuration
from rowtide.connector.delivery.event_store import EventStore, StoreClosed
from rowtide.connector.delivery.source_acknowledgements import SourceAcknowledgements
from rowtide.connector.engine.decoding.forms import RecordForm
from rowtide.connector.engine.decoding.parallel_pipeline import ParallelPipeline
from rowtide.connector.engine.decoding.processes import decoder_processes
from rowtide.connector.engine.stream_reader import StreamReader
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.structures.lookup import CurrentStructures
from rowtide.connector.pipeline.xa_reader import XaPackets, xa_reader
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer
from rowtide.connector.signals.actions import Signals
from rowtide.connector.signals.receiver import SignalReceiver
from rowtide.connector.snapshot.on_demand import RequestedSnapshots
from rowtide.connector.snapshot.view.stream_order import stream_position
from rowtide.connector.source.event_stream import EventStream, StreamFactory
from rowtide.connector.source.temporary_file import temporary_file
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.store.history_store import SchemaHistoryStore

_PUT_BYTES = 4 << 20
"""Batches are put into the store whenever they have about this size, so that its limit holds."""
_DELIVERY_TICK_S = 0.1
_BACKLOG_BYTES = 128 << 10
"""If less was received at a time, the reader has caught up with the server, and no event may wait for the next."""
_IDLE_OFFSET_S = 60.0
"""How often the stored offset advances while there are no records."""

HeartbeatSource = Callable[[SourceOffset], Batch | None]
"""Returns a heartbeat record with the offset if one is due."""


class BoundaryWork(Protocol):
    """Work that the reader's thread does between two transactions, such as signals of other channels."""

    @property
    def due(self) -> bool:
        """Whether there is something to do; read after each event, so it must be quick."""
        ...

    def run(self, pipeline: Pipeline) -> Iterable[Output]:
        """Do it, and return the outputs in order; after them, the position of the pipeline is stored."""
        ...


StreamPipeline = ParallelPipeline[Sequence[Output]]
"""The pipeline of a stream, whose rows are decoded in other processes if there are any."""


class Reader(StreamReader[StreamPipeline]):
    """Reads the binlog until it is stopped, or until an error that a new connection cannot repair.

    Args:
        config: the settings of retries.
        settings: of the pipeline.
        tables: structures at the start position.
        start: the start position.
        store: receives the batches.
        history: receives the history entries.
        streams: opens a stream at an offset.
        heartbeats: makes heartbeat records.
        clock: ns since the epoch.
        current: the server, to look up structures.
        xa_packets: reads prepared XA transactions alongside the stream.
        signals: the actions of signals.
        work: what to do between two transactions.
        snapshots: those that signals start.
        hidden: tables that are not captured yet, as (database, table); the caller removes them, too.
        acknowledgements: of transactions to the server, if it gets them when their records are delivered.

    Attributes:
        status: the state of the reader.
        servers: how often it has begun to read from another server than before; 1 for the first one.
    """

    def __init__(
        self,
        config: Configuration,
        settings: PipelineSettings,
        tables: Tables,
        start: SourceOffset,
        store: EventStore,
        history: SchemaHistoryStore,
        streams: StreamFactory,
        heartbeats: HeartbeatSource = lambda _offset: None,
        clock: Callable[[], int] = time.time_ns,
        current: CurrentStructures | None = None,
        xa_packets: XaPackets | None = None,
        signals: Signals | None = None,
        work: Sequence[BoundaryWork] = (),
        snapshots: RequestedSnapshots | None = None,
        hidden: MutableSet[tuple[str, str]] | None = None,
        acknowledgements: SourceAcknowledgements | None = None,
    ) -> None:
        super().__init__(config.failure, start, streams)
        self._by_file = config.capture.gtid_ignore_on_recovery
        self._settings = settings
        self._tables = tables
        self._store = store
        self._history = history
        self._heartbeats = heartbeats
        self._clock = clock
        self._captured = CapturedTables(settings, tables, clock, current, hidden)
        self._read_xa = None if xa_packets is None else xa_reader(settings, tables, clock, xa_packets, temporary_file)
        self._signals = None if signals is None else SignalReceiver(settings, signals, tables, self._captured)
        self._hidden = hidden
        self._snapshots = snapshots
        self._work = work if snapshots is None else (*work, snapshots)
        self._transformer = Transformer(settings.transforms) if settings.transforms else None
        self._acknowledgements = acknowledgements
        self._processes = decoder_processes(config.streaming.decoder_processes or 0, settings, RecordForm(), clock)
        self._parallel: StreamPipeline | None = None
        self._put_at = time.monotonic()
        self._put_offset = start
        self.servers = 0
        self._server: str | None = None
        self._position: SourceOffset | None = None
        self._position_wanted = False

    def run(self) -> None:
        """Read until :meth:`stop` is called; raises as :meth:`StreamReader.run` does."""
        try:
            super().run()
        finally:
            if self._processes is not None:
                self._processes.close()

    def position(self) -> SourceOffset | None:
        """A position between two transactions of the open stream, with the ``server_id`` as its server.

        Everything before it is in the event store. It may be that of the call before: the next one is noted soon.

        Returns:
            The position; ``None`` if nothing of the stream was read. Read ``servers`` after it.
        """
        self._position_wanted = True
        return self._position

    def _pipeline(self, start: SourceOffset) -> StreamPipeline:
        pipeline = Pipeline(
            self._settings,
            self._tables,
            start,
            self._clock,
            self._captured,
            self._read_xa,
            self._signals,
            temporary_file,
        )
        if self._by_file:
            pipeline.progress.begin_at_file()
        if self._snapshots is not None:
            self._snapshots.attach(pipeline, self._captured)
        if self._parallel is not None:
            self._parallel.abandon()
        self._parallel = ParallelPipeline(
            pipeline, self._captured, self._settings, self._processes, RecordForm(), self._may_read_ahead
        )
        return self._parallel

    def _written(self, packets: list[bytes], pipeline: StreamPipeline) -> Iterator[None]:
        """Write the outputs of events; yields whenever everything up to the pipeline's offset is written."""
        outputs: list[Output] = []
        size = 0
        try:
            at = 0
            while at < len(packets):
                before = at
                steps, at = pipeline.receive_next(packets, at)
                for made in steps:
                    outputs += made
                    size += sum(output.size for output in made if isinstance(output, Batch))
                    if size >= _PUT_BYTES:
                        full, outputs, size = outputs, [], 0
                        self._write(full)  # what cannot be written must not be written a second time below
                        yield
                self.status.events += at - before
                if not pipeline.progress.in_transaction and self._has_work():
                    for made in pipeline.flush():
                        outputs += made
                    full, outputs, size = outputs, [], 0
                    self._write(full)
                    self._between_transactions(pipeline)
                    yield
            if sum(map(len, packets)) < _BACKLOG_BYTES:
                for made in pipeline.flush():
                    outputs += made
            if not packets and not pipeline.progress.in_transaction:
                full, outputs = outputs, []
                self._write(full)
                self._between_transactions(pipeline)
        finally:
            self._write(outputs)
        yield

    def _has_work(self) -> bool:
        for work in self._work:  # noqa: SIM110 - a generator for each event takes longer than the loop
            if work.due:
                return True
        return False

    def _between_transactions(self, pipeline: StreamPipeline) -> None:
        """Do the work that is due, and put the position after it into the store."""
        for work in self._work:
            if work.due and not pipeline.progress.in_transaction:
                outputs = work.run(pipeline.pipeline)
                self._write(outputs if self._transformer is None else self._transformer.outputs(outputs))
                self._put([Batch("", -1, (), pipeline.offset(), 0, self.status.event_ts_ms)])
        for made in pipeline.rebase():
            self._write(made)

    def _may_read_ahead(self) -> bool:
        """Whether no snapshot is taken, no table captured, and nothing acknowledged at a position of the stream."""
        return not self._hidden and not self._waits_beside() and self._acknowledgements is None

    def _write(self, outputs: Iterable[Output]) -> None:
        batches: list[Batch] = []
        size = 0
        for output in outputs:
            if isinstance(output, HistoryEntry):
                self._history.append(output.text)
                continue
            batches.append(output)
            size += output.size
            if size >= _PUT_BYTES:  # a blocking snapshot makes them without end
                full, batches, size = batches, [], 0
                self._put(full)
        if batches:
            self._put(batches)

    def _put(self, batches: list[Batch]) -> None:
        self._store.put(batches)
        self._put_at = time.monotonic()
        self._put_offset = batches[-1].offset

    def _before_stream(self) -> None:
        """Wait until Kafka has everything that was read: the server takes a new stream as an acknowledgement of it."""
        self._position = None
        if self._acknowledgements is None:
            return
        self._acknowledgements.forget()
        last = self._store.last_sequence
        while not self._acknowledgements.wait(last, _DELIVERY_TICK_S):
            if self._stop.is_set() or self._store.closed:
                raise StoreClosed("the connector ends before everything that was read is delivered")

    def _read_to(self, stream: EventStream) -> None:
        if self._position is None or self._position_wanted:
            self._note_position()
        if self._acknowledgements is None:
            return
        requested = stream.requested_acknowledgement()
        if requested is not None:
            self._acknowledgements.add(self._store.last_sequence, requested)

    def _note_position(self) -> None:
        pipeline = self._parallel
        if pipeline is None or pipeline.progress.in_transaction:
            return
        position = stream_position(pipeline.pipeline)
        if position.server is None:  # the stream's first event is not read yet
            return
        if position.server != self._server:
            self._server = position.server
            self.servers += 1
        self._position_wanted = False
        self._position = position

    def _waits_beside(self) -> bool:
        return self._snapshots is not None and self._snapshots.active

    def _locks_tables(self) -> bool:
        """Whether the query of a heartbeat could wait for locks that this thread releases when it has read more."""
        return self._snapshots is not None and self._snapshots.has_view

    def _ticked(self, pipeline: StreamPipeline) -> None:
        if self._processes is not None:
            self._processes.close_unused()
        offset = pipeline.offset()
        heartbeat = None if self._locks_tables() else self._heartbeats(offset)
        if heartbeat is not None:
            self._put([heartbeat])
        elif time.monotonic() - self._put_at > _IDLE_OFFSET_S and offset != self._put_offset:
            self._put([Batch("", -1, (), offset, 0, self.status.event_ts_ms)])

    def _stopped(self, pipeline: StreamPipeline) -> None:
        """Put the resume position into the store, so that the next start reads nothing twice."""
        offset = pipeline.offset()
        if offset != self._put_offset:
            self._put([Batch("", -1, (), offset, 0, self.status.event_ts_ms)])
