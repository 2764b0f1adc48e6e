"""Queries about the server, its databases, its tables and its binlog."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pymysql
from pymysql.constants import ER

from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.connection import Client
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Column, TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

log = logging.getLogger(__name__)

DENIED = frozenset(
    {
        ER.DBACCESS_DENIED_ERROR,
        ER.ACCESS_DENIED_ERROR,
        ER.TABLEACCESS_DENIED_ERROR,
        ER.SPECIFIC_ACCESS_DENIED_ERROR,
    }
)
"""Errors that mean that the account lacks a privilege."""
GONE = frozenset({ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR, 1932})
"""Errors that mean that a table does not exist; 1932 is MariaDB's ``doesn't exist in engine``."""
_ENCRYPTION_HEADER = 512
_ESTIMATED_AT_ONCE = 100
_KINDS = frozenset({"BASE TABLE", "SYSTEM VERSIONED", "SEQUENCE"})
_LITERAL = re.compile(rb"`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'", re.DOTALL)
"""A name or a text of SHOW CREATE TABLE, without ANSI_QUOTES and NO_BACKSLASH_ESCAPES."""
_ESCAPED = re.compile(rb"\\(.)|'(')", re.DOTALL)
_ESCAPES = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"Z": b"\x1a"}


class TableGone(SnapshotError):
    """A table does not exist, or was dropped."""


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table as the server lists it.

    Attributes:
        id: its name.
        kind: ``BASE TABLE``, ``SYSTEM VERSIONED`` or ``SEQUENCE``; views are not listed.
        rows: the server's estimate of its rows.
    """

    id: TableId
    kind: str = "BASE TABLE"
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class DatabaseCharset:
    """The default character set and collation of a database's tables."""

    charset: str
    collation: str


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quoted_table(table: TableId) -> str:
    """Return a table's qualified name in backticks."""
    return f"{quoted(table.database)}.{quoted(table.table)}"


def selected(column: Column, *, exact: bool) -> str:
    """Return the expression that selects a column, under the column's name.

    Args:
        column: the column.
        exact: read all digits of a column that :func:`is_rounded`.
    """
    name = quoted(column.name)
    # A product keeps the sign of -0, which a sum with 0e0 loses. CAST AS DOUBLE needs MySQL 8.0.17.
    return f"{name} * 1e0 AS {name}" if exact and is_rounded(column) else name


def is_rounded(column: Column) -> bool:
    """Return whether a result set has fewer digits than the binlog: six of FLOAT, D after the point of DOUBLE(M,D)."""
    return column.data_type == "float" or (column.data_type == "double" and column.scale is not None)


def server(session: Session) -> Server:
    """Return the properties of the server that affect the meaning of DDL statements."""
    version, lower_case, collation, explicit = session.query(
        "SELECT @@version, @@lower_case_table_names, @@GLOBAL.collation_server, @@explicit_defaults_for_timestamp"
    )[0]
    flavor = Flavor.MARIADB if session.mariadb else Flavor.MYSQL
    return Server(flavor, str(version), int(lower_case), str(collation), bool(explicit))


def server_charset(session: Session) -> DatabaseCharset:
    """Return the default character set and collation of new databases."""
    charset, collation = session.query("SELECT @@GLOBAL.character_set_server, @@GLOBAL.collation_server")[0]
    return DatabaseCharset(str(charset), str(collation))


def databases(session: Session) -> dict[str, DatabaseCharset]:
    """Return all databases that the account can see."""
    rows = session.query(
        "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA"
    )
    return {str(name): DatabaseCharset(str(charset), str(collation)) for name, charset, collation in rows}


def tables(session: Session, names: Sequence[str]) -> list[ListedTable]:
    """Return all tables of the databases, without views; a database that the account may not list is omitted."""
    found = []
    for database in names:
        try:
            rows = session.query(f"SHOW FULL TABLES IN {quoted(database)}")
        except pymysql.MySQLError as error:
            if error.args[0] not in {*DENIED, ER.BAD_DB_ERROR}:
                raise
            log.warning("database %s is skipped, its tables cannot be listed: %s", database, error.args[-1])
            continue
        found += [ListedTable(TableId(database, str(name)), str(kind)) for name, kind in rows if kind in _KINDS]
    return found


def row_estimates(session: Session, names: Sequence[TableId]) -> dict[TableId, int | None]:
    """Return the server's estimates of the rows of tables; ``None`` where it has none.

    SHOW TABLE STATUS … LIKE is not used: for each table, MySQL would visit all tables of its database, which takes
    longer than the snapshot if there are very many.
    """
    found: dict[TableId, int | None] = dict.fromkeys(names)
    by_database: dict[str, list[str]] = {}
    for name in names:
        by_database.setdefault(name.database, []).append(name.table)
    for database, tables_of_it in by_database.items():
        for first in range(0, len(tables_of_it), _ESTIMATED_AT_ONCE):
            listed = ", ".join(map(session.literal, tables_of_it[first : first + _ESTIMATED_AT_ONCE]))
            rows = session.query(
                "SELECT TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES "
                f"WHERE TABLE_SCHEMA = {session.literal(database)} AND TABLE_NAME IN ({listed})"
            )
            for table, count in rows:
                if count is not None and (known := TableId(database, str(table))) in found:
                    found[known] = int(count)
    return found


def has_row_versions(session: Session, table: TableId) -> bool:
    """Return whether a view shows the rows of a table as they were when it was opened."""
    rows = session.query(
        "SELECT ENGINE FROM information_schema.TABLES "
        f"WHERE TABLE_SCHEMA = {session.literal(table.database)} AND TABLE_NAME = {session.literal(table.table)}"
    )
    return [str(row[0]).lower() for row in rows] == ["innodb"]


def create_statement(session: Session, table: TableId) -> str:
    """Return the text of SHOW CREATE TABLE.

    Raises:
        TableGone: it does not exist.
        SnapshotError: the account may not read it.
    """
    try:
        return statement_text(session.client.fetch_bytes(f"SHOW CREATE TABLE {quoted_table(table)}")[0][1])
    except pymysql.MySQLError as error:
        if error.args[0] in GONE:
            raise TableGone(f"table {table} does not exist: {error.args[-1]}") from error
        raise SnapshotError(
            f"the structure of table {table} cannot be read: {error.args[-1]}. Grant the user SELECT on it, or exclude "
            "other databases with schema.history.internal.store.only.captured.databases.ddl=true"
        ) from error


def statement_text(statement: bytes) -> str:
    """Return a statement of SHOW CREATE TABLE as text.

    MariaDB shows the default of a binary column as raw bytes. Bytes that are not UTF-8 become a hexadecimal literal.
    """
    try:
        return statement.decode()
    except UnicodeDecodeError:
        return _LITERAL.sub(_as_hexadecimal, statement).decode("utf-8", "surrogateescape")


def _as_hexadecimal(found: "re.Match[bytes]") -> bytes:
    text = found[0]
    try:
        text.decode()
    except UnicodeDecodeError:
        if text.startswith(b"'"):
            data = _ESCAPED.sub(lambda one: _ESCAPES.get(one[1] or one[2], one[1] or one[2]), text[1:-1])
            return b" x'%s'" % data.hex().encode()
    return text


def structures(session: Session, names: Iterable[TableId]) -> Tables:
    """Return the current structures of tables on the server."""
    found = Tables(server(session))
    for table in names:
        text = create_statement(session, table)
        found.apply(QueryEvent(text, database=table.database, sql_mode=0, position=""))
    return found


def binlog_files(client: Client) -> list[tuple[str, int]]:
    """Return the names and sizes of the server's binlog files, oldest first.

    The sizes are those that positions count: without the header of a file that MySQL has encrypted.
    """
    rows = client.fetch("SHOW BINARY LOGS")
    return [(str(name), int(size) - (_ENCRYPTION_HEADER if more == ["Yes"] else 0)) for name, size, *more in rows]


def server_identity(client: Client, *, mariadb: bool) -> str:
    """Return the identity of a server: MySQL's ``server_uuid`` or, for MariaDB, which has none, ``server_id``."""
    return str(client.fetch(f"SELECT @@GLOBAL.{'server_id' if mariadb else 'server_uuid'}")[0][0])


def binlog_readers(client: Client) -> list[str]:
    """Return the addresses (``host:port``) of programs that read the binlog with the same account."""
    query = "SELECT HOST FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%' ORDER BY ID"
    return [str(row[0]) for row in client.fetch(query)]


def now_micros(session: Session) -> int:
    """Return the server's CURRENT_TIMESTAMP, a whole second, in µs since the epoch."""
    return int(session.query("SELECT UNIX_TIMESTAMP()")[0][0]) * 1_000_000


def binlog_status_statement(session: Session) -> str:
    """Return the statement that returns the end of the binlog."""
    if not session.mariadb and server(session).version_number >= 80200:
        return "SHOW BINARY LOG STATUS"
    return "SHOW MASTER STATUS"


def current_position(session: Session) -> SourceOffset:
    """Return the current end of the binlog.

    Raises:
        SnapshotError: the server has no binlog, or the account is not allowed to read its position.
    """
    statement = binlog_status_statement(session)
    try:
        rows = session.query(statement)
    except pymysql.MySQLError as error:
        raise SnapshotError(
            f"Cannot read the binlog filename and position via '{statement}': {error.args[-1]}. Grant the user "
            f"{'BINLOG MONITOR' if session.mariadb else 'REPLICATION CLIENT'}"
        ) from error
    if not rows:
        raise SnapshotError(
            f"Cannot read the binlog filename and position via '{statement}'. Make sure your server is correctly "
            "configured: its binlog is off (log_bin)"
        )
    identity = server_identity(session.client, mariadb=session.mariadb)
    return SourceOffset(str(rows[0][0]), int(rows[0][1]), _gtids(session, rows[0]), server=identity)


def end_of_binlog(session: Session) -> SourceOffset:
    """Return the end of the binlog.

    Its ``server`` is the ``server_id``, which is also in the header of each binlog file.

    Raises:
        SnapshotError: it cannot be read.
    """
    return replace(current_position(session), server=server_id(session))


def server_id(session: Session) -> str:
    """Return the ``server_id`` of the server."""
    return str(session.query("SELECT @@GLOBAL.server_id")[0][0])


def _gtids(session: Session, status: tuple[Any, ...]) -> str | None:
    if session.mariadb:
        return str(session.query("SELECT @@GLOBAL.gtid_binlog_pos")[0][0] or "") or None
    # Without gtid_mode=ON, the set is a remnant from earlier, and the server would not stream from it.
    if len(status) < 5 or str(session.query("SELECT @@GLOBAL.gtid_mode")[0][0]) != "ON":
        return None
    return str(status[4] or "").replace("\n", "") or None


def commits_wait_for_all_replicas(session: Session) -> bool:
    """Return whether commits wait for an acknowledgement from every connected semi-synchronous replica."""
    found = session.query("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%'")
    found += session.query("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%'")
    values = {str(name).lower().removeprefix("rpl_semi_sync_"): str(value) for name, value in found}
    for side, awaited in (("source", "wait_for_replica_count"), ("master", "wait_for_slave_count")):
        if values.get(f"{side}_status") == "ON":
            needed = int(values.get(f"{side}_{awaited}", 1))
            return int(values[f"{side}_clients"]) <= needed
    return False
