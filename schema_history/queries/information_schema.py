"""Tables in the form of information_schema, as JSON: the output of ``rowtide schema``."""

import re
from typing import Any

from rowtide.schema_history.model import Column, Database, DefaultKind, KeyPart, Table
from rowtide.schema_history.server.query_event import Flavor
from rowtide.schema_history.structure.type_names import BINARY_TYPES, BLOBS, NUMBERS, TEXTS
from rowtide.schema_history.structure.types import quoted


def database_json(database: Database) -> dict[str, str]:
    """Return the character set and collation of a database."""
    return {"charset": database.charset, "collation": database.collation}


def table_json(table: Table, flavor: Flavor) -> dict[str, Any]:
    """Return the fields of a table and its columns, except those for keys, precision and length."""
    columns = [column_json(c, n, flavor) for n, c in enumerate(table.columns, 1)]
    primary = next((i for i in table.indexes if i.kind == "primary"), None)
    return {
        "columns": columns,
        "primary_key": [_part(p) for p in primary.parts] if primary else [],
        "unique_keys": {i.name: [_part(p) for p in i.parts] for i in table.indexes if i.kind == "unique"},
        "type": table.kind,
        "engine": engine_name(table.engine),
        "charset": table.charset,
        "collation": table.collation,
        "comment": _basic(table.comment),
    }


_ENGINES = {
    name.lower(): name
    for name in (
        "InnoDB", "MyISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "MRG_MyISAM", "FEDERATED", "EXAMPLE", "Aria",
        "ndbcluster",
    )
}  # fmt: skip
_ENGINES |= {"heap": "MEMORY", "merge": "MRG_MyISAM", "ndb": "ndbcluster"}


def engine_name(written: str) -> str:
    """Return the storage engine in the form of information_schema; InnoDB if none is declared."""
    return _ENGINES.get(written.lower(), written) or "InnoDB"


def _part(part: KeyPart) -> str:
    return str(part) if part.expression is None else f"({_escaped(part.expression)})"


def _escaped(expression: str) -> str:
    """Return an expression in the form of MySQL's information_schema: escaped, and its UTF-8 read as Latin-1."""
    text = expression.replace("\\", "\\\\").replace("'", "\\'")
    if text.isascii():
        return text
    return "".join(_WINDOWS.get(byte) or chr(byte) for byte in text.encode("utf8", "surrogateescape"))


# MySQL's latin1 is Windows-1252, where undefined bytes are control characters.
_WINDOWS = {byte: bytes([byte]).decode("cp1252", "ignore") for byte in range(0x80, 0xA0)}


def column_json(column: Column, position: int, flavor: Flavor) -> dict[str, Any]:
    """Return one column."""
    shows_charset = column.charset != "binary" or flavor is Flavor.MARIADB
    fields: dict[str, Any] = {
        "name": column.name,
        "ordinal_position": position,
        "column_type": _basic(column.column_type),
        "data_type": column.data_type,
        "is_nullable": "YES" if column.nullable else "NO",
        "column_default": default_text(column, flavor),
        "extra": extra(column, flavor),
        "charset": column.charset if shows_charset else None,
        "collation": column.collation if shows_charset else None,
        "comment": _basic(column.comment),
        "generation_expression": _generation(column, flavor),
    }
    if flavor is Flavor.MYSQL:
        fields["srs_id"] = column.srid
    return fields


def _generation(column: Column, flavor: Flavor) -> str | None:
    if column.row is not None:
        return column.row.value.upper()
    if flavor is Flavor.MARIADB:
        return column.generation.expression if column.generation else None
    return _escaped(column.generation.expression) if column.generation else ""


def default_text(column: Column, flavor: Flavor) -> str | None:
    """Return ``column_default``: in MariaDB an expression with quotes around strings, in MySQL the bare value."""
    if flavor is Flavor.MYSQL:
        return _mysql_default(column)
    if column.default_kind is DefaultKind.NONE:
        return "NULL" if column.generation is not None else None
    if column.default_kind is DefaultKind.NULL:
        return "NULL"
    if column.default_kind in (DefaultKind.EXPRESSION, DefaultKind.NOW):
        return column.default
    text = column.default or ""
    if column.data_type == "bit":
        return f"b'{text}'"
    if column.data_type in _UNQUOTED:
        return text
    text = _bytes_shown(text) if column.data_type in BINARY_TYPES else _basic(text)
    return f"'{text.translate(_ESCAPES)}'" if column.data_type in _LARGE else quoted(text)


_UNQUOTED = NUMBERS | {"year", "bit"}


# MariaDB stores the default of a TEXT or BLOB as an expression, and escapes its strings differently.
_LARGE = frozenset((*TEXTS, *BLOBS))
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z"})


def _mysql_default(column: Column) -> str | None:
    if column.default_kind in (DefaultKind.NONE, DefaultKind.NULL):
        return None
    if column.default_kind in (DefaultKind.EXPRESSION, DefaultKind.NOW):
        return None if column.default is None else _escaped(column.default)
    text = column.default or ""
    if column.data_type == "bit":
        return f"b'{text}'"
    if column.data_type in BINARY_TYPES:
        return "0x" + _until_zero(text).encode("latin-1").hex().upper() if text else ""
    if column.charset == "binary":  # ENUM and SET
        return "0x" + _until_zero(text).encode().hex().upper() if text else ""
    return _basic(text)


def _until_zero(text: str) -> str:
    return text.split("\0", 1)[0]


_OUTSIDE = re.compile("[\U00010000-\U0010ffff\ud800-\udfff]")


def _basic(text: str) -> str:
    """Return a text in the three-byte UTF-8 of information_schema."""
    return text if text.isascii() else _OUTSIDE.sub("?", text)


def _bytes_shown(text: str) -> str:
    data = text.encode("latin-1")
    return "".join(c if c != "\ufffd" else "?" for c in data.decode("utf8", "replace"))


def extra(column: Column, flavor: Flavor) -> str:
    """Return the ``extra`` column."""
    parts = []
    if flavor is Flavor.MYSQL:
        if column.auto_increment:
            parts.append("auto_increment")
        if column.default_kind in (DefaultKind.EXPRESSION, DefaultKind.NOW):
            parts.append("DEFAULT_GENERATED")
        if column.on_update is not None:
            parts.append("on update CURRENT_TIMESTAMP" + (f"({column.on_update})" if column.on_update else ""))
        if column.generation is not None:
            parts.append("STORED GENERATED" if column.generation.stored else "VIRTUAL GENERATED")
        if column.invisible:
            parts.append("INVISIBLE")
        if column.not_secondary:
            parts.append("NOT SECONDARY")
        return " ".join(parts)
    if column.auto_increment:
        parts.append("auto_increment")
    if column.on_update is not None:
        parts.append(f"on update current_timestamp({column.on_update or ''})")
    if column.row is not None:
        parts.append("STORED GENERATED")
    if column.generation is not None:
        parts.append("STORED GENERATED" if column.generation.stored else "VIRTUAL GENERATED")
    if column.invisible:
        parts.append("INVISIBLE")
    if column.without_system_versioning:
        parts.append("WITHOUT SYSTEM VERSIONING")
    return ", ".join(parts)
