"""A decoder process. It makes the outputs of chunks, until its parent closes the connection."""

import logging
import pickle
import signal
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from rowtide.connector.engine.decoding.chunks import End
from rowtide.connector.engine.decoding.memory import OUTPUT_BYTES, SharedMemory
from rowtide.connector.engine.decoding.messages import (
    ChunkPart,
    ChunkRequest,
    ChunkState,
    Continue,
    Declined,
    Ready,
    Setup,
)
from rowtide.connector.pipeline.captured_tables import NOT_CAPTURED, CapturedTables, Lookup
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import ROWS_TYPES
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, Server

_PART_BYTES = OUTPUT_BYTES // 2
"""Outputs are sent when they have this size. The rest of a slot is for large events."""
_KEPT_BYTES = 16 << 20
"""Several times as much as the messages of an event of usual size have."""


class _Unusual(Exception):
    """Raised for anything that only the parent may process."""


class _Within(NamedTuple):
    """A pipeline that has received only rows since the head of a chunk; see :class:`ChunkRequest`."""

    start: SourceOffset
    head: Sequence[bytes]
    pipeline: Pipeline


def main(connection: int, memory: int) -> None:
    """Run a decoder process.

    Args:
        connection: the descriptor of the connection to the parent.
        memory: the descriptor of the shared memory.
    """
    # The parent ends its processes when it stops; a signal to the process group must not end them earlier.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with Connection(connection) as parent:
        logged = LogWatch()
        logging.getLogger("rowtide").addHandler(logged)
        logging.getLogger("rowtide").propagate = False
        keep_freed_memory()
        try:
            DecoderWorker(parent, SharedMemory(memory), logged).run()
        except (EOFError, ConnectionError):
            return  # the parent has ended


def keep_freed_memory() -> None:
    """Let glibc keep the memory of an event's messages for those of the next event.

    It returns free memory above a limit to the kernel. The limit is adapted to the largest block freed so far. Without
    such a block, each event would need new pages.
    """
    bytearray(_KEPT_BYTES)


class DecoderWorker:
    """Decodes the chunks of a parent.

    Args:
        parent: the connection.
        memory: the shared memory.
        logged: notices log entries.
    """

    def __init__(self, parent: Connection, memory: SharedMemory, logged: "LogWatch") -> None:
        self._parent = parent
        self._memory = memory
        setup: Setup = pickle.loads(parent.recv_bytes())
        self._setup = setup
        self._tables = Tables(Server(Flavor(setup.settings.connector), ""))
        self._captured = _ReceivedTables(setup.settings, self._tables, setup.clock)
        self._decoder = EventDecoder()
        self._requests: deque[ChunkRequest] = deque()
        self._within: _Within | None = None
        self._unread = False  # the last part, which is not the end of its chunk
        self._logged = logged

    def run(self) -> None:
        """Decode until the connection ends; raises ``EOFError``."""
        self._send(Ready())
        while True:
            while not self._requests:
                self._receive()
            self._decode(self._requests.popleft())

    def _receive(self) -> None:
        message = pickle.loads(self._parent.recv_bytes())
        if isinstance(message, Continue):
            self._unread = False
        else:
            self._requests.append(message)

    def _send(self, message: Any) -> None:
        self._parent.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def _decode(self, request: ChunkRequest) -> None:
        try:
            for structure, table in request.tables:
                self._captured.receive(structure, table)
            pipeline = self._pipeline(request)
            self._logged.seen = False
            only_rows = self._send_parts(pipeline, request)
            self._within = _Within(request.start, request.head, pipeline) if request.head and only_rows else None
        except (EOFError, ConnectionError):
            raise
        except Exception:  # noqa: BLE001 - the parent meets the same error, and reports it
            self._send(Declined(request.slot))

    def _pipeline(self, request: ChunkRequest) -> Pipeline:
        """Return the pipeline at the beginning of a chunk: that of the previous chunk within one statement."""
        within, self._within = self._within, None  # a chunk that is declined leaves none
        if within is not None and (within.start, within.head) == (request.start, request.head) and not request.tables:
            pipeline = within.pipeline
        else:
            pipeline = self._new_pipeline(request)
        if request.head:
            pipeline.progress.continue_at(request.events)
        self._decoder.position = request.position
        pipeline.progress.row = -1  # the parent has the row of the last record before the chunk
        return pipeline

    def _new_pipeline(self, request: ChunkRequest) -> Pipeline:
        setup, decoder = self._setup, self._decoder
        decoder.follow(request.format)
        decoder.file = request.start.file
        pipeline = Pipeline(setup.settings, self._tables, request.start, setup.clock, self._captured)
        pipeline.decoder = decoder
        for packet in request.head:
            if any(pipeline.receive_settled(packet)):
                raise _Unusual
        return pipeline

    def _send_parts(self, pipeline: Pipeline, request: ChunkRequest) -> bool:
        """Send the outputs of the chunk in parts, each with the state after it, and return whether it has only rows."""
        packets = self._memory.input(request.slot)
        memory = self._memory.output(request.slot)
        last = len(request.sizes)
        pieces: list[tuple[int, int]] = []
        filled, only_rows = 0, True
        for number, (begin, end) in enumerate(pairwise(accumulate(request.sizes, initial=0)), 1):
            packet = bytes(packets[begin:end])
            only_rows = only_rows and packet[4] in ROWS_TYPES
            for outputs in pipeline.receive_settled(packet):
                if outputs:
                    filled += self._write(memory[filled:], outputs, pieces)
            # The parent's pipeline does not count the records of a transaction, so it can only continue after one.
            whole = not (self._setup.settings.transaction_metadata and pipeline.progress.in_transaction)
            if number == last or (filled >= _PART_BYTES and whole):
                if self._logged.seen:
                    raise _Unusual
                self._send(ChunkPart(request.slot, pieces, number, self._state(pipeline), number == last))
                if number < last:
                    self._wait_until_read()
                    pieces, filled = [], 0
        return only_rows

    def _write(self, memory: memoryview, outputs: Sequence[Output], pieces: list[tuple[int, int]]) -> int:
        """Write outputs to the beginning of memory, and return their size in bytes."""
        if not all(isinstance(output, Batch) for output in outputs):
            raise _Unusual  # a record of the schema history
        size, count = self._setup.form.pack(outputs, memory)
        pieces.append((size, count))
        return size

    def _wait_until_read(self) -> None:
        self._unread = True
        while self._unread:
            self._receive()

    def _state(self, pipeline: Pipeline) -> ChunkState:
        progress = pipeline.progress
        state = ChunkState(progress.state(), End(pipeline.gtids.text, progress.events_done), self._decoder.position)
        progress.taken_transactions()  # they are counted from part to part
        return state


class LogWatch(logging.Handler):
    """Notices log entries of the row path, which the parent must write.

    Attributes:
        seen: whether there was one.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.seen = False

    def emit(self, record: logging.LogRecord) -> None:
        """Remember that there was an entry."""
        self.seen = True


class _ReceivedTables(CapturedTables):
    """The captured tables that the parent has sent.

    The parent has checked them, and written all log entries about them.
    """

    def __init__(self, settings: PipelineSettings, tables: Tables, clock: Callable[[], int]) -> None:
        super().__init__(settings, tables, clock)
        self._left_out: set[tuple[str, str]] = set()

    def receive(self, structure: TableStructure, table: Table | None) -> None:
        """Store a table, or the fact that it is not captured."""
        name = structure.database, structure.table
        if table is None:
            self._left_out.add(name)
            return
        self._left_out.discard(name)
        found = self._found.get(name)
        if found is None or found.structure != structure or found.table != table:
            self._built(structure, table)

    def find(
        self,
        structure: TableStructure,
        progress: Progress,
        offset: Callable[[], SourceOffset],
    ) -> Lookup:
        """Return the table, or raise if the parent has not sent it."""
        name = structure.database, structure.table
        if name in self._left_out:
            return NOT_CAPTURED
        found = self._found.get(name)
        if found is not None and found.structure is structure:
            return Lookup(found)
        if found is None or found.structure != structure:
            raise _Unusual
        return Lookup(self._keep(name, replace(found, structure=structure)))  # comparing many columns takes long
