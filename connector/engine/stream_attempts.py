"""Opens a stream repeatedly, until its reader stops or an error occurs that a new connection cannot repair."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from rowtide.connector.backoff import backoff_s
from rowtide.connector.config.model import FailureConfig
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.header import HEARTBEATS
from rowtide.connector.records.offset import SourceOffset, describe
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.connector.source.event_stream import EventStream

log = logging.getLogger(__name__)

_FIRST_WAIT_S = 0.5


class EventPipeline(Protocol):
    """Processes a stream's events."""

    progress: Progress

    def offset(self) -> SourceOffset:
        """Return the current resume position."""


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
        reconnects: the number of times a stream was reopened.
        idle: whether the server had no new events at the last read.
        waited_s: total time in which the reader waited for events of the server, in seconds.
        error: the reason why no stream is open.
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
    waited_s: float = 0.0
    error: str | None = None


class StreamAttempts:
    """The positions at which a reader opens a stream, one after the other; iterate over them.

    ::

        for start in attempts:
            with attempts.reading(pipeline):
                for packets in stream.events():
                    attempts.received(packets)
                    ...  # write what the pipeline makes of them
                    attempts.written(pipeline, stream)
                    attempts.waiting()

    Args:
        failure: the settings of retries.
        start: the first position.

    Attributes:
        status: the state of the reader.
    """

    def __init__(self, failure: FailureConfig, start: SourceOffset) -> None:
        self.status = ReaderStatus(offset=start, file=start.file, pos=start.pos)
        self._failure = failure
        self._start = start
        self._failures = 0
        self._idle = False  # whether the server had no new events at the last read
        self._waiting_since = self._connected_at = time.monotonic()
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether the reader should stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Stop the reader within a tick of the stream; may be called from any thread."""
        self._stop.set()

    def __iter__(self) -> Iterator[SourceOffset]:
        while not self.stopped:
            yield self._start

    @contextlib.contextmanager
    def reading(self, pipeline: EventPipeline) -> Iterator[None]:
        """Read a stream through a pipeline, whose position is the next start, and wait after a lost connection.

        Raises:
            StreamBroken: the connection was lost, and retries are exhausted.
        """
        status, events_before = self.status, self.status.events
        self.waiting()
        try:
            yield
        except StreamBroken as error:
            before, self._start = self._start, pipeline.offset()
            worked = status.events > events_before and (self._has_lasted() or _place(self._start) != _place(before))
            self._failures = 1 if worked else self._failures + 1
            self._wait(error)
        else:
            self._start = pipeline.offset()
        finally:
            status.connected = False

    def waiting(self) -> None:
        """Note that the reader waits for the next events."""
        self._waiting_since = time.monotonic()

    def received(self, packets: list[bytes]) -> None:
        """Note that the stream has yielded these events."""
        self.status.waited_s += time.monotonic() - self._waiting_since
        self._idle = all(packet[4] in HEARTBEATS for packet in packets)
        if not self.status.connected:
            self.status.connected, self.status.error, self._connected_at = True, None, time.monotonic()
            log.info("reading the binlog from %s", describe(self._start))

    def written(self, pipeline: EventPipeline, stream: EventStream) -> None:
        """Note that everything before the pipeline's position is written."""
        status, progress = self.status, pipeline.progress
        status.received_bytes += stream.taken_bytes()
        status.offset = pipeline.offset()
        status.file, status.pos, status.gtid = progress.file, progress.end, progress.gtid
        status.transactions += progress.taken_transactions()
        status.idle = self._idle
        if progress.timestamp:
            status.event_ts_ms = progress.timestamp * 1000

    def _has_lasted(self) -> bool:
        """Return whether the connection has lasted longer than the longest wait for the next one."""
        return time.monotonic() - self._connected_at > self._failure.retry_wait_ms / 1000

    def _wait(self, error: StreamBroken) -> None:
        limit = self._failure.max_retries
        if 0 <= limit < self._failures:
            raise error
        wait = backoff_s(self._failures, _FIRST_WAIT_S, self._failure.retry_wait_ms / 1000)
        log.warning("%s; resuming from %s in %.1f s", error, describe(self._start), wait)
        self.status.reconnects += 1
        self.status.error = str(error)
        self._stop.wait(wait)


def _place(offset: SourceOffset) -> tuple[object, ...]:
    return offset.file, offset.pos, offset.gtids, offset.event, offset.row
