"""A connection for the queries of a snapshot, with settings that give results the same meaning on every server."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import pymysql
from pymysql.constants import ER

from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.rows.text_protocol_rows import ResultReader, Rows
from rowtide.connector.source.connection import Client, connect
from rowtide.connector.source.connection.prepared_rows import prepared_rows
from rowtide.connector.source.connection.result_set import result_rows
from rowtide.schema_history.model import TableId

_YEAR_S = 31_536_000
_SETTINGS = (
    "SET SESSION time_zone = '+00:00'",  # TIMESTAMP values arrive in UTC, whatever the server's time zone is
    "SET SESSION sql_mode = ''",  # ANSI_QUOTES and others change the text of SHOW CREATE TABLE
    "SET SESSION sql_quote_show_create = 1",
    "SET SESSION sql_select_limit = 18446744073709551615",
    f"SET SESSION net_write_timeout = {_YEAR_S}",  # Kafka may be slower than the server
    f"SET SESSION net_read_timeout = {_YEAR_S}",
    f"SET SESSION wait_timeout = {_YEAR_S}",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)
_MYSQL_SETTINGS = (
    "SET SESSION max_execution_time = 0",
    # Rows in the binlog have the generated invisible primary key, so the structure must show it.
    "SET SESSION show_gipk_in_create_table_and_information_schema = ON",
)
_MARIADB_SETTINGS = ("SET SESSION max_statement_time = 0",)


class Session:
    """A connection to the database for queries.

    Args:
        config: address, account, TLS and time limits.
        mariadb: whether the server is MariaDB.

    Attributes:
        mariadb: whether the server is MariaDB.
        client: the connection itself.

    Raises:
        DatabaseUnreachableError: the server cannot be reached or refuses the log-in. Every method raises it, too, when
            the connection is lost.
    """

    def __init__(self, config: DatabaseConfig, *, mariadb: bool) -> None:
        self.mariadb = mariadb
        # The configured time zone is not used, because values arrive in UTC.
        self.client: Client = connect(replace(config, time_zone=None))
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
        """Close the connection, which releases its locks and discards a result that is being read."""
        self.client.abort()

    def _prepare(self) -> None:
        for statement in (*_SETTINGS, *(_MARIADB_SETTINGS if self.mariadb else ())):
            self.execute(statement)
        if not self.mariadb:
            for statement in _MYSQL_SETTINGS:
                with contextlib.suppress(pymysql.err.OperationalError):  # older servers do not have the variable
                    self.execute(statement)

    def execute(self, statement: str) -> None:
        """Run a statement and discard its result."""
        self.client.fetch(statement)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows of its result, which must be small."""
        return self.client.fetch(statement)

    def query_each(self, statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """Run statements in one round trip, and return the rows of each.

        Their text must not contain input from users.
        """
        return self.client.fetch_each(statements)

    def literal(self, text: str) -> str:
        """Return a text as an SQL string literal."""
        return str(self.client.escape(text))

    def rows(
        self, table: TableId, query: str, reader: Callable[[Sequence[str]], ResultReader], *, prepared: bool = False
    ) -> Iterator[Rows]:
        """Yield the rows of a table in batches; the session runs no other statement before the last batch.

        Args:
            table: the table, for messages.
            query: one statement that returns a result set.
            reader: creates the row reader from the names of the columns.
            prepared: run the query as a prepared statement, whose result has FLOAT with all digits.

        Raises:
            SnapshotError: the server refuses the query or aborts it, or a value does not match its column.
        """
        try:
            yield from (prepared_rows if prepared else result_rows)(self.client, query, reader)
        except (pymysql.MySQLError, OSError) as error:
            if lost := self.client.lost(error):
                raise lost from error
            hint = f". Write the name with its database: {table}" if error.args[0] == ER.NO_DB_ERROR else ""
            raise SnapshotError(f"table {table} cannot be read with {query!r}: {error.args[-1]}{hint}") from error
        except (ValueError, LookupError, ArithmeticError):  # the message may contain the value
            raise SnapshotError(
                f"table {table} cannot be read with {query!r}: a value in the result does not match the type of its "
                "column. Check snapshot.select.statement.overrides"
            ) from None
