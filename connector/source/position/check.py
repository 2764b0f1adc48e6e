"""Edge: checks on a connection whether the server can still stream from a position, without a change missed."""

import pymysql

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.connection import Client
from rowtide.connector.source.position.rules import (
    PositionCheck,
    file_check,
    mariadb_check,
    mysql_gtid_check,
    server_check,
)
from rowtide.connector.source.server_queries import binlog_files, server_identity
from rowtide.topics.filters import EVERYTHING, Selection

_NO_SUCH_LOG = 1220


def check_position(
    client: Client, offset: SourceOffset, sources: Selection = EVERYTHING, *, mariadb: bool
) -> PositionCheck:
    """Check that the server has every change after a position: by GTIDs, else by file, position and server.

    Args:
        client: a connection to the server.
        offset: the position.
        sources: the servers whose GTIDs count (``gtid.source.includes`` and ``.excludes``).
        mariadb: whether the server is MariaDB.

    Raises:
        DatabaseUnreachableError: the connection is lost.
        pymysql.MySQLError: a privilege is missing; REPLICATION CLIENT (MariaDB: BINLOG MONITOR) is required.
    """
    if offset.gtids and mariadb:
        return _mariadb(client, offset.gtids, sources)
    if offset.gtids:
        query = "SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged"
        mode, executed, purged = client.fetch(query)[0]
        if str(mode) == "ON":
            return mysql_gtid_check(offset.gtids, str(executed), str(purged), sources)
    found = server_check(offset, server_identity(client, mariadb=mariadb))
    return file_check(offset, dict(binlog_files(client))) if found.available else found


def _mariadb(client: Client, gtids: str, sources: Selection) -> PositionCheck:
    written = str(client.fetch("SELECT @@GLOBAL.gtid_binlog_pos")[0][0] or "")
    oldest = ""
    for name, _ in binlog_files(client)[:1]:
        try:
            oldest = str(client.fetch(f"SELECT BINLOG_GTID_POS({client.escape(name)}, 4)")[0][0] or "")
        except pymysql.MySQLError as error:
            if error.args[0] != _NO_SUCH_LOG:
                raise
    return mariadb_check(gtids, written, oldest, sources)
