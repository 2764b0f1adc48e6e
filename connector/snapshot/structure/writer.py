"""Applies the statements of a snapshot, and makes their history entries and schema change messages. Pure."""

import logging
from collections.abc import Callable, Iterator, Sequence

from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.schema_changes import schema_change_message
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.structure.plan import StructureStatement
from rowtide.envelope.source import Snapshot, source_value
from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.server.query_event import QueryEvent
from rowtide.schema_history.store.history_record import history_record
from rowtide.topics.filters import CapturedNames

log = logging.getLogger(__name__)


class StructureWriter:
    """Applies the statements of a snapshot, and makes their outputs.

    Args:
        settings: the settings for records and the schema history.
        tables: the structures to which the statements are applied.
        offset: the offset of the snapshot while it is in progress.
        clock: nanoseconds since the epoch.
        position: the position of the history entries; by default ``offset``.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        offset: SourceOffset,
        clock: Callable[[], int],
        position: SourceOffset | None = None,
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._offset = offset
        self._position = position or offset
        self._clock = clock
        self._pending: SchemaChange | None = None

    def write(self, statements: Sequence[StructureStatement]) -> Iterator[Output]:
        """Apply the statements in order. The last message is withheld: its marker depends on whether rows follow.

        Raises:
            SnapshotError: a CREATE TABLE cannot be parsed.
        """
        created = [statement.table_id for statement in statements if statement.table_id is not None]
        names = CapturedNames.among(self._settings.tables, ((table.database, table.table) for table in created))
        for statement in statements:
            for change in self._changes(statement):
                if self._is_stored(change, names):
                    yield self._entry(change)
                if self._settings.schema_changes and self._is_published(change, names):
                    yield from self.before_rows()
                    self._pending = change

    def before_rows(self) -> Iterator[Batch]:
        """Yield the withheld message, which is not the last."""
        pending, self._pending = self._pending, None
        if pending is not None:
            yield self._message(pending, "true", None)

    def finish(self, completed: SourceOffset) -> Iterator[Batch]:
        """End a snapshot without rows: its last message has marker ``last`` and the offset of the complete snapshot."""
        pending, self._pending = self._pending, None
        yield Batch("", -1, (), completed, 0, 0) if pending is None else self._message(pending, "last", completed)

    def _changes(self, statement: StructureStatement) -> Sequence[SchemaChange]:
        database, table_id, ddl = statement.database, statement.table_id, statement.ddl
        try:
            applied = self._tables.apply(QueryEvent(ddl, database, position="the snapshot"))
        except SchemaHistoryError as error:
            problem = error.message(literals=self._settings.show_values)
            if not statement.creates or not self._settings.skip_unparseable_ddl:
                raise SnapshotError(
                    f"the structure of table {table_id or database} cannot be parsed: {problem}"
                ) from error
            log.warning("table %s is skipped in the snapshot: %s", table_id, problem)
            return ()
        if statement.creates:
            return applied.changes
        if table_id is not None:
            return (SchemaChange(ChangeKind.DROP, database, ddl, table_id, tables=(table_id,)),)
        return (SchemaChange(ChangeKind.DATABASE, database, ddl),)

    def _is_stored(self, change: SchemaChange, names: CapturedNames) -> bool:
        """Return whether the schema history stores a change: any, or one of a captured table or of the server."""
        if not self._settings.only_captured_tables_ddl or not change.database:
            return True
        table = change.table_id
        return table is not None and names.keeps_structure(table.database, table.table)

    def _is_published(self, change: SchemaChange, names: CapturedNames) -> bool:
        table = change.table_id
        if table is None or not self._settings.only_captured_tables_ddl:
            return True
        return names.captures(table.database, table.table)

    def _entry(self, change: SchemaChange) -> HistoryEntry:
        settings = self._settings
        text = history_record(
            change,
            settings.topic_prefix,
            self._position.to_map(),
            self._clock() // 1_000_000,
            comments=settings.rules.values.include_schema_comments,
        )
        return HistoryEntry(text)

    def _message(self, change: SchemaChange, marker: Snapshot, completed: SourceOffset | None) -> Batch:
        settings, offset = self._settings, self._offset
        micros = self._clock() // 1000
        source = source_value(
            settings.connector,
            settings.topic_prefix,
            change.database,
            ",".join(table.table for table in change.tables) or None,
            micros=micros,
            snapshot=marker,
            server_id=0,
            gtid=None,
            file=offset.file,
            pos=offset.pos,
            row=0,
            thread=None,
            query=None,
        )
        millis = micros // 1000
        return schema_change_message(settings, change, source, completed or offset, now_ms=millis, ts_ms=millis)
