"""The entries of a schema history for one table, and the resulting table.

A history can hold many more statements than a connector needs: those of tables that were dropped, or that no longer
change. Parsing a statement takes as long as reading ten records. So recovery only collects the entries of each table,
and the table is built from them on first access. Statements about databases are applied immediately, because all later
tables inherit from them.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.debezium_form.server_column import server_column
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Database, Table, TableId
from rowtide.schema_history.recovery.session_settings import recorded_event
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.history_record import RecordedTable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordedStructure:
    """The contribution of one record to a table.

    Attributes:
        ddl: the statement; ``None`` if the record only describes the table, or only renames it.
        database: the database of the record.
        databases: the databases from which the table may inherit, as they were then.
        sources: the tables that the statement copies from, as they were then.
        recorded: the description of the table, if there is no statement.
        renamed: old and new name, if the record only renames the table.
        session: settings of the statement's session, if they matter.
    """

    ddl: str | None
    database: str
    databases: tuple[Database, ...] = ()
    sources: tuple["TableHistory", ...] = ()
    recorded: RecordedTable | None = None
    renamed: tuple[TableId, TableId] | None = None
    session: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The entries of one table.

    Attributes:
        id: its current name.
        entries: from its creation on, or from a record that describes it completely.
        recorded: its description in the last record; ``None`` if no record describes it.
    """

    id: TableId
    entries: tuple[RecordedStructure, ...] = ()
    recorded: RecordedTable | None = None


def sources_first(histories: Iterable[TableHistory]) -> list[TableHistory]:
    """Return all histories, each after those of the tables from which it was copied."""
    ordered: dict[int, TableHistory] = {}
    for history in histories:
        waiting = [history]
        while waiting:
            sources = [s for entry in waiting[-1].entries for s in entry.sources if id(s) not in ordered]
            if sources:
                waiting += sources
            else:
                ready = waiting.pop()
                ordered.setdefault(id(ready), ready)
    return list(ordered.values())


def build_from_history(history: TableHistory, server: Server, *, prefer_ddl: bool = False) -> Table | None:
    """Build a table from its history; ``None`` if the entries do not result in one.

    Args:
        history: the table's entries.
        server: determines how statements are parsed.
        prefer_ddl: let the statements take precedence over the recorded descriptions.

    Raises:
        DamagedHistory: a recorded description is not a table.
    """
    built: dict[int, Table | None] = {}
    # Not by recursion: a table for each day, created LIKE that of the previous day, makes a chain of any length.
    for one in sources_first((history,)):
        built[id(one)] = _build(one, built, server, prefer_ddl=prefer_ddl)
    return built[id(history)]


def _build(
    history: TableHistory, sources: Mapping[int, Table | None], server: Server, *, prefer_ddl: bool
) -> Table | None:
    """Build a table; ``sources`` has the tables from which it was copied, by the identity of their history."""
    tables = Tables(server)
    all_applied = True
    for entry in history.entries:
        for database in entry.databases:
            tables.put_database(database)
        for source in entry.sources:
            copied = sources[id(source)]
            if copied is not None:
                tables.put(copied)
        if entry.ddl is not None:
            all_applied &= _apply(tables, entry, warn=prefer_ddl or history.recorded is None)
        elif entry.recorded is not None:
            tables.put(merge_recorded(None, entry.recorded, all_applied=True))
        elif entry.renamed is not None:
            _rename(tables, *entry.renamed)
    built = tables.table(history.id.database, history.id.table)
    if history.recorded is None or (prefer_ddl and built is not None):
        return built
    return merge_recorded(built, history.recorded, all_applied=all_applied)


def _rename(tables: Tables, old: TableId, new: TableId) -> None:
    table = tables.table(old.database, old.table)
    if table is not None:
        tables.remove(old)
        tables.put(table.renamed(new))


def _apply(tables: Tables, entry: RecordedStructure, *, warn: bool) -> bool:
    try:
        tables.apply(recorded_event(entry.ddl or "", entry.database, entry.session))
    except SchemaHistoryError as error:
        # The statement was accepted when it was recorded; the description next to it replaces it.
        if warn:
            log.warning("a statement of the schema history is ignored: %s", error)
        return False
    return True


def merge_recorded(built: Table | None, recorded: RecordedTable, *, all_applied: bool) -> Table:
    """Return the table that the statements built, with its recorded Debezium description.

    If the statements built no table, or one with other columns, the table consists of the recorded description alone.
    Debezium sometimes loses a column, as in ``CHANGE a b, CHANGE b a``; then the table that the statements built is
    used, provided that all of them could be applied.

    Args:
        built: the table that the statements built.
        recorded: the recorded description.
        all_applied: whether all statements of the table could be applied.
    """
    description, columns = recorded.debezium, recorded.columns
    assert description is not None
    if built is not None:
        by_name = {column.name: column for column in columns}
        names = [column.name for column in built.columns]
        if names == [column.name for column in columns]:
            pairs = zip(built.columns, columns, strict=True)
            described = tuple(replace(column, debezium=debezium) for column, debezium in pairs)
            return replace(built, id=recorded.id, columns=described, debezium=description)
        if all_applied and built.complete and by_name.keys() <= set(names):
            described = tuple(replace(c, debezium=by_name.get(c.name, c.debezium)) for c in built.columns)
            return replace(built, id=recorded.id, columns=described, debezium=description)
    return Table(
        recorded.id,
        tuple(server_column(column) for column in columns),
        charset=description.default_charset_name or "",
        complete=False,
        debezium=description,
    )
