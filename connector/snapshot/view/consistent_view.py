"""The locks of a snapshot, its binlog position, and the consistent read view that belongs to the position."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pymysql
from pymysql.constants import ER

from rowtide.connector.config.choices import SnapshotLocking
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.view.committed_position import committed_position, have_same_view
from rowtide.connector.snapshot.view.prepared_xa import prepared_transactions
from rowtide.connector.source import server_queries
from rowtide.connector.source.server_queries import DENIED, GONE, ListedTable, quoted_table
from rowtide.connector.source.session import Session

log = logging.getLogger(__name__)

_START = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
_BACKUP_LOCK = "LOCK TABLES FOR BACKUP"
_PERCONA = frozenset({SnapshotLocking.MINIMAL_PERCONA, SnapshotLocking.MINIMAL_PERCONA_NO_TABLE_LOCKS})

_XA_TRIES, _XA_WAIT_S = 5, 0.3
_SAME_VIEW_TRIES, _SAME_VIEW_WAIT_S = 20, 0.1
"""How often views without a global lock are opened until they are the same, and the wait in between."""

RowTables = Callable[[Sequence[ListedTable]], Sequence[ListedTable]]
"""Selects the tables whose rows are read."""


class TablesChanged(Exception):
    """A table was created, renamed, altered or dropped before the view was complete. Open another view."""


@dataclass(frozen=True, slots=True)
class View:
    """A consistent state of the server.

    Attributes:
        position: the binlog position of this state. Without a global lock, it may be somewhat earlier.
        tables: all tables of the server.
        locked: whether the session holds a lock.
        until_end: whether it must hold the lock until all rows are read.
        single_tables: whether it has locked single tables. The session can then query no other tables.
        fixed: whether no table could change between the position and the list of tables.
        prepared: the XA transactions that are prepared, as ``XA COMMIT`` names them in the binlog.
        shared: whether the other sessions have the same view.
    """

    position: SourceOffset
    tables: Sequence[ListedTable]
    locked: bool = False
    until_end: bool = False
    single_tables: bool = False
    fixed: bool = False
    prepared: tuple[str, ...] = ()
    shared: bool = True


def open_view(
    session: Session,
    mode: SnapshotLocking,
    timeout_ms: int,
    row_tables: RowTables,
    *,
    others: Sequence[Session] = (),
    xa: bool = True,
) -> View:
    """Lock according to ``snapshot.locking.mode``, read the position, and open the consistent view.

    The changes of an XA transaction that is prepared now and committed later are neither in the view nor in the binlog
    after the position. So this function waits a short time for a moment without prepared transactions. Those that
    remain are in the result.

    Args:
        session: the connection that reads the rows later.
        mode: what to lock.
        timeout_ms: the time to wait for locks.
        row_tables: selects the tables whose rows are read.
        others: further connections that read rows; they get the same view, or no usable view if a busy server without a
            global lock prevents it.
        xa: whether to look for prepared XA transactions. The stream after the view needs them.

    Raises:
        TablesChanged: open another view after :func:`release`.
        SnapshotError: a lock is refused or not granted in time, or the position or the prepared XA transactions cannot
            be read.
    """
    seconds = max(1, -(-timeout_ms // 1000))
    session.execute(f"SET SESSION lock_wait_timeout = {seconds}")
    opener = _Opener(session, others, seconds, row_tables, xa=xa)
    for attempt in range(_XA_TRIES):
        view = opener.open(mode)
        if not view.prepared or attempt == _XA_TRIES - 1:
            break
        release(session)
        session.execute(f"DO SLEEP({_XA_WAIT_S})")
    return view


def unlock(session: Session) -> None:
    """Release the locks; a view stays open."""
    session.execute("UNLOCK TABLES")


def release(session: Session) -> None:
    """Release the locks and close the view."""
    unlock(session)
    session.execute("ROLLBACK")


class _Opener:
    """Opens views on a session, one after the other."""

    def __init__(
        self, session: Session, others: Sequence[Session], seconds: int, row_tables: RowTables, *, xa: bool
    ) -> None:
        self._session = session
        self._others = others
        self._seconds = seconds
        self._row_tables = row_tables
        self._xa = xa
        self._xa_noted = False

    def open(self, mode: SnapshotLocking) -> View:
        """Open a view."""
        if mode is SnapshotLocking.NONE:
            return self._without_global_lock()
        statement = _BACKUP_LOCK if mode in _PERCONA else "FLUSH TABLES WITH READ LOCK"
        try:
            self._lock(statement)
        except pymysql.MySQLError as error:
            if error.args[0] not in DENIED:
                raise SnapshotError(f"the server refuses {statement}: {error.args[-1]}") from error
            if mode is SnapshotLocking.MINIMAL_PERCONA_NO_TABLE_LOCKS:
                raise SnapshotError(
                    "Cannot perform two-phase schema snapshot because global read lock was not acquired and table "
                    f"locks are not allowed in *_no_table_locks mode: {error.args[-1]}"
                ) from error
            log.info("no global read lock (%s): captured tables are locked until they are read", error.args[-1])
            return self._with_table_locks()
        if statement == _BACKUP_LOCK:  # it blocks DDL, but lets transactions commit
            return replace(self._without_global_lock(), locked=True, fixed=True)
        return self._with_global_lock(until_end=mode is SnapshotLocking.EXTENDED)

    def _with_global_lock(self, *, until_end: bool) -> View:
        """Open views under the global lock: nothing is committed while it is held, so the position is exact."""
        self._start_transaction()
        view = View(
            server_queries.current_position(self._session),
            self._tables(),
            locked=True,
            until_end=until_end,
            fixed=True,
            prepared=self._prepared(),
        )
        if not until_end:
            self._keep_structures(view.tables)
        return view

    def _without_global_lock(self) -> View:
        """Open views without a global lock: changes committed after the position may be in the view and the binlog.

        XA transactions are listed after the position and again after the view, so that one that is committed in between
        is in the list or in the view.
        """
        position, prepared, shared = self._position_and_views()
        prepared = tuple(dict.fromkeys((*prepared, *self._prepared())))
        view = View(position, self._tables(), prepared=prepared, shared=shared)
        self._keep_structures(view.tables)
        return view

    def _position_and_views(self) -> tuple[SourceOffset, tuple[str, ...], bool]:
        """Open the views; return a position before them, the XA transactions prepared then, and if they are equal.

        A transaction that is committed in between would be in some of the views only, so they are opened again.
        """
        for attempt in range(_SAME_VIEW_TRIES):
            if attempt:
                time.sleep(_SAME_VIEW_WAIT_S)
            position = committed_position(self._session, self._seconds)
            prepared = self._prepared()
            self._start_transaction()
            if not self._others or have_same_view((self._session, *self._others), position):
                return position, prepared, True
        return position, prepared, False

    def _with_table_locks(self) -> View:
        """Lock tables, and read the rows under the locks, without a view: START TRANSACTION would release the locks.

        Other sessions hold no locks, and open views while no client can write to the tables.
        """
        tables = [table.id for table in self._row_tables(self._tables())]
        if not tables:
            return self._without_global_lock()
        flush = f"FLUSH TABLES {', '.join(map(quoted_table, tables))} WITH READ LOCK"
        lock = f"LOCK TABLES {', '.join(f'{quoted_table(table)} READ' for table in tables)}"
        try:
            try:
                self._lock(flush)
            except pymysql.MySQLError as error:
                if error.args[0] not in DENIED:
                    raise
                self._lock(lock)  # FLUSH TABLES needs RELOAD as well
        except pymysql.MySQLError as error:
            if error.args[0] in GONE:
                raise TablesChanged(str(error.args[-1])) from error
            raise SnapshotError(
                "User does not have the 'LOCK TABLES' privilege required to obtain a consistent snapshot by preventing "
                f"concurrent writes to tables: {error.args[-1]}. Grant RELOAD or LOCK TABLES, or set "
                "snapshot.locking.mode=none if nobody changes table structures during the snapshot"
            ) from error
        position, prepared, listed = server_queries.current_position(self._session), self._prepared(), self._tables()
        created = {table.id for table in self._row_tables(listed)} - {*tables}
        if created:
            raise TablesChanged(f"tables created while waiting for the lock: {', '.join(sorted(map(str, created)))}")
        for session in self._others:
            session.execute(_START)
        return View(position, listed, locked=True, until_end=True, single_tables=True, prepared=prepared)

    def _lock(self, statement: str) -> None:
        try:
            self._session.execute(statement)
        except pymysql.MySQLError as error:
            if error.args[0] != ER.LOCK_WAIT_TIMEOUT:
                raise
            raise SnapshotError(
                f"{statement} was not granted within {self._seconds} s: long transactions or queries keep tables in "
                "use (SHOW PROCESSLIST). Try again later, raise snapshot.lock.timeout.ms, or set "
                "snapshot.locking.mode=none if nobody changes table structures during the snapshot"
            ) from error

    def _start_transaction(self) -> None:
        for session in (self._session, *self._others):
            session.execute(_START)

    def _tables(self) -> list[ListedTable]:
        return server_queries.tables(self._session, list(server_queries.databases(self._session)))

    def _keep_structures(self, listed: Sequence[ListedTable]) -> None:
        """Take the metadata lock of every table to read, which the transaction holds until it ends.

        A view does not cover names and structures: after a table that is renamed, the view shows the rows of the table
        that has taken its name, and after columns were renamed, it shows the values of other columns.
        """
        for table in self._row_tables(listed):
            try:
                self._session.query(f"SELECT 1 FROM {quoted_table(table.id)} LIMIT 0")
            except pymysql.MySQLError as error:
                if error.args[0] in GONE:
                    raise TablesChanged(str(error.args[-1])) from error
                raise SnapshotError(f"table {table.id} cannot be read: {error.args[-1]}") from error

    def _prepared(self) -> tuple[str, ...]:
        found = prepared_transactions(self._session) if self._xa else ()
        if found is None and not self._xa_noted:
            self._xa_noted = True
            log.info(
                "no XA transaction was prepared since the server was started. The account may not list older ones; if "
                "applications use XA, grant it XA_RECOVER_ADMIN, so that the snapshot finds those that are still open"
            )
        return found or ()
