"""Checks on a connection whether the server can still stream from a position without missing a change."""

import re
from typing import NamedTuple

import pymysql

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.connection import Client
from rowtide.connector.source.position.rules import (
    PositionCheck,
    file_check,
    mariadb_check,
    mariadb_start,
    mysql_gtid_check,
    mysql_start,
    server_check,
    with_owned,
)
from rowtide.connector.source.server_queries import DENIED, binlog_files, server_identity
from rowtide.topics.filters import EVERYTHING, Selection

_UNREADABLE = frozenset({1220, 1773})
"""ER_ERROR_WHEN_EXECUTING_COMMAND: there is no such binlog file, or no event at the position.

ER_MALFORMED_GTID_SET_ENCODING: MySQL takes other bytes at the position for a PREVIOUS_GTIDS event.
"""
_INSIDE = re.compile(
    r"Table_map|Transaction_payload|(Write|Update|Delete|Partial)_|Rows_query|Annotate_rows|Xid|XA_prepare"
)
"""Events inside a transaction, as SHOW BINLOG EVENTS names them."""
_FIRST_POS = 4


def check_position(
    client: Client, offset: SourceOffset, sources: Selection = EVERYTHING, *, mariadb: bool, semi_sync: bool = False
) -> PositionCheck:
    """Check that the server has every change after a position: by GTIDs, otherwise by file, position and server.

    Without GTIDs, an event must begin at the position: the server would send other bytes as events.

    Args:
        client: a connection to the server.
        offset: the position.
        sources: the servers whose GTIDs count (``gtid.source.includes`` and ``.excludes``).
        mariadb: whether the server is MariaDB.
        semi_sync: whether commits may wait for the stream: MariaDB then lists no binlog files (with AFTER_SYNC, two
            waiting commits hold the lock that it needs), so the stream itself fails if they are purged.

    Raises:
        DatabaseUnreachableError: the connection is lost.
        pymysql.MySQLError: a privilege is missing; REPLICATION CLIENT (MariaDB: BINLOG MONITOR) is required.
    """
    if offset.gtids and mariadb:
        return _mariadb(client, offset.gtids, sources, lists_files=not semi_sync)
    if offset.gtids and str(client.fetch("SELECT @@GLOBAL.gtid_mode")[0][0]) == "ON":
        return mysql_gtid_check(offset.gtids, *_mysql_gtids(client), sources)
    found = server_check(offset, server_identity(client, mariadb=mariadb))
    if not found.available:
        return found
    sizes = dict(binlog_files(client))
    found = file_check(offset, sizes)
    # After the size that was just listed, the server may be writing an event.
    size = sizes.get(offset.file, 0)
    if found.available and _FIRST_POS < offset.pos < size and event_at(client, offset, size, mariadb=mariadb) is None:
        return PositionCheck(
            available=False,
            reason=f"no event begins at {offset.file}:{offset.pos} (SHOW BINLOG EVENTS IN '{offset.file}' lists them)",
        )
    return found


def check_event(client: Client, offset: SourceOffset) -> PositionCheck:
    """Check, by the event there, that a position chosen by a person is not inside a transaction.

    Args:
        client: a connection to the server.
        offset: a position that passes :func:`check_position`.

    Raises:
        DatabaseUnreachableError: the connection is lost.
        pymysql.MySQLError: the server cannot show events.
    """
    kind = _shown(client, offset.file, offset.pos).kind
    if kind and _INSIDE.match(kind):
        return PositionCheck(
            available=False,
            reason=f"{offset.file}:{offset.pos} is not the beginning of a transaction: the event there is {kind}",
        )
    return PositionCheck(available=True)


def event_at(client: Client, offset: SourceOffset, size: int, *, mariadb: bool) -> str | None:
    """Return the type, as in SHOW BINLOG EVENTS, of the event that begins at a position.

    MariaDB verifies the checksum. MySQL does not by default, and shows some other bytes as an event; therefore another
    event must begin where this one ends. After a GTID, this can be a compressed transaction, which MySQL does not show
    if it is larger than max_allowed_packet.

    Args:
        client: a connection to the server.
        offset: the position.
        size: the size of the file, after which the server may be writing an event.
        mariadb: whether the server is MariaDB.

    Returns:
        ``None`` if no event begins there; ``""`` if the account is not allowed to see events.

    Raises:
        DatabaseUnreachableError: the connection is lost.
        pymysql.MySQLError: the server cannot show events.
    """
    kind, end = _shown(client, offset.file, offset.pos)
    if not kind or mariadb or end == size:
        return kind
    complete = offset.pos < end < size
    return kind if complete and ("Gtid" in kind or _shown(client, offset.file, end).kind is not None) else None


class _Shown(NamedTuple):
    """An event in SHOW BINLOG EVENTS: its type, as returned by :func:`event_at`, and its end."""

    kind: str | None
    end: int = 0


def _shown(client: Client, file: str, pos: int) -> _Shown:
    try:
        rows = client.fetch_bytes(f"SHOW BINLOG EVENTS IN {client.escape(file)} FROM {pos} LIMIT 1")
    except pymysql.MySQLError as error:
        if error.args[0] in DENIED:
            return _Shown("")
        if error.args[0] in _UNREADABLE:
            return _Shown(None)
        raise
    if not rows or int(rows[0][1]) != pos:
        return _Shown(None)
    return _Shown(rows[0][2].decode("ascii", "replace"), int(rows[0][4]))


def start_gtids(client: Client, offset: SourceOffset, sources: Selection = EVERYTHING, *, mariadb: bool) -> str | None:
    """Return the GTIDs of a request for the stream from a position; ``None`` to start by file and position.

    They are those of the position, as long as the GTIDs of all servers count. Arguments and errors are those of
    :func:`check_position`.
    """
    if not offset.gtids and mariadb:
        return None
    if not offset.gtids or sources == EVERYTHING:
        return offset.gtids
    if mariadb:
        state = str(client.fetch("SELECT @@GLOBAL.gtid_binlog_state")[0][0] or "")
        return mariadb_start(offset.gtids, state, sources)
    return mysql_start(offset.gtids, *_mysql_gtids(client), sources)


def _mysql_gtids(client: Client) -> tuple[str, str]:
    """Return the GTIDs of all transactions that MySQL has, and of those that it has purged.

    ``gtid_owned`` is read first: a transaction that commits in between is in both, not in neither.
    """
    owned = str(client.fetch("SELECT @@GLOBAL.gtid_owned")[0][0])
    executed, purged = client.fetch("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")[0]
    return with_owned(str(executed), owned), str(purged)


def _mariadb(client: Client, gtids: str, sources: Selection, *, lists_files: bool) -> PositionCheck:
    written = str(client.fetch("SELECT @@GLOBAL.gtid_binlog_pos")[0][0] or "")
    oldest = ""
    for name, _ in binlog_files(client)[:1] if lists_files else ():
        oldest = str(client.fetch(f"SELECT BINLOG_GTID_POS({client.escape(name)}, 4)")[0][0] or "")
    return mariadb_check(gtids, written, oldest, sources)
