"""What a statement did: the values that become history records and schema-change events.

One statement can make several changes; they stand in the order in which Debezium reports them.
"""

from dataclasses import dataclass
from enum import Enum

from rowtide.schema_history.model import Database, Table, TableId


class ChangeKind(Enum):
    """Kind of a change, named as Debezium does in ``tableChanges``; ``DATABASE`` has no table."""

    CREATE = "CREATE"
    ALTER = "ALTER"
    DROP = "DROP"
    TRUNCATE = "TRUNCATE"
    DATABASE = "DATABASE"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One reported change.

    Attributes:
        kind: what happened.
        database: the database that it is reported for; ``""`` if none.
        ddl: text of the record: the statement, or the part of it that is about this table.
        table_id: the table (its new name after a rename); ``None`` for ``DATABASE``.
        previous_id: the old name, if it was renamed by RENAME TABLE.
        table: structure after the whole statement; ``None`` if the table is gone then, or does not exist.
        tables: all tables that the statement names in this database (``source.table`` of the event).
    """

    kind: ChangeKind
    database: str
    ddl: str
    table_id: TableId | None = None
    previous_id: TableId | None = None
    table: Table | None = None
    tables: tuple[TableId, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The outcome of one statement.

    Attributes:
        statement_class: what kind of statement it was: ``create table``, ``alter table``, ``grant``, ``insert`` ...
        changes: what to report, in order; empty for statements that are not about structure.
        altered: every table whose structure or name is new or gone: ``None`` if it is gone.
        before: the same tables as they were: ``None`` if there was none, or if it is gone with its database.
        databases_before: all databases as they were, if the statement was about databases.
    """

    statement_class: str
    changes: tuple[SchemaChange, ...] = ()
    altered: tuple[tuple[TableId, Table | None], ...] = ()
    before: tuple[tuple[TableId, Table | None], ...] = ()
    databases_before: tuple[Database, ...] | None = None
