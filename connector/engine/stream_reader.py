"""Reads a binlog stream through a pipeline, in a thread, and resumes after lost connections.

Subclasses decide what to do with the events: :class:`~rowtide.connector.engine.reader.Reader` writes records.
"""

import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rowtide.connector.config.model import FailureConfig
from rowtide.connector.delivery.event_store import StoreClosed
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.header import HEARTBEATS
from rowtide.connector.records.offset import SourceOffset, describe
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.connector.source.event_stream import EventStream, StreamFactory

log = logging.getLogger(__name__)

_FIRST_WAIT_S = 0.5


class EventPipeline(Protocol):
    """What a stream's events go through."""

    progress: Progress

    def offset(self) -> SourceOffset:
        """The current resume position."""


P = TypeVar("P", bound=EventPipeline)


@dataclass(slots=True)
class ReaderStatus:
    """The state of the reader, for health, metrics and log lines. Its thread writes it, others read it.

    Attributes:
        connected: whether a stream is open.
        offset: the resume position after the last event.
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


class StreamReader(ABC, Generic[P]):
    """Reads the binlog until it is stopped, or until an error that a new connection cannot repair.

    Args:
        failure: the settings of retries.
        start: the start position.
        streams: opens a stream at an offset.

    Attributes:
        status: the state of the reader.
    """

    def __init__(self, failure: FailureConfig, start: SourceOffset, streams: StreamFactory) -> None:
        self.status = ReaderStatus(offset=start, file=start.file, pos=start.pos)
        self._failure = failure
        self._start = start
        self._streams = streams
        self._often = False
        self._stop = threading.Event()

    @abstractmethod
    def _pipeline(self, start: SourceOffset) -> P:
        """A pipeline for a new stream at this position."""

    @abstractmethod
    def _written(self, packets: list[bytes], pipeline: P) -> Iterator[None]:
        """Write the outputs of events; yields whenever everything up to the pipeline's offset is written.

        Raises:
            StoreClosed: the consumer has ended.
        """

    def _waits_beside(self) -> bool:
        """Whether the thread waits for something alongside the stream, so that it must not wait long for an event."""
        return False

    def _before_stream(self) -> None:
        """Called before each stream is opened, with everything of the one before it written."""

    def _read_to(self, stream: EventStream) -> None:
        """Called when all events so far of a stream are written."""

    def _ticked(self, pipeline: P) -> None:
        """Called after each step of :meth:`_written`, and about once a second without events."""

    def _stopped(self, pipeline: P) -> None:
        """Called once when the reader stops, with everything written."""

    def run(self) -> None:
        """Read until :meth:`stop` is called.

        Raises:
            ConnectorError: an event cannot be handled, the server refuses the stream, or retries are exhausted.
        """
        failures = 0
        while not self._stop.is_set():
            pipeline = self._pipeline(self._start)
            events_before = self.status.events
            try:
                self._read(pipeline)
                self._start = pipeline.offset()
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
        limit = self._failure.max_retries
        if 0 <= limit < failures:
            raise error
        longest = self._failure.retry_wait_ms / 1000
        wait = min(longest, _FIRST_WAIT_S * 2 ** min(failures - 1, 10))
        log.warning("%s; resuming from %s in %.1f s", error, describe(self._start), wait)
        self.status.reconnects += 1
        self.status.error = str(error)
        self._stop.wait(wait)

    def _read(self, pipeline: P) -> None:
        self._before_stream()
        stream = self._streams(self._start)
        self._often = False
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                if not self.status.connected:
                    self.status.connected, self.status.error = True, None
                    log.info("reading the binlog from %s", describe(self._start))
                idle = all(packet[4] in HEARTBEATS for packet in packets)
                for _ in self._written(packets, pipeline):
                    self._tick(pipeline, stream, idle=idle)
                    if self._stop.is_set():
                        self._stopped(pipeline)
                        return
                self._read_to(stream)

    def _tick(self, pipeline: P, stream: EventStream, *, idle: bool) -> None:
        status, progress = self.status, pipeline.progress
        status.received_bytes += stream.taken_bytes()
        if (often := self._waits_beside()) != self._often:
            self._often = often
            stream.yield_often(often=often)
        status.offset = pipeline.offset()
        status.file, status.pos, status.gtid = progress.file, progress.end, progress.gtid
        status.transactions += progress.taken_transactions()
        status.idle = idle
        if progress.timestamp:
            status.event_ts_ms = progress.timestamp * 1000
        self._ticked(pipeline)
