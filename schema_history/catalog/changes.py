"""The result of a statement, from which history records and schema change events are built."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from rowtide.schema_history.model import Database, Table, TableId


class ChangeKind(Enum):
    """Kind of a change, with Debezium's names in ``tableChanges``; ``DATABASE`` has no table."""

    CREATE = "CREATE"
    ALTER = "ALTER"
    DROP = "DROP"
    TRUNCATE = "TRUNCATE"
    DATABASE = "DATABASE"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One reported change.

    Attributes:
        kind: the kind of change.
        database: the database for which it is reported; ``""`` if none.
        ddl: text of the record: the statement, or its part that concerns this table; empty if a signal has
            described the table.
        table_id: the table, after a rename with its new name; ``None`` for ``DATABASE``.
        previous_id: the former name, if RENAME TABLE renamed it.
        table: the table after the whole statement; ``None`` if it does not exist then.
        tables: all tables of this database that the statement names (``source.table`` of the event).
        schema: ``schemaName`` of the record; only signals have it.
    """

    kind: ChangeKind
    database: str
    ddl: str
    table_id: TableId | None = None
    previous_id: TableId | None = None
    table: Table | None = None
    tables: tuple[TableId, ...] = ()
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The result of one statement.

    Attributes:
        statement_class: kind of statement: ``create table``, ``alter table``, ``grant``, ``insert`` ...
        changes: the reported changes in Debezium's order; empty for statements that do not concern structures.
        altered: every table that the statement created, changed, renamed or dropped (then ``None``).
        before: the same tables before it: ``None`` if a table did not exist, or was dropped with its database.
        databases_before: all databases before it, if the statement concerns databases.
        temporary: the temporary tables that it created, changed, renamed or dropped.
        renamed_columns: the columns that ALTER TABLE renamed: the table's name after it, and both names of the column.
        dropped_columns: the columns that it dropped: the table's name after it, and the column's, which may also be
            that of a column that it added.
        made_by_query: the table that CREATE TABLE … SELECT created in a session whose ``binlog_format`` is not ROW:
            its columns and rows are not in the binlog. ``altered`` has it as dropped.
    """

    statement_class: str
    changes: tuple[SchemaChange, ...] = ()
    altered: tuple[tuple[TableId, Table | None], ...] = ()
    before: tuple[tuple[TableId, Table | None], ...] = ()
    databases_before: tuple[Database, ...] | None = None
    temporary: tuple[TableId, ...] = ()
    renamed_columns: tuple[tuple[TableId, str, str], ...] = ()
    dropped_columns: tuple[tuple[TableId, str], ...] = ()
    made_by_query: TableId | None = None

    def renamed(self) -> Iterator[tuple[TableId, TableId]]:
        """The tables that RENAME TABLE or ALTER TABLE … RENAME gave another name, each with both names, in order."""
        existed = {table for table, known in self.before if known is not None}
        gone = [table for table, now in self.altered if now is None]
        for change in self.changes:
            if change.kind is not ChangeKind.ALTER or change.table_id is None:
                continue
            if change.previous_id is not None:
                yield change.previous_id, change.table_id
            elif change.table_id not in existed:
                yield from ((former, change.table_id) for former in gone)
