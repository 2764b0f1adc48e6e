"""What a schema history tells of each table, kept until the table is needed.

A history may hold many more statements than a connector needs: those of tables that are gone, or that have no changes
now. Reading one statement takes as long as reading ten records, so each table only collects its own here, and is made
of them when it is first asked for. Statements about databases, which all later tables inherit from, are done at once.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.debezium_form.server_column import server_column
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Database, Table, TableId
from rowtide.schema_history.recovery.session_settings import recorded_event
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.record import RecordedTable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One record's part in a table.

    Attributes:
        ddl: the statement; ``None`` if only the table is told.
        database: the database of its record.
        databases: databases that the table may inherit from, as they were then.
        needs: tables that the statement copies from, as they were then.
        told: the table, if there is no statement.
        moved: the table's names before and after, if that is all that was done.
        session: the settings of the statement's session, if they matter.
    """

    ddl: str | None
    database: str
    databases: tuple[Database, ...] = ()
    needs: tuple["TableHistory", ...] = ()
    told: RecordedTable | None = None
    moved: tuple[TableId, TableId] | None = None
    session: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TableHistory:
    """All that a history tells of one table.

    Attributes:
        id: its name now.
        entries: from its making on, or from a record that tells all of it.
        told: how the last record describes it, ``None`` if none does.
    """

    id: TableId
    entries: tuple[HistoryEntry, ...] = ()
    told: RecordedTable | None = None


def table_of(journal: TableHistory, server: Server, *, prefer_ddl: bool = False) -> Table | None:
    """Make the table.

    Args:
        journal: what is known of it.
        server: decides how statements are read.
        prefer_ddl: let the statements count, not what the records tell beside them.

    Raises:
        DamagedHistory: what a record tells is not a table.
    """
    tables = Tables(server)
    understood = True
    for entry in journal.entries:
        for database in entry.databases:
            tables.put_database(database)
        for need in entry.needs:
            copied = table_of(need, server, prefer_ddl=prefer_ddl)
            if copied is not None:
                tables.put(copied)
        if entry.ddl is not None:
            understood &= _apply(tables, entry, report=prefer_ddl or journal.told is None)
        elif entry.told is not None:
            tables.put(merged(None, entry.told, understood=True))
        elif entry.moved is not None:
            _move(tables, *entry.moved)
    known = tables.table(journal.id.database, journal.id.table)
    if journal.told is None or (prefer_ddl and known is not None):
        return known
    return merged(known, journal.told, understood=understood)


def _move(tables: Tables, old: TableId, new: TableId) -> None:
    table = tables.table(old.database, old.table)
    if table is not None:
        tables.remove(old)
        tables.put(table.renamed(new))


def _apply(tables: Tables, entry: HistoryEntry, *, report: bool) -> bool:
    try:
        tables.apply(recorded_event(entry.ddl or "", entry.database, entry.session))
    except SchemaHistoryError as error:
        # A statement that was recorded was accepted once; what the record tells beside it stands in for it.
        if report:
            log.warning("a statement of the schema history is left out: %s", error)
        return False
    return True


def merged(known: Table | None, told: RecordedTable, *, understood: bool) -> Table:
    """What the statements have made, with the forms that were recorded; without it, what the forms alone tell.

    Debezium loses a column now and then, as in ``CHANGE a b, CHANGE b a``: then the statements count, if all of them
    were understood.
    """
    form, columns = told.debezium, told.columns
    assert form is not None
    if known is not None:
        forms = {column.name: column for column in columns}
        names, wanted = [column.name for column in known.columns], [column.name for column in columns]
        if names == wanted:
            pairs = zip(known.columns, columns, strict=True)
            return replace(known, id=told.id, columns=tuple(replace(c, debezium=f) for c, f in pairs), debezium=form)
        if understood and known.complete and forms.keys() <= set(names):
            kept = tuple(replace(column, debezium=forms.get(column.name, column.debezium)) for column in known.columns)
            return replace(known, id=told.id, columns=kept, debezium=form)
    return Table(
        told.id,
        tuple(server_column(column) for column in columns),
        charset=form.default_charset_name or "",
        complete=False,
        debezium=form,
    )
