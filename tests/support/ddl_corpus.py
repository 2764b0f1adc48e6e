"""Recordings of real servers: their lines, and what of a table's structure is compared."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "schema_history" / "corpus"
FIELDS = ("name", "column_type", "is_nullable", "charset", "collation", "extra", "comment")
TABLE_FIELDS = ("primary_key", "unique_keys", "charset", "collation", "comment", "type")
_LITERAL = re.compile(r"-?[\d.]+(e-?\d+)?|b?'.*'|NULL", re.DOTALL)

# What the binlog does not tell, by file and line.
NOT_IN_THE_BINLOG = {
    ("sql_modes.sql.mysql", 117): "CREATE TABLE ... SELECT in STATEMENT format: the columns come from the query",
    ("sql_modes.sql.mysql", 124): "CREATE TABLE ... SELECT in STATEMENT format: the columns come from the query",
    ("sql_modes.sql.mariadb", 117): "CREATE TABLE ... SELECT in STATEMENT format: the columns come from the query",
    ("sql_modes.sql.mariadb", 124): "CREATE TABLE ... SELECT in STATEMENT format: the columns come from the query",
    ("mariadb.sql.mariadb", 145): "old_mode='' makes utf8 mean utf8mb4, and is in no event",
}


def recordings() -> list[Path]:
    """All recordings."""
    return sorted(CORPUS.rglob("*.jsonl.gz"))


def name_of(path: Path) -> str:
    """A recording's name: its file without folders and endings."""
    return path.name.removesuffix(".jsonl.gz")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a recording, the header first."""
    with gzip.open(path, "rt", encoding="utf8") as file:
        for line in file:
            yield json.loads(line)


def comparable(table: dict[str, Any], server: str) -> dict[str, Any]:
    """What must be equal: of an expression as a default only that it is one."""
    columns = [
        {**{field: column[field] for field in FIELDS}, "default": _default(column, server)}
        for column in table["columns"]
    ]
    return {"columns": columns, **{field: table[field] for field in TABLE_FIELDS}}


def _default(column: dict[str, Any], server: str) -> str | None:
    default: str | None = column["column_default"]
    if default is None:
        return None
    expression = "DEFAULT_GENERATED" in column["extra"] if server == "mysql" else not _LITERAL.fullmatch(default)
    return "an expression" if expression else default
