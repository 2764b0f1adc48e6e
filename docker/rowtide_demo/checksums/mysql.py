"""The checksums of tables in MySQL."""

from typing import TYPE_CHECKING

from rowtide_demo.checksums.canonical_text import Column, digest_in_mysql, quoted
from rowtide_demo.checksums.comparison import ColumnChecksum, TableChecksum

if TYPE_CHECKING:
    from pymysql import Connection
    from pymysql.cursors import Cursor

__all__ = ["checksums_in_mysql", "columns_of"]

Structure = dict[str, list[Column]]
"""The columns of each table."""


def columns_of(connection: "Connection[Cursor]", database: str) -> Structure:
    """Return the columns of all tables of a database, in order."""
    found: Structure = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type, numeric_precision, column_key FROM information_schema.columns "
            "WHERE table_schema = %s ORDER BY table_name, ordinal_position",
            (database,),
        )
        for table, name, data_type, precision, key in cursor.fetchall():
            size = int(precision) if data_type == "bit" else 0
            found.setdefault(table, []).append(Column(name, data_type, size, key == "PRI"))
    return found


def checksums_in_mysql(
    connection: "Connection[Cursor]", database: str, structure: Structure
) -> dict[str, TableChecksum]:
    """Return the checksums of each table, computed by the server. The time zone of the session must be UTC."""
    found = {}
    with connection.cursor() as cursor:
        for table, columns in structure.items():
            cursor.execute(statement(database, table, columns))
            row = cursor.fetchone()
            assert row is not None
            count, *values = (int(value) for value in row)
            pairs = zip(values[::2], values[1::2], strict=True)
            checksums = {column.name: ColumnChecksum(*pair) for column, pair in zip(columns, pairs, strict=True)}
            found[table] = TableChecksum(count, checksums)
    return found


def statement(database: str, table: str, columns: list[Column]) -> str:
    """Return the query for a table: its number of rows, and the number of NULLs and sum of hashes of each column."""
    key = [column for column in columns if column.key] or columns
    parts = ["COUNT(*)"]
    for column in columns:
        parts.append(f"COALESCE(SUM({quoted(column.name)} IS NULL), 0)")
        parts.append(f"COALESCE(SUM({digest_in_mysql(key, column)}), 0)")
    return f"SELECT {', '.join(parts)} FROM {quoted(database)}.{quoted(table)}"
