"""``rowtide schema apply``: what rowtide makes of statements, in the form of the recorded corpora.

A line of input is a Query event as JSON: ``db``, ``sql`` (or ``sql_hex``), ``sql_mode``, ``charset``, ``vars``. The
first line may be a recording's header with the server, its variables and its databases.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rowtide.schema_history.charsets import charset_of
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.information_schema import database_json, table_json
from rowtide.schema_history.model import Database, Table
from rowtide.schema_history.query import Flavor, QueryEvent, Server
from rowtide.schema_history.tables import Tables


def apply_lines(lines: Iterable[str], flavor: Flavor) -> Iterator[str]:
    """For every event one line of JSON: ``error``, ``databases`` and ``changed`` (``null`` for what is gone)."""
    tables = Tables(Server(flavor))
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        entry = json.loads(line)
        if "sql" not in entry and "variables" in entry:
            tables = tables_of_header(entry, flavor)
            continue
        yield json.dumps(apply_entry(tables, entry, position=f"line {number}"), ensure_ascii=False)


def tables_of_header(header: Mapping[str, Any], flavor: Flavor) -> Tables:
    """The catalog with which a recording begins."""
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
    """A Query event from its JSON form."""
    variables = entry.get("vars") or {}
    charset = entry.get("charset")
    explicit = variables.get("explicit_defaults_for_timestamp")
    return QueryEvent(
        sql=bytes.fromhex(entry["sql_hex"]) if "sql_hex" in entry else entry["sql"],
        database=entry.get("db") or "",
        sql_mode=entry.get("sql_mode"),
        charset=(charset[0], charset[1], charset[2]) if charset else None,
        flags2=variables.get("flags2"),
        explicit_defaults_for_timestamp=None if explicit is None else bool(explicit),
        default_collation_for_utf8mb4=variables.get("default_collation_for_utf8mb4"),
        character_set_collations=tuple((a, b) for a, b in variables.get("character_set_collations", ())),
        charset_database=variables.get("charset_database"),
        thread_specific=bool(entry.get("thread_specific")),
        error_code=int(entry.get("error_code", 0)),
        position=position,
    )


def apply_entry(tables: Tables, entry: Mapping[str, Any], position: str = "") -> dict[str, Any]:
    """Apply one event to the catalog and say what it changed."""
    flavor = tables.server.flavor
    before_databases = {d.name: d for d in tables.databases()}
    before = {t.id: t for t in tables}
    try:
        applied = tables.apply(event_of(entry, position))
    except SchemaHistoryError as problem:
        return {"error": str(problem), "databases": {}, "changed": {}}
    changed = {}
    for table_id, table in applied.altered:
        old = before.get(table_id)
        if (old is None) != (table is None) or (table is not None and old is not None and not _same(old, table)):
            changed[str(table_id)] = None if table is None else table_json(table, flavor)
    databases: dict[str, Any] = {}
    after = {d.name: d for d in tables.databases()}
    for name in sorted(before_databases.keys() | after.keys()):
        old_json = database_json(before_databases[name]) if name in before_databases else None
        new_json = database_json(after[name]) if name in after else None
        if old_json != new_json:
            databases[name] = new_json
    return {"error": None, "databases": databases, "changed": changed}


def _same(old: Table, new: Table) -> bool:
    return old is new
