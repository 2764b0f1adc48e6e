"""SHOW CREATE TABLE: the statement for a table in the server's form.

A snapshot reads this text, so it determines how Debezium describes a table; and ``rowtide schema`` shows it. It has all
properties of ``Table``; storage options are not included.
"""

import re

from rowtide.schema_history.model import Column, DefaultKind, Extra, Index, KeyPart, Table
from rowtide.schema_history.server import charsets
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.structure.type_names import BINARY_TYPES, NUMBERS

_NUMBERS = NUMBERS | {"year", "bit"}
_NO_LITERAL_DEFAULT = frozenset({"tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob",
                                 "longblob", "json", "geometry"})  # fmt: skip
_SUPPLEMENTARY = re.compile("[\U00010000-\U0010ffff]")
"""Characters that MySQL cannot print, because it uses three-byte UTF-8."""
_CURRENT = re.compile(r"current_timestamp(?:\((\d*)\))?", re.IGNORECASE)


def quoted_name(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """Return a string literal in the form of both servers."""
    for char, escape in (("\\", "\\\\"), ("'", "''"), ("\0", "\\0"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(char, escape)
    return f"'{text}'"


def show_create(table: Table, server: Server) -> str:
    """Return the CREATE TABLE statement of a table.

    Args:
        table: the table; if it is not ``complete``, the statement lacks the unknown parts.
        server: determines the syntax.
    """
    lines = [_column(column, table, server) for column in table.columns]
    lines += [_index(index) for index in table.indexes]
    if table.kind == "SYSTEM VERSIONED" and any(column.row for column in table.columns):
        start = next(column.name for column in table.columns if column.row is Extra.ROW_START)
        end = next(column.name for column in table.columns if column.row is Extra.ROW_END)
        lines.append(f"PERIOD FOR SYSTEM_TIME ({quoted_name(start)}, {quoted_name(end)})")
    body = ",\n  ".join(lines)
    return f"CREATE TABLE {quoted_name(table.id.table)} (\n  {body}\n){_options(table)}"


def _options(table: Table) -> str:
    options = f" ENGINE={table.engine or 'InnoDB'}"
    if table.charset:
        options += f" DEFAULT CHARSET={table.charset}"
    if table.collation:
        options += f" COLLATE={table.collation}"
    if table.comment:
        options += f" COMMENT={quoted_text(table.comment)}"
    if table.kind == "SYSTEM VERSIONED":
        options += " WITH SYSTEM VERSIONING"
    return options


def _column(column: Column, table: Table, server: Server) -> str:
    words = [quoted_name(column.name), column.column_type]
    if column.charset and column.collation and column.collation != table.collation:
        words.append(f"CHARACTER SET {column.charset} COLLATE {column.collation}")
    if column.row is not None:
        words.append(f"GENERATED ALWAYS AS ROW {'START' if column.row is Extra.ROW_START else 'END'}")
        words += _default(column, server)
        if column.invisible:
            words.append("INVISIBLE")
        return " ".join(words)
    if column.generation is not None:
        kind = "STORED" if column.generation.stored else "VIRTUAL"
        words.append(f"GENERATED ALWAYS AS ({column.generation.expression}) {kind}")
    if not column.nullable:
        words.append("NOT NULL")
    elif column.generation is None and column.data_type == "timestamp":
        words.append("NULL")
    if column.generation is None:  # MariaDB accepts a default of a generated column, but does not show it
        words += _default(column, server)
    if column.auto_increment:
        words.append("AUTO_INCREMENT NULL" if column.nullable else "AUTO_INCREMENT")
    if column.invisible:
        words.append("INVISIBLE" if server.flavor is Flavor.MARIADB else "/*!80023 INVISIBLE */")
    if column.srid is not None:
        words.append(f"/*!80003 SRID {column.srid} */")
    if column.not_secondary:
        words.append("NOT SECONDARY")
    if column.without_system_versioning:
        words.append("WITHOUT SYSTEM VERSIONING")
    if column.comment:
        words.append(f"COMMENT {quoted_text(column.comment)}")
    return " ".join(words)


def _default(column: Column, server: Server) -> list[str]:
    words = []
    if column.default_kind is DefaultKind.NULL:
        if server.flavor is Flavor.MARIADB or column.data_type not in _NO_LITERAL_DEFAULT:
            words.append("DEFAULT NULL")
    elif column.default_kind is DefaultKind.LITERAL and column.default is not None:
        words.append(f"DEFAULT {_literal(column, column.default, server)}")
    elif column.default_kind in (DefaultKind.EXPRESSION, DefaultKind.NOW) and column.default is not None:
        bare = server.flavor is Flavor.MARIADB or _CURRENT.fullmatch(column.default)
        words.append(f"DEFAULT {column.default if bare else f'({column.default})'}")
    if column.on_update is not None:
        digits = f"({column.on_update})" if column.on_update else ""
        words.append(f"ON UPDATE CURRENT_TIMESTAMP{digits}")
    return words


def _literal(column: Column, text: str, server: Server) -> str:
    if column.data_type == "bit":
        return f"b'{text}'"
    if server.flavor is Flavor.MARIADB and column.data_type in _NUMBERS:
        return text
    stored = text.encode("latin-1", "replace") if column.data_type in BINARY_TYPES else None
    if server.flavor is Flavor.MARIADB:
        return quoted_text(text) if stored is None else _shown_bytes(stored, "X'", "'")
    if stored is not None:
        return _shown_bytes(stored, "0x", "")
    if _SUPPLEMENTARY.search(text):
        return f"0x{text.encode(charsets.codec(column.charset or 'utf8mb4'), 'replace').hex().upper()}"
    return quoted_text(text)


def _shown_bytes(stored: bytes, before: str, after: str) -> str:
    try:
        text = stored.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or (before == "0x" and _SUPPLEMENTARY.search(text)):
        return f"{before}{stored.hex().upper()}{after}"
    return quoted_text(text)


def _index(index: Index) -> str:
    parts = ",".join(_part(part) for part in index.parts)
    if index.kind == "primary":
        return f"PRIMARY KEY ({parts})"
    kind = "" if index.kind == "key" else f"{index.kind.upper()} "
    return f"{kind}KEY {quoted_name(index.name)} ({parts})" + (" USING HASH" if index.hashed else "")


def _part(part: KeyPart) -> str:
    text = f"({part.expression})" if part.expression is not None else quoted_name(part.column)
    if part.length is not None:
        text += f"({part.length})"
    return f"{text} DESC" if part.descending else text
