"""Hidden hashes of MariaDB's unique keys: a table has as many as its rows have. Pure.

A UNIQUE key that is too long for an index, or that says USING HASH, is kept by a hash of its columns, in a hidden
column behind all others that row events show. Every statement that makes the table anew (an ALTER TABLE, OPTIMIZE
TABLE, CREATE TABLE ... LIKE) makes its keys anew, and most that said USING HASH then do without: the TABLE_MAP decides.
"""

from dataclasses import replace

from rowtide.connector.protocol.events.table_structure import ColumnType, TableStructure
from rowtide.schema_history.model import Table
from rowtide.schema_history.structure.tables import ROW_HASH, row_hashes


def with_hashes_of_rows(table: Table, structure: TableStructure) -> Table:
    """The table with as many hidden hashes as the TABLE_MAP has, if that many of its keys may have one."""
    others = tuple(column for column in table.hidden if not column.name.startswith(ROW_HASH))
    count = len(structure.columns) - len(table.columns) - len(others)
    if count == len(table.hidden) - len(others) or not 0 <= count <= sum(index.hashed for index in table.indexes):
        return table
    behind = structure.columns[len(structure.columns) - count :]
    if any(c.type != ColumnType.LONGLONG or not (c.name or ROW_HASH).startswith(ROW_HASH) for c in behind):
        return table
    return replace(table, hidden=others + row_hashes(count))
