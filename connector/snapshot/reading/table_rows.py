"""Reads the rows of all tables of a snapshot, with one connection or several, and makes their records."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

from rowtide.connector.config.errors import Problem
from rowtide.connector.config.model import SnapshotConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.batch import Output
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.connector.snapshot.changes import TableForm
from rowtide.connector.snapshot.chunks.key_ranges import ChunkKey, KeyRanges, resumable_key
from rowtide.connector.snapshot.chunks.parallel_reading import (
    ParallelReading,
    PartBegun,
    PartRead,
    ReadFailed,
    next_part,
)
from rowtide.connector.snapshot.chunks.table_parts import TablePart, TableParts, TableToRead, key_ranges
from rowtide.connector.snapshot.reading.resumable_offsets import ResumableOffsets
from rowtide.connector.snapshot.records import (
    ParallelRecordStream,
    ReadTime,
    RecordStream,
    StructureMessages,
)
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.connector.snapshot.structure import plan
from rowtide.connector.source import server_queries
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.server_queries import ListedTable
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId

log = logging.getLogger(__name__)

PART_ROWS = 50_000
"""The rows of a part, if several connections read parts of one table."""
RESUMABLE_PART_ROWS = 20_000
"""The same if the snapshot is resumable: an interruption repeats a part of each table that is being read."""


class TableRows:
    """Reads the rows of tables, and makes their records.

    Args:
        settings: the settings for records.
        config: the statements that read the rows, and the number of connections.
        tables: the structures.
        notifications: makes the notifications about each table.
        progress: receives the progress.
        clock: nanoseconds since the epoch.
        form: makes the form of a table's rows.
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
        event: SourcePosition | None = None,
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
        resumed: SourceOffset | None = None,
    ) -> Iterator[Output]:
        """Yield the records of all rows.

        If the snapshot is resumable, tables whose reading cannot be continued are read first: as long as one of them
        remains, an interruption makes the snapshot start over.

        Args:
            sessions: the connections, which have the same view.
            running: the offset of the snapshot while it is in progress.
            completed: the offset of the complete snapshot.
            to_read: the tables, in the order of reading. Rows of the signal table are not read: they are signals that
                were carried out, or that are in the stream.
            writer: the messages before the rows.
            resumed: the start of the stream if a later start reads only the rest; ``None`` if it cannot.

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
        topics = TopicOwners(self._settings, self._tables)
        for table in to_read:
            topics.topic(table.id)
        structures = [(listed, self._tables.table(listed.id.database, listed.id.table)) for listed in to_read]
        parallel, part_rows = len(sessions) > 1, PART_ROWS
        if resumed is not None:
            part_rows = RESUMABLE_PART_ROWS
            structures.sort(key=lambda pair: pair[1] is None or self._resumable_key(pair[1]) is not None)
        keys = {listed.id: self._resumable_key(known) for listed, known in structures if known is not None}
        offsets = ResumableOffsets(running, resumed, keys, part_rows)
        tables = (self._table(*pair, parallel=parallel, resumable=resumed is not None) for pair in structures)
        if parallel:
            parts = TableParts([known for known in tables if known is not None], part_rows)
            yield from self._parallel(sessions, offsets, completed, parts, writer)
            return
        stream = RecordStream(structures[0][1] if structures else None, writer)
        for place, known in enumerate(tables, 1):
            if known is not None:
                name, estimated = known.listed.id, _shown(known.listed.rows)
                log.info("reading table %s (%d of %d), estimated rows: %s", name, place, len(structures), estimated)
                yield from self._one_by_one(sessions[0], offsets, known, TableParts([known], part_rows), stream)
        yield from stream.finish(completed)

    def _has_query(self, table: TableId) -> bool:
        """Return whether the configuration has its own query for the table."""
        return (table.database, table.table) in self._config.select_overrides

    def _resumable_key(self, structure: Table) -> ChunkKey | None:
        """Return the key by which a later start continues reading a table; ``None`` if it cannot."""
        if self._has_query(structure.id):
            return None
        return resumable_key(structure, exact=self._settings.canonical)

    def _table(
        self, listed: ListedTable, structure: Table | None, *, parallel: bool, resumable: bool
    ) -> TableToRead | None:
        if structure is None:  # its CREATE TABLE could not be parsed, and the configuration skips such statements
            log.warning("the rows of table %s are not read, because its structure is not known", listed.id)
            return None
        captured = self._form(structure, self._settings, custom_query=self._has_query(listed.id))
        query = plan.select_statement(listed.id, captured.selected, self._config.select_overrides)
        ranges: KeyRanges | None = None
        if self._config.cut_tables and not self._has_query(listed.id):
            if resumable:  # whatever the server estimates: that may be wrong by far
                key = self._resumable_key(structure)
                ranges = None if key is None else key.ranges(listed.id)
            elif parallel:
                ranges = key_ranges(listed, structure, PART_ROWS)
        return TableToRead(listed, captured, query, ranges)

    def _one_by_one(
        self, session: Session, offsets: ResumableOffsets, table: TableToRead, parts: TableParts, stream: RecordStream
    ) -> Iterator[Output]:
        listed, captured = table.listed, table.captured
        micros = server_queries.now_micros(session)
        yield from self._notifications.in_progress(listed.id, offsets.offset)
        done = 0
        try:
            while (part := next_part(parts, session)) is not None:
                for rows in session.rows(listed.id, part.query, captured.reader, prepared=captured.prepared):
                    done += len(rows)
                    self._report(listed, done)
                    offsets.add(listed.id, len(rows))
                    yield from stream.rows(captured, self._read_time(micros, offsets.offset), rows)
                offsets.added(part, complete=parts.completed(part))
        except (SnapshotError, DatabaseUnreachableError) as error:
            yield from self._notifications.table_failed(listed.id, offsets.offset)
            _fail(listed, error)
        yield from self._completed(listed, done, offsets.offset)

    def _parallel(
        self,
        sessions: Sequence[Session],
        offsets: ResumableOffsets,
        completed: SourceOffset,
        parts: TableParts,
        writer: StructureMessages,
    ) -> Iterator[Output]:
        log.info("reading %d tables with %d connections", len(parts), len(sessions))
        stream = ParallelRecordStream(writer)
        done: dict[TableId, int] = {}
        with ParallelReading(sessions, parts) as reading:
            try:
                for step in reading:
                    if isinstance(step, PartBegun):
                        yield from self._part_begun(step.part, done, offsets.offset)
                    elif isinstance(step, PartRead):
                        offsets.added(step.part, complete=step.complete)
                        yield from self._part_read(step, done, offsets.offset, stream)
                    else:
                        listed = step.table.listed
                        done[listed.id] += len(step.rows)
                        self._report(listed, done[listed.id])
                        offsets.add(listed.id, len(step.rows))
                        read_time = self._read_time(step.micros, offsets.offset)
                        yield from stream.rows(step.table.captured, read_time, step.rows)
            except ReadFailed as failure:
                error = failure.__cause__
                if failure.table is None or not isinstance(error, SnapshotError | DatabaseUnreachableError):
                    raise error or failure from None
                yield from self._notifications.table_failed(failure.table.listed.id, offsets.offset)
                _fail(failure.table.listed, error)
        yield from stream.finish(completed)

    def _part_begun(self, part: TablePart, done: dict[TableId, int], offset: SourceOffset) -> Iterator[Output]:
        listed = part.table.listed
        if listed.id not in done:
            done[listed.id] = 0
            log.info("reading table %s, estimated rows: %s", listed.id, _shown(listed.rows))
            yield from self._notifications.in_progress(listed.id, offset)
        if self._config.cut_tables:
            yield from self._notifications.part_in_progress(listed.id, part.number, part.total, done[listed.id], offset)

    def _part_read(
        self, read: PartRead, done: dict[TableId, int], offset: SourceOffset, stream: ParallelRecordStream
    ) -> Iterator[Output]:
        part = read.part
        listed = part.table.listed
        if self._config.cut_tables:
            yield from self._notifications.part_completed(listed.id, part.number, part.total, offset)
        if read.complete:
            yield from stream.finished(part.table.captured)
            yield from self._completed(listed, done[listed.id], offset)

    def _read_time(self, micros: int, offset: SourceOffset) -> ReadTime:
        return ReadTime(micros, replace(offset, ts_sec=micros // 1_000_000), self._clock, self._event)

    def _report(self, listed: ListedTable, done: int, *, finished: bool = False) -> None:
        if self._progress:
            self._progress.rows(listed.id, done, listed.rows, finished=finished)

    def _completed(self, listed: ListedTable, done: int, offset: SourceOffset) -> Iterator[Output]:
        log.info("read table %s, rows: %d", listed.id, done)
        yield from self._notifications.table_completed(listed.id, done, offset)
        self._report(listed, done, finished=True)


def _fail(listed: ListedTable, error: SnapshotError | DatabaseUnreachableError) -> NoReturn:
    """Raise the error, with the name of the table if a connection was lost."""
    if isinstance(error, DatabaseUnreachableError):
        message = f"table {listed.id} was not read completely: {error.problem.message}"
        problem = Problem(error.problem.property, message)
        raise type(error)(problem, retriable=error.retriable) from error
    raise error


def _shown(estimate: int | None) -> str:
    return "unknown" if estimate is None else str(estimate)
