"""Reads the chunks of a table in its own threads, each with its own connection."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import pymysql

from rowtide.connector.backoff import backoff_s
from rowtide.connector.errors import SnapshotError
from rowtide.connector.snapshot.incremental.reading.chunk_worker import ChunkWorker, TooLarge, TooManyRowsOfKey
from rowtide.connector.snapshot.incremental.reading.watermarks import SignalRows
from rowtide.connector.snapshot.incremental.scan import Chunk, Failed, Mark, ReadChunk, Scan
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.session import Session

log = logging.getLogger(__name__)

_AHEAD = 2
"""Chunks that may wait to be taken, in addition to those being read."""
_MAX_ROWS = 1 << 16
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 10.0


class ScanStep(Enum):
    """A worker is ready for the next step of a scan."""

    BEGUN = auto()
    """The largest key is known."""
    TO_READ = auto()
    """The next chunk can be read while the stream waits; see :meth:`ChunkReader.hold`."""


Found = tuple[Scan, ReadChunk | Failed | ScanStep]
"""The result of a worker."""


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Settings of the chunk reader.

    Attributes:
        threads: the number of chunks read at the same time.
        target_s: the desired time to read a chunk, to which the size adapts. 0 for a fixed size.
        signal_rows: the writer of windows, if there is one.
        chunk_size: rows of a chunk, if their number does not adapt to the time.
        hold_s: the maximum time that the stream waits for a chunk that has changed while it was read alongside the
            stream. If reading takes longer, the chunk may have to be read again.
    """

    threads: int
    target_s: float
    signal_rows: SignalRows | None
    chunk_size: int
    hold_s: float = 2.0


class ChunkReader:
    """Reads the chunks of one table after the other.

    Args:
        connect: opens a session.
        settings: how to read.

    Attributes:
        found: the results of the workers, in order; take them from the left.
    """

    def __init__(self, connect: Callable[[], Session], settings: ReaderSettings) -> None:
        self.found: deque[Found] = deque()
        self._connect = connect
        self._settings = settings
        self._signal_rows = settings.signal_rows
        self._changed = threading.Condition()
        self._scan: Scan | None = None
        self._mark: Mark | None = None
        self._closed = False
        self._threads: list[threading.Thread] = []

    @property
    def holds(self) -> bool:
        """Whether the stream can wait while a chunk is read."""
        return self._settings.hold_s > 0

    def read(self, scan: Scan | None, mark: Mark | None = None) -> None:
        """Read a table from now on, instead of the previous one; ``None`` to pause."""
        with self._changed:
            self._scan, self._mark = scan, mark
            self._changed.notify_all()
        if scan is not None and not self._threads:
            for number in range(self._settings.threads):
                # In the context of this thread, so that interrupting its connections interrupts those of a worker, too.
                run = partial(copy_context().run, self._work)
                thread = threading.Thread(target=run, name=f"chunk-reader-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def mark(self, mark: Mark) -> None:
        """Set the moment of the stream that the next chunks see."""
        self._mark = mark

    def hold(self, scan: Scan, mark: Mark) -> None:
        """Let a worker read the next chunk now, and wait for it in the stream's thread, for a limited time."""
        with self._changed:
            self._mark, scan.waiting = mark, True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._has_found(scan), self._settings.hold_s)

    def _has_found(self, scan: Scan) -> bool:
        """Return whether there are results of this scan, not only of a replaced one."""
        return any(found is scan for found, _ in self.found)

    def taken(self, scan: Scan, number: int) -> int:
        """Note that a chunk was taken, and read the next ones alongside the stream.

        Returns:
            The smallest number of an event with which other chunks are compared.
        """
        with self._changed:
            scan.reading.pop(number, None)
            scan.held = scan.waiting = False
            self._changed.notify_all()
            since = [*scan.reading.values()]
            if self._mark is not None:
                since.append(self._mark.number)
            return min(since, default=0)

    def close(self) -> None:
        """End the threads without waiting for a running query."""
        with self._changed:
            self._closed, self._scan = True, None
            self._changed.notify_all()

    # --- in the threads -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        worker = ChunkWorker(self._connect, self._signal_rows, lambda: self._closed)
        try:
            while (scan := self._next()) is not None:
                self._step(worker, scan)
        finally:
            worker.close()

    def _next(self) -> Scan | None:
        """Wait for a scan with a chunk to cut; ``None`` at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_work())
            if self._closed or self._scan is None:
                return None
            self._scan.cutting = True
            return self._scan

    def _has_work(self) -> bool:
        scan = self._scan
        return scan is not None and scan.idle and len(scan.reading) < self._settings.threads + _AHEAD

    def _step(self, worker: ChunkWorker, scan: Scan) -> None:
        """Cut the next chunk and read it. While it is read, another thread cuts the one after it."""
        begin = time.monotonic()
        chunk: Chunk | None = None
        try:
            if scan.delays:
                self._wait(scan, backoff_s(scan.delays, _FIRST_WAIT_S, _LONGEST_WAIT_S))
            if not scan.begun:
                if (mark := self._mark) is not None:
                    worker.begin(scan, mark)
                self._done(scan, ScanStep.BEGUN)
                return
            bound = worker.bound(scan)
            with self._changed:
                held = scan.held
                if held:
                    self._await_hold(scan)
                chunk = scan.next_chunk(bound)
                mark = self._mark
                if scan is not self._scan or mark is None:
                    return
                scan.reading[chunk.number] = mark.number
                scan.cutting = False
                self._changed.notify_all()
            read = worker.read_in_view(scan, chunk, mark) if held else worker.read(scan, chunk, mark)
            self._adapt(scan, read, time.monotonic() - begin)
            self._done(scan, read)
        except DatabaseUnreachableError as error:
            worker.close()
            if not self._closed:
                log.warning("table %s is read again from the last chunk: %s", scan.structure.id, error)
            self._wait(scan, _FIRST_WAIT_S * 4)
            self._done(scan, Failed(str(error), lost=True))
        except TooLarge as error:
            worker.close()
            self._done(scan, Failed("a chunk is too large", rows=min(error.rows, scan.size)))
        except TooManyRowsOfKey as error:
            worker.close()  # its result is not read to the end
            self._done(scan, Failed(str(error), hopeless=True))
        except (SnapshotError, pymysql.MySQLError) as error:
            failed = Failed(str(error), worker.position())
            worker.close()  # the address may lead to another server by now
            self._done(scan, failed)
        except Exception as error:  # a thread that ends would silently leave the table unread
            log.exception("table %s cannot be read", scan.structure.id)
            worker.close()
            self._done(scan, Failed(f"{type(error).__name__}: {error}"))

    def _await_hold(self, scan: Scan) -> None:
        self.found.append((scan, ScanStep.TO_READ))
        self._changed.wait_for(lambda: self._closed or self._scan is not scan or scan.waiting)

    def _wait(self, scan: Scan, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._scan is not scan, seconds)

    def _done(self, scan: Scan, found: ReadChunk | Failed | ScanStep) -> None:
        with self._changed:
            if found is ScanStep.BEGUN:
                scan.cutting = False
            elif isinstance(found, Failed):
                scan.failed = True
            self.found.append((scan, found))
            self._changed.notify_all()

    def _adapt(self, scan: Scan, read: ReadChunk, seconds: float) -> None:
        """Double or halve the size of chunks until one takes about the target time, or has its fixed size again."""
        target, rows = self._settings.target_s, sum(len(block.rows) for block in read.blocks)
        if rows < scan.size // 2:
            return
        factor = min(2.0, max(0.5, target / max(seconds, 0.001))) if target else 2.0
        most = scan.limit or (_MAX_ROWS if target else self._settings.chunk_size)
        with self._changed:
            scan.size = max(1, min(most, int(scan.size * factor)))
