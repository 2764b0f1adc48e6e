"""The DDL statements recorded with real servers, and the parts of a table's structure that are compared."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[2] / "schema_history" / "corpus"
COLUMN_FIELDS = (
    "name", "ordinal_position", "column_type", "data_type", "is_nullable", "charset", "collation", "extra", "comment",
)  # fmt: skip
TABLE_FIELDS = ("primary_key", "unique_keys", "charset", "collation", "comment", "type")
_LITERAL = re.compile(r"-?[\d.]+(e-?\d+)?|b?'.*'|NULL", re.DOTALL)

# Statements whose effect is not in the binlog, by file and line.
NOT_IN_THE_BINLOG = {
    ("sql_modes.sql.mysql", 117): "CREATE TABLE ... SELECT in STATEMENT format: the columns come from the query",
    ("sql_modes.sql.mysql", 124): "CREATE TABLE ... SELECT in STATEMENT format: the columns come from the query",
    ("sql_modes.sql.mariadb", 117): "CREATE TABLE ... SELECT in STATEMENT format: the columns come from the query",
    ("sql_modes.sql.mariadb", 124): "CREATE TABLE ... SELECT in STATEMENT format: the columns come from the query",
    ("mariadb.sql.mariadb", 145): "old_mode='' makes utf8 mean utf8mb4, and is in no event",
}


def recordings() -> list[Path]:
    """The files of all recordings."""
    return sorted(CORPUS.rglob("*.jsonl.gz"))


def name_of(path: Path) -> str:
    """The name of a recording: that of its file, without folder and suffixes."""
    return path.name.removesuffix(".jsonl.gz")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a recording, the header first."""
    with gzip.open(path, "rt", encoding="utf8") as file:
        for line in file:
            yield json.loads(line)


def events(path: Path) -> Iterator[str]:
    """The input of ``rowtide schema apply`` for a recording: its header, then all Query events."""
    recorded = lines(path)
    yield json.dumps(next(recorded))
    for record in recorded:
        for entry in record["binlog"]:
            yield json.dumps(entry)


def fold(known: dict[str, Any], changed: dict[str, Any]) -> None:
    """Apply changes; ``null`` removes an entry."""
    for name, value in changed.items():
        if value is None:
            known.pop(name, None)
        else:
            known[name] = value


def comparable(table: dict[str, Any], server: str) -> dict[str, Any]:
    """The parts of a table that must be equal. Of a default expression, only its presence is compared."""
    return {
        "columns": [_column(column, server) for column in table["columns"]],
        **{field: table[field] for field in TABLE_FIELDS},
    }


def _column(column: dict[str, Any], server: str) -> dict[str, Any]:
    fields = {field: column[field] for field in COLUMN_FIELDS}
    if server == "mysql":
        fields["srs_id"] = column["srs_id"]
    return {**fields, "default": _default(column, server), "generated": bool(column["generation_expression"])}


def _default(column: dict[str, Any], server: str) -> str | None:
    default: str | None = column["column_default"]
    if server == "mysql":
        expression = "DEFAULT_GENERATED" in column["extra"]
    else:
        expression = default is not None and not _LITERAL.fullmatch(default)
    return "an expression" if expression else default
