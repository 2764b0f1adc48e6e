"""The reader: from the server's stream through the pipeline into the event store. An edge: it runs in a thread.

It resumes after lost connections, writes history entries before the rows that need them, sends heartbeats, and advances
the stored offset while only tables change that are not captured.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rowtide.connector.config import Configuration
from rowtide.connector.delivery.event_store import EventStore, StoreClosed
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.structures import CurrentStructures
from rowtide.connector.pipeline.xa_reader import XaPackets, xa_reader
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.store.history_store import SchemaHistoryStore

log = logging.getLogger(__name__)

_PUT_BYTES = 4 << 20
"""Batches are put into the store whenever they have about this size, so that its limit holds."""
_IDLE_OFFSET_S = 60.0
"""How often the stored offset advances while there are no records."""
_FIRST_WAIT_S = 0.5

StreamFactory = Callable[[SourceOffset], BinlogStream]
"""Opens a stream at an offset."""

HeartbeatSource = Callable[[SourceOffset], Batch | None]
"""Returns a heartbeat record with the offset if one is due."""


@dataclass(slots=True)
class ReaderStatus:
    """The state of the reader, for health, metrics and log lines. Its thread writes it, others read it.

    Attributes:
        connected: whether a stream is open.
        offset: the resume position behind the last event.
        file: binlog file of the last event.
        pos: end of the last event in that file.
        gtid: of the current transaction or the last one.
        transactions: number of transactions that ended.
        event_ts_ms: when the server logged the last event, 0 before the first one.
        events: number of events read.
        received_bytes: bytes of all streams.
        reconnects: how often a stream was opened again.
        idle: whether the server had no new events at the last read.
        error: why no stream is open.
    """

    connected: bool = False
    offset: SourceOffset | None = None
    file: str = ""
    pos: int = 0
    gtid: str | None = None
    transactions: int = 0
    event_ts_ms: int = 0
    events: int = 0
    received_bytes: int = 0
    reconnects: int = 0
    idle: bool = False
    error: str | None = None


class Reader:
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
        xa_packets: reads prepared XA transactions beside the stream.

    Attributes:
        status: the state of the reader.
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
    ) -> None:
        self.status = ReaderStatus(offset=start, file=start.file, pos=start.pos)
        self._config = config
        self._settings = settings
        self._tables = tables
        self._start = start
        self._store = store
        self._history = history
        self._streams = streams
        self._heartbeats = heartbeats
        self._clock = clock
        self._captured = CapturedTables(settings, tables, clock, current)
        self._read_xa = None if xa_packets is None else xa_reader(settings, tables, clock, xa_packets)
        self._stop = threading.Event()
        self._put_at = time.monotonic()
        self._put_offset = start

    def run(self) -> None:
        """Read until :meth:`stop` is called.

        Raises:
            ConnectorError: an event cannot be handled, the server refuses the stream, or retries are exhausted.
        """
        failures = 0
        while not self._stop.is_set():
            pipeline = Pipeline(self._settings, self._tables, self._start, self._clock, self._captured, self._read_xa)
            events_before = self.status.events
            try:
                self._read(pipeline)
            except StoreClosed:
                return  # delivery has ended, and reports why
            except StreamBroken as error:
                failures = 1 if self.status.events > events_before else failures + 1
                self._start = pipeline.offset()
                self._retry(error, failures)
            finally:
                self.status.connected = False

    def stop(self) -> None:
        """Stop within a tick of the stream; may be called from any thread."""
        self._stop.set()

    def _retry(self, error: StreamBroken, failures: int) -> None:
        limit = self._config.failure.max_retries
        if 0 <= limit < failures:
            raise error
        longest = self._config.failure.retry_wait_ms / 1000
        wait = min(longest, _FIRST_WAIT_S * 2 ** min(failures - 1, 10))
        log.warning("%s; resuming from %s in %.1f s", error, describe(self._start), wait)
        self.status.reconnects += 1
        self.status.error = str(error)
        self._stop.wait(wait)

    def _read(self, pipeline: Pipeline) -> None:
        stream = self._streams(self._start)
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                if not self.status.connected:
                    self.status.connected, self.status.error = True, None
                    log.info("reading the binlog from %s", describe(self._start))
                for _ in self._written(packets, pipeline):
                    self._tick(pipeline, stream, idle=not packets)
                    if self._stop.is_set():
                        self._put_position(pipeline)
                        return

    def _written(self, packets: list[bytes], pipeline: Pipeline) -> Iterator[None]:
        """Write the outputs of events; yields whenever everything up to the pipeline's offset is written."""
        outputs: list[Output] = []
        size = 0
        try:
            for packet in packets:
                for made in pipeline.receive(packet):
                    if made:
                        outputs += made
                        size += sum(output.size for output in made if isinstance(output, Batch))
                        if size >= _PUT_BYTES:
                            full, outputs, size = outputs, [], 0
                            self._write(full)  # what cannot be written must not be written a second time below
                            yield
                self.status.events += 1
        finally:
            self._write(outputs)
        yield

    def _write(self, outputs: Iterable[Output]) -> None:
        batches = []
        for output in outputs:
            if isinstance(output, HistoryEntry):
                self._history.append(output.text)
            else:
                batches.append(output)
        if batches:
            self._put(batches)

    def _put(self, batches: list[Batch]) -> None:
        self._store.put(batches)
        self._put_at = time.monotonic()
        self._put_offset = batches[-1].offset

    def _tick(self, pipeline: Pipeline, stream: BinlogStream, *, idle: bool) -> None:
        status, progress = self.status, pipeline.progress
        status.received_bytes += stream.taken_bytes()
        offset = status.offset = pipeline.offset()
        status.file, status.pos, status.gtid = progress.file, progress.end, progress.gtid
        status.transactions += progress.taken_transactions()
        status.idle = idle
        if progress.timestamp:
            status.event_ts_ms = progress.timestamp * 1000
        heartbeat = self._heartbeats(offset)
        if heartbeat is not None:
            self._put([heartbeat])
        elif time.monotonic() - self._put_at > _IDLE_OFFSET_S and offset != self._put_offset:
            self._put([Batch("", -1, (), offset, 0, status.event_ts_ms)])

    def _put_position(self, pipeline: Pipeline) -> None:
        """Put the resume position into the store, so that the next start reads nothing twice."""
        offset = pipeline.offset()
        if offset != self._put_offset:
            self._put([Batch("", -1, (), offset, 0, self.status.event_ts_ms)])


def describe(offset: SourceOffset) -> str:
    """An offset in words, for messages."""
    text = f"{offset.file}:{offset.pos}"
    if offset.gtids is not None:
        text = f"{text}, GTIDs {offset.gtids or 'none'}"
    if offset.event:
        text = f"{text}, {offset.event} events and {offset.row} rows into the transaction"
    return text
