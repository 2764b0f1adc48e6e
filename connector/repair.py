"""A table's structure checked against the TABLE_MAP of its rows, and made anew from it where it is wrong.

Structure can change where the binlog does not show it (``SET sql_log_bin=0``, a history that was edited). A TABLE_MAP
tells types always; with ``binlog_row_metadata=FULL`` it tells names, signs, character sets, labels and the key as well,
which is all that rows need. What it does not tell (defaults, comments, unique keys) stays with the columns that fit.
"""

from collections.abc import Iterator
from dataclasses import replace

from rowtide.connector.protocol import charset
from rowtide.connector.protocol.table_structure import ColumnType, MappedColumn, TableStructure
from rowtide.schema_history.changes import ChangeKind, SchemaChange
from rowtide.schema_history.charsets import collation_name, max_bytes
from rowtide.schema_history.model import Column, Table, TableId
from rowtide.schema_history.query import QueryEvent, Server
from rowtide.schema_history.show_create import quoted_name, quoted_text
from rowtide.schema_history.tables import Tables

_BINARY = 63
_HASH = "DB_ROW_HASH_"
_PLAIN = {
    ColumnType.TINY: "tinyint",
    ColumnType.SHORT: "smallint",
    ColumnType.INT24: "mediumint",
    ColumnType.LONG: "int",
    ColumnType.LONGLONG: "bigint",
    ColumnType.FLOAT: "float",
    ColumnType.DOUBLE: "double",
    ColumnType.YEAR: "year",
    ColumnType.DATE: "date",
    ColumnType.NEWDATE: "date",
    ColumnType.JSON: "json",
}
_FRACTIONAL = {ColumnType.TIME2: "time", ColumnType.DATETIME2: "datetime", ColumnType.TIMESTAMP2: "timestamp"}
_SIZES = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_SHAPES = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
           "geometrycollection")  # fmt: skip
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"})


def contradictions(structure: TableStructure, table: Table) -> list[str]:
    """What a full TABLE_MAP says otherwise than the structure; nothing if it is not full."""
    if not structure.full:
        return []
    mapped, known = structure.columns, table.row_columns
    names = [column.name or "" for column in mapped]
    if [name.lower() for name in names] != [column.name.lower() for column in known]:
        return [f"its columns are {', '.join(names)}, not {', '.join(column.name for column in known)}"]
    found = []
    for event, column in zip(mapped, known, strict=True):
        found += [f"column {column.name} {text}" for text in _differences(event, column)]
    return found


def _differences(event: MappedColumn, column: Column) -> Iterator[str]:
    plain = _PLAIN.get(ColumnType(event.type))
    if plain in _NUMBERS and plain != column.data_type:
        yield f"is a {plain}, not a {column.column_type}"
    elif event.unsigned is not None and column.data_type in _NUMBERS and event.unsigned != column.unsigned:
        yield "is unsigned" if event.unsigned else "is not unsigned"
    if event.values is not None and len(event.values) != len(column.labels):
        yield f"has {len(event.values)} labels, not {len(column.labels)}"


def repaired(structure: TableStructure, known: Table | None, server: Server) -> tuple[Table, SchemaChange]:
    """The table as the TABLE_MAP tells it, and the change that the history has to record.

    Args:
        structure: a full TABLE_MAP.
        known: what was believed to be the table; columns of it that fit are kept.
        server: whose table it is.

    Raises:
        ValueError: a column's type cannot be told from the TABLE_MAP.
    """
    table_id = TableId(structure.database, structure.table)
    ddl = _statement(structure, server)
    tables = Tables(server)
    tables.apply(QueryEvent(ddl, structure.database, sql_mode=0))
    made = tables.table(structure.database, structure.table)
    assert made is not None
    old = {column.name.lower(): column for column in known.columns} if known is not None else {}
    columns = tuple(_kept(column, old.get(column.name.lower())) for column in made.columns)
    hidden = tuple(
        Column(column.name or "", "bigint(20) unsigned", "bigint", length=20, unsigned=True)
        for column in structure.columns
        if _is_hash(column)
    )
    table = replace(made, columns=columns, hidden=hidden)
    if known is not None:
        table = replace(table, charset=known.charset, collation=known.collation, comment=known.comment)
    kind = ChangeKind.CREATE if known is None else ChangeKind.ALTER
    return table, SchemaChange(kind, table_id.database, ddl, table_id, None, table, (table_id,))


def _kept(made: Column, old: Column | None) -> Column:
    fits = old is not None and (old.data_type, old.unsigned, old.charset, old.labels, old.fsp, old.scale) == (
        made.data_type, made.unsigned, made.charset, made.labels, made.fsp, made.scale,
    )  # fmt: skip
    return old if old is not None and fits and old.nullable == made.nullable else made


def _is_hash(column: MappedColumn) -> bool:
    return bool(column.name and column.name.startswith(_HASH))


def _statement(structure: TableStructure, server: Server) -> str:
    """The CREATE TABLE that the TABLE_MAP amounts to."""
    lines = [_definition(column, server) for column in structure.columns if not _is_hash(column)]
    if structure.primary_key:
        names = [(structure.columns[index].name or "", length) for index, length in structure.primary_key]
        parts = (quoted_name(name) + (f"({length})" if length else "") for name, length in names)
        lines.append(f"PRIMARY KEY ({', '.join(parts)})")
    name = f"{quoted_name(structure.database)}.{quoted_name(structure.table)}"
    return f"CREATE OR REPLACE TABLE {name} ({', '.join(lines)})"


def _definition(column: MappedColumn, server: Server) -> str:
    words = [quoted_name(column.name or ""), _type(column)]
    if column.unsigned and words[1].split("(")[0] in _NUMBERS:
        words.append("unsigned")
    collation = column.collation
    if collation is not None and collation != _BINARY and words[1].split("(")[0] not in _SHAPES:
        name = collation_name(collation, server.flavor)
        if name is None:
            raise ValueError(f"column {column.name} has the collation {collation}, which is not known")
        words.append(f"CHARACTER SET {charset.charset_of_collation(collation)} COLLATE {name}")
    words.append("NULL" if column.nullable else "NOT NULL")
    if column.visible is False:
        words.append("INVISIBLE")
    return " ".join(words)


def _type(column: MappedColumn) -> str:
    kind, size = ColumnType(column.type), column.metadata
    binary = column.collation == _BINARY
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _FRACTIONAL:
        return f"{_FRACTIONAL[kind]}({size})" if size else _FRACTIONAL[kind]
    if kind is ColumnType.NEWDECIMAL:
        return f"decimal({size >> 8},{size & 255})"
    if kind is ColumnType.BIT:
        return f"bit({size})"
    if kind is ColumnType.VECTOR:
        return f"vector({column.dimensions})"
    if kind is ColumnType.GEOMETRY:
        return _SHAPES[column.geometry_type or 0]
    if kind in (ColumnType.ENUM, ColumnType.SET) and column.values is not None:
        decode = charset.decoder(column.collation or _BINARY)
        return f"{kind.name.lower()}({','.join(quoted_text(decode(label)) for label in column.values)})"
    if kind in (ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.MARIADB_VARCHAR_COMPRESSED):
        return f"varbinary({size})" if binary else f"varchar({_characters(column)})"
    if kind is ColumnType.STRING:
        return f"binary({size})" if binary else f"char({_characters(column)})"
    if kind in (ColumnType.BLOB, ColumnType.MARIADB_BLOB_COMPRESSED):
        return f"{_SIZES[size]}{'blob' if binary else 'text'}"
    raise ValueError(f"column {column.name} has the binlog type {column.type}, of which no column can be made")


def _characters(column: MappedColumn) -> int:
    name = charset.charset_of_collation(column.collation or _BINARY)
    return column.metadata // max_bytes(name)
