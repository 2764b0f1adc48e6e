"""Edge: reads the chunks of a table in threads of its own, each with its own connection."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pymysql

from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import Rows, TextRows
from rowtide.connector.snapshot.incremental.scan import Block, Chunk, Failed, Mark, ReadChunk, Scan
from rowtide.connector.snapshot.incremental.watermarks import (
    SignalRows,
    Window,
    await_position,
    close_window,
    open_window,
)
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.server_queries import end_of_binlog, row_estimates
from rowtide.connector.source.session import Session

log = logging.getLogger(__name__)

_AHEAD = 2
"""Chunks that may wait to be taken, beside those that are being read."""
_MAX_BYTES = 32 << 20
"""Bytes of a chunk at most."""
_MAX_ROWS = 1 << 16
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 10.0
_POSITION_TIMEOUT_S = 60.0

Found = tuple[Scan, ReadChunk | Failed | None]
"""What a worker has found; ``None``: the scan has begun, its largest key is known."""


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Settings of the chunk reader.

    Attributes:
        threads: how many chunks are read at a time.
        target_s: how long a chunk should take; their size adapts to it. 0 for a fixed size.
        signal_rows: where windows are written, if anywhere.
    """

    threads: int
    target_s: float
    signal_rows: SignalRows | None


class ChunkReader:
    """Reads the chunks of one table after the other.

    Args:
        connect: opens a session.
        settings: how to read.

    Attributes:
        found: what the workers have found, in the order in which they found it; take from the left.
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

    def read(self, scan: Scan | None, mark: Mark | None = None) -> None:
        """Read a table from now on, instead of the one before; ``None`` to pause."""
        with self._changed:
            self._scan, self._mark = scan, mark
            self._changed.notify_all()
        if scan is not None and not self._threads:
            for number in range(self._settings.threads):
                thread = threading.Thread(target=self._work, name=f"chunk-reader-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def mark(self, mark: Mark) -> None:
        """Set the moment of the stream that the next chunks see."""
        self._mark = mark

    def taken(self, scan: Scan, number: int) -> int:
        """Tell that a chunk was taken; returns the smallest number of an event that other chunks are compared with."""
        with self._changed:
            scan.reading.pop(number, None)
            self._changed.notify_all()
            since = [*scan.reading.values()]
            if self._mark is not None:
                since.append(self._mark.number)
            return min(since, default=0)

    def close(self) -> None:
        """End the threads; a query that runs is not waited for."""
        with self._changed:
            self._closed, self._scan = True, None
            self._changed.notify_all()

    # --- in the threads -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        worker = _Worker(self._connect, self._signal_rows, lambda: self._closed)
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

    def _step(self, worker: "_Worker", scan: Scan) -> None:
        """Cut the next chunk and read it. While it is read, another thread cuts the one behind it."""
        begin = time.monotonic()
        chunk: Chunk | None = None
        try:
            if scan.tries:
                self._wait(scan, min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** min(scan.tries - 1, 10)))
            if not scan.begun:
                if (mark := self._mark) is not None:
                    worker.begin(scan, mark)
                self._done(scan, None)
                return
            bound = worker.bound(scan)
            with self._changed:
                chunk = scan.next_chunk(bound)
                mark = self._mark
                if scan is not self._scan or mark is None:
                    return
                scan.reading[chunk.number] = mark.number
                scan.cutting = False
                self._changed.notify_all()
            read = worker.read(scan, chunk, mark)
            self._adapt(scan, read, time.monotonic() - begin)
            self._done(scan, read)
        except DatabaseUnreachableError as error:
            worker.close()
            log.warning("table %s is read again from the last chunk on: %s", scan.structure.id, error)
            self._wait(scan, _FIRST_WAIT_S * 4)
            self._done(scan, Failed(str(error), lost=True))
        except _TooLarge as error:
            worker.close()
            self._done(scan, Failed("a chunk is too large", rows=error.rows))
        except (SnapshotError, pymysql.MySQLError) as error:
            self._done(scan, Failed(str(error), worker.position()))
        except Exception as error:  # a thread that ends would leave the table unread, without a word
            log.exception("table %s cannot be read", scan.structure.id)
            worker.close()
            self._done(scan, Failed(f"{type(error).__name__}: {error}"))

    def _wait(self, scan: Scan, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._scan is not scan, seconds)

    def _done(self, scan: Scan, found: ReadChunk | Failed | None) -> None:
        with self._changed:
            if found is None:
                scan.cutting = False
            elif isinstance(found, Failed):
                scan.failed = True
            self.found.append((scan, found))
            self._changed.notify_all()

    def _adapt(self, scan: Scan, read: ReadChunk, seconds: float) -> None:
        """Double or halve the size of chunks until one takes about the target time."""
        target, rows = self._settings.target_s, sum(len(block.rows) for block in read.blocks)
        if not target or rows < scan.size // 2:
            return
        factor = min(2.0, max(0.5, target / max(seconds, 0.001)))
        with self._changed:
            scan.size = max(1, min(_MAX_ROWS, int(scan.size * factor)))


class _TooLarge(Exception):
    """A chunk has too many bytes."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


class _Worker:
    """The connection of a thread."""

    def __init__(self, connect: Callable[[], Session], rows: SignalRows | None, closed: Callable[[], bool]) -> None:
        self._connect = connect
        self._closed = closed
        self._signal_rows = rows
        self._open: Session | None = None

    @property
    def _session(self) -> Session:
        if self._open is None:
            self._open = self._connect()
        return self._open

    def close(self) -> None:
        """Close the connection; the next query opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def begin(self, scan: Scan, mark: Mark) -> None:
        """Find the largest key of a table at the mark or later, and whether it has rows whose key is NULL."""
        session, ranges = self._session, scan.ranges
        await_position(session, mark.position, _POSITION_TIMEOUT_S, self._closed)
        if scan.last is None:
            found = session.query(ranges.last_query(scan.condition))
            scan.last = ranges.bound(found[0]) if found else None
        if ranges.nulls is not None:
            scan.nulls = bool(session.query(ranges.rows_query((), ranges.nulls, scan.condition) + " LIMIT 1"))
        if scan.last is None or scan.lower == scan.last:
            scan.cut = not scan.nulls
        scan.estimated = row_estimates(session, [scan.structure.id])[scan.structure.id]
        scan.begun = True

    def bound(self, scan: Scan) -> tuple[str, ...] | None:
        """The last key of the next chunk; ``None`` if it has all that is left."""
        if scan.lower == scan.last:
            return None
        query = scan.ranges.bound_query(scan.lower, scan.size, upto=scan.last, condition=scan.condition)
        found = self._session.query(query)
        return scan.ranges.bound(found[0]) if found else None

    def read(self, scan: Scan, chunk: Chunk, mark: Mark) -> ReadChunk:
        """Read a chunk that sees all before the mark."""
        session = self._session
        window = self._open_window(session)
        await_position(session, mark.position, _POSITION_TIMEOUT_S, self._closed)
        blocks: list[Block] = []
        names: list[str] = []
        capture = _Capture(scan.table.reader)
        size = 0
        for rows in session.rows(scan.structure.id, scan.select(chunk), capture.reader):
            block = Block(rows, capture.data, capture.single)
            blocks.append(block)
            size += len(block.data)
            if size > _MAX_BYTES and scan.size > 1:
                raise _TooLarge(sum(len(one.rows) for one in blocks))
        names = list(capture.names)
        end = close_window(session, self._signal_rows, window)
        return ReadChunk(chunk, mark.number, blocks, names, end, window.id)

    def _open_window(self, session: Session) -> Window:
        try:
            return open_window(session, self._signal_rows)
        except pymysql.MySQLError as error:
            assert self._signal_rows is not None
            log.warning(
                "chunks are read without rows in the signal table %s: %s. Positions in the binlog are compared "
                "instead. Grant the user INSERT and DELETE on it to have the rows there",
                self._signal_rows.table, error.args[-1],
            )  # fmt: skip
            self._signal_rows = None
            return open_window(session, None)

    def position(self) -> SourceOffset | None:
        """The end of the binlog, if it can be read."""
        try:
            return end_of_binlog(self._session)
        except (SnapshotError, pymysql.MySQLError, DatabaseUnreachableError):
            self.close()
            return None


class _Capture:
    """Keeps the bytes from which a reader has decoded the latest rows."""

    def __init__(self, make: Callable[[Sequence[str]], TextRows]) -> None:
        self._make = make
        self.names: Sequence[str] = ()
        self.data = b""
        self.single = False

    def reader(self, names: Sequence[str]) -> TextRows:
        """Compile the reader of a result set."""
        made, self.names = self._make(names), names

        def rows(buffer: bytes) -> tuple[Rows, int]:
            found, stop = made.rows(buffer)
            self.data, self.single = buffer[:stop], False
            return found, stop

        def row(payload: bytes) -> tuple[object, ...]:
            self.data, self.single = payload, True
            return made.row(payload)

        return replace(made, rows=rows, row=row)
