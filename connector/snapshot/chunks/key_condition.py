"""SQL conditions for rows whose keys are known as canonical texts. Pure."""

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal

from rowtide.connector.protocol.charset import ambiguous_characters
from rowtide.connector.source.server_queries import quoted
from rowtide.schema_history.model import Column

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"})
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
_BYTES = frozenset({"varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_LENGTH = re.compile(r"\((\d+)\)")


def key_condition(columns: Sequence[Column], keys: Sequence[Sequence[str]]) -> str | None:
    """Return the condition for the rows of some keys; ``None`` if a key cannot be written exactly.

    Args:
        columns: the columns of the key.
        keys: for each key, the canonical texts of its values.
    """
    conditions = []
    for key in keys:
        literals = [_literal(column, text) for column, text in zip(columns, key, strict=True)]
        if None in literals:
            return None
        pairs = zip(columns, literals, strict=True)
        conditions.append("(" + " AND ".join(f"{quoted(one.name)} = {literal}" for one, literal in pairs) + ")")
    return " OR ".join(conditions)


def _literal(column: Column, text: str) -> str | None:
    kind, tag, value = column.data_type, text[0], text[1:]
    match tag:
        case "i" | "b" if kind in _INTEGERS:
            return value
        case "i" | "d" if kind == "decimal":
            return str(Decimal(value))
        case "s" if kind in _TEXTS and column.charset not in (None, "binary"):
            if not ambiguous_characters(column.charset).isdisjoint(value):
                return None
            try:
                return f"_utf8mb4 x'{value.encode().hex()}'"
            except UnicodeEncodeError:
                return None
        case "x" if kind in _BYTES:
            return f"x'{value}'"
        case "x" if kind == "binary":
            length = _LENGTH.search(column.column_type)
            return f"x'{value:0<{2 * int(length[1] if length else 1)}}'"
        case "t" if kind in ("date", "datetime", "timestamp"):
            return f"'{value.removesuffix('+00:00').replace('T', ' ')}'"
        case "h" if kind == "time":
            return f"'{clock_text(int(value))}'"
    return None


def clock_text(micros: int) -> str:
    """Return a TIME of so many microseconds as the server prints it, with six digits."""
    seconds, rest = divmod(abs(micros), 1_000_000)
    clock = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"
    return f"-{clock}" if dt.timedelta(microseconds=micros) < dt.timedelta() else clock
