"""A pipeline that passes chunks of the stream to decoder processes, and yields all outputs in the order of the stream.

The pipeline itself is always at the position after the outputs that were yielded: it takes over the state of the
process after each part of a chunk.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from rowtide.connector.engine.decoding.chunks import Boundary, End, EventChunk, FoundTable, Piece, Splitter
from rowtide.connector.engine.decoding.forms import Form
from rowtide.connector.engine.decoding.memory import INPUT_BYTES, OUTPUT_BYTES
from rowtide.connector.engine.decoding.messages import ChunkState
from rowtide.connector.engine.decoding.processes import DecoderProcesses, Task
from rowtide.connector.errors import ConnectorError
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.executed_gtids import ExecutedGtids
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.classes import Event, TableMap
from rowtide.connector.protocol.header import GTID_TYPES
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings

T = TypeVar("T")

_FIRST_LIMIT, _MIN_LIMIT, _MAX_LIMIT = 64 << 10, 16 << 10, 1 << 20
"""Bytes of events in a chunk: at first, at least and at most."""
_CHUNK_OUTPUT = OUTPUT_BYTES * 3 // 8
"""The bytes of outputs that a chunk should have: small enough to fit into the slots of its process."""


class ParallelPipeline(Generic[T]):
    """Decodes a stream in several processes.

    Args:
        pipeline: the pipeline of the stream.
        captured: its captured tables.
        settings: its settings; rows must become messages.
        processes: the processes.
        form: of the outputs.
        may_read_ahead: whether there is no work to do at a specific position of the stream, between two transactions.

    Attributes:
        pipeline: the pipeline; its resume position is the one after the outputs that were yielded.
        progress: its progress.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        captured: CapturedTables,
        settings: PipelineSettings,
        processes: DecoderProcesses,
        form: Form[T],
        may_read_ahead: Callable[[], bool] = lambda: True,
    ) -> None:
        self.pipeline = pipeline
        self.progress = pipeline.progress
        self._captured = captured
        self._settings = settings
        self._processes = processes
        self._form = form
        self._may_read_ahead = may_read_ahead
        self._splitter = Splitter(
            self._boundary,
            self._table,
            self._decoded,
            _FIRST_LIMIT,
            INPUT_BYTES,
            cuts=not settings.transaction_metadata,
        )
        self._tasks: deque[Task] = deque()
        self._held: list[T] = []
        self._taken: ChunkState | None = None  # of a process; the pipeline has taken only its progress so far
        self._failed = False
        self._astray = False  # the splitter expected a position other than the pipeline's

    def offset(self) -> SourceOffset:
        """Return the resume position after the outputs that were yielded."""
        return self.pipeline.offset()

    def enter_file(self, name: str, decoder: EventDecoder | None = None) -> None:
        """Do the same as :meth:`Pipeline.enter_file`; the rest of the previous file is decoded first."""
        self._held += self.finish()
        self.pipeline.enter_file(name, decoder)

    def receive(self, packet: bytes) -> Iterable[T]:
        """Add the next event, and yield the outputs of finished earlier events, in order.

        Raises:
            ConnectorError: an event cannot be handled; everything before it was yielded.
        """
        return self._settled(packet) if self.pipeline.groups.passes(packet) else self._group(packet)

    def _group(self, packet: bytes) -> Iterator[T]:
        """Add an event that begins or continues a transaction that may be rolled back."""
        pipeline = self.pipeline
        for event in pipeline.groups.add(packet, pipeline.decoder.format):
            yield from self._settled(event)

    def _settled(self, packet: bytes) -> Iterable[T]:
        pieces = self._splitter.add(packet)
        return self._processed(pieces) if pieces or self._held else ()

    def receive_next(self, packets: list[bytes], at: int) -> tuple[Iterable[T], int]:
        """Receive ``packets[at]``, or several events like :meth:`receive`, and return the place after them."""
        committed = self.pipeline.groups.commits_within(packets, at)
        return self._settled(packets[at]) if committed else self.receive(packets[at]), at + 1

    def flush(self) -> Iterator[T]:
        """Yield the outputs of all complete transactions. A few events are decoded here, which takes less time."""
        for piece in self._splitter.flush():
            yield from self._drained()
            yield from self._processed((piece,)) if piece.size >= _MIN_LIMIT else self._again(piece, 0)
        yield from self._drained()
        if not self.progress.in_transaction:
            self._settle(())

    def rebase(self) -> Iterator[T]:
        """Continue at the pipeline's position; call this after :meth:`flush`, once the pipeline was used directly."""
        yield from self._processed(self._splitter.rebase())

    def finish(self) -> Iterator[T]:
        """Yield the outputs of all events."""
        self.pipeline.groups.abandon("the events end there")
        if not self._failed:
            yield from self._processed(self._splitter.finish())
            yield from self._drained()

    def abandon(self) -> None:
        """Drop the events whose outputs were not yielded."""
        while self._tasks:
            self._tasks.popleft().drop()

    def _processed(self, pieces: Sequence[Piece]) -> Iterator[T]:
        held, self._held = self._held, []
        yield from held
        for piece in pieces:
            if isinstance(piece, EventChunk):
                yield from self._submitted(piece)
                continue
            yield from self._drained()
            self._settle(piece.head)
            yield from self._inline(piece.packets)
            self._astray = self._astray and not piece.resets

    def _submitted(self, chunk: EventChunk) -> Iterator[T]:
        """Pass a chunk to a process, and yield the work that is finished while waiting."""
        processes, size = self._processes, chunk.size
        if size >= _MIN_LIMIT:
            processes.start()
        processes.receive(wait=False)
        if not self._tasks and self.progress.events_done != chunk.events:
            self._astray = True
        while self._tasks and (self._tasks[0].is_ready or not processes.free):
            yield from self._first()
        form = self.pipeline.decoder.format
        if processes.free and size <= INPUT_BYTES and form is not None and not self._astray:
            self._tasks.append(processes.submit(chunk, form))
        else:
            yield from self._drained()
            yield from self._again(chunk, 0)

    def _drained(self) -> Iterator[T]:
        while self._tasks:
            yield from self._first()

    def _first(self) -> Iterator[T]:
        """Yield the next part of the first chunk, or the rest of the chunk if its process has declined it."""
        task = self._tasks[0]
        while not task.is_ready:
            self._processes.receive()
        part = task.parts[0].part if task.parts and not self._astray else None
        if part is None or (part.last and part.state.end != task.chunk.end):
            self._tasks.popleft().drop()
            yield from self._again(task.chunk, task.events)
            return
        arrived = task.parts.popleft()
        task.events, task.output_bytes = part.events, task.output_bytes + part.size
        self._take(part.state)
        if part.last:
            self._tasks.popleft()
            self._adapt(task)
        try:
            yield self._form.unpacked(arrived.data, part.pieces)
        finally:
            arrived.data.release()
            arrived.release(part)

    def _again(self, chunk: EventChunk, done: int) -> Iterator[T]:
        """Process a chunk in this process, starting with an event."""
        seen = [*chunk.head, *chunk.packets[:done]]
        begin = max((place for place, packet in enumerate(seen) if packet[4] in GTID_TYPES), default=0)
        self._settle(seen[begin:])
        yield from self._inline(chunk.packets[done:])
        progress = self.pipeline.progress
        self._astray = self._astray or End(self.pipeline.gtids.text, progress.events_done) != chunk.end

    def _inline(self, packets: Iterable[bytes]) -> Iterator[T]:
        try:
            for packet in packets:
                for outputs in self.pipeline.receive_settled(packet):
                    if outputs:
                        yield self._form.direct(outputs)
        except ConnectorError:
            self._failed = True
            raise

    def _take(self, state: ChunkState) -> None:
        self.pipeline.progress.take(state.progress)
        self._taken = state

    def _settle(self, seen: Iterable[bytes]) -> None:
        """Let the pipeline continue after the work of a process.

        Args:
            seen: the events of the current transaction that it has not received.
        """
        state, self._taken = self._taken, None
        if state is None:
            return
        pipeline = self.pipeline
        pipeline.gtids = ExecutedGtids(SourceOffset("", 0, state.end.gtids), self._settings.connector)
        pipeline.continue_within(seen if pipeline.progress.in_transaction else ())
        pipeline.decoder.position = state.position

    def _adapt(self, task: Task) -> None:
        wanted = _CHUNK_OUTPUT * task.chunk.size // max(task.output_bytes, 1)
        self._splitter.limit = min(max(wanted, _MIN_LIMIT), _MAX_LIMIT)

    def _boundary(self) -> Boundary | None:
        pipeline, progress, form = self.pipeline, self.progress, self.pipeline.decoder.format
        if progress.in_transaction or not progress.passed_start or pipeline.xa.is_open or form is None:
            return None
        if not self._may_read_ahead():
            return None
        offset, gtids = pipeline.offset(), pipeline.gtids.text if self._taken is None else self._taken.end.gtids
        if offset.transaction:
            return None  # it counts records
        here = progress.file, progress.end, gtids, 0, 0
        if (offset.file, offset.pos, offset.gtids, offset.event, offset.row) != here:
            return None  # the stream has not reached its first transaction yet
        return Boundary(replace(offset, ts_sec=progress.timestamp), self._settings.connector, form.checksum == "CRC32")

    def _decoded(self, packet: bytes) -> Event:
        return self.pipeline.decoder.decode(packet)  # another decoder from file to file

    def _table(self, packet: bytes) -> FoundTable | None:
        event = self.pipeline.decoder.decode(packet)
        if not isinstance(event, TableMap):
            raise KeyError(packet)
        structure = event.structure
        if (structure.database, structure.table) in self._settings.tables.always:
            return None  # its rows may be signals
        if self._captured.cascades is not None and self._captured.cascades.concerns(structure):
            return None  # changes of other tables follow from its rows
        if self._captured.ignores(structure):
            return FoundTable(structure, None)
        found = self._captured.cached(structure)
        if found is None:
            raise KeyError(structure.table)
        return FoundTable(structure, found)
