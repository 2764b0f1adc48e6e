"""Queries the facts about a server, and the privileges of the account."""

import contextlib
from collections.abc import Mapping
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor, SSCursor

from rowtide.connector.check.facts import VARIABLES, Cascade, ColumnFact, Replica, ServerFacts, TableFact
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.config.catalogue.snapshot import OVERRIDES
from rowtide.connector.source.connection import connect
from rowtide.topics.filters import BUILTIN_DATABASES

_CASCADING = ("CASCADE", "SET NULL", "SET DEFAULT")
_UNPROVED = {1295, 1205}
"""The server executes the statement, but does not prepare it (ER_UNSUPPORTED_PS), or a table is locked."""
_LOCK_WAIT_S = 1
_VARIABLES = ", ".join(f"'{name}'" for name in sorted(VARIABLES))
# Defaults that Debezium's schema has: literals, and CURRENT_TIMESTAMP of a DATETIME.
_MARIADB_DEFAULT = (
    "COLUMN_DEFAULT <> 'NULL' AND (DATA_TYPE = 'datetime' OR COLUMN_DEFAULT NOT LIKE 'current_timestamp%')"
)
_MYSQL_DEFAULT = (
    "COLUMN_DEFAULT IS NOT NULL AND "
    "(EXTRA NOT LIKE '%DEFAULT_GENERATED%' OR DATA_TYPE = 'datetime' AND COLUMN_DEFAULT LIKE 'current_timestamp%')"
)


def fetch_facts(config: Configuration, *, tables: bool = True, estimates: bool = False) -> ServerFacts:
    """Query the facts about the server.

    Args:
        config: the configuration of the connection.
        tables: whether to query every table and column, too; slow on a server with very many.
        estimates: whether to query the estimated rows of the tables, too; slower still.

    Raises:
        DatabaseUnreachableError: the server cannot be reached or refuses the log-in.
        pymysql.MySQLError: the server refuses a query.
    """
    timeout_ms = min(config.database.validation_timeout_ms, config.database.connect_timeout_ms)
    with connect(config.database, timeout_ms=timeout_ms) as connection:
        with connection.cursor(Cursor) as cursor:
            cursor.execute("SELECT VERSION()")
            version = str(cursor.fetchall()[0][0])
            cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({_VARIABLES})")
            variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
            cursor.execute("SHOW GRANTS")
            grants = tuple(str(row[0]) for row in cursor.fetchall())
        facts = ServerFacts(version, variables, grants)
        is_mariadb = facts.flavor is Flavor.MARIADB
        status: dict[str, Any] = {}
        refused: str | None = None
        if not is_mariadb or config.streaming.semi_sync is None:  # MariaDB gives none while commits wait for rowtide
            status, refused = _status(connection, is_mariadb)
        return ServerFacts(
            version,
            variables,
            grants,
            do_databases=_databases(status, "Binlog_Do_DB"),
            ignored_databases=_databases(status, "Binlog_Ignore_DB"),
            replicas=_replicas(connection, is_mariadb),
            is_replica=_is_replica(connection),
            unreadable_status=refused,
            refused_heartbeat=_refused(connection, config.heartbeat.action_query or ""),
            refused_queries=_refused_queries(connection, config.snapshot.select_overrides),
            tables=_tables(connection, estimates=estimates, mariadb=is_mariadb) if tables else None,
            cascades=_cascades(connection) if tables else (),
        )


def _rows(connection: "Connection[Any]", *statements: str) -> tuple[list[dict[str, Any]] | None, str | None]:
    """Return the rows, by column, of the first statement that the server supports, or the reason for its refusal."""
    refusal: str | None = None
    for statement in statements:
        with connection.cursor(Cursor) as cursor:
            try:
                cursor.execute(statement)
            except (pymysql.err.ProgrammingError, pymysql.err.OperationalError, pymysql.err.InternalError) as error:
                refusal = str(error.args[-1])
                if error.args[0] == pymysql.constants.ER.PARSE_ERROR:
                    continue  # another version's spelling
                return None, refusal
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()], None
    return None, refusal


def _status(connection: "Connection[Any]", is_mariadb: bool) -> tuple[dict[str, Any], str | None]:
    spellings = ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
    rows, refused = _rows(connection, *(reversed(spellings) if is_mariadb else spellings))
    return (rows[0] if rows else {}), refused


def _refused(connection: "Connection[Any]", statement: str) -> str | None:
    """Return why the server refuses a statement: PREPARE checks syntax, names and privileges, and changes nothing."""
    if not statement:
        return None
    with connection.cursor(Cursor) as cursor:
        try:
            cursor.execute(f"SET SESSION lock_wait_timeout = {_LOCK_WAIT_S}")  # an ALTER TABLE may take hours
            cursor.execute(f"PREPARE rowtide FROM {connection.escape(statement)}")
        except pymysql.MySQLError as error:
            return None if error.args[0] in _UNPROVED else str(error.args[-1])
    return None


def _refused_queries(connection: "Connection[Any]", queries: Mapping[tuple[str, str], str]) -> dict[str, str]:
    found = {f"{OVERRIDES.name}.{'.'.join(table)}": _refused(connection, query) for table, query in queries.items()}
    return {name: refusal for name, refusal in found.items() if refusal is not None}


def _databases(status: dict[str, Any], name: str) -> tuple[str, ...]:
    return tuple(filter(None, str(status.get(name) or "").split(",")))


def _replicas(connection: "Connection[Any]", is_mariadb: bool) -> tuple[Replica, ...] | None:
    spellings = ("SHOW REPLICAS", "SHOW SLAVE HOSTS")
    rows, _ = _rows(connection, *(reversed(spellings) if is_mariadb else spellings))
    if rows is None:
        return None
    lowered = [{name.lower(): value for name, value in row.items()} for row in rows]
    return tuple(
        Replica(
            int(row["server_id"]),
            str(row.get("host") or ""),
            str(row.get("replica_uuid") or row.get("slave_uuid") or ""),
        )
        for row in lowered
    )


def _is_replica(connection: "Connection[Any]") -> bool | None:
    rows, _ = _rows(connection, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
    return None if rows is None else bool(rows)


def _tables(connection: "Connection[Any]", *, estimates: bool, mariadb: bool) -> tuple[TableFact, ...]:
    builtin = ", ".join(f"'{name}'" for name in sorted(BUILTIN_DATABASES))
    rows_column = "TABLE_ROWS" if estimates else "NULL"
    default = _MARIADB_DEFAULT if mariadb else _MYSQL_DEFAULT
    tables: dict[tuple[str, str], tuple[int | None, int | None]] = {}
    columns: dict[tuple[str, str], list[ColumnFact]] = {}
    shared: dict[ColumnFact, ColumnFact] = {}  # many tables have the same columns
    with connection.cursor(SSCursor) as cursor:  # one row at a time: a server may have millions of columns
        if estimates and not mariadb:
            with contextlib.suppress(pymysql.MySQLError):  # before 8.0, MySQL does not cache estimates for a day
                cursor.execute("SET SESSION information_schema_stats_expiry = 0")
        cursor.execute(
            f"SELECT TABLE_SCHEMA, TABLE_NAME, {rows_column}, UNIX_TIMESTAMP(CREATE_TIME) "
            "FROM information_schema.TABLES "
            f"WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN ({builtin})"
        )
        for database, table, rows, created_at in cursor:
            tables[database, table] = _whole(rows), _whole(created_at)
            columns[database, table] = []
        cursor.execute(
            f"SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, {default}, COLUMN_KEY = 'PRI' "
            "FROM information_schema.COLUMNS "
            f"WHERE TABLE_SCHEMA NOT IN ({builtin}) ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
        )
        for database, table, name, column_type, nullable, has_default, key in cursor:
            if (database, table) in columns:
                column = ColumnFact(name, _text(column_type), nullable == "YES", bool(has_default), bool(key))
                columns[database, table].append(shared.setdefault(column, column))
    return tuple(TableFact(*key, tuple(columns[key]), *more_facts) for key, more_facts in tables.items())


def _cascades(connection: "Connection[Any]") -> tuple[Cascade, ...]:
    rows, _ = _rows(
        connection,
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, DELETE_RULE, "
        "UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS "
        f"WHERE DELETE_RULE IN {_CASCADING} OR UPDATE_RULE IN {_CASCADING}",
    )
    found = []
    for row in rows or ():
        database, name, parent_database, parent, on_delete, on_update = row.values()
        pairs = (("DELETE", on_delete), ("UPDATE", on_update))
        rules = tuple(f"ON {event} {rule}" for event, rule in pairs if rule in _CASCADING)
        found.append(Cascade(database, name, f"{parent_database}.{parent}", rules))
    return tuple(found)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
