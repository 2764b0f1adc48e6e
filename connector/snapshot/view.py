"""Edge: locks, the position, and the consistent view that belongs to it."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pymysql
from pymysql.constants import ER

from rowtide.connector.config.choices import SnapshotLocking
from rowtide.connector.errors import SnapshotError
from rowtide.connector.protocol.events.classes import xid_text
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source import server_queries
from rowtide.connector.source.server_queries import quoted_table
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)

_DENIED = frozenset(
    {
        ER.DBACCESS_DENIED_ERROR,
        ER.ACCESS_DENIED_ERROR,
        ER.TABLEACCESS_DENIED_ERROR,
        ER.SPECIFIC_ACCESS_DENIED_ERROR,
    }
)
_BACKUP_LOCK = "LOCK TABLES FOR BACKUP"
_PERCONA = frozenset({SnapshotLocking.MINIMAL_PERCONA, SnapshotLocking.MINIMAL_PERCONA_NO_TABLE_LOCKS})

_XA_TRIES, _XA_WAIT_S = 5, 0.3
_LITERAL = re.compile(r"(X?)'([^']*)'")


@dataclass(frozen=True, slots=True)
class View:
    """A consistent state of the server.

    Attributes:
        position: the binlog's position that belongs to it.
        locked: whether a lock is held.
        until_end: whether it must be held until all rows are read.
        single_tables: whether it is on single tables: then the session can ask for no other ones.
        prepared: the XA transactions that stand prepared, as ``XA COMMIT`` names them in the binlog.
    """

    position: SourceOffset
    locked: bool = False
    until_end: bool = False
    single_tables: bool = False
    prepared: tuple[str, ...] = ()


def freeze(session: Session, mode: SnapshotLocking, timeout_ms: int, tables: Sequence[TableId]) -> View:
    """Lock as ``snapshot.locking.mode`` says, find the position, and open the view that belongs to it.

    What an XA transaction has changed is neither in the view nor behind the position if it is prepared at that moment
    and committed later: a moment without one is waited for, though not for long.

    Args:
        session: the connection that then reads the rows.
        mode: what to lock.
        timeout_ms: how long to wait for locks.
        tables: what to lock one by one if the server refuses a global lock.

    Raises:
        SnapshotError: a lock is refused or not to be had in time, or the position is not to be had.
    """
    seconds = max(1, -(-timeout_ms // 1000))
    session.execute(f"SET SESSION lock_wait_timeout = {seconds}")
    for attempt in range(_XA_TRIES):
        view = _freeze(session, mode, seconds, tables)
        prepared = _prepared(session)
        if not prepared or attempt == _XA_TRIES - 1:
            break
        unlock(session)
        session.execute("ROLLBACK")
        session.execute(f"DO SLEEP({_XA_WAIT_S})")
    return replace(view, prepared=prepared)


def _prepared(session: Session) -> tuple[str, ...]:
    """The XA transactions that are prepared; none if the account may not ask (XA_RECOVER_ADMIN)."""
    try:
        rows = session.query("XA RECOVER FORMAT='SQL'" if session.mariadb else "XA RECOVER CONVERT XID")
    except pymysql.MySQLError as error:
        log.info("XA transactions that stay prepared are not seen (grant XA_RECOVER_ADMIN): %s", error.args[-1])
        return ()
    return tuple(_xid(int(row[0]), int(row[1]), str(row[3])) for row in rows)


def _xid(format_id: int, gtrid_length: int, data: str) -> str:
    """An identifier as the binlog has it.

    Args:
        format_id: its last part.
        gtrid_length: bytes of its first part.
        data: the first two parts: MySQL's ``0x…``, or MariaDB's literals, which are hexadecimal if need be.
    """
    if data.startswith("0x"):
        name = bytes.fromhex(data[2:])
    else:
        name = b"".join(bytes.fromhex(text) if mark else text.encode() for mark, text in _LITERAL.findall(data))
    return xid_text(name[:gtrid_length], name[gtrid_length:], format_id)


def _freeze(session: Session, mode: SnapshotLocking, seconds: int, tables: Sequence[TableId]) -> View:
    if mode is SnapshotLocking.NONE:
        return View(_position_before_view(session))
    statement = _BACKUP_LOCK if mode in _PERCONA else "FLUSH TABLES WITH READ LOCK"
    try:
        _lock(session, statement, seconds)
    except pymysql.MySQLError as error:
        if error.args[0] not in _DENIED:
            raise SnapshotError(f"the server refuses {statement}: {error.args[-1]}") from error
        if mode is SnapshotLocking.MINIMAL_PERCONA_NO_TABLE_LOCKS:
            raise SnapshotError(
                "Cannot perform two-phase schema snapshot because global read lock was not acquired and table "
                f"locks are not allowed in *_no_table_locks mode: {error.args[-1]}"
            ) from error
        log.info("no global read lock (%s): captured tables are locked until they are read", error.args[-1])
        return _table_locks(session, tables, seconds)
    if statement == _BACKUP_LOCK:  # it lets transactions commit
        return View(_position_before_view(session), locked=True)
    _open_view(session)
    return View(server_queries.current_position(session), locked=True, until_end=mode is SnapshotLocking.EXTENDED)


def unlock(session: Session) -> None:
    """Give locks up."""
    session.execute("UNLOCK TABLES")


def _open_view(session: Session) -> None:
    session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")


def _position_before_view(session: Session) -> SourceOffset:
    """Without a lock the position comes first: what changes between the two comes twice instead of never."""
    found = server_queries.current_position(session)
    _open_view(session)
    return found


def _lock(session: Session, statement: str, seconds: int) -> None:
    try:
        session.execute(statement)
    except pymysql.MySQLError as error:
        if error.args[0] != ER.LOCK_WAIT_TIMEOUT:
            raise
        raise SnapshotError(
            f"{statement} was not granted within {seconds} s: long transactions or queries keep tables in use (SHOW "
            "PROCESSLIST). Try again later, raise snapshot.lock.timeout.ms, or set snapshot.locking.mode=none if "
            "nobody changes table structures meanwhile"
        ) from error


def _table_locks(session: Session, tables: Sequence[TableId], seconds: int) -> View:
    if not tables:
        return View(_position_before_view(session))
    flush = f"FLUSH TABLES {', '.join(map(quoted_table, tables))} WITH READ LOCK"
    lock = f"LOCK TABLES {', '.join(f'{quoted_table(table)} READ' for table in tables)}"
    try:
        try:
            _lock(session, flush, seconds)
        except pymysql.MySQLError as error:
            if error.args[0] not in _DENIED:
                raise
            _lock(session, lock, seconds)  # the other one needs RELOAD too
    except pymysql.MySQLError as error:
        raise SnapshotError(
            "User does not have the 'LOCK TABLES' privilege required to obtain a consistent snapshot by preventing "
            f"concurrent writes to tables: {error.args[-1]}. Grant RELOAD or LOCK TABLES, or set "
            "snapshot.locking.mode=none if nobody changes table structures during the snapshot"
        ) from error
    # START TRANSACTION would give these locks up: the tables are read under them instead of in a view.
    return View(server_queries.current_position(session), locked=True, until_end=True, single_tables=True)
