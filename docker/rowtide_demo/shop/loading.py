"""The shop's rows into MySQL, quickly: statements of many rows."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rowtide_demo.shop.rows import COLUMNS, Row, generated
from rowtide_demo.shop.schema import DATABASE, TABLES, Sizes, create_statements

if TYPE_CHECKING:
    from pymysql import Connection
    from pymysql.cursors import Cursor

__all__ = ["insert", "load"]

_ROWS = 1000  # of a statement: below max_allowed_packet, and more gain nothing


def load(connection: "Connection[Cursor]", sizes: Sizes, told: Callable[[int], None]) -> None:
    """Make the database and fill it; ``told`` is called with the rows that are there, every thousand."""
    done = 0
    with connection.cursor() as cursor:
        for statement in create_statements():
            cursor.execute(statement)
        for table in TABLES:
            for rows in _batches(generated(table, sizes)):
                insert(cursor, table, rows)
                done += len(rows)
                told(done)


def insert(cursor: "Cursor", table: str, rows: Iterable[Row], database: str = DATABASE) -> int:
    """One INSERT of all rows; gives their number."""
    columns = COLUMNS[table].split()
    values = ", ".join(cursor.mogrify(f"({', '.join(['%s'] * len(columns))})", row) for row in rows)
    return cursor.execute(f"INSERT INTO {database}.{table} ({', '.join(columns)}) VALUES {values}")


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, _ROWS)):
        yield batch
