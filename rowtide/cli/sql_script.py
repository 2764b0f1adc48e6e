"""Statements of a ``.sql`` file, split as MySQL's command-line client splits them, and applied to an empty catalog."""

import re
from collections.abc import Iterator
from typing import Any

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.ddl.statements import Use
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.queries.apply import apply_entry
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.structure.context import context_of

__all__ = ["apply_script", "statements"]

# A delimiter inside any of these does not end a statement. Executable comments (/*! and /*M!) are part of a statement.
_PIECE = re.compile(
    r"""
    (?P<literal>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|/\*M?!.*?\*/)
  | (?P<blank>\s+|--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*.*?\*/)
  | (?P<text>[^\s'"`/\#-]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DELIMITER = re.compile(r"delimiter[ \t]+(\S+)[^\n]*", re.IGNORECASE)


def apply_script(script: str, flavor: Flavor, tables: Tables | None = None) -> Iterator[dict[str, Any]]:
    """Apply the statements of a script; yield the first line, the error and the changes of each.

    ``USE`` selects the database. ``SET`` has no effect: statements are read under the server's default settings.

    Args:
        script: the statements.
        flavor: of the server.
        tables: the catalog that they change; an empty one by default.
    """
    tables = Tables(Server(flavor)) if tables is None else tables
    database = ""
    for line, sql in statements(script):
        selected = _selected_database(sql, tables.server)
        if selected is not None:
            database = selected
            continue
        yield {"line": line, **apply_entry(tables, {"db": database, "sql": sql}, f"line {line}")}


def _selected_database(sql: str, server: Server) -> str | None:
    """Return the database that a ``USE`` statement names."""
    try:
        body = parse(sql, context_of(QueryEvent(sql), server).dialect).body
    except SchemaHistoryError:
        return None
    return body.database if isinstance(body, Use) else None


def statements(script: str) -> Iterator[tuple[int, str]]:
    """Yield the statements of a script without their delimiters, each with the number of its first line.

    ``DELIMITER`` lines change the delimiter, as in MySQL's client. Comments between statements are omitted.
    """
    delimiter, start, at, line = ";", -1, 0, 1
    counted = 0
    while at < len(script):
        command = _DELIMITER.match(script, at) if start < 0 else None
        if command:
            delimiter, at = command[1], command.end()
            continue
        if script.startswith(delimiter, at):
            if start >= 0:
                yield line, script[start:at].rstrip()
            start, at = -1, at + len(delimiter)
            continue
        piece = _PIECE.match(script, at)
        assert piece is not None, "the last alternative matches any character"
        end = piece.end()
        if piece.lastgroup == "text":
            found = script.find(delimiter, at, end)
            end = found if found > at else end
        if start < 0 and piece.lastgroup != "blank":
            line += script.count("\n", counted, at)
            start = counted = at
        at = end
    if start >= 0:
        yield line, script[start:].rstrip()
