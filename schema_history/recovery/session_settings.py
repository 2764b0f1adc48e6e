"""What a statement's text does not tell: the settings of the session that ran it.

A record of the history has the text, and the database that it is about. The session's default database can be another
one, ``ANSI_QUOTES`` makes names of strings, ``explicit_defaults_for_timestamp=OFF`` makes columns NOT NULL, a new
database has the session's character set. So a record gets the field ``session``, if it would be read otherwise without
it, and only then. Debezium looks for the fields that it knows, and passes over this one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rowtide.schema_history.catalog.changes import StatementResult
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import DamagedHistory
from rowtide.schema_history.model import DebeziumTable, Table, TableId
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.structure.context import statement_text
from rowtide.schema_history.structure.show_create import show_create

_FIELDS = {
    "db": "database",
    "sql_mode": "sql_mode",
    "charset": "charset",
    "flags2": "flags2",
    "explicit_defaults_for_timestamp": "explicit_defaults_for_timestamp",
    "default_collation_for_utf8mb4": "default_collation_for_utf8mb4",
    "character_set_collations": "character_set_collations",
    "charset_database": "charset_database",
    "error_code": "error_code",
}
"""Names in the record, and in :class:`~rowtide.schema_history.server.query_event.QueryEvent`.

Beside them stands ``sql``, the statement as it was, where the record's ``ddl`` is not the same."""


def session_fields(event: QueryEvent) -> dict[str, Any]:
    """The field ``session`` of a record, for a statement."""
    found = {name: getattr(event, field) for name, field in _FIELDS.items()}
    if not event.error_code:
        del found["error_code"]
    return {name: value for name, value in found.items() if value is not None and value != ()}


def recorded_event(ddl: str, database: str, session: Mapping[str, Any] | None) -> QueryEvent:
    """The statement of a record; without ``session`` it is read as a session of default settings would.

    Raises:
        DamagedHistory: the session's settings are not what they should be.
    """
    if session is None:
        return QueryEvent(ddl, database, sql_mode=0)
    given = {field: session[name] for name, field in _FIELDS.items() if name in session}
    try:
        for name in ("charset", "character_set_collations"):
            if name in given:
                given[name] = _tuples(given[name])
        for name in given.keys() - {"database", "charset", "character_set_collations"}:
            given[name] = int(given[name])
    except (ValueError, TypeError) as error:
        raise DamagedHistory(
            f"the schema history's record of {ddl[:60]!r} has a session that cannot be read ({error}); rebuild the "
            "history with snapshot.mode=recovery"
        ) from error
    return QueryEvent(session.get("sql", ddl), **{"sql_mode": 0, **given})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else int(value)


def required_session(
    tables: Tables, event: QueryEvent, applied: StatementResult, recorded: Callable[[TableId], bool] | None = None
) -> dict[str, Any] | None:
    """The field ``session`` for the records of a statement, if they need one.

    The records are read as a restart would, with the server's settings of now and with default ones: what comes of them
    must be what came of the statement. If the session's settings do not make up for the difference, the statement is
    given as it was (Debezium's rewording of it is what the record has), or the one that makes the table.

    Args:
        tables: as they are behind the statement.
        event: the statement.
        applied: what it did.
        recorded: whether a table is in the history; ``None`` if all are.
    """
    if not applied.altered and applied.databases_before is None:
        return None
    server = tables.server
    plain = Server(server.flavor, server.version, server.lower_case_table_names)
    trial = _Trial(tables, applied, recorded if _TWO_TABLES.search(statement_text(event, server.flavor)) else None)
    if all(trial.reads_the_same(judge, None) for judge in {server, plain}):
        return None
    fields = session_fields(event)
    if len(applied.changes) == 1:
        for found in (fields, {**fields, "sql": statement_text(event, server.flavor)}):
            if trial.reads_the_same(plain, found):
                return found
        if (table := applied.changes[0].table) is not None:
            return {"db": table.id.database, "sql": show_create(table, server)}
    return fields


_TWO_TABLES = re.compile(r"\b(?:LIKE|RENAME|EXCHANGE|CONVERT)\b", re.IGNORECASE)
"""Statements that may take a table's structure from another one, which the history may lack."""


class _Trial:
    """Reads the records of a statement, and compares."""

    def __init__(self, tables: Tables, applied: StatementResult, recorded: Callable[[TableId], bool] | None) -> None:
        self._tables = tables
        self._applied = applied
        self._recorded = recorded

    def reads_the_same(self, server: Server, session: Mapping[str, Any] | None) -> bool:
        applied, tables = self._applied, self._tables
        trial = tables.before(applied, server)
        if self._recorded is not None:
            for name in trial.names():
                if not self._recorded(name):
                    trial.remove(name)
        try:
            for change in applied.changes:
                trial.apply(recorded_event(change.ddl, change.database, session))
        except Exception:  # noqa: BLE001 - whatever it is, a restart would not get through it either
            return False
        if applied.databases_before is not None and list(trial.databases()) != list(tables.databases()):
            return False
        return all(_bare(trial.table(name.database, name.table)) == _bare(table) for name, table in applied.altered)


def _bare(table: Table | None) -> Table | None:
    """Without Debezium's forms, which records tell by themselves."""
    if table is None:
        return None
    columns, hidden = (tuple(replace(c, debezium=None) for c in some) for some in (table.columns, table.hidden))
    return replace(table, columns=columns, hidden=hidden, debezium=DebeziumTable())
