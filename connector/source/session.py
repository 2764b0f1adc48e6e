"""Edge: the connection of a snapshot, with the settings that make its answers mean the same on every server."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from rowtide.connector.config.model import DatabaseConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.rows.text_protocol_rows import Rows, TextRows
from rowtide.connector.source.connection import connect
from rowtide.connector.source.result_set import result_rows
from rowtide.schema_history.model import TableId

_YEAR_S = 31_536_000
_SESSION = (
    "SET SESSION time_zone = '+00:00'",  # TIMESTAMP values come in UTC, whatever zone the server has
    "SET SESSION sql_mode = ''",  # ANSI_QUOTES and the like change how SHOW CREATE TABLE writes
    "SET SESSION sql_quote_show_create = 1",
    "SET SESSION sql_select_limit = 18446744073709551615",
    f"SET SESSION net_write_timeout = {_YEAR_S}",  # Kafka may be slower than the server
    f"SET SESSION net_read_timeout = {_YEAR_S}",
    f"SET SESSION wait_timeout = {_YEAR_S}",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)
_MYSQL_SESSION = (
    "SET SESSION max_execution_time = 0",
    # Rows in the binlog have the generated invisible primary key, so the structure must show it.
    "SET SESSION show_gipk_in_create_table_and_information_schema = ON",
)
_MARIADB_SESSION = ("SET SESSION max_statement_time = 0",)


class Session:
    """A connection to the database for a snapshot.

    Args:
        config: how the database is reached.
        mariadb: whether it is a MariaDB.

    Raises:
        DatabaseUnreachableError: the server cannot be reached or does not let us in.
    """

    def __init__(self, config: DatabaseConfig, *, mariadb: bool) -> None:
        self.mariadb = mariadb
        # The zone that is configured would be set for nothing: values come in UTC.
        self._connection: Connection[Any] = connect(replace(config, time_zone=None))
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and with it every lock; rows that are under way are given up."""
        with contextlib.suppress(pymysql.MySQLError, OSError):
            self._connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001 - close() would read all rows

    def _prepare(self) -> None:
        for statement in (*_SESSION, *(_MARIADB_SESSION if self.mariadb else ())):
            self.execute(statement)
        if not self.mariadb:
            for statement in _MYSQL_SESSION:
                with contextlib.suppress(pymysql.err.OperationalError):  # older servers do not have the variable
                    self.execute(statement)

    def execute(self, statement: str) -> None:
        """Run a statement without an answer."""
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(statement)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of a small answer."""
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def literal(self, text: str) -> str:
        """A string literal."""
        return str(self._connection.escape(text))

    def rows(self, table: TableId, query: str, reader: Callable[[Sequence[str]], TextRows]) -> Iterator[Rows]:
        """The rows of a table in pieces; nothing else can be asked before the last one is taken.

        Raises:
            SnapshotError: the server refuses the query, or broke it off.
        """
        try:
            yield from result_rows(self._connection, query, reader)
        except (pymysql.MySQLError, OSError) as error:
            reason = error.args[-1] if error.args else error
            raise SnapshotError(f"table {table} cannot be read with {query!r}: {reason}") from error
