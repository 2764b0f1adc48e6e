"""``rowtide schema apply``: applies statements and reports the changed tables as JSON.

A line of input is a Query event as JSON: ``db``, ``sql`` (or ``sql_hex``), ``sql_mode``, ``charset``, ``vars``. The
first line can be a header with the server, its variables and its databases.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Database
from rowtide.schema_history.queries.information_schema import database_json, table_json
from rowtide.schema_history.server.charsets import charset_of
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


class NotAnEvent(ValueError):
    """A line of input is not a Query event; the message says why, and describes the expected form."""


def apply_lines(lines: Iterable[str], flavor: Flavor) -> Iterator[dict[str, Any]]:
    """Yield the result of each event: ``error``, ``databases`` and ``changed`` (``None`` for dropped objects).

    A line that is not an event also has a result, with the reason as its error. An event with an error changes nothing.

    Raises:
        NotAnEvent: after the last answer, if no line was a Query event.
    """
    tables = Tables(Server(flavor))
    answers = events = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            entry = _object(line)
            if _is_header(entry):
                tables = tables_of_header(entry, flavor)
                continue
            answer = apply_entry(tables, entry, place)
            events += 1
        except NotAnEvent as problem:
            answer = _failed(f"{place}: {problem}")
        except Exception as problem:  # noqa: BLE001 - every event has a result
            answer = _failed(f"{place}: {type(problem).__name__}: {problem}")
            events += 1
        answers += 1
        yield answer
    if answers and not events:
        raise NotAnEvent("no line of the input is a Query event")


def _failed(reason: str) -> dict[str, Any]:
    return {"error": reason, "databases": {}, "changed": {}}


def _object(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as problem:
        raise NotAnEvent(f"not JSON ({problem}); expected one Query event per line, as a JSON object") from None
    if not isinstance(entry, dict):
        raise NotAnEvent(f"a JSON object is expected, such as {_EXAMPLE}, not {line.strip()[:80]}")
    return entry


_EXAMPLE = '{"db": "shop", "sql": "CREATE TABLE t (a INT)", "sql_mode": 0, "charset": [255, 255, 255], "vars": {}}'


def _is_header(entry: Mapping[str, Any]) -> bool:
    return "sql" not in entry and "sql_hex" not in entry and ("variables" in entry or "server" in entry)


def tables_of_header(header: Mapping[str, Any], flavor: Flavor) -> Tables:
    """Return the tables and databases of a header."""
    variables = header.get("variables", {})
    server = Server(
        flavor,
        str(header.get("version", "")),
        int(variables.get("lower_case_table_names", 0)),
        str(variables.get("collation_server", "")),
        bool(int(variables.get("explicit_defaults_for_timestamp", 1))),
    )
    tables = Tables(server)
    for name, database in header.get("databases", {}).items():
        collation = database["collation"]
        tables.put_database(Database(name, database["charset"], collation, charset_of(collation)))
    return tables


def event_of(entry: Mapping[str, Any], position: str = "") -> QueryEvent:
    """Parse the JSON of a Query event.

    Raises:
        NotAnEvent: it has no statement, or an invalid field.
    """
    if "sql" not in entry and "sql_hex" not in entry:
        if "binlog" in entry:
            raise NotAnEvent(
                "a line of a recording, not a Query event: pass the entries of its list 'binlog', one per line"
            )
        raise NotAnEvent(f"no field 'sql'; expected a Query event such as {_EXAMPLE}")
    try:
        return _event(entry, position)
    except (TypeError, ValueError, IndexError, AttributeError) as problem:
        raise NotAnEvent(f"a field is invalid ({problem}); expected a Query event such as {_EXAMPLE}") from None


def _event(entry: Mapping[str, Any], position: str) -> QueryEvent:
    variables = entry.get("vars") or {}
    charset = entry.get("charset")
    explicit = variables.get("explicit_defaults_for_timestamp")
    sql = entry.get("sql")
    if sql is not None and not isinstance(sql, str):
        raise TypeError("'sql' is not a string")
    return QueryEvent(
        sql=bytes.fromhex(entry["sql_hex"]) if sql is None else sql,
        database=entry.get("db") or "",
        sql_mode=_number(entry.get("sql_mode")),
        charset=(int(charset[0]), int(charset[1]), int(charset[2])) if charset else None,
        flags2=_number(variables.get("flags2")),
        explicit_defaults_for_timestamp=None if explicit is None else bool(int(explicit)),
        default_collation_for_utf8mb4=_number(variables.get("default_collation_for_utf8mb4")),
        character_set_collations=tuple((int(a), int(b)) for a, b in variables.get("character_set_collations") or ()),
        charset_database=_number(variables.get("charset_database")),
        thread_specific=bool(entry.get("thread_specific")),
        error_code=int(entry.get("error_code") or 0),
        position=position,
    )


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def apply_entry(tables: Tables, entry: Mapping[str, Any], position: str = "") -> dict[str, Any]:
    """Apply one event, and return its changes.

    Raises:
        NotAnEvent: the entry is not an event.
    """
    flavor = tables.server.flavor
    event = event_of(entry, position)
    before = {database.name: database for database in tables.databases()}
    try:
        applied = tables.apply(event)
    except SchemaHistoryError as problem:
        return _failed(problem.message(literals=True))
    changed = {
        str(table_id): None if table is None else table_json(table, flavor) for table_id, table in applied.altered
    }
    after = {database.name: database for database in tables.databases()}
    databases = {
        name: database_json(after[name]) if name in after else None
        for name in sorted(before.keys() | after.keys())
        if _shown(before.get(name)) != _shown(after.get(name))
    }
    return {"error": None, "databases": databases, "changed": changed}


def _shown(database: Database | None) -> dict[str, str] | None:
    return None if database is None else database_json(database)
