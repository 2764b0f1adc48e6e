"""Reads the parts of tables with several connections in parallel, each in its own thread.

::

    connection 1 ──► rows ──┐
    connection 2 ──► rows ──┼──► bounded queue ──► the thread that iterates
    connection 3 ──► rows ──┘
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pymysql

from rowtide.connector.errors import SnapshotError
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.chunks.table_parts import TablePart, TableParts, TableToRead
from rowtide.connector.source import server_queries
from rowtide.connector.source.session import Session

_QUEUED = 4
"""Batches of rows in the queue, for each connection."""


@dataclass(frozen=True, slots=True)
class PartBegun:
    """A connection begins to read a part."""

    part: TablePart


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Rows of a table.

    Attributes:
        table: the table.
        micros: the server's time at the beginning of their part, in µs since the epoch.
        rows: the rows.
    """

    table: TableToRead
    micros: int
    rows: Rows


@dataclass(frozen=True, slots=True)
class PartRead:
    """All rows of a part were read.

    Attributes:
        part: the part.
        complete: whether all rows of its table were read.
    """

    part: TablePart
    complete: bool


class ReadFailed(Exception):
    """A connection failed; the cause is its error.

    Attributes:
        table: the table that it read.
    """

    def __init__(self, table: TableToRead | None) -> None:
        super().__init__()
        self.table = table


def next_part(parts: TableParts, session: Session) -> TablePart | None:
    """Return the next part, whose last key the session looks up; ``None`` if there is none left.

    Raises:
        SnapshotError: the server refuses the query.
        DatabaseUnreachableError: the connection is lost.
    """
    try:
        return parts.take(session.query)
    except pymysql.MySQLError as error:
        raise SnapshotError(f"the server refuses a query for the ranges of a key: {error.args[-1]}") from error


class ParallelReading:
    """Reads tables with several connections that have the same view.

    At the end of the block, connections that are still reading are closed, and all threads have ended.

    Args:
        sessions: the connections.
        parts: the parts of the tables.
    """

    def __init__(self, sessions: Sequence[Session], parts: TableParts) -> None:
        self._sessions = sessions
        self._parts = parts
        self._taking = threading.Lock()
        state = threading.Lock()
        self._arrived, self._taken = threading.Condition(state), threading.Condition(state)
        self._read: list[PartBegun | ReadRows | PartRead] = []
        self._failure: ReadFailed | None = None
        self._running = len(sessions)
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, args=(session,), name=f"snapshot-{number}", daemon=True)
            for number, session in enumerate(sessions, 1)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._taken:
            self._closed = True
            self._taken.notify_all()
            unfinished = self._running > 0
        for session in self._sessions if unfinished else ():
            session.close()
        for thread in self._threads:
            thread.join()

    def __iter__(self) -> Iterator[PartBegun | ReadRows | PartRead]:
        """Yield the rows as they arrive, with several tables interleaved, between the ends of their parts.

        Raises:
            ReadFailed: a connection failed.
        """
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: self._read or self._failure or not self._running)
                if self._failure is not None:
                    raise self._failure from self._failure.__cause__
                if not self._read:
                    return
                items, self._read = self._read, []  # all together, because each change of threads takes long
                self._taken.notify_all()
            yield from items

    def _run(self, session: Session) -> None:
        table: TableToRead | None = None
        try:
            while (part := self._take(session)) is not None:
                table = part.table
                self._read_part(session, part)
                table = None
        except BaseException as error:  # noqa: BLE001 - raised in the thread that iterates
            failure = ReadFailed(table or self._parts.current)
            failure.__cause__ = error
            with self._arrived:
                self._failure = self._failure or failure
        finally:
            with self._arrived:
                self._running -= 1
                self._arrived.notify()

    def _take(self, session: Session) -> TablePart | None:
        with self._taking:
            return None if self._closed else next_part(self._parts, session)

    def _read_part(self, session: Session, part: TablePart) -> None:
        table = part.table
        self._put(PartBegun(part))
        micros = server_queries.now_micros(session)
        captured = table.captured
        for rows in session.rows(table.listed.id, part.query, captured.reader, prepared=captured.prepared):
            self._put(ReadRows(table, micros, rows))
        with self._taking:  # so that the part that completes its table comes after all others
            self._put(PartRead(part, self._parts.completed(part)))

    def _put(self, item: PartBegun | ReadRows | PartRead) -> None:
        with self._taken:
            self._taken.wait_for(lambda: self._closed or len(self._read) < _QUEUED * len(self._sessions))
            self._read.append(item)
            self._arrived.notify()
