"""Reads the rows of all tables of a snapshot, with one connection or several, and makes their records."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn, Protocol

from rowtide.connector.config.errors import Problem
from rowtide.connector.config.model import SnapshotConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.batch import Output
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicGuard
from rowtide.connector.snapshot import plan
from rowtide.connector.snapshot.changes import TableForm
from rowtide.connector.snapshot.chunks.parallel_reading import ParallelReading, ReadFailed
from rowtide.connector.snapshot.chunks.table_parts import TableParts, TableToRead, key_ranges
from rowtide.connector.snapshot.records import (
    ParallelRecordStream,
    ReadTime,
    RecordStream,
    StreamEvent,
    StructureMessages,
)
from rowtide.connector.source import server_queries
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.server_queries import ListedTable
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId

log = logging.getLogger(__name__)

PART_ROWS = 50_000
"""The rows of a part, if several connections read parts of one table."""


class SnapshotProgress(Protocol):
    """Receives the progress of a snapshot."""

    def tables(self, tables: Sequence[TableId]) -> None:
        """The rows of these tables will be read, in this order."""
        ...

    def added(self, names: Iterable[str]) -> None:
        """The rows of these tables (``db.table``) will be read behind those that are known."""
        ...

    def left(self, names: Collection[str]) -> None:
        """These tables are not read, or no further."""
        ...

    def rows(self, table: TableId | str, done: int, estimated: int | None, *, finished: bool) -> None:
        """``done`` rows of a table were read, of an estimated number; ``None`` if the server has no estimate."""
        ...


class TableRows:
    """Reads the rows of tables, and makes their records.

    Args:
        settings: how records are made.
        config: which statements read the rows, and with how many connections.
        tables: the structures.
        notifications: makes the notifications about each table.
        progress: receives the progress.
        clock: nanoseconds since the epoch.
        form: makes of a table what its rows become.
        event: the event of the stream for ``source``, if the snapshot interrupts one.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        config: SnapshotConfig,
        tables: Tables,
        notifications: Notifications,
        progress: SnapshotProgress | None,
        clock: Callable[[], int],
        form: TableForm,
        event: StreamEvent | None = None,
    ) -> None:
        self._settings = settings
        self._config = config
        self._tables = tables
        self._notifications = notifications
        self._progress = progress
        self._clock = clock
        self._form = form
        self._event = event

    def outputs(
        self,
        sessions: Sequence[Session],
        running: SourceOffset,
        completed: SourceOffset,
        to_read: Sequence[ListedTable],
        writer: StructureMessages,
    ) -> Iterator[Output]:
        """Yield the records of all rows.

        Args:
            sessions: the connections, which have the same view.
            running: the offset of the snapshot while it is in progress.
            completed: the offset of the complete snapshot.
            to_read: the tables, in the order of reading. Rows of the signal table are not read: they are signals that
                were carried out, or that the stream brings.
            writer: the messages before the rows.

        Raises:
            SnapshotError: the server refuses a statement or aborts it.
            DatabaseUnreachableError: a connection is lost.
            TopicClash: a topic belongs to another table.
        """
        captured = [table.id for table in to_read]
        to_read = [one for one in to_read if (one.id.database, one.id.table) not in self._settings.tables.always]
        if self._progress:
            self._progress.tables([table.id for table in to_read])
        self._notifications.reading([table.id for table in to_read], captured)
        topics = TopicGuard(self._settings, self._tables)
        for table in to_read:
            topics.topic(table.id)
        structures = [(listed, self._tables.table(listed.id.database, listed.id.table)) for listed in to_read]
        if len(sessions) > 1:
            yield from self._parallel(sessions, running, completed, structures, writer)
            return
        stream = RecordStream(structures[0][1] if structures else None, writer)
        for place, (listed, structure) in enumerate(structures, 1):
            known = self._table(listed, structure)
            if known is not None:
                log.info(
                    "reading table %s (%d of %d), estimated rows: %s",
                    listed.id,
                    place,
                    len(structures),
                    _shown(listed.rows),
                )
                yield from self._one_by_one(sessions[0], running, known, stream)
        yield from stream.finish(completed)

    def _table(self, listed: ListedTable, structure: Table | None) -> TableToRead | None:
        if structure is None:  # its CREATE TABLE could not be parsed, and the configuration skips such statements
            log.warning("the rows of table %s are not read, because its structure is not known", listed.id)
            return None
        overrides = self._config.select_overrides
        custom_query = (listed.id.database, listed.id.table) in overrides
        captured = self._form(structure, self._settings, custom_query=custom_query)
        query = plan.select_statement(listed.id, captured.columns, overrides)
        ranges = None if custom_query or not self._config.cut_tables else key_ranges(listed, structure, PART_ROWS)
        return TableToRead(listed, captured, query, ranges)

    def _one_by_one(
        self, session: Session, running: SourceOffset, table: TableToRead, stream: RecordStream
    ) -> Iterator[Output]:
        listed, captured = table.listed, table.captured
        read_time = self._read_time(server_queries.now_micros(session), running)
        yield from self._notifications.in_progress(listed.id, running)
        done = 0
        try:
            for rows in session.rows(listed.id, table.query, captured.reader):
                done += len(rows)
                self._report(listed, done)
                yield from stream.rows(captured, read_time, rows)
        except (SnapshotError, DatabaseUnreachableError) as error:
            yield from self._notifications.table_failed(listed.id, running)
            _fail(listed, error)
        yield from self._completed(listed, done, running)

    def _parallel(
        self,
        sessions: Sequence[Session],
        running: SourceOffset,
        completed: SourceOffset,
        structures: Sequence[tuple[ListedTable, Table | None]],
        writer: StructureMessages,
    ) -> Iterator[Output]:
        found = (self._table(listed, structure) for listed, structure in structures)
        tables = [table for table in found if table is not None]
        log.info("reading %d tables with %d connections", len(tables), len(sessions))
        stream = ParallelRecordStream(writer)
        done: dict[TableId, int] = {}
        with ParallelReading(sessions, TableParts(tables, PART_ROWS)) as reading:
            try:
                for read in reading:
                    listed, captured = read.table.listed, read.table.captured
                    if listed.id not in done:
                        log.info("reading table %s, estimated rows: %s", listed.id, _shown(listed.rows))
                        yield from self._notifications.in_progress(listed.id, running)
                    count = done[listed.id] = done.get(listed.id, 0) + len(read.rows)
                    if read.complete:
                        yield from stream.finished(captured)
                        yield from self._completed(listed, count, running)
                    else:
                        self._report(listed, count)
                        yield from stream.rows(captured, self._read_time(read.micros, running), read.rows)
            except ReadFailed as failure:
                error = failure.__cause__
                if failure.table is None or not isinstance(error, SnapshotError | DatabaseUnreachableError):
                    raise error or failure from None
                yield from self._notifications.table_failed(failure.table.listed.id, running)
                _fail(failure.table.listed, error)
        yield from stream.finish(completed)

    def _read_time(self, micros: int, running: SourceOffset) -> ReadTime:
        return ReadTime(micros, replace(running, ts_sec=micros // 1_000_000), self._clock, self._event)

    def _report(self, listed: ListedTable, done: int, *, finished: bool = False) -> None:
        if self._progress:
            self._progress.rows(listed.id, done, listed.rows, finished=finished)

    def _completed(self, listed: ListedTable, done: int, running: SourceOffset) -> Iterator[Output]:
        log.info("read table %s, rows: %d", listed.id, done)
        yield from self._notifications.table_completed(listed.id, done, running)
        self._report(listed, done, finished=True)


def _fail(listed: ListedTable, error: SnapshotError | DatabaseUnreachableError) -> NoReturn:
    """Raise the error, with the name of the table if a connection was lost."""
    if isinstance(error, DatabaseUnreachableError):
        message = f"table {listed.id} was not read completely: {error.problem.message}"
        problem = Problem(error.problem.property, message)
        raise DatabaseUnreachableError(problem, retriable=error.retriable) from error
    raise error


def _shown(estimate: int | None) -> str:
    return "unknown" if estimate is None else str(estimate)
