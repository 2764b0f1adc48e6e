"""The plan of a snapshot: its tables, their order, and the statements. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rowtide.connector.config.choices import RowCountOrder
from rowtide.connector.config.model import SnapshotConfig
from rowtide.connector.records.offset import java_hash_map_order
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.source.server_queries import DatabaseCharset, ListedTable, quoted, quoted_table
from rowtide.schema_history.model import TableId
from rowtide.topics.filters import CapturedNames, is_builtin

_HASH_MAP_CAPACITY = 2
"""The initial capacity of Debezium's map of tables, which it fills from maps of one entry."""


@dataclass(frozen=True, slots=True)
class StructureStatement:
    """A statement that the snapshot writes to the schema history.

    Attributes:
        ddl: its text.
        database: the database of its schema change message, ``""`` for none.
        table_id: the table that it drops or creates, if any.
        creates: whether it creates the table, and so must be parsed.
    """

    ddl: str
    database: str
    table_id: TableId | None = None
    creates: bool = False


def structure_tables(listed: Iterable[ListedTable], settings: PipelineSettings) -> list[ListedTable]:
    """Return the tables whose structure is written to the schema history, in Debezium's order.

    These are all but the system tables, so that a table can be captured later without another snapshot. The
    configuration can restrict them to captured tables.
    """
    listed = list(listed)
    names = captured_names(listed, settings)
    chosen = [table for table in listed if _keeps_structure(table.id, settings, names)]
    return sorted(chosen, key=lambda table: _name_order(table.id))


def captured_names(listed: Iterable[ListedTable], settings: PipelineSettings) -> CapturedNames:
    """Return which of the listed tables are captured."""
    return CapturedNames.among(settings.tables, ((table.id.database, table.id.table) for table in listed))


def captured_tables(listed: Iterable[ListedTable], settings: PipelineSettings) -> list[TableId]:
    """Return the captured tables by name, without sequences and those of signals."""
    listed = list(listed)
    names, always = captured_names(listed, settings), settings.tables.always
    found = [one.id for one in listed if one.kind != "SEQUENCE" and names.captures(one.id.database, one.id.table)]
    return sorted((one for one in found if (one.database, one.table) not in always), key=str)


def _keeps_structure(table: TableId, settings: PipelineSettings, names: CapturedNames) -> bool:
    tables = settings.tables
    if settings.only_captured_tables_ddl and not names.keeps_structure(table.database, table.table):
        return False
    if settings.only_captured_databases_ddl and not tables.captures_database(table.database):
        return False
    return not (tables.ignore_builtin and is_builtin(table.database))


def row_tables(
    listed: Iterable[ListedTable], settings: PipelineSettings, snapshot: SnapshotConfig
) -> list[ListedTable]:
    """Return the captured tables whose rows are read, in the order of ``table.include.list``, then by name."""
    listed = list(listed)
    include, names = settings.tables.tables.include, captured_names(listed, settings)
    chosen = [
        table
        for table in listed
        if table.kind != "SEQUENCE"
        and names.captures(table.id.database, table.id.table)
        and snapshot.reads_rows_of(table.id.database, table.id.table)
    ]
    chosen.sort(key=lambda table: (include.index(str(table.id)) if include else 0, _name_order(table.id)))
    return chosen


def by_row_count(tables: Sequence[ListedTable], snapshot: SnapshotConfig) -> list[ListedTable]:
    """Return the tables in the order of ``snapshot.tables.order.by.row.count``.

    The key is the estimated number of rows. As in Debezium, a table with a ``SELECT`` override counts as empty.
    """
    if snapshot.order is RowCountOrder.DISABLED:
        return list(tables)
    descending = snapshot.order is RowCountOrder.DESCENDING
    return sorted(tables, key=lambda table: _row_count(table, snapshot), reverse=descending)


def _row_count(table: ListedTable, snapshot: SnapshotConfig) -> int:
    if (table.id.database, table.id.table) in snapshot.select_overrides:
        return 0
    return table.rows or 0


def _name_order(table: TableId) -> bytes:
    """Return the sort key: Debezium sorts by the full name, and Java compares strings by UTF-16 code units."""
    return str(table).encode("utf-16-be")


def select_statement(table: TableId, selected: Sequence[str], overrides: Mapping[tuple[str, str], str]) -> str:
    """Return the query for a table's rows: that of ``snapshot.select.statement.overrides``, or a list of all columns.

    The columns are listed because ``*`` omits invisible ones.

    Args:
        table: the table's name.
        selected: the expressions that select its columns.
        overrides: the queries of the configuration.
    """
    override = overrides.get((table.database, table.table))
    if override is not None:
        return override
    expressions = ", ".join(selected) or "1"
    return f"SELECT {expressions} FROM {quoted_table(table)}"


def server_statement(charset: str, collation: str) -> StructureStatement:
    """Return the statement that sets the character set and collation of later databases."""
    return StructureStatement(f"SET character_set_server={charset}, collation_server={collation}", "")


def structure_statements(
    created: Mapping[TableId, str],
    databases: Mapping[str, DatabaseCharset],
    server: DatabaseCharset,
    *,
    hash_order: bool = False,
) -> list[StructureStatement]:
    """Return the statements that create all structure, in the order in which Debezium writes them.

    Args:
        created: the text of SHOW CREATE TABLE for each table, in order.
        databases: the default character set and collation of each database.
        server: those of the server.
        hash_order: whether tables have the order of a Java hash map, which Debezium's parallel reading leads to
            (``snapshot.locking.mode=none``).
    """
    statements = [server_statement(server.charset, server.collation)]
    statements += map(_dropped, created)
    by_database: dict[str, dict[str, TableId]] = {}
    for table in created:
        by_database.setdefault(table.database, {})[str(table)] = table
    for database, tables in by_database.items():
        name = quoted(database)
        inherited = databases.get(database)
        defaults = f" CHARSET {inherited.charset} COLLATE {inherited.collation}" if inherited else ""
        statements += (
            StructureStatement(f"DROP DATABASE IF EXISTS {name}", database),
            StructureStatement(f"CREATE DATABASE {name}{defaults}", database),
            StructureStatement(f"USE {name}", database),
        )
        ordered = java_hash_map_order(tables, _HASH_MAP_CAPACITY) if hash_order else tables
        statements += (StructureStatement(created[table], database, table, creates=True) for table in ordered.values())
    return statements


def table_statements(created: Mapping[TableId, str]) -> list[StructureStatement]:
    """Return the statements that recreate the structure of some tables, in the order in which Debezium writes them.

    Args:
        created: the text of SHOW CREATE TABLE for each table.
    """
    ordered = sorted(created, key=_name_order)
    made = [StructureStatement(created[table], table.database, table, creates=True) for table in ordered]
    return [*map(_dropped, ordered), *made]


def _dropped(table: TableId) -> StructureStatement:
    return StructureStatement(f"DROP TABLE IF EXISTS {quoted_table(table)}", table.database, table)
