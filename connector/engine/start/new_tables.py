"""Finds tables that are captured only since the stored position was written, and decides what to do with their rows.

A table is new if the lists of the stored position do not capture it, those of the configuration do, and it existed at
the position. A table that was created later is complete in the stream, unless a rename gave it a captured name. Pure.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from rowtide.connector.check import Finding
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import snapshot as properties
from rowtide.connector.config.choices import NewTables, SnapshotMode
from rowtide.connector.config.model import SnapshotConfig
from rowtide.connector.errors import some_of
from rowtide.connector.records.read_tables import ReadTables
from rowtide.connector.snapshot.chunks.key_ranges import chunk_ranges
from rowtide.schema_history.model import Table, TableId
from rowtide.topics.filters import CapturedNames, TableFilter
from rowtide.topics.online_schema_change import Exists

_READS_ROWS = {SnapshotMode.INITIAL, SnapshotMode.WHEN_NEEDED, SnapshotMode.ALWAYS, SnapshotMode.RECOVERY}
_GUIDE = "see 'Add a table' in docs/snapshots.md"


@dataclass(frozen=True, slots=True)
class NewTablePlan:
    """The plan for the new tables.

    Attributes:
        read: the lists that offsets store from now on.
        wanted: the tables that an incremental snapshot has to read.
        findings: findings for the log and the check.
    """

    read: ReadTables
    wanted: tuple[TableId, ...] = ()
    findings: tuple[Finding, ...] = ()


def unread_tables(lists: TableFilter, read: ReadTables, tables: Iterable[TableId], exists: Exists) -> list[TableId]:
    """Return captured tables whose earlier rows were not read, in the order of ``table.include.list``, then by name.

    Args:
        lists: those of the configuration.
        read: the lists in the stored position.
        tables: all tables at that position.
        exists: returns whether a table exists at that position.
    """
    now, before, unread = CapturedNames(lists, exists), read.names(exists), set(read.unread)
    if read.lists == lists:
        tables = (table for table in unread if exists(table.database, table.table))
    found = [
        table
        for table in tables
        if (table.database, table.table) not in lists.always
        and now.captures(table.database, table.table)
        and (table in unread or not before.captures(table.database, table.table))
    ]
    include = lists.tables.include
    return sorted(found, key=lambda table: (include.index(str(table)) if include else 0, str(table)))


def plan_new_tables(
    config: Configuration,
    unread: Sequence[TableId],
    structure: Callable[[TableId], Table | None],
    reading: Collection[TableId | None] = (),
) -> NewTablePlan:
    """Decide what to do with new tables.

    Args:
        config: the configuration.
        unread: the new tables.
        structure: looks up a table's structure; ``None`` if it is not known.
        reading: the tables that an incremental snapshot reads already.
    """
    lists, action = config.capture.tables, new_tables_action(config.snapshot)
    unread = [table for table in unread if _has_rows_to_read(config.snapshot, table, structure(table))]
    if action is None:
        findings = [_unread_by_mode(config.snapshot.mode, unread)] if unread else []
        return NewTablePlan(ReadTables(lists), findings=tuple(findings))
    read, waiting = ReadTables(lists, tuple(unread)), [table for table in unread if table not in reading]
    if action is NewTables.NONE:
        return NewTablePlan(read, findings=tuple([_not_read(waiting)] if waiting else []))
    obstacles = {table: _obstacle(config.snapshot, table, structure(table)) for table in waiting}
    wanted = [table for table, obstacle in obstacles.items() if obstacle is None]
    refused = [_refused(table, obstacle) for table, obstacle in obstacles.items() if obstacle is not None]
    return NewTablePlan(read, tuple(wanted), tuple(([_wanted(wanted)] if wanted else []) + refused))


def new_tables_action(snapshot: SnapshotConfig) -> NewTables | None:
    """Return ``rowtide.snapshot.new.tables``; ``None`` if it is not set, and the snapshot mode reads no rows."""
    if snapshot.incremental.new_tables is not None:
        return snapshot.incremental.new_tables
    based = snapshot.mode is SnapshotMode.CONFIGURATION_BASED and snapshot.flags.data
    return NewTables.INCREMENTAL if based or snapshot.mode in _READS_ROWS else None


def _has_rows_to_read(snapshot: SnapshotConfig, table: TableId, structure: Table | None) -> bool:
    if structure is not None and structure.kind == "SEQUENCE":
        return False
    return snapshot.reads_rows_of(table.database, table.table)


def _obstacle(snapshot: SnapshotConfig, table: TableId, structure: Table | None) -> str | None:
    """Return the reason why an incremental snapshot cannot read a table, and what to do."""
    if (table.database, table.table) in snapshot.select_overrides:
        return (
            "snapshot.select.statement.overrides has a query for it, which incremental snapshots do not use. Send an "
            "execute-snapshot signal with 'additional-conditions'"
        )
    try:
        if structure is not None:
            chunk_ranges(structure)
    except ValueError as error:
        return f"{error}. Send an execute-snapshot signal with a 'surrogate-key'"
    return None


def _wanted(tables: Sequence[TableId]) -> Finding:
    message = f"{some_of(tables)}: new among the captured tables. An incremental snapshot reads their existing rows"
    return Finding.remark(properties.NEW_TABLES.name, message)


def _refused(table: TableId, obstacle: str) -> Finding:
    message = f"{table}: new among the captured tables, but its existing rows are not read: {obstacle}; {_GUIDE}"
    return Finding.warning(properties.NEW_TABLES.name, message)


def _not_read(tables: Sequence[TableId]) -> Finding:
    message = (
        f"{some_of(tables)}: new among the captured tables, but only their changes are read, not their existing rows. "
        f"Set {properties.NEW_TABLES.name}=incremental to read them, or send an execute-snapshot signal; "
        f"{_GUIDE}"
    )
    return Finding.warning(properties.NEW_TABLES.name, message)


def _unread_by_mode(mode: SnapshotMode, tables: Sequence[TableId]) -> Finding:
    message = (
        f"{some_of(tables)}: new among the captured tables. Their existing rows are not read, because "
        f"{properties.MODE.name}={mode} reads no rows; {properties.NEW_TABLES.name}=incremental reads them"
    )
    return Finding.remark(properties.NEW_TABLES.name, message)
