"""Reads labels of ENUM and SET with characters such as emoji, which SHOW CREATE TABLE shows as ``?``.

SHOW CREATE TABLE and information_schema write labels in three-byte UTF-8, but values are returned unchanged. So a
temporary table, which is not in the binlog, gets one row for each value.
"""

import logging
import secrets

import pymysql

from rowtide.connector.source.server_queries import quoted, quoted_table
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Column, TableId
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.structure.show_create import quoted_text

log = logging.getLogger(__name__)


def with_labels(session: Session, table: TableId, statement: str, server: Server) -> str:
    """Return a statement of SHOW CREATE TABLE, with the correct labels where the server shows ``?``.

    If the account may not create a temporary table, a warning is logged and the statement stays as it is.

    Args:
        session: a connection to the server.
        table: the table.
        statement: the result of SHOW CREATE TABLE.
        server: the server, for the parser.
    """
    if "?" not in statement:
        return statement
    tables = Tables(server)
    try:
        tables.apply(QueryEvent(statement, database=table.database, sql_mode=0, position=""))
    except SchemaHistoryError:
        return statement
    found = tables.table(table.database, table.table)
    for column in found.columns if found is not None else ():
        if column.charset == "binary" or not any("?" in label for label in column.labels):
            continue
        try:
            labels = _labels(session, table, column)
        except pymysql.MySQLError as error:
            log.warning(
                "the server shows labels of column %s.%s with ? for characters such as emoji, and they cannot be read: "
                "%s. Records will show them with ?, too. Grant CREATE TEMPORARY TABLES on the database",
                table, column.name, error.args[-1],
            )  # fmt: skip
        else:
            statement = _replaced(statement, column, labels)
    return statement


def _labels(session: Session, table: TableId, column: Column) -> list[str]:
    """Return the labels of a column, in their order."""
    name = f"{quoted(table.database)}.rowtide_labels_{secrets.token_hex(8)}"
    numbers = range(1, len(column.labels) + 1)
    values = [(number, number if column.data_type == "enum" else 1 << number - 1) for number in numbers]
    session.execute(
        f"CREATE TEMPORARY TABLE {name} (n INT) SELECT {quoted(column.name)} AS v FROM {quoted_table(table)} LIMIT 0"
    )
    try:
        session.execute(f"INSERT INTO {name} (n, v) VALUES {', '.join(map(str, values))}")
        # Labels in hexadecimal need not be text.
        rows = session.client.fetch_bytes(f"SELECT v FROM {name} ORDER BY n")
        return [label.decode("utf-8", "replace") for (label,) in rows]
    finally:
        if session.client.open:  # otherwise the table is gone, and the error of the connection is the one to report
            session.execute(f"DROP TEMPORARY TABLE {name}")


def _replaced(statement: str, column: Column, labels: list[str]) -> str:
    """Return the statement with the labels of a column, and with its default if that is one of them."""
    head = f"  {quoted(column.name)} {column.column_type}"
    start = statement.find(head)
    if start < 0:
        return statement
    listed = ",".join(quoted_text(label) for label in labels)
    end = start + len(head)
    line = statement.find("\n", end)
    rest = statement[end:line]
    for shown, label in zip(column.labels, labels, strict=True):
        if column.data_type == "enum" and shown != label:
            rest = rest.replace(f"DEFAULT {quoted_text(shown)}", f"DEFAULT {quoted_text(label)}")
    return f"{statement[:start]}  {quoted(column.name)} {column.data_type}({listed}){rest}{statement[line:]}"
