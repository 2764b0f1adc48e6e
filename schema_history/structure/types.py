"""Resolves data types like the server: synonyms, default lengths, and text types that become binary or larger."""

from dataclasses import dataclass, replace

from rowtide.schema_history.ddl.statements import DataType
from rowtide.schema_history.model import Column
from rowtide.schema_history.server import charsets
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.type_names import BINARY_TYPES, BLOBS, CHARACTER_TYPES, INTEGERS, TEMPORAL, TEXTS

REAL_AS_FLOAT = 1
_INTEGER_WIDTHS = {"tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10), "bigint": (20, 20)}
_BLOB_LIMITS = (255, 65535, 16777215, 4294967295)
_MAX_VARCHAR_BYTES = {Flavor.MYSQL: 65535, Flavor.MARIADB: 65532}
_MAX_CHAR = 255
_SYNONYMS = {
    "INT1": "tinyint",
    "INT2": "smallint",
    "INT3": "mediumint",
    "MIDDLEINT": "mediumint",
    "INT4": "int",
    "INTEGER": "int",
    "INT8": "bigint",
    "DEC": "decimal",
    "NUMERIC": "decimal",
    "FIXED": "decimal",
    "FLOAT4": "float",
    "FLOAT8": "double",
    "CHARACTER": "char",
    "VARCHARACTER": "varchar",
    "NCHAR": "char",
    "NVARCHAR": "varchar",
    "GEOMETRYCOLLECTION": "geomcollection",
    "VARCHAR2": "varchar",
    "RAW": "varbinary",
    "CLOB": "longtext",
}


@dataclass(frozen=True, slots=True)
class ResolvedType:
    """A data type in the server's form; the fields are those of ``Column``."""

    data_type: str
    length: int | None = None
    scale: int | None = None
    fsp: int = 0
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    collation: str | None = None
    labels: tuple[str, ...] = ()
    compressed: bool = False


def resolve(
    declared: DataType, collate: str | None, ctx: Context, table_charset: str, table_collation: str
) -> ResolvedType:
    """Resolve a declared type.

    Args:
        declared: the type as declared.
        collate: the collation in the column's attributes, as declared.
        ctx: the statement's context.
        table_charset: the inherited character set.
        table_collation: the inherited collation.
    """
    name = _name(declared, ctx)
    if name in INTEGERS or name in ("float", "double", "decimal", "bool", "serial"):
        return _number(name, declared, ctx)
    if name == "timestamp" and ctx.dialect.maxdb:
        name = "datetime"
    if name in TEMPORAL:
        fsp = int(declared.arguments[0]) if declared.arguments else 0
        return ResolvedType(name, fsp=fsp)
    if name == "json" and ctx.mariadb:
        charset, collation = column_charset(None, collate or "utf8mb4_bin", False, ctx, "utf8mb4", "utf8mb4_bin")
        return ResolvedType("longtext", charset=charset, collation=collation)
    if name in CHARACTER_TYPES:
        return _text(name, declared, collate, ctx, table_charset, table_collation)
    if name in BINARY_TYPES:
        if collate is not None and ctx.mariadb and collate.lower() not in ("binary", "default"):
            charset, collation = column_charset(None, collate, False, ctx, table_charset, table_collation)
            resolved = _binary(name, _length(declared), ctx)
            return replace(resolved, data_type=_as_text(resolved.data_type), charset=charset, collation=collation)
        return _binary(name, _length(declared), ctx)
    if name == "bit":
        return ResolvedType(name, length=_length(declared) or 1)
    if name == "year":
        return ResolvedType(name, length=_length(declared) or 4)
    if name == "vector":
        return ResolvedType(name, length=_length(declared) or 2048)
    if name == "geomcollection" and ctx.mariadb:
        return ResolvedType("geometrycollection")
    return ResolvedType(name)


def _as_text(name: str) -> str:
    """Return the text type that MariaDB uses for a binary type with a collation."""
    return {"binary": "char", "varbinary": "varchar"}.get(name) or TEXTS[BLOBS.index(name)]


def _name(declared: DataType, ctx: Context) -> str:
    words, arguments = declared.words, declared.arguments
    first = words[0]
    if first == "LONG":
        return "mediumblob" if words[-1] == "VARBINARY" else "mediumtext"
    if first in ("NATIONAL", "CHAR", "CHARACTER", "NCHAR") and len(words) > 1:
        varying = words[-1] in ("VARYING", "VARCHAR", "VARCHARACTER")
        return "varchar" if varying else "char"
    if first in ("BOOL", "BOOLEAN"):
        return "bool"
    if first == "REAL":
        return "float" if ctx.dialect.sql_mode & REAL_AS_FLOAT else "double"
    if first == "NUMBER":
        return "decimal"
    if ctx.dialect.oracle:
        if first == "DATE":
            return "datetime"
        if first == "BLOB" and not arguments:
            return "longblob"
    if first in ("ORACLE_SCHEMA", "MAXDB_SCHEMA"):
        return {"DATE": "datetime", "TIMESTAMP": "datetime"}.get(words[1], words[1].lower())
    return _SYNONYMS.get(first, first.lower())


def _length(declared: DataType) -> int | None:
    return int(declared.arguments[0]) if declared.arguments else None


def _number(name: str, declared: DataType, ctx: Context) -> ResolvedType:
    unsigned, zerofill = declared.unsigned, declared.zerofill
    arguments = [int(float(a)) for a in declared.arguments]
    if name == "bool":
        return ResolvedType("tinyint", length=1)
    if name == "serial":
        return ResolvedType("bigint", length=20, unsigned=True)
    if name in INTEGERS:
        width = _INTEGER_WIDTHS[name][unsigned]
        if arguments and arguments[0]:
            width = arguments[0]
        return ResolvedType(name, length=width, unsigned=unsigned, zerofill=zerofill)
    if name == "decimal":
        if declared.words[0] == "NUMBER" and not arguments:
            return ResolvedType("double")
        length = arguments[0] if arguments and arguments[0] else 10
        scale = arguments[1] if len(arguments) > 1 else 0
        if len(arguments) > 1 and arguments[0] == 0:
            length = 10 if scale == 0 else scale
        return ResolvedType("decimal", length, scale, unsigned=unsigned, zerofill=zerofill)
    if len(arguments) == 1:
        if name == "float":
            name = "double" if arguments[0] > 24 else "float"
        arguments = []
    if arguments:
        return ResolvedType(name, arguments[0], arguments[1], unsigned=unsigned, zerofill=zerofill)
    return ResolvedType(name, unsigned=unsigned, zerofill=zerofill)


def _text(
    name: str, declared: DataType, collate: str | None, ctx: Context, table_charset: str, table_collation: str
) -> ResolvedType:
    national = declared.words[0] in ("NATIONAL", "NCHAR", "NVARCHAR")
    charset, collation = column_charset(
        "utf8mb3" if national else declared.charset, collate, declared.binary, ctx, table_charset, table_collation
    )
    length = _length(declared)
    if name in ("enum", "set"):
        return ResolvedType(name, charset=charset, collation=collation, labels=labels_in(charset, declared, ctx))
    if charset == "binary":
        binary = {"char": "binary", "varchar": "varbinary"}.get(name) or BLOBS[TEXTS.index(name)]
        return replace(_binary(binary, length, ctx), compressed=declared.compressed)
    width = charsets.max_bytes(charset)
    if name == "text" and length is not None:
        smallest = blob_for(length * width, TEXTS) if length or not ctx.mariadb else "text"
        return ResolvedType(smallest, charset=charset, collation=collation)
    if name == "char":
        length = 1 if length is None else length
        if length > _MAX_CHAR:
            name = "varchar"
    if name == "varchar":
        length = length or 0
        if length * width > _MAX_VARCHAR_BYTES[ctx.flavor]:
            return ResolvedType(blob_for(length * width, TEXTS), charset=charset, collation=collation)
    if name in TEXTS:
        length = None
    return ResolvedType(name, length, charset=charset, collation=collation, compressed=declared.compressed)


def labels_in(charset: str, declared: DataType, ctx: Context) -> tuple[str, ...]:
    """Return the labels of an ENUM or SET in its character set."""
    return tuple(_label_in(charset, label, ctx) for label in declared.labels)


def _label_in(charset: str, label: str | bytes, ctx: Context) -> str:
    if charset == "binary":
        return shown_bytes(ctx.string_bytes(label) if isinstance(label, str) else label)
    if isinstance(label, bytes):
        return charsets.decoded(label, charset, marks_bytes=ctx.mariadb).rstrip(" ")
    return charsets.representable(ctx.string_text(label, charset), charset).rstrip(" ")


def shown_bytes(data: bytes) -> str:
    """Return the text of a binary label: its bytes as UTF-8."""
    return data.decode("utf8", "replace").replace("\ufffd", "?")


def _binary(name: str, length: int | None, ctx: Context) -> ResolvedType:
    if name == "blob" and length is not None and (length or not ctx.mariadb):
        return ResolvedType(blob_for(length, BLOBS))
    if name in BLOBS:
        return ResolvedType(name)
    if name == "binary":
        length = 1 if length is None else length
        if length > _MAX_CHAR:
            name = "varbinary"
    if name == "varbinary" and (length or 0) > _MAX_VARCHAR_BYTES[ctx.flavor]:
        return ResolvedType(blob_for(length or 0, BLOBS))
    return ResolvedType(name, length or 0)


def blob_for(size: int, names: tuple[str, ...]) -> str:
    """Return the smallest of the TEXT or BLOB types that holds ``size`` bytes."""
    for name, limit in zip(names, _BLOB_LIMITS, strict=True):
        if size <= limit:
            return name
    return names[-1]


def blob_capacity(name: str) -> int:
    """Return the number of bytes that a TEXT or BLOB type holds."""
    names = TEXTS if name in TEXTS else BLOBS
    return _BLOB_LIMITS[names.index(name)]


def column_charset(
    charset: str | None, collate: str | None, binary: bool, ctx: Context, table_charset: str, table_collation: str
) -> tuple[str, str]:
    """Return the character set and collation of a column: its own, or the inherited ones."""
    if charset is not None:
        charset = charsets.charset_name(charset)
    if collate is not None and collate.upper() == "DEFAULT":
        charset = charset or table_charset
        return charset, ctx.default_collation(charset)
    if collate is not None:
        named = charsets.known_collation(collate, charset or table_charset, ctx.flavor)
        if named is None:
            raise LookupError(f"unknown collation {collate}")
        if binary and charset is None:  # only MySQL accepts both
            named = charsets.binary_collation(charsets.charset_of(named))
        return charsets.charset_of(named), named
    if charset is None and not binary:
        return table_charset, table_collation
    if binary:
        charset = charset or table_charset
        return charset, charsets.binary_collation(charset)
    assert charset is not None
    return charset, ctx.default_collation(charset)


def shows_width(server: Server) -> bool:
    """Return whether integer types show their display width."""
    return server.flavor is Flavor.MARIADB or server.version_number < 80019


_ESCAPES = str.maketrans({"\0": "\\0", "\n": "\\n", "\r": "\\r", "\\": "\\\\", "'": "''"})


def quoted(text: str) -> str:
    """Return a string literal in the form of the server's definitions."""
    return "'" + text.translate(_ESCAPES) + "'"


def column_type(column: Column, server: Server) -> str:
    """Return the full type as ``information_schema.columns.column_type`` shows it."""
    name = column.data_type
    text = name
    if name in INTEGERS:
        narrow = name == "tinyint" and column.length == 1 and not column.unsigned
        if shows_width(server) or column.zerofill or narrow:
            text = f"{name}({column.length})"
    elif name in ("float", "double", "decimal"):
        if column.length is not None:
            text = f"{name}({column.length},{column.scale})"
    elif name in ("char", "varchar", "binary", "varbinary", "bit", "vector"):
        text = f"{name}({column.length})"
    elif name in TEMPORAL:
        text = f"{name}({column.fsp})" if column.fsp else name
    elif name in ("enum", "set"):
        return f"{name}({','.join(map(quoted, column.labels))})"
    elif name == "year":
        text = f"year({column.length})" if shows_width(server) else "year"
    if column.unsigned:
        text += " unsigned"
    if column.zerofill:
        text += " zerofill"
    if column.compressed:
        text += " /*M!100301 COMPRESSED*/"
    return text
