"""The session settings that a history record needs in addition to the text of its statement.

A record has the text and the database that the statement concerns. But the session's default database can be another
one, ``ANSI_QUOTES`` turns strings into names, ``explicit_defaults_for_timestamp=OFF`` makes columns NOT NULL, and a new
database takes the session's character set. A record therefore gets the field ``session`` if, and only if, the statement
would have a different result without it. Debezium ignores unknown fields.

A record about temporary tables has the session's ``thread_id``. Without it, a restart would apply ``ALTER TABLE t`` to
the table hidden by the temporary one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rowtide.schema_history.catalog.changes import StatementResult
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import DamagedHistory, without_literals
from rowtide.schema_history.model import DebeziumTable, Table, TableId
from rowtide.schema_history.server.charsets import unicode_text
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.store.json_fields import text
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
"""Field names in the record, and in :class:`~rowtide.schema_history.server.query_event.QueryEvent`.

The record can also have ``sql``: the original statement, where the record's ``ddl`` has another text."""


def session_fields(event: QueryEvent) -> dict[str, Any]:
    """Return the field ``session`` of a statement's record: all settings that the event has."""
    found = {name: getattr(event, field) for name, field in _FIELDS.items()}
    if not event.error_code:
        del found["error_code"]
    return {name: value for name, value in found.items() if value is not None and value != ()}


def recorded_event(ddl: str, database: str, session: Mapping[str, Any] | None) -> QueryEvent:
    """Return the statement of a record as an event; without ``session``, with default settings.

    Raises:
        DamagedHistory: the session settings cannot be parsed.
    """
    if session is None:
        return QueryEvent(ddl, database, sql_mode=0)
    given = {field: session[name] for name, field in _FIELDS.items() if name in session}
    if concerns_temporary(session):
        given["thread_id"], given["thread_specific"] = session["thread_id"], True
    try:
        text(session.get("sql", ddl), "sql")
        for name, value in given.items():
            if name == "database":
                text(value, name)
            elif name == "charset":
                client, connection, server = value
                given[name] = int(client), int(connection), int(server)
            elif name == "character_set_collations":
                given[name] = tuple((int(default), int(replacement)) for default, replacement in value)
            else:
                given[name] = int(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise DamagedHistory(
            f"the schema history's record of {without_literals(ddl)[:60]!r} has session settings that cannot be read "
            f"({type(error).__name__}); rebuild the "
            "history with snapshot.mode=recovery"
        ) from error
    return QueryEvent(session.get("sql", ddl), **{"sql_mode": 0, **given})


def concerns_temporary(session: Mapping[str, Any] | None) -> bool:
    """Return whether a record with these settings is about temporary tables."""
    return session is not None and "thread_id" in session


def required_sessions(
    tables: Tables, event: QueryEvent, result: StatementResult, recorded: Callable[[TableId], bool] | None = None
) -> Sequence[dict[str, Any] | None]:
    """Return the field ``session`` for each record of a statement; ``None`` for those that need none.

    The records are applied as a restart would apply them, with the server's current settings and with default ones. The
    result must be that of the statement itself. If it is not, the session's settings are added; if that is not enough,
    also the original statement (the record has Debezium's rewording); and otherwise SHOW CREATE TABLE of the table.

    Args:
        tables: the tables after the statement.
        event: the statement.
        result: its result.
        recorded: returns whether a table is in the history; ``None`` if all are.
    """
    number = len(result.changes)
    if result.temporary:
        return [{**session_fields(event), "thread_id": event.thread_id}] * number
    if not result.altered and result.databases_before is None:
        return [None] * number
    server = tables.server
    plain = Server(server.flavor, server.version, server.lower_case_table_names)
    trial = _Trial(tables, result, recorded if _TWO_TABLES.search(statement_text(event, server.flavor)) else None)
    if all(trial.has_same_result(judge, None) for judge in {server, plain}):
        return [None] * number
    fields = session_fields(event)
    if trial.has_same_result(plain, fields):
        return [fields] * number
    if number == 1:
        statement = {**fields, "sql": unicode_text(statement_text(event, server.flavor))}
        if trial.has_same_result(plain, statement):
            return [statement]
    return [fields if change.table is None else _definition(change.table, server) for change in result.changes]


def _definition(table: Table, server: Server) -> dict[str, Any]:
    """Return the field ``session`` of a record that defines a table."""
    return {"db": table.id.database, "sql": unicode_text(show_create(table, server))}


_TWO_TABLES = re.compile(r"\b(?:LIKE|RENAME|EXCHANGE|CONVERT)\b", re.IGNORECASE)
"""Statements that may copy the structure of another table, which the history may lack."""


class _Trial:
    """Applies the records of a statement to a copy, and compares the result with that of the statement."""

    def __init__(self, tables: Tables, result: StatementResult, recorded: Callable[[TableId], bool] | None) -> None:
        self._tables = tables
        self._result = result
        self._recorded = recorded

    def has_same_result(self, server: Server, session: Mapping[str, Any] | None) -> bool:
        result, tables = self._result, self._tables
        trial = tables.before(result, server, self._recorded)
        try:
            for change in result.changes:
                trial.apply(recorded_event(change.ddl, change.database, session))
        except Exception:  # noqa: BLE001 - any error here would be an error at a restart
            return False
        if result.databases_before is not None and list(trial.databases()) != list(tables.databases()):
            return False
        return all(
            _without_description(trial.table(name.database, name.table)) == _without_description(table)
            for name, table in result.altered
        )


def _without_description(table: Table | None) -> Table | None:
    """Return the table without its Debezium description, which records contain anyway."""
    if table is None:
        return None
    columns, hidden = (tuple(replace(c, debezium=None) for c in some) for some in (table.columns, table.hidden))
    return replace(table, columns=columns, hidden=hidden, debezium=DebeziumTable())
