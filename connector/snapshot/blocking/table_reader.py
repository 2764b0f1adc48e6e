"""Reads the tables of a blocking snapshot from a view of the server, and makes their outputs."""

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from rowtide.connector.config.model import SnapshotConfig
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.records.batch import HistoryEntry, Output
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.blocking.state import BlockingRequest
from rowtide.connector.snapshot.changes import snapshot_table
from rowtide.connector.snapshot.reading.table_rows import TableRows
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.connector.snapshot.structure import plan
from rowtide.connector.snapshot.structure.plan import StructureStatement
from rowtide.connector.snapshot.structure.writer import StructureWriter
from rowtide.connector.snapshot.view.consistent_view import View
from rowtide.connector.snapshot.view.opening import OpenSnapshot, open_snapshot, refuse_changed
from rowtide.connector.source import server_queries
from rowtide.connector.source.enum_labels import with_labels
from rowtide.connector.source.server_queries import ListedTable
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import QueryEvent

log = logging.getLogger(__name__)

BLOCKING = "BLOCKING"
_COMMITS_WAIT = (
    "commits on the server wait for rowtide (rowtide.semi.sync), and would hang while the stream is paused. Send an "
    "incremental snapshot instead; or add another semi-synchronous replica, or switch semi-synchronous replication off "
    "on the server for that time (SET GLOBAL rpl_semi_sync_source_enabled = OFF, or rpl_semi_sync_master_enabled)"
)


class SnapshotRefused(SnapshotError):
    """A blocking snapshot must not be taken, neither now nor a moment later."""


class TableReader:
    """Reads tables for blocking snapshots, with the machinery of the initial snapshot.

    Args:
        database: address and account of the database.
        settings: the settings for records and captured tables.
        config: the settings of snapshots.
            ``snapshot.include.collection.list`` and the overrides of SELECT statements do not apply: as in Debezium,
            signals alone decide which rows are read.
        tables: every table's structure, as the stream has it.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
        semi_sync: whether the stream is semi-synchronous.
    """

    def __init__(
        self,
        database: DatabaseConfig,
        settings: PipelineSettings,
        config: SnapshotConfig,
        tables: Tables,
        clock: Callable[[], int],
        progress: SnapshotProgress | None,
        *,
        semi_sync: bool,
    ) -> None:
        self._semi_sync = semi_sync
        self._database = database
        self._settings = settings
        self._config = replace(config, include=None)
        self._tables = tables
        self._clock = clock
        self._progress = progress

    @property
    def _mariadb(self) -> bool:
        return self._settings.connector == "mariadb"

    def end_of_binlog(self) -> SourceOffset:
        """Return the end of the server's binlog.

        Raises:
            SnapshotError, DatabaseUnreachableError: it cannot be read.
        """
        with Session(self._database, mariadb=self._mariadb) as session:
            return server_queries.end_of_binlog(session)

    def open(self, request: BlockingRequest) -> AbstractContextManager[OpenSnapshot]:
        """Open a view of the tables; see :func:`open_snapshot`.

        Prepared XA transactions are in the stream: their rows follow when they are committed.

        Raises:
            SnapshotRefused: commits wait for the stream, which acknowledges none while it pauses. The lock of the
                snapshot would wait for such a commit, and the commit for the end of the snapshot.
        """
        if self._semi_sync:
            with Session(self._database, mariadb=self._mariadb) as session:
                if server_queries.commits_wait_for_all_replicas(session):
                    raise SnapshotRefused(_COMMITS_WAIT)
        scope = _Scope(request, self._database, self._settings, self._config, self._tables)
        return open_snapshot(
            self._database, self._config, scope, mariadb=self._mariadb, threads=self._config.threads, xa=False
        )

    def position(self, opened: OpenSnapshot) -> SourceOffset:
        """Return the position of a view, with the ``server_id`` as its server."""
        return replace(opened.view.position, server=server_queries.server_id(opened.sessions[0]))

    def interrupted(self, opened: OpenSnapshot) -> None:
        """Report that the tables of a view are no longer read."""
        if self._progress is not None:
            self._progress.left([str(table.id) for table in opened.tables])

    def outputs(
        self,
        opened: OpenSnapshot,
        request: BlockingRequest,
        at: SourceOffset,
        event: SourcePosition,
        captured: CapturedTables,
        notifications: Notifications,
    ) -> Generator[Output, None, None]:
        """Yield the outputs of a snapshot. The offsets of the last record and of later records have no ``snapshot``.

        Args:
            opened: the view.
            request: the snapshot.
            at: the resume position, which is that of the view.
            event: the last event of the stream.
            captured: the captured tables of the stream; those with a different structure are dropped from its cache.
            notifications: makes the notifications.

        Raises:
            SnapshotError: the server refuses a query or aborts it.
            DatabaseUnreachableError: a connection is lost.
        """
        running, names = replace(at, snapshot=BLOCKING), [table.id for table in opened.tables]
        notifications.begin()
        yield from notifications.started(running)
        writer, structure = self._structure(opened.statements, running, captured)
        yield from structure
        config = replace(self._config, select_overrides=request.queries(names))
        rows = TableRows(
            self._settings, config, self._tables, notifications, self._progress, self._clock, snapshot_table, event
        )
        yield from rows.outputs(opened.sessions, running, at, opened.tables, writer)
        yield from notifications.ended("COMPLETED", at)

    def _structure(
        self, statements: Sequence[StructureStatement], running: SourceOffset, captured: CapturedTables
    ) -> tuple[StructureWriter, list[Output]]:
        """Adopt the structures, if one differs from that of the stream.

        Entries of the schema history come first: the snapshot may be interrupted between two records, and a history
        with the DROP of a table but without its CREATE would lose the table.
        """
        created = [statement.table_id for statement in statements if statement.creates and statement.table_id]
        seen = Tables(self._tables.server)
        writer = StructureWriter(self._settings, seen, running, self._clock)
        outputs = list(writer.write(statements))
        for table in created:
            captured.capture(table)
        if all(seen.table(*_name(table)) == self._tables.table(*_name(table)) for table in created):
            return writer, [output for output in outputs if not isinstance(output, HistoryEntry)]
        writer = StructureWriter(self._settings, self._tables, running, self._clock, replace(running, snapshot=None))
        outputs = list(writer.write(statements))
        for table in created:
            captured.changed(table, exists=True)
        return writer, sorted(outputs, key=lambda output: not isinstance(output, HistoryEntry))


class _Scope:
    """The ``Scope`` of a blocking snapshot's view."""

    def __init__(
        self,
        request: BlockingRequest,
        database: DatabaseConfig,
        settings: PipelineSettings,
        config: SnapshotConfig,
        tables: Tables,
    ) -> None:
        self._request = request
        self._database = database
        self._settings = settings
        self._config = config
        self._tables = tables

    def row_tables(self, listed: Sequence[ListedTable]) -> list[ListedTable]:
        """Return the captured tables that the signal names, in the order of the initial snapshot, as in Debezium."""
        captured = plan.row_tables(listed, self._settings, self._config)
        named = {*self._request.select([table.id for table in captured])}
        return [table for table in captured if table.id in named]

    def statements(self, session: Session, listed: Sequence[ListedTable]) -> list[StructureStatement]:
        """Return the statements that recreate the structures, without those that cannot be parsed."""
        server = self._tables.server
        created = {}
        for table in self.row_tables(listed):
            statement = server_queries.create_statement(session, table.id)
            statement = with_labels(session, table.id, statement, server)
            if self._is_parsed(table.id, statement):
                created[table.id] = statement
        return plan.table_statements(created)

    def refuse_changed(self, session: Session, view: View) -> None:
        """Raise ``TablesChanged`` if one of the tables changed since the position."""
        tables = [table.id for table in self.row_tables(view.tables)]
        refuse_changed(self._database, session, view, tables, self._tables.server)

    def _is_parsed(self, table: TableId, statement: str) -> bool:
        """Parse a statement before the stream's structure is dropped."""
        try:
            Tables(self._tables.server).apply(QueryEvent(statement, table.database, position="the snapshot"))
        except SchemaHistoryError as error:
            problem = error.message(literals=self._settings.show_values)
            if not self._settings.skip_unparseable_ddl:
                raise SnapshotError(f"the structure of table {table} cannot be parsed: {problem}") from error
            log.warning("the structure of table %s is not read again: %s", table, problem)
            return False
        return True


def _name(table: TableId) -> tuple[str, str]:
    return table.database, table.table
