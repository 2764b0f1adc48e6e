"""Takes a snapshot: structures, rows, and the offset at which streaming starts afterwards."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from rowtide.connector.config.choices import SnapshotLocking
from rowtide.connector.config.model import SnapshotConfig
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.table_events import TableEvent
from rowtide.connector.records.transforms import Transformer
from rowtide.connector.snapshot.changes import TableForm, snapshot_table
from rowtide.connector.snapshot.decision import Decision
from rowtide.connector.snapshot.reading.table_rows import TableRows
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.connector.snapshot.structure import plan
from rowtide.connector.snapshot.structure.plan import StructureStatement
from rowtide.connector.snapshot.structure.writer import StructureWriter
from rowtide.connector.snapshot.view.consistent_view import View
from rowtide.connector.snapshot.view.opening import lost_connections, open_snapshot, refuse_changed
from rowtide.connector.snapshot.view.prepared_xa import await_ends
from rowtide.connector.source import server_queries
from rowtide.connector.source.enum_labels import with_labels
from rowtide.connector.source.search.binlog_search import BinlogSearch
from rowtide.connector.source.server_queries import ListedTable
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.topics.filters import CapturedNames

log = logging.getLogger(__name__)

INITIAL = "INITIAL"


class Snapshot:
    """Takes a snapshot.

    Args:
        database: address and account of the database.
        settings: the settings for records and captured tables.
        snapshot: what to read and lock.
        decision: structures, rows or both; from :func:`~rowtide.connector.snapshot.decision.decide`.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
        carried: ``SourceOffset.carried`` of its offsets.
        form: makes the form of a table's rows; by default messages or changes, according to the settings.
    """

    def __init__(
        self,
        database: DatabaseConfig,
        settings: PipelineSettings,
        snapshot: SnapshotConfig,
        decision: Decision,
        clock: Callable[[], int],
        progress: SnapshotProgress | None = None,
        *,
        carried: Mapping[str, Any] | None = None,
        form: TableForm = snapshot_table,
    ) -> None:
        self._database = database
        self._settings = settings
        self._config = snapshot
        self._decision = decision
        self._clock = clock
        self._progress = progress
        self._carried = carried
        self._form = form
        self._notifications = Notifications(settings, clock)
        self._tables: Tables | None = None
        self._offset: SourceOffset | None = None
        self._running: SourceOffset | None = None

    @property
    def tables(self) -> Tables:
        """The structure of all tables at the position of the snapshot, once it is complete.

        Raises:
            RuntimeError: the snapshot has not read it yet.
        """
        if self._tables is None:
            raise RuntimeError("the snapshot has not read the structure yet")
        return self._tables

    @property
    def offset(self) -> SourceOffset:
        """The offset of the complete snapshot, at which streaming starts.

        Raises:
            RuntimeError: the snapshot has not read it yet.
        """
        if self._offset is None:
            raise RuntimeError("the snapshot has not read the position yet")
        return self._offset

    @property
    def continues(self) -> bool:
        """Whether a later start reads only the rest, if the snapshot is interrupted now."""
        return self._running is not None and self._running.continues_snapshot

    @property
    def _resumed(self) -> SourceOffset | None:
        """The start of the stream if a later start reads only the rest; ``None`` if it cannot."""
        decision = self._decision
        if not self._config.resumable or not decision.stream or decision.position is not None:
            return None
        return replace(self.offset, snapshot=INITIAL)

    def outputs(self) -> Generator[Output, None, None]:
        """Take the snapshot, and yield its outputs in order. Closing the generator aborts it and releases all locks.

        Raises:
            SnapshotError: the server refuses a statement, a structure cannot be parsed, or a table cannot be read.
            TopicClash: a table was created whose topic belongs to another table.
            DatabaseUnreachableError: there is no connection, or it was lost.
        """
        self._notifications.begin()
        opening = open_snapshot(
            self._database,
            self._config,
            self,
            mariadb=self._settings.connector == "mariadb",
            threads=self._config.threads if self._decision.rows else 1,
            xa=self._decision.stream,
        )
        with opening as opened:
            position = replace(opened.view.position, prepared=self._prepared_before(opened.view))
            yield from self._outputs(opened.sessions, position, opened.statements, opened.tables)

    def aborted(self) -> Iterator[Batch]:
        """Yield the notification that the snapshot failed or was aborted; none before its position is known."""
        if self._running is not None:
            transforms = self._settings.transforms
            for batch in self._notifications.ended("ABORTED", self._running):
                yield Transformer(transforms).batch(batch) if transforms else batch

    def refuse_changed(self, session: Session, view: View) -> None:
        """Raise ``TablesChanged`` if captured tables changed since the position, and a stream follows."""
        if self._decision.stream:
            names = plan.captured_names(view.tables, self._settings)
            captured = [table.id for table in view.tables if names.keeps_structure(table.id.database, table.id.table)]
            refuse_changed(self._database, session, view, captured, self.tables.server)

    def _prepared_before(self, opened: View) -> tuple[PreparedXa, ...]:
        """Return the XA transactions that are neither in the view nor, once they are committed, in the binlog after it.

        Raises:
            SnapshotError: the binlog does not have one of them.
            DatabaseUnreachableError: the connection breaks repeatedly.
        """
        if not opened.prepared or self._decision.position is not None:
            return ()
        with self._session() as other:
            left = await_ends(other, opened.prepared)
            end = server_queries.current_position(other)  # before the files: another one may begin at any time
            files = [name for name, _ in server_queries.binlog_files(other.client)]
        search = BinlogSearch(self._database, mariadb=self._settings.connector == "mariadb")
        with lost_connections():
            # A transaction may end at any time, be prepared after the position, or change nothing and leave no trace.
            first = search.first_events(opened.prepared, opened.position, end)
            before = {xid for xid in opened.prepared if (first[xid] is None if xid in first else xid in left)}
            found = search.prepared(before, files, opened.position) if before else []
        if found:
            log.info("prepared XA transactions: %s", "; ".join(f"{xa.xid} at {xa.file}:{xa.pos}" for xa in found))
        return tuple(sorted(found, key=lambda xa: (files.index(xa.file), xa.pos)))

    def _session(self) -> Session:
        return Session(self._database, mariadb=self._settings.connector == "mariadb")

    def row_tables(self, listed: Sequence[ListedTable]) -> list[ListedTable]:
        """Return the tables whose rows are read."""
        return plan.row_tables(listed, self._settings, self._config) if self._decision.rows else []

    def statements(self, session: Session, listed: Sequence[ListedTable]) -> list[StructureStatement]:
        """Return the statements that create the structures of all tables."""
        server = server_queries.server(session)
        self._tables = Tables(server)
        created = {
            table.id: server_queries.create_statement(session, table.id)
            for table in plan.structure_tables(listed, self._settings)
        }
        names = plan.captured_names(listed, self._settings)
        for table in filter(lambda known: names.keeps_structure(known.database, known.table), created):
            created[table] = with_labels(session, table, created[table], server)
        log.info("read the structure of all tables: %d", len(created))
        if skipped := [table.id for table in listed if names.leaves_out(table.id.database, table.id.table)]:
            log.info("skipped as helper tables of online schema changes: %s", ", ".join(map(str, skipped)))
        databases, charset = server_queries.databases(session), server_queries.server_charset(session)
        hash_order = self._config.locking is SnapshotLocking.NONE
        return plan.structure_statements(created, databases, charset, hash_order=hash_order)

    def _outputs(
        self,
        sessions: Sequence[Session],
        position: SourceOffset,
        statements: Sequence[StructureStatement],
        to_read: Sequence[ListedTable],
    ) -> Iterator[Output]:
        now = server_queries.now_micros(sessions[0])
        self._offset = self._decision.position or replace(position, ts_sec=now // 1_000_000, carried=self._carried)
        # The offsets that a snapshot stores are Debezium's to the byte; those of the stream name the server, too.
        completed = replace(self._offset, server=None)
        self._running = running = replace(completed, snapshot=INITIAL, prepared=())
        log.info("the position of the snapshot is %s:%d, GTIDs %s", completed.file, completed.pos, completed.gtids)
        outputs = self._all_outputs(sessions, running, completed, statements, to_read)
        if self._settings.transforms is not None:
            outputs = Transformer(self._settings.transforms).outputs(outputs)
        for output in outputs:
            yield output
            if isinstance(output, Batch):  # it was taken: its offset has everything that it needs
                self._running = output.offset

    def _table_events(self, running: SourceOffset, to_read: Sequence[TableId]) -> Batch:
        """Return the captured tables, including those whose rows are not read."""
        settings, known = self._settings, list(self.tables.names())
        names = CapturedNames.among(settings.tables, ((table.database, table.table) for table in known))
        captured = [table for table in known if names.captures(table.database, table.table)]
        events = [TableEvent("only", captured[0], listed=captured)] if self._decision.rows and captured else []
        for table in captured:
            structure = self.tables.table(table.database, table.table)
            assert structure is not None
            made = snapshot_table(structure, settings, custom_query=False)
            columns = [record.column for record in made.records.columns if record.in_value]
            not_read: Literal["unread", "known"] = "unread" if self._decision.position is None else "known"
            kind: Literal["read", "unread", "known"] = "read" if table in to_read else not_read
            events.append(TableEvent(kind, table, after=columns))
        return Batch("", -1, (), running, 0, 0, tables=events)

    def _all_outputs(
        self,
        sessions: Sequence[Session],
        running: SourceOffset,
        completed: SourceOffset,
        statements: Sequence[StructureStatement],
        to_read: Sequence[ListedTable],
    ) -> Iterator[Output]:
        yield from self._notifications.started(running)
        writer = StructureWriter(self._settings, self.tables, running, self._clock)
        yield from writer.write(statements)
        if self._settings.table_events:
            yield self._table_events(running, [table.id for table in to_read])
        if self._decision.rows:
            rows = TableRows(
                self._settings, self._config, self.tables, self._notifications, self._progress, self._clock, self._form
            )
            yield from rows.outputs(sessions, running, completed, to_read, writer, self._resumed)
        else:
            yield from writer.finish(completed)
        yield from self._notifications.ended("COMPLETED", completed)
