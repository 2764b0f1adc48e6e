"""Edge: whether the server can still stream from a stored position."""

import pymysql

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.decision import PositionCheck
from rowtide.connector.snapshot.position_rules import file_check, mariadb_check, mysql_gtid_check
from rowtide.connector.source.server_queries import binlog_files
from rowtide.connector.source.session import Session
from rowtide.topics.filters import EVERYTHING, Selection

_NO_SUCH_LOG = 1220


def check_position(session: Session, offset: SourceOffset, sources: Selection = EVERYTHING) -> PositionCheck:
    """Ask the server.

    Args:
        session: a connection to it.
        offset: the stored position.
        sources: whose GTIDs count (``gtid.source.includes`` and ``.excludes``).

    Raises:
        pymysql.MySQLError: the user may not ask; REPLICATION CLIENT (MariaDB: BINLOG MONITOR) is needed.
    """
    logs = dict(binlog_files(session))
    if offset.gtids and session.mariadb:
        return _mariadb(session, offset.gtids, next(iter(logs), None), sources)
    if offset.gtids:
        query = "SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged"
        mode, executed, purged = session.query(query)[0]
        if str(mode) == "ON":
            return mysql_gtid_check(offset.gtids, str(executed), str(purged), sources)
    return file_check(offset, logs)


def _mariadb(session: Session, gtids: str, oldest: str | None, sources: Selection) -> PositionCheck:
    written = str(session.query("SELECT @@GLOBAL.gtid_binlog_pos")[0][0] or "")
    begin = ""
    if oldest is not None:
        try:
            begin = str(session.query(f"SELECT BINLOG_GTID_POS({session.literal(oldest)}, 4)")[0][0] or "")
        except pymysql.MySQLError as error:
            if error.args[0] != _NO_SUCH_LOG:
                raise
    return mariadb_check(gtids, written, begin, sources)
