"""The reader: moves events from the server's stream through the pipeline into the event store, in a thread.

It resumes after lost connections, writes history entries before the rows that need them, sends heartbeats, and advances
the stored offset while only uncaptured tables change.
"""

import contextlib
import time
from collections.abc import Callable, Iterator

from rowtide.connector.delivery.event_store import StoreClosed
from rowtide.connector.delivery.source_acknowledgements import SourceAcknowledgements
from rowtide.connector.engine.stream_attempts import ReaderStatus, StreamAttempts
from rowtide.connector.engine.stream_output import StreamOutput
from rowtide.connector.engine.stream_pipelines import NO_REQUESTS, StreamPipelines, StreamRequests
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.view.stream_order import stream_position
from rowtide.connector.source.event_stream import EventStream, StreamFactory

_DELIVERY_TICK_S = 0.1
_BACKLOG_BYTES = 128 << 10
"""If less was received at a time, the reader has caught up with the server, and no event may wait for the next."""
_IDLE_OFFSET_S = 60.0
"""How often the stored offset advances while there are no records."""

HeartbeatSource = Callable[[SourceOffset], Batch | None]
"""Returns a heartbeat record with the offset if one is due."""


class StreamPlace:
    """Notes positions between two transactions of a stream, and the servers that it is read from.

    Attributes:
        servers: the number of servers that it has read from in turn; 1 for the first one.
    """

    def __init__(self) -> None:
        self.servers = 0
        self._server: str | None = None
        self._position: SourceOffset | None = None
        self._wanted = False

    def take(self) -> SourceOffset | None:
        """Return a position whose server is the ``server_id``; the event store has everything before it.

        It may be that of the previous call: the next one is noted soon. ``None`` if nothing of the stream was read.
        Read ``servers`` after it.
        """
        self._wanted = True
        return self._position

    def forget(self) -> None:
        """Forget the position until the next one is noted."""
        self._position = None

    def note(self, pipeline: Pipeline) -> None:
        """Note the position of a pipeline, if one is wanted and everything before it is written."""
        if (self._position is not None and not self._wanted) or pipeline.progress.in_transaction:
            return
        position = stream_position(pipeline)
        if position.server is None:  # the stream's first event is not read yet
            return
        if position.server != self._server:
            self._server = position.server
            self.servers += 1
        self._wanted = False
        self._position = position


class BinlogReader:
    """Reads the binlog until it is stopped, or until an error that a new connection cannot repair.

    Args:
        attempts: the positions of its connections.
        streams: opens a stream at a position.
        pipelines: makes the pipeline of each connection.
        output: receives the outputs.
        heartbeats: makes heartbeat records.
        requests: what is requested of the stream.
        acknowledgements: of transactions to the server, if they follow the delivery of the records.

    Attributes:
        place: positions between two transactions.
    """

    def __init__(
        self,
        attempts: StreamAttempts,
        streams: StreamFactory,
        pipelines: StreamPipelines,
        output: StreamOutput,
        heartbeats: HeartbeatSource = lambda _offset: None,
        *,
        requests: StreamRequests = NO_REQUESTS,
        acknowledgements: SourceAcknowledgements | None = None,
    ) -> None:
        self._attempts = attempts
        self._streams = streams
        self._pipelines = pipelines
        self._output = output
        self._heartbeats = heartbeats
        self._snapshots = requests.snapshots
        self._work = requests.work if requests.snapshots is None else (*requests.work, requests.snapshots)
        self._acknowledgements = acknowledgements
        self._often = False  # whether the stream yields often
        self.place = StreamPlace()

    @property
    def status(self) -> ReaderStatus:
        """The state of the reader."""
        return self._attempts.status

    def stop(self) -> None:
        """Stop within a tick of the stream; may be called from any thread."""
        self._attempts.stop()

    def run(self) -> None:
        """Read until :meth:`stop` is called, or delivery has ended, which then reports the reason.

        Raises:
            ConnectorError: an event cannot be handled, the server refuses the stream, or retries are exhausted.
        """
        attempts = self._attempts
        try:
            for start in attempts:
                pipeline = self._pipelines.make(start)
                with attempts.reading(pipeline):
                    self._wait_for_delivery()
                    self._read(self._streams(start), pipeline)
        except StoreClosed:
            pass
        finally:
            self._pipelines.close()

    def _read(self, stream: EventStream, pipeline: Pipeline) -> None:
        self._often = False
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                self._attempts.received(packets)
                for _ in self._written(packets, pipeline):
                    self._tick(pipeline, stream)
                    if self._attempts.stopped:
                        self._store(pipeline.offset())  # so that the next start reads nothing twice
                        return
                self._note_read(stream, pipeline)
                self._attempts.waiting()

    def _written(self, packets: list[bytes], pipeline: Pipeline) -> Iterator[None]:
        """Write the outputs of events, and yield whenever everything up to the pipeline's offset is written."""
        output, progress, parallel = self._output, pipeline.progress, self._pipelines.parallel
        receive_next = pipeline.receive_next if parallel is None else parallel.receive_next
        try:
            at = 0
            while at < len(packets):
                before = at
                steps, at = receive_next(packets, at)
                for made in steps:
                    if made and output.add(made):
                        output.flush()
                        yield
                self.status.events += at - before
                if progress.in_transaction:
                    continue
                if self._attempts.stopped:  # the events after a signal that changes the captured tables need a new run
                    output.flush()
                    yield
                elif self._has_work():
                    self._decode()
                    output.flush()
                    self._between_transactions(pipeline)
                    yield
            if sum(map(len, packets)) < _BACKLOG_BYTES:
                self._decode()
            if not packets and not progress.in_transaction:
                output.flush()
                self._between_transactions(pipeline)
        finally:
            output.flush()
        yield

    def _decode(self) -> None:
        """Let decoder processes finish their chunks."""
        if self._pipelines.parallel is not None:
            for made in self._pipelines.parallel.flush():
                self._output.add(made)

    def _has_work(self) -> bool:
        for work in self._work:  # noqa: SIM110 - a generator for each event takes longer than the loop
            if work.due:
                return True
        return False

    def _between_transactions(self, pipeline: Pipeline) -> None:
        """Do the work that is due, and put the position after it into the store."""
        for work in self._work:
            if work.due and not pipeline.progress.in_transaction:
                self._output.write(pipeline.transformed(work.run(pipeline)))
                self._put_offset(pipeline.offset())
        if self._pipelines.parallel is not None:
            for made in self._pipelines.parallel.rebase():
                self._output.write(made)

    def _wait_for_delivery(self) -> None:
        """Wait until Kafka has everything that was read: the server interprets a new stream as an acknowledgement."""
        self.place.forget()
        if self._acknowledgements is None:
            return
        self._acknowledgements.forget()
        store = self._output.store
        last = store.last_sequence
        while not self._acknowledgements.wait(last, _DELIVERY_TICK_S):
            if self._attempts.stopped or store.closed:
                raise StoreClosed("the connector stopped before it had delivered everything that it read")

    def _note_read(self, stream: EventStream, pipeline: Pipeline) -> None:
        """Note the position of the stream and its acknowledgement once everything before it is written."""
        self.place.note(pipeline)
        if self._acknowledgements is None:
            return
        requested = stream.requested_acknowledgement()
        if requested is not None:
            self._acknowledgements.add(self._output.store.last_sequence, requested)

    def _tick(self, pipeline: Pipeline, stream: EventStream) -> None:
        """Note the position about once a second without events, and store it if it was not stored for a long time."""
        snapshots, output = self._snapshots, self._output
        # A snapshot is read alongside the stream: the thread must not wait long for an event.
        if (often := snapshots is not None and snapshots.active) != self._often:
            self._often = often
            stream.yield_often(often=often)
        self._attempts.written(pipeline, stream)
        self._pipelines.close_unused()
        offset = pipeline.offset()
        # The query of a heartbeat could wait for locks that this thread releases only after reading further.
        heartbeat = None if snapshots is not None and snapshots.has_view else self._heartbeats(offset)
        if heartbeat is not None:
            output.put([heartbeat])
        elif time.monotonic() - output.put_at > _IDLE_OFFSET_S:
            self._store(offset)

    def _store(self, offset: SourceOffset) -> None:
        """Put an offset into the store, unless it is already the last one there."""
        if offset != self._output.offset:
            self._put_offset(offset)

    def _put_offset(self, offset: SourceOffset) -> None:
        self._output.put([Batch("", -1, (), offset, 0, self.status.event_ts_ms)])
