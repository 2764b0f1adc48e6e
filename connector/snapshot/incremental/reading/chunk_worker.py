"""The connection of a thread that reads chunks."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import pymysql

from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import ResultReader, Rows
from rowtide.connector.snapshot.incremental.reading.table_view import open_table_view
from rowtide.connector.snapshot.incremental.reading.watermarks import (
    SignalRows,
    Window,
    await_position,
    close_window,
    open_window,
)
from rowtide.connector.snapshot.incremental.scan import Block, Chunk, Mark, ReadChunk, Scan
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.server_queries import end_of_binlog, has_row_versions, row_estimates
from rowtide.connector.source.session import Session

log = logging.getLogger(__name__)

_MAX_BYTES = 32 << 20
"""Bytes of a chunk at most, unless all of its rows have the same key."""
_MAX_BYTES_OF_KEY = 256 << 20
"""Bytes of rows with the same key at most."""
_POSITION_TIMEOUT_S = 60.0


class TooLarge(Exception):
    """A chunk has too many bytes."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


class TooManyRowsOfKey(SnapshotError):
    """A chunk of rows with the same key, which cannot be cut, does not fit into memory."""

    def __init__(self, column: str) -> None:
        super().__init__(
            f"the rows with the same value of {column} have more than {_MAX_BYTES_OF_KEY >> 20} MiB, and are read "
            "together. Name a column with more different values as the surrogate key"
        )


class ChunkWorker:
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
        """Find the largest key of a table at the mark or later, and whether the table has rows whose key is NULL."""
        session, ranges = self._session, scan.ranges
        await_position(session, mark.position, _POSITION_TIMEOUT_S, self._closed)
        if scan.last is None and scan.requested is None:
            found = session.query(ranges.last_query(scan.condition))
            scan.last = ranges.bound(found[0]) if found else None
        if ranges.nulls is not None:
            scan.nulls = bool(session.query(ranges.rows_query((), ranges.nulls, scan.condition) + " LIMIT 1"))
        if scan.requested is None and (scan.last is None or scan.lower == scan.last):
            scan.cut = not scan.nulls
        scan.estimated = row_estimates(session, [scan.structure.id])[scan.structure.id]
        scan.versioned = has_row_versions(session, scan.structure.id)
        scan.begun = True

    def bound(self, scan: Scan) -> tuple[str, ...] | None:
        """Return the last key of the next chunk; ``None`` if it has all remaining rows."""
        if scan.lower == scan.last:
            return None
        query = scan.ranges.bound_query(scan.lower, scan.size, upto=scan.last, condition=scan.condition)
        found = self._session.query(query)
        return scan.ranges.bound(found[0]) if found else None

    def read(self, scan: Scan, chunk: Chunk, mark: Mark) -> ReadChunk:
        """Read a chunk that includes all changes before the mark."""
        session = self._session
        window = self._open_window(session)
        await_position(session, mark.position, _POSITION_TIMEOUT_S, self._closed)
        blocks, names = self._rows(scan, chunk)
        end = self._close_window(session, window)
        return ReadChunk(chunk, mark.number, blocks, names, end, window.id)

    def read_in_view(self, scan: Scan, chunk: Chunk, mark: Mark) -> ReadChunk:
        """Read a chunk with all changes before the mark, in a view whose place in the binlog is known almost exactly.

        No window rows are written to the signal table, because the stream would have to wait for them.
        """
        session = self._session
        await_position(session, mark.position, _POSITION_TIMEOUT_S, self._closed, held=True)
        try:
            view = open_table_view(session, scan.structure.id, mark.position, _POSITION_TIMEOUT_S)
            blocks, names = self._rows(scan, chunk)
            end = view.end if scan.versioned else end_of_binlog(session)
            session.execute("ROLLBACK")
        except BaseException:
            self.close()  # the next chunk must not be read in this view
            raise
        return ReadChunk(chunk, mark.number, blocks, names, end, None, view.seen)

    def _rows(self, scan: Scan, chunk: Chunk) -> tuple[list[Block], list[str]]:
        """Return the rows of a chunk, and the names of the columns of the result set."""
        blocks: list[Block] = []
        capture = _Capture(scan.table.reader)
        size = 0
        for rows in self._session.rows(scan.structure.id, scan.select(chunk), capture.reader):
            block = Block(rows, capture.data, capture.single)
            blocks.append(block)
            size += len(block.data)
            if size > _MAX_BYTES and scan.size > 1:
                raise TooLarge(sum(len(one.rows) for one in blocks))
            if size > _MAX_BYTES_OF_KEY and not scan.key.unique and sum(len(one.rows) for one in blocks) > 1:
                raise TooManyRowsOfKey(scan.key.columns[0].name)
        return blocks, list(capture.names)

    def _open_window(self, session: Session) -> Window:
        try:
            return open_window(session, self._signal_rows)
        except pymysql.MySQLError as error:
            self._do_without_signal_rows(error)
            return open_window(session, None)

    def _close_window(self, session: Session, window: Window) -> SourceOffset:
        try:
            return close_window(session, self._signal_rows, window)
        except pymysql.MySQLError as error:
            self._do_without_signal_rows(error)
            return close_window(session, None, window)

    def _do_without_signal_rows(self, error: pymysql.MySQLError) -> None:
        if self._signal_rows is None:
            raise error
        log.warning(
            "chunks are read without rows in the signal table %s: %s. Positions in the binlog are compared "
            "instead. Grant the user INSERT and DELETE on it so that the rows can be written",
            self._signal_rows.table, error.args[-1],
        )  # fmt: skip
        self._signal_rows = None

    def position(self) -> SourceOffset | None:
        """Return the end of the binlog, if it can be read."""
        try:
            return end_of_binlog(self._session)
        except (SnapshotError, pymysql.MySQLError, DatabaseUnreachableError):
            self.close()
            return None


class _Capture:
    """Keeps the bytes from which a reader has decoded the latest rows."""

    def __init__(self, make: Callable[[Sequence[str]], ResultReader]) -> None:
        self._make = make
        self.names: Sequence[str] = ()
        self.data = b""
        self.single = False

    def reader(self, names: Sequence[str]) -> ResultReader:
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
