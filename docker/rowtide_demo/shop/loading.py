"""Loads the initial rows into MySQL, with many rows in each statement."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rowtide_demo.shop.rows import COLUMNS, Row, generate_rows
from rowtide_demo.shop.schema import DATABASE, TABLES, Sizes, create_statements

if TYPE_CHECKING:
    from pymysql import Connection
    from pymysql.cursors import Cursor

__all__ = ["insert", "load"]

_ROWS = 1000  # per statement: below max_allowed_packet, and more are not faster


def load(connection: "Connection[Cursor]", sizes: Sizes, report: Callable[[int], None]) -> None:
    """Create the database and its rows; ``report`` is called with the number of rows after each statement."""
    done = 0
    with connection.cursor() as cursor:
        for statement in create_statements():
            cursor.execute(statement)
        for table in TABLES:
            for rows in _batches(generate_rows(table, sizes)):
                insert(cursor, table, rows)
                done += len(rows)
                report(done)


def insert(cursor: "Cursor", table: str, rows: Iterable[Row], database: str = DATABASE) -> int:
    """Insert all rows with one statement, and return their number."""
    columns = COLUMNS[table].split()
    values = ", ".join(cursor.mogrify(f"({', '.join(['%s'] * len(columns))})", row) for row in rows)
    return cursor.execute(f"INSERT INTO {database}.{table} ({', '.join(columns)}) VALUES {values}")


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, _ROWS)):
        yield batch
