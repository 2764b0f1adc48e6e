"""Opens the view of a snapshot on all its connections, together with the statements and tables that the view shows."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rowtide.connector.config.errors import Problem
from rowtide.connector.config.model import SnapshotConfig
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.snapshot.structure import plan
from rowtide.connector.snapshot.structure.plan import StructureStatement
from rowtide.connector.snapshot.view import consistent_view
from rowtide.connector.snapshot.view.consistent_view import TablesChanged, View
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.search.binlog_search import BinlogSearch
from rowtide.connector.source.server_queries import ListedTable, TableGone
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId
from rowtide.schema_history.queries.table_changes import may_change_any
from rowtide.schema_history.server.query_event import Server

log = logging.getLogger(__name__)

_OTHER_SERVERS = (
    "one connection reads all rows, instead of those of snapshot.max.threads: connections to {} lead to different "
    "servers ({}). Set database.hostname to one of them"
)
_NOT_SHARED = (
    "one connection reads all rows, instead of those of snapshot.max.threads: without a global lock, the connections "
    "got no common view, because the server commits continuously or does not list its commits. Set "
    "snapshot.locking.mode=minimal and grant RELOAD to read with all of them"
)
_VIEWS, _VIEW_WAIT_S = 5, 1
"""How often a view is opened if tables change in the meantime, and the wait in between."""


class Scope(Protocol):
    """The content that a snapshot reads."""

    def row_tables(self, listed: Sequence[ListedTable]) -> list[ListedTable]:
        """Return the tables whose rows are read."""
        ...

    def statements(self, session: Session, listed: Sequence[ListedTable]) -> list[StructureStatement]:
        """Return the statements that create the structures."""
        ...

    def refuse_changed(self, session: Session, view: View) -> None:
        """Raise ``TablesChanged`` if tables changed between the position of the view and its structures."""
        ...


@dataclass(frozen=True, slots=True)
class OpenSnapshot:
    """A view and its content.

    Attributes:
        view: the view.
        sessions: the connections that have the view, and read the rows.
        statements: the statements that make the structures.
        tables: the tables whose rows are read, in the order of reading, with the server's estimates of their rows.
    """

    view: View
    sessions: Sequence[Session]
    statements: Sequence[StructureStatement]
    tables: Sequence[ListedTable]


@contextlib.contextmanager
def open_snapshot(
    database: DatabaseConfig,
    config: SnapshotConfig,
    scope: Scope,
    *,
    mariadb: bool,
    threads: int,
    xa: bool,
) -> Iterator[OpenSnapshot]:
    """Open a view; its connections and locks are released at the end of the block.

    Args:
        database: address and account of the database.
        config: the locks to take.
        scope: what to read.
        mariadb: whether the server is MariaDB.
        threads: the number of connections that read rows.
        xa: whether to look for prepared XA transactions; see :func:`consistent_view.open_view`.

    Raises:
        SnapshotError: the server refuses a statement, or tables change constantly.
        DatabaseUnreachableError: there is no connection, or it was lost.
    """

    def connect() -> Session:
        return Session(database, mariadb=mariadb)

    with contextlib.ExitStack() as stack:
        session = stack.enter_context(connect())
        others = stack.enter_context(_others(session, threads, connect, database.hostname))
        yield _open(session, others, config, scope, connect, xa=xa)


@contextlib.contextmanager
def _others(
    session: Session, threads: int, connect: Callable[[], Session], hostname: str
) -> Iterator[Sequence[Session]]:
    """Return further connections that read rows. Behind a load balancer, they may lead to servers with other rows."""
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(connect()) for _ in range(threads - 1)]
        if others:
            found = {server_queries.server_identity(one.client, mariadb=one.mariadb) for one in (session, *others)}
            if len(found) > 1:
                log.warning("%s", _OTHER_SERVERS.format(hostname, ", ".join(sorted(found))))
                stack.close()
                others = []
        yield others


def _open(
    session: Session,
    others: Sequence[Session],
    config: SnapshotConfig,
    scope: Scope,
    connect: Callable[[], Session],
    *,
    xa: bool,
) -> OpenSnapshot:
    for _ in range(_VIEWS):
        try:
            view = consistent_view.open_view(
                session, config.locking, config.lock_timeout_ms, scope.row_tables, others=others, xa=xa
            )
            if not view.shared:
                log.warning("%s", _NOT_SHARED)
            with contextlib.ExitStack() as stack:
                other = stack.enter_context(connect()) if view.single_tables else session
                statements = scope.statements(other, view.tables)
                scope.refuse_changed(other, view)
                if view.locked and not view.until_end:
                    consistent_view.unlock(session)
                tables = _ordered(other, scope.row_tables(view.tables), config)
            return OpenSnapshot(view, (session, *others) if view.shared else (session,), statements, tables)
        except (TablesChanged, TableGone) as change:
            log.info("tables changed while the snapshot started; it starts again: %s", change)
            reason = str(change)
            consistent_view.release(session)
            session.execute(f"DO SLEEP({_VIEW_WAIT_S})")
    raise SnapshotError(
        f"tables changed each of the {_VIEWS} times that the snapshot started, the last time: {reason}. Take it "
        "while nobody creates or alters tables, or with a global lock (snapshot.locking.mode=minimal, and RELOAD)"
    )


def _ordered(session: Session, to_read: Sequence[ListedTable], config: SnapshotConfig) -> list[ListedTable]:
    """Return the tables in the order of reading, each with the server's estimate of its rows.

    As in Debezium, the estimates are read after the lock, which discards the server's cached statistics.
    """
    estimates = server_queries.row_estimates(session, [table.id for table in to_read])
    counted = [ListedTable(table.id, table.kind, estimates[table.id]) for table in to_read]
    return plan.by_row_count(counted, config)


def refuse_changed(
    database: DatabaseConfig, session: Session, view: View, tables: Iterable[TableId], server: Server
) -> None:
    """Refuse tables that changed since the position of the view; without a global lock, the binlog shows it.

    Raises:
        TablesChanged: one of these tables has changed.
        DatabaseUnreachableError: the connection breaks repeatedly.
    """
    if view.fixed:
        return
    search, names = BinlogSearch(database, mariadb=session.mariadb), list(tables)
    with lost_connections():
        for statement in search.statements(view.position, server_queries.current_position(session)):
            if may_change_any(statement.event, names, server):
                raise TablesChanged(f"a statement at {statement.event.position}")


@contextlib.contextmanager
def lost_connections() -> Iterator[None]:
    """Treat a broken binlog stream as a lost connection, so that the snapshot is taken again."""
    try:
        yield
    except StreamBroken as error:
        raise DatabaseUnreachableError(Problem("database.hostname", str(error)), retriable=True) from error
