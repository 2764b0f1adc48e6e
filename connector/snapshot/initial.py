"""Takes a snapshot: structures, rows, and the offset at which streaming starts afterwards."""

import contextlib
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace

from rowtide.connector.config.choices import SnapshotLocking
from rowtide.connector.config.errors import Problem
from rowtide.connector.config.model import DatabaseConfig, SnapshotConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer
from rowtide.connector.snapshot import consistent_view, plan
from rowtide.connector.snapshot.chunks.table_rows import SnapshotProgress, TableRows
from rowtide.connector.snapshot.consistent_view import TablesChanged, View
from rowtide.connector.snapshot.decision import Decision
from rowtide.connector.snapshot.plan import Statement
from rowtide.connector.snapshot.prepared_xa import await_ends
from rowtide.connector.snapshot.structure import StructureWriter
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_search import BinlogSearch
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.enum_labels import with_labels
from rowtide.connector.source.server_queries import ListedTable, TableGone
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.queries.table_changes import may_change_any

log = logging.getLogger(__name__)

INITIAL = "INITIAL"
_OTHER_SERVERS = (
    "one connection reads all rows, instead of those of snapshot.max.threads: connections to {} lead to different "
    "servers ({}). Set database.hostname to one of them"
)
_NOT_SHARED = (
    "one connection reads all rows, instead of those of snapshot.max.threads: without a global lock, the connections "
    "got no common view, because the server commits all the time or does not list its commits. Set "
    "snapshot.locking.mode=minimal and grant RELOAD to read with all of them"
)
_VIEWS, _VIEW_WAIT_S = 5, 1
"""How often a view is opened if tables change in the meantime, and the wait in between."""


class Snapshot:
    """Takes a snapshot.

    Args:
        database: address and account of the database.
        settings: how records are made, and which tables are captured.
        snapshot: what to read and to lock.
        decision: structures, rows or both; from :func:`~rowtide.connector.snapshot.decision.decide`.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
    """

    def __init__(
        self,
        database: DatabaseConfig,
        settings: PipelineSettings,
        snapshot: SnapshotConfig,
        decision: Decision,
        clock: Callable[[], int],
        progress: SnapshotProgress | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._config = snapshot
        self._decision = decision
        self._clock = clock
        self._progress = progress
        self._notifications = Notifications(settings, clock)
        self._tables: Tables | None = None
        self._offset: SourceOffset | None = None

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

    def outputs(self) -> Generator[Output, None, None]:
        """Take the snapshot, and yield its outputs in order. Closing the generator aborts it and releases all locks.

        Raises:
            SnapshotError: the server refuses a statement, a structure cannot be parsed, or a table cannot be read.
            TopicClash: a table was created whose topic belongs to another table.
            DatabaseUnreachableError: there is no connection, or it was lost.
        """
        self._notifications.begin()
        with contextlib.ExitStack() as stack:
            session = stack.enter_context(self._session())
            others = stack.enter_context(self._others(session))
            opened, statements, to_read = self._open(session, others)
            position = replace(opened.position, prepared=self._prepared_before(opened))
            sessions = (session, *others) if opened.shared else (session,)
            yield from self._outputs(sessions, position, statements, to_read)
            if opened.until_end:
                consistent_view.unlock(session)

    @contextlib.contextmanager
    def _others(self, session: Session) -> Iterator[Sequence[Session]]:
        """Further connections that read rows. Behind a load balancer they may lead to servers that have other rows."""
        threads = self._config.threads if self._decision.rows else 1
        with contextlib.ExitStack() as stack:
            others = [stack.enter_context(self._session()) for _ in range(threads - 1)]
            if others:
                found = {server_queries.server_identity(one.client, mariadb=one.mariadb) for one in (session, *others)}
                if len(found) > 1:
                    log.warning("%s", _OTHER_SERVERS.format(self._database.hostname, ", ".join(sorted(found))))
                    stack.close()
                    others = []
            yield others

    def aborted(self) -> Iterator[Batch]:
        """The notification that the snapshot failed or was aborted; none before its position is known."""
        if self._offset is not None:
            offset = replace(self._offset, snapshot=INITIAL)
            transforms = self._settings.transforms
            for batch in self._notifications.ended("ABORTED", offset):
                yield Transformer(transforms).batch(batch) if transforms else batch

    def _open(self, session: Session, others: Sequence[Session]) -> tuple[View, list[Statement], list[ListedTable]]:
        """Open a view on all sessions; return it with the statements of the structures, and the tables to read."""
        config = self._config
        for _ in range(_VIEWS):
            try:
                opened = consistent_view.open_view(
                    session,
                    config.locking,
                    config.lock_timeout_ms,
                    self._row_tables,
                    others=others,
                    stream=self._decision.stream,
                )
                if not opened.shared:
                    log.warning("%s", _NOT_SHARED)
                with contextlib.ExitStack() as stack:
                    other = stack.enter_context(self._session()) if opened.single_tables else session
                    statements = self._statements(other, opened.tables)
                    self._refuse_changed(other, opened)
                    if opened.locked and not opened.until_end:
                        consistent_view.unlock(session)
                    return opened, statements, self._ordered(other, self._row_tables(opened.tables))
            except (TablesChanged, TableGone) as change:
                log.info("tables changed while the snapshot started, it starts again: %s", change)
                reason = str(change)
                consistent_view.release(session)
                session.execute(f"DO SLEEP({_VIEW_WAIT_S})")
        raise SnapshotError(
            f"tables changed each of the {_VIEWS} times that the snapshot started, the last time: {reason}. Take it "
            "while nobody creates or alters tables, or with a global lock (snapshot.locking.mode=minimal, and RELOAD)"
        )

    def _refuse_changed(self, session: Session, opened: View) -> None:
        """Without a global lock, the binlog shows whether captured tables changed since the position.

        Raises:
            TablesChanged: one did.
        """
        if opened.fixed or not self._decision.stream:
            return
        names, server = plan.captured_names(opened.tables, self._settings), self.tables.server
        captured = [table.id for table in opened.tables if names.keeps_structure(table.id.database, table.id.table)]
        search = BinlogSearch(self._database, mariadb=session.mariadb)
        with _lost_connections():
            for statement in search.statements(opened.position, server_queries.current_position(session)):
                if may_change_any(statement.event, captured, server):
                    raise TablesChanged(f"a statement at {statement.event.position}")

    def _prepared_before(self, opened: View) -> tuple[PreparedXa, ...]:
        """The XA transactions that are neither in the view nor, once they are committed, in the binlog after it.

        Raises:
            SnapshotError: the binlog does not have one of them.
            DatabaseUnreachableError: the connection breaks again and again.
        """
        if not opened.prepared or self._decision.position is not None:
            return ()
        with self._session() as other:
            left = await_ends(other, opened.prepared)
            files = [name for name, _ in server_queries.binlog_files(other.client)]
            end = server_queries.current_position(other)
        search = BinlogSearch(self._database, mariadb=self._settings.connector == "mariadb")
        with _lost_connections():
            found = search.prepared(left, files, opened.position, end)
            if gone := {*opened.prepared} - left:
                # The binlog has no end of a transaction that has changed nothing.
                ended = search.ended(gone, opened.position, end)
                found += search.prepared(ended, files, opened.position, opened.position)
        if found:
            log.info("prepared XA transactions: %s", "; ".join(f"{xa.xid} at {xa.file}:{xa.pos}" for xa in found))
        return tuple(sorted(found, key=lambda xa: (files.index(xa.file), xa.pos)))

    def _session(self) -> Session:
        return Session(self._database, mariadb=self._settings.connector == "mariadb")

    def _row_tables(self, listed: Sequence[ListedTable]) -> list[ListedTable]:
        """The tables whose rows are read."""
        return plan.row_tables(listed, self._settings, self._config) if self._decision.rows else []

    def _ordered(self, session: Session, to_read: Sequence[ListedTable]) -> list[ListedTable]:
        """The tables in the order of reading, each with the server's estimate of its rows.

        As in Debezium, the estimates are read after the lock, which discards the server's cached statistics.
        """
        estimates = server_queries.row_estimates(session, [table.id for table in to_read])
        return plan.by_row_count([replace(table, rows=estimates[table.id]) for table in to_read], self._config)

    def _statements(self, session: Session, listed: Sequence[ListedTable]) -> list[Statement]:
        server = server_queries.server(session)
        self._tables = Tables(server)
        created = {
            table.id: server_queries.create_statement(session, table.id)
            for table in plan.structure_tables(listed, self._settings)
        }
        names = plan.captured_names(listed, self._settings)
        for table in filter(lambda known: names.keeps_structure(known.database, known.table), created):
            created[table] = with_labels(session, table, created[table], server)
        log.info("read the structure of %d tables", len(created))
        if left_out := [table.id for table in listed if names.leaves_out(table.id.database, table.id.table)]:
            log.info("left out as helper tables of online schema changes: %s", ", ".join(map(str, left_out)))
        databases, charset = server_queries.databases(session), server_queries.server_charset(session)
        hash_order = self._config.locking is SnapshotLocking.NONE
        return plan.structure_statements(created, databases, charset, hash_order=hash_order)

    def _outputs(
        self,
        sessions: Sequence[Session],
        position: SourceOffset,
        statements: Sequence[Statement],
        to_read: Sequence[ListedTable],
    ) -> Iterator[Output]:
        now = server_queries.now_micros(sessions[0])
        self._offset = self._decision.position or replace(position, ts_sec=now // 1_000_000)
        # The offsets that a snapshot stores are Debezium's to the byte; those of the stream name the server, too.
        completed = replace(self._offset, server=None)
        running = replace(completed, snapshot=INITIAL, prepared=())
        log.info("the position of the snapshot is %s:%d, GTIDs %s", completed.file, completed.pos, completed.gtids)
        outputs = self._all_outputs(sessions, running, completed, statements, to_read)
        if self._settings.transforms is not None:
            outputs = Transformer(self._settings.transforms).outputs(outputs)
        yield from outputs

    def _all_outputs(
        self,
        sessions: Sequence[Session],
        running: SourceOffset,
        completed: SourceOffset,
        statements: Sequence[Statement],
        to_read: Sequence[ListedTable],
    ) -> Iterator[Output]:
        yield from self._notifications.started(running)
        writer = StructureWriter(self._settings, self.tables, running, self._clock)
        yield from writer.write(statements)
        if self._decision.rows:
            rows = TableRows(
                self._settings, self._config, self.tables, self._notifications, self._progress, self._clock
            )
            yield from rows.outputs(sessions, running, completed, to_read, writer)
        else:
            yield from writer.finish(completed)
        yield from self._notifications.ended("COMPLETED", completed)


@contextlib.contextmanager
def _lost_connections() -> Iterator[None]:
    """A broken binlog stream is a lost connection: the snapshot is taken again."""
    try:
        yield
    except StreamBroken as error:
        raise DatabaseUnreachableError(Problem("database.hostname", str(error)), retriable=True) from error
