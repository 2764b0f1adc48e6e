"""Rebuilds the structure of a table that does not fit the table's rows.

A structure can change without a trace in the binlog (``SET sql_log_bin=0``, an edited history). Every TABLE_MAP has the
types. With ``binlog_row_metadata=FULL`` it also has names, signedness, character sets, labels and the primary key,
which is all that decoding needs. What it lacks (defaults, comments, unique keys) is kept from known columns that fit.
The server's SHOW CREATE TABLE has everything.

The schema history gets a DROP TABLE and a CREATE TABLE, which Debezium can read too.
"""

from collections.abc import Container
from dataclasses import dataclass, replace

from rowtide.connector.pipeline.structures.comparison import fits, labels
from rowtide.connector.protocol import charset
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Column, Table
from rowtide.schema_history.server.charsets import collation_name, max_bytes
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.structure.show_create import quoted_name, quoted_text, show_create
from rowtide.schema_history.structure.type_names import BINARY_TYPES, NUMBERS

_BINARY = 63
_HASH = "DB_ROW_HASH_"
_PLAIN = {
    BinlogType.TINY: "tinyint",
    BinlogType.SHORT: "smallint",
    BinlogType.INT24: "mediumint",
    BinlogType.LONG: "int",
    BinlogType.LONGLONG: "bigint",
    BinlogType.FLOAT: "float",
    BinlogType.DOUBLE: "double",
    BinlogType.YEAR: "year",
    BinlogType.DATE: "date",
    BinlogType.NEWDATE: "date",
    BinlogType.JSON: "json",
}
_FRACTIONAL = {BinlogType.TIME2: "time", BinlogType.DATETIME2: "datetime", BinlogType.TIMESTAMP2: "timestamp"}
_SHOWN_AS_BINARY = frozenset({"uuid", "inet4", "inet6", "vector"})
"""MariaDB's types that a TABLE_MAP shows as BINARY or VARBINARY."""
_SIZES = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_SHAPES = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
           "geometrycollection")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Repair:
    """A rebuilt structure.

    Attributes:
        table: the structure.
        changes: the changes to write to the schema history.
    """

    table: Table
    changes: tuple[SchemaChange, ...]


def repair_from_statement(structure: TableStructure, known: Table | None, text: str, server: Server) -> Repair:
    """Rebuild a table from the text of SHOW CREATE TABLE.

    Args:
        structure: a TABLE_MAP of the table.
        known: the table in the schema history.
        text: of SHOW CREATE TABLE.
        server: the table's server.

    Raises:
        ValueError: the text is not that of a table.
        SchemaHistoryError: the text cannot be parsed.
    """
    ddl = _with_database(text, structure)
    return Repair(table := _parsed(ddl, structure, server), _changes(table, known, ddl))


def _with_database(text: str, structure: TableStructure) -> str:
    """Return the text of SHOW CREATE TABLE with the database before the table's name."""
    head = f"CREATE TABLE {quoted_name(structure.table)} "
    if not text.startswith(head):
        raise ValueError(f"it begins with {text[:60]!r}")
    return f"CREATE TABLE {_name(structure)} {text[len(head) :]}"


def _parsed(ddl: str, structure: TableStructure, server: Server) -> Table:
    tables = Tables(server)
    tables.apply(QueryEvent(ddl, structure.database, sql_mode=0))
    made = tables.table(structure.database, structure.table)
    assert made is not None
    return made


def _changes(table: Table, known: Table | None, ddl: str) -> tuple[SchemaChange, ...]:
    table_id = table.id
    create = SchemaChange(ChangeKind.CREATE, table_id.database, ddl, table_id, None, table, (table_id,))
    if known is None:
        return (create,)
    name = f"{quoted_name(table_id.database)}.{quoted_name(table_id.table)}"
    drop = f"DROP TABLE IF EXISTS {name}"
    return SchemaChange(ChangeKind.DROP, table_id.database, drop, table_id, tables=(table_id,)), create


def _name(structure: TableStructure) -> str:
    return f"{quoted_name(structure.database)}.{quoted_name(structure.table)}"


def repair_from_table_map(structure: TableStructure, known: Table | None, server: Server) -> Repair:
    """Rebuild a table from its TABLE_MAP.

    Args:
        structure: a TABLE_MAP with full metadata.
        known: the table in the schema history; its columns that fit are kept.
        server: the table's server.

    Raises:
        ValueError: the TABLE_MAP does not determine the type of a column.
    """
    invisible = {column.name.lower(): column for column in known.hidden} if known is not None else {}
    _refuse_versioned(structure, known, server)
    ddl = _statement(structure, server, invisible)
    made = _parsed(ddl, structure, server)
    columns = made.columns
    if known is not None:
        old = {column.name.lower(): column for column in known.columns}
        shown = (column for column in structure.columns if not _is_hidden(column, invisible))
        columns = tuple(
            _kept(column, old.get(column.name.lower()), mapped, known)
            for column, mapped in zip(made.columns, shown, strict=True)
        )
    hidden = tuple(
        invisible.get((column.name or "").lower())
        or Column(column.name or "", "bigint(20) unsigned", "bigint", length=20, unsigned=True)
        for column in structure.columns
        if _is_hidden(column, invisible)
    )
    table = replace(made, columns=columns, hidden=hidden)
    if known is not None:
        kind = known.kind if any(column.row for column in table.row_columns) else table.kind
        table = replace(table, charset=known.charset, collation=known.collation, comment=known.comment, kind=kind)
    # The history gets the complete table, so that a restart recovers the same structure.
    ddl = _with_database(show_create(table, server), structure)
    table = replace(table, engine=_parsed(ddl, structure, server).engine)
    return Repair(table, _changes(table, known, ddl))


def _kept(made: Column, old: Column | None, mapped: MappedColumn, known: Table) -> Column:
    """Return the known column if it is what the TABLE_MAP shows, which lacks the digits of ``FLOAT(M,D)``, and UUID."""
    agrees = (
        old is not None
        and (
            old.data_type == made.data_type
            or (known.complete and old.data_type in _SHOWN_AS_BINARY and made.data_type in BINARY_TYPES)
        )
        and (old.unsigned, old.charset, old.labels, old.fsp, old.nullable)
        == (made.unsigned, made.charset, made.labels, made.fsp, made.nullable)
        and made.scale in (None, old.scale)
        and fits(mapped, old, known)
    )
    return old if old is not None and agrees else made


def _is_hidden(column: MappedColumn, known: Container[str]) -> bool:
    name = column.name or ""
    return name.startswith(_HASH) or name.lower() in known


def _refuse_versioned(structure: TableStructure, known: Table | None, server: Server) -> None:
    """Refuse a table that may be versioned by the system: a TABLE_MAP does not show that its columns are hidden."""
    last = structure.columns[-2:]
    if (
        server.flavor is Flavor.MARIADB
        and [(column.name or "").lower() for column in last] == ["row_start", "row_end"]
        and all(column.type in (BinlogType.TIMESTAMP2, BinlogType.LONGLONG) and not column.nullable for column in last)
        and (known is None or not any(column.row for column in known.row_columns))
    ):
        raise ValueError("its columns row_start and row_end may be hidden ones of a system-versioned table")


def _statement(structure: TableStructure, server: Server, hidden: Container[str]) -> str:
    """Return the CREATE TABLE statement for a TABLE_MAP."""
    lines = [_definition(column, server) for column in structure.columns if not _is_hidden(column, hidden)]
    if structure.primary_key:
        columns = [(structure.columns[index], length) for index, length in structure.primary_key]
        names = [(column.name or "", length) for column, length in columns if not _is_hidden(column, hidden)]
        parts = (quoted_name(name) + (f"({length})" if length else "") for name, length in names)
        lines.append(f"PRIMARY KEY ({', '.join(parts)})")
    return f"CREATE TABLE {_name(structure)} ({', '.join(lines)})"


def _definition(column: MappedColumn, server: Server) -> str:
    words = [quoted_name(column.name or ""), _type(column)]
    if column.unsigned and words[1].split("(")[0] in NUMBERS:
        words.append("unsigned")
    collation = column.collation
    if collation == _BINARY and column.values is not None:
        words.append("CHARACTER SET binary")
    elif collation is not None and collation != _BINARY and words[1].split("(")[0] not in _SHAPES:
        name = collation_name(collation, server.flavor)
        if name is None:
            raise ValueError(f"column {column.name} has the unknown collation {collation}")
        words.append(f"CHARACTER SET {charset.charset_of_collation(collation)} COLLATE {name}")
    words.append("NULL" if column.nullable else "NOT NULL")
    if column.visible is False:
        words.append("INVISIBLE")
    return " ".join(words)


def _type(column: MappedColumn) -> str:
    kind, size = BinlogType(column.type), column.metadata
    binary = column.collation == _BINARY
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _FRACTIONAL:
        return f"{_FRACTIONAL[kind]}({size})" if size else _FRACTIONAL[kind]
    if kind is BinlogType.NEWDECIMAL:
        return f"decimal({size >> 8},{size & 255})"
    if kind is BinlogType.BIT:
        return f"bit({size})"
    if kind is BinlogType.VECTOR:
        return f"vector({column.dimensions})"
    if kind is BinlogType.GEOMETRY:
        shape = column.geometry_type or 0
        if shape >= len(_SHAPES):
            raise ValueError(f"column {column.name} has the unknown geometry type {shape}")
        return _SHAPES[shape]
    if kind in (BinlogType.ENUM, BinlogType.SET) and column.values is not None:
        return f"{kind.name.lower()}({','.join(map(quoted_text, labels(column, column.values)))})"
    if kind in (BinlogType.VARCHAR, BinlogType.VAR_STRING, BinlogType.MARIADB_VARCHAR_COMPRESSED):
        return f"varbinary({size})" if binary else f"varchar({_characters(column)})"
    if kind is BinlogType.STRING:
        return f"binary({size})" if binary else f"char({_characters(column)})"
    if kind in (BinlogType.BLOB, BinlogType.MARIADB_BLOB_COMPRESSED):
        return f"{_SIZES[size]}{'blob' if binary else 'text'}"
    raise ValueError(f"column {column.name} has the binlog type {column.type}, which matches no column type")


def _characters(column: MappedColumn) -> int:
    name = charset.charset_of_collation(column.collation or _BINARY)
    return column.metadata // max_bytes(name)
