"""Opens a view of a table at a position of the binlog that is known almost exactly.

::

    binlog: ──────────────────┤ seen ├──── view ────┤ end ├──────────────
              in the view       some of these few     not in the view

All statements go to the server in one round trip, so that few transactions, or none, are between the two positions.
"""

from dataclasses import dataclass, replace

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.view.committed_position import COMMITS, VIEW_POSITION, committed_position, view_position
from rowtide.connector.source.server_queries import binlog_status_statement, quoted_table, server_id
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId


@dataclass(frozen=True, slots=True)
class TableView:
    """The place of a view in the binlog.

    Attributes:
        seen: the view has all transactions before this position.
        end: the view has no transaction after this position.
    """

    seen: SourceOffset
    end: SourceOffset


def open_table_view(session: Session, table: TableId, position: SourceOffset, timeout_s: float) -> TableView:
    """Open a view, which lasts until the end of the transaction.

    Its first statement that reads the table opens it, and takes the table's metadata lock before that: so no statement
    changes the structure between the view and the rows that are read in it.

    Args:
        session: has no open transaction.
        table: whose rows are to be read.
        position: that of the stream, with which the result will be compared.
        timeout_s: the time to wait for commits in progress, where they matter, in seconds.

    Raises:
        SnapshotError: a position cannot be read.
        pymysql.MySQLError: the server refuses a statement.
    """
    first_row = f"SELECT 1 FROM {quoted_table(table)} LIMIT 1"
    server, status = server_id(session), binlog_status_statement(session)
    if session.mariadb:
        return _of_mariadb(session, first_row, status, server, with_gtids=position.server != server)
    if position.gtids is None:
        return _by_commits(session, first_row, status, server, timeout_s)
    # A transaction is visible before its GTID is in the set.
    statements = ("BEGIN", "SELECT @@GLOBAL.gtid_executed", first_row, status)
    _, ((seen,),), _, (end, *_) = session.query_each(statements)
    seen, executed = (gtids.replace("\n", "") for gtids in (str(seen), str(end[4])))
    return TableView(SourceOffset("", 0, seen), SourceOffset(str(end[0]), int(end[1]), executed, server=server))


def _by_commits(session: Session, first_row: str, status: str, server: str, timeout_s: float) -> TableView:
    """Open a view without GTIDs: transactions before a position are visible if no commit is in progress after it."""
    earlier = committed_position(session, int(timeout_s) or 1)
    statements = (status, COMMITS, "BEGIN", first_row, status)
    (before, *_), commits, _, _, (end, *_) = session.query_each(statements)
    seen = earlier if commits else SourceOffset(str(before[0]), int(before[1]))
    return TableView(replace(seen, server=server), SourceOffset(str(end[0]), int(end[1]), server=server))


def _of_mariadb(session: Session, first_row: str, status: str, server: str, *, with_gtids: bool) -> TableView:
    """Open a view on MariaDB.

    It reports the position of a view that begins with a transaction, which locks no table.
    """
    statements = (
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        VIEW_POSITION,
        "COMMIT",
        "BEGIN",
        first_row,
        status,
    )
    _, shown, _, _, _, (end, *_) = session.query_each(statements)
    positions = (view_position(shown), (str(end[0]), int(end[1])))
    return TableView(*(_offset(session, *position, server, with_gtids=with_gtids) for position in positions))


def _offset(session: Session, file: str, pos: int, server: str, *, with_gtids: bool) -> SourceOffset:
    gtids = None
    if with_gtids:  # the server reads its binlog for them
        gtids = session.query(f"SELECT BINLOG_GTID_POS({session.literal(file)}, {pos})")[0][0]
    return SourceOffset(file, pos, str(gtids or "") or None, server=server)
