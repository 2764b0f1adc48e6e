"""A binlog position for a view that is opened without a global lock."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pymysql

from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.server_queries import DENIED, current_position
from rowtide.connector.source.session import Session

_INSTRUMENT = "wait/lock/metadata/sql/mdl"
_POLL_S = 0.01
COMMITS = (
    "SELECT OWNER_THREAD_ID, OWNER_EVENT_ID, OBJECT_INSTANCE_BEGIN FROM performance_schema.metadata_locks "
    "WHERE OBJECT_TYPE = 'COMMIT' AND LOCK_TYPE = 'INTENTION_EXCLUSIVE' AND LOCK_STATUS = 'GRANTED'"
)
"""The query for the commits in progress: each holds this metadata lock while it is written to the binlog and becomes
visible."""
VIEW_POSITION = "SHOW STATUS LIKE 'binlog_snapshot_%'"
"""The query for the position of a view of MariaDB; see :func:`view_position`."""


def committed_position(
    session: Session, timeout_s: int, way_out: str = "raise snapshot.lock.timeout.ms", *, with_gtids: bool = True
) -> SourceOffset:
    """Return a position such that a view opened afterwards shows all transactions before it.

    The end of the binlog is not such a position: a server first writes a transaction to the binlog, and makes it
    visible later. MariaDB reports the binlog position of a view. With MySQL, this function waits until the commits that
    are in progress when it reads the position have ended.

    Args:
        session: has no open transaction.
        timeout_s: the time to wait for commits, in seconds.
        way_out: what helps if that is not long enough, for the error.
        with_gtids: whether the GTIDs of the position are needed. For MariaDB, the server reads its binlog for them.

    Raises:
        SnapshotError: the position or the commits cannot be read, or a commit takes too long.
    """
    position = current_position(session)
    if session.mariadb:
        return _position_of_view(session, position, with_gtids=with_gtids)
    if _commits_are_listed(session):
        _await_commits(session, timeout_s, way_out)
    elif not position.gtids:  # gtid_executed has only transactions that are visible
        raise SnapshotError(
            "without GTIDs, the position of what a query reads is known only with the list of commits in progress: "
            f"grant SELECT on performance_schema.* (its instrument {_INSTRUMENT} must be enabled), or set gtid_mode=ON "
            "on the server. An initial snapshot can also take a global lock (snapshot.locking.mode=minimal)"
        )
    return position


def have_same_view(sessions: Sequence[Session], position: SourceOffset) -> bool:
    """Return whether the views of some sessions are the same; ``False`` if that cannot be proved.

    MariaDB reports the binlog position of each view. With MySQL, the views are the same if nothing was written to the
    binlog since the position, because they have all transactions before it, and none that is not in the binlog.

    Args:
        sessions: each has opened a view.
        position: the result of :func:`committed_position` before the first view.
    """
    if sessions[0].mariadb:
        return len({view_position(session.query(VIEW_POSITION)) for session in sessions}) == 1
    return _commits_are_listed(sessions[0]) and current_position(sessions[0]) == position


def view_position(rows: Sequence[tuple[object, ...]]) -> tuple[str, int]:
    """Return file and position from the result of :data:`VIEW_POSITION`."""
    status = {str(name).lower(): str(value) for name, value in rows}
    return status["binlog_snapshot_file"], int(status["binlog_snapshot_position"])


def _position_of_view(session: Session, position: SourceOffset, *, with_gtids: bool) -> SourceOffset:
    session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    file, pos = view_position(session.query(VIEW_POSITION))
    session.execute("ROLLBACK")
    if not with_gtids:
        return replace(position, file=file, pos=pos, gtids=None)
    gtids = session.query(f"SELECT BINLOG_GTID_POS({session.literal(file)}, {pos})")[0][0]
    return replace(position, file=file, pos=pos, gtids=str(gtids or "") or None)


def _commits_are_listed(session: Session) -> bool:
    try:
        enabled = session.query(
            f"SELECT ENABLED FROM performance_schema.setup_instruments WHERE NAME = '{_INSTRUMENT}'"
        )
        session.query(COMMITS)
    except pymysql.MySQLError as error:
        if error.args[0] not in DENIED:
            raise
        return False
    return enabled == [("YES",)]


def _await_commits(session: Session, timeout_s: int, way_out: str) -> None:
    limit = time.monotonic() + timeout_s
    in_progress = {*session.query(COMMITS)}
    while in_progress := in_progress & {*session.query(COMMITS)}:
        if time.monotonic() > limit:
            raise SnapshotError(
                f"{len(in_progress)} commits have been in progress for {timeout_s} s (SHOW PROCESSLIST). Try again "
                f"later, or {way_out}"
            )
        time.sleep(_POLL_S)
