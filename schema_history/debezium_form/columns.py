"""Debezium's description of a column definition: its type and default as text, its ``java.sql.Types`` number."""

import re
from dataclasses import replace
from itertools import pairwise

from rowtide.schema_history.ddl.statements import ColumnDef, DataType, Default, Literal, Now
from rowtide.schema_history.debezium_form.normalizer import as_single_quoted
from rowtide.schema_history.model import Column, DebeziumColumn, DefaultKind
from rowtide.schema_history.server import charsets
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.type_names import BINARY_TYPES

BIT, TINYINT, SMALLINT, INTEGER, BIGINT = -7, 5, 5, 4, -5
CHAR, VARCHAR, NCHAR, NVARCHAR = 1, 12, -15, -9
OTHER = 1111
_JDBC = {
    "TINYINT": 5,
    "INT1": 5,
    "SMALLINT": 5,
    "INT2": 5,
    "MEDIUMINT": 4,
    "INT3": 4,
    "MIDDLEINT": 4,
    "INT": 4,
    "INTEGER": 4,
    "INT4": 4,
    "BIGINT": -5,
    "INT8": -5,
    "REAL": 7,
    "DOUBLE": 8,
    "FLOAT8": 8,
    "FLOAT": 6,
    "FLOAT4": 6,
    "DECIMAL": 3,
    "DEC": 3,
    "FIXED": 3,
    "NUMERIC": 2,
    "BIT": -7,
    "TIME": 92,
    "TIMESTAMP": 2014,
    "DATETIME": 93,
    "DATE": 91,
    "YEAR": 4,
    "BINARY": -2,
    "VARBINARY": -3,
    "BLOB": 2004,
    "TINYBLOB": 2004,
    "MEDIUMBLOB": 2004,
    "LONGBLOB": 2004,
    "BOOL": 16,
    "BOOLEAN": 16,
    "SERIAL": -5,
    "ENUM": 1,
    "SET": 1,
    "CHAR": 1,
    "CHARACTER": 1,
    "VARCHAR": 12,
    "VARCHARACTER": 12,
    "TINYTEXT": 12,
    "TEXT": 12,
    "MEDIUMTEXT": 12,
    "LONGTEXT": 12,
    "LONG": 12,
    "NCHAR": -15,
    "NVARCHAR": -9,
}
_WITH_CHARSET = frozenset((CHAR, VARCHAR, NCHAR, NVARCHAR))
_DECIMALS = frozenset(("DECIMAL", "DEC", "FIXED", "NUMERIC"))
_FRACTIONAL = frozenset(("TIME", "TIMESTAMP", "DATETIME"))
_MAX_LENGTH = 2147483647
_DIGITS = re.compile(r"(?:0x|[xX]')((?:[0-9A-Fa-f]{2})*)'?")
_NOW_1970 = "1970-01-01 00:00:00"


def debezium_column(
    definition: ColumnDef,
    ctx: Context,
    base: DebeziumColumn | None = None,
    explicit_only: bool = False,
) -> DebeziumColumn:
    """Describe a column definition, without the character set of its table.

    Args:
        definition: the column as written.
        ctx: the statement's context.
        base: in CHANGE COLUMN the former description, whose flags, labels and comment Debezium keeps.
        explicit_only: in ADD COLUMN (a, b), where Debezium's MySQL parser considers only NULL and DEFAULT.
    """
    described = _typed(definition, ctx)
    if base is not None:
        described = replace(
            described,
            auto_incremented=base.auto_incremented or described.auto_incremented,
            generated=base.generated or described.generated,
            comment=base.comment,
            enum_values=described.enum_values or base.enum_values,
        )
    serial = described.type_name == "BIGINT UNSIGNED" and definition.type.words[0] == "SERIAL"
    optional: bool | None = False if serial else None
    for previous, attribute in pairwise((None, *definition.attributes)):
        assert attribute is not None
        kind = attribute.kind
        if kind in ("NULL", "NOT NULL"):
            optional = kind == "NULL"
        elif kind == "DEFAULT":
            assert attribute.value is not None
            described = with_default(described, attribute.value, ctx)  # type: ignore[arg-type]
        elif explicit_only:
            continue
        elif kind == "PRIMARY":
            optional = False
        elif kind == "COLLATE" and described.charset_name is None:
            described = _collated(described, attribute.raw, ctx)
        elif kind == "COMMENT":
            described = replace(described, comment=strip_quotes(as_single_quoted(attribute.raw, ctx)))
        elif kind == "ON UPDATE" and ctx.mariadb and previous is not None and isinstance(previous.value, Now):
            continue  # Debezium's grammar of MariaDB treats DEFAULT NOW ON UPDATE NOW as one default
        elif kind in ("AUTO_INCREMENT", "ON UPDATE"):
            described = replace(described, auto_incremented=True, generated=True)
        elif kind == "SERIAL DEFAULT VALUE":
            optional = False if optional is None else optional
            described = replace(described, auto_incremented=True, generated=True)
    described = replace(described, optional=optional is not False)
    if described.optional and not described.has_default:
        described = replace(described, has_default=True)
    return described


def _collated(described: DebeziumColumn, raw: str, ctx: Context) -> DebeziumColumn:
    """Return the description with the character set of a collation.

    For MariaDB only that of text, not of ENUM and SET.
    """
    if ctx.mariadb:
        known = charsets.known_collation(strip_quotes(raw), None, ctx.flavor)
        if known is None or described.jdbc_type not in _WITH_CHARSET or described.enum_values:
            return described
        return replace(described, charset_name=charsets.charset_of(known))
    name = as_single_quoted(raw, ctx)
    return replace(described, charset_name=name.split("_", 1)[0]) if "_" in name[1:] else described


def _typed(definition: ColumnDef, ctx: Context) -> DebeziumColumn:
    written = definition.type
    first = written.words[0]
    jdbc = _JDBC.get(first, OTHER)
    name = " ".join(written.words)
    varying = written.words[-1] in ("VARYING", "VARCHAR", "VARCHARACTER")
    if first in ("NATIONAL", "NCHAR"):
        jdbc = NVARCHAR if varying else NCHAR
    elif first in ("CHAR", "CHARACTER") and varying:
        jdbc = VARCHAR
    elif first == "LONG" and written.words[-1] == "VARBINARY":
        jdbc = 2004
    if first == "SERIAL":
        return DebeziumColumn(
            definition.name, jdbc, "BIGINT UNSIGNED", "BIGINT UNSIGNED", auto_incremented=True, generated=True
        )
    name += _modifiers(written, ctx)
    length, scale = _dimensions(written, first, ctx)
    if jdbc in (NCHAR, NVARCHAR):
        charset: str | None = "utf8"
        length = 1 if jdbc == NCHAR and length is None else length
    else:
        charset = _charset(written)
    if first in ("ENUM", "SET"):
        length = 1 if first == "ENUM" else max(0, 2 * len(written.labels) - 1)
        raw = tuple(as_single_quoted(label, ctx) for label in written.raw_labels)
        return DebeziumColumn(definition.name, jdbc, name, name, None, charset, length, enum_values=raw)
    return DebeziumColumn(definition.name, jdbc, name, name, None, charset, length, scale)


def _charset(written: DataType) -> str | None:
    return written.charset if written.written_charset else None


def _modifiers(written: DataType, ctx: Context) -> str:
    options = written.options
    if "ZEROFILL" in options:
        text = " UNSIGNED ZEROFILL"
    else:
        signs = [o for o in options if o in ("SIGNED", "UNSIGNED")]
        text = f" {max(signs) if ctx.mariadb else signs[-1]}" if signs else ""
    return text + (" BINARY" if written.binary else "")


def _dimensions(written: DataType, first: str, ctx: Context) -> tuple[int | None, int | None]:
    arguments = written.arguments
    length = scale = None
    if arguments:
        length = int(float(arguments[0]))
        if length <= 0 and first not in _FRACTIONAL and not ctx.mariadb:
            length = 10
        length = min(length, _MAX_LENGTH)
    if len(arguments) > 1:
        scale = int(arguments[1])
    if first in _DECIMALS:
        length = 10 if length is None else length
        scale = 0 if scale is None else scale
    if first == "BIT" and length is None:
        length = 1
    if first == "VECTOR" and length is None and ctx.mariadb:
        length = 2048
    return length, scale


def with_default(described: DebeziumColumn, default: Default, ctx: Context) -> DebeziumColumn:
    """Return the description with the default of a definition."""
    if isinstance(default, Now):
        return replace(described, has_default=True, default_expression=_now(default, ctx))
    if isinstance(default, Literal):
        if default.kind == "null":
            return described
        by_value = default.kind == "hex" or default.raw[:2] == "0b"
        return replace(described, has_default=True, default_expression=_literal(default, ctx), hexadecimal=by_value)
    return replace(described, has_default=True, default_expression=None)


def with_value(described: DebeziumColumn, column: Column) -> DebeziumColumn:
    """Return the description with the value of a hexadecimal default; Debezium has its digits without the last one.

    A default of bytes that are not UTF-8 is omitted. MariaDB's DATE with ``sql_mode=ORACLE`` and its TIMESTAMP with
    MAXDB become DATETIMEs, as in row events.
    """
    if column.data_type == "datetime" and described.type_name in ("DATE", "TIMESTAMP"):
        return replace(described, jdbc_type=_JDBC["DATETIME"], type_name="DATETIME", type_expression="DATETIME")
    if not described.hexadecimal:
        return described
    text = column.default
    if column.default_kind is DefaultKind.EXPRESSION and text is not None:
        text = _text_of_digits(text, column)
    elif text is not None and column.data_type in BINARY_TYPES:
        text = _as_text(text.encode("latin-1"))
    return replace(described, default_expression=text, hexadecimal=False)


def _text_of_digits(shown: str, column: Column) -> str | None:
    """Return the text of a hexadecimal literal that MariaDB stores as an expression of a TEXT or BLOB."""
    digits = _DIGITS.fullmatch(shown)
    if digits is None:
        return None
    data = bytes.fromhex(digits[1])
    return _as_text(data) if column.charset is None else charsets.decoded(data, column.charset)


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _now(default: Now, ctx: Context) -> str:
    if ctx.mariadb and not default.raw.upper().startswith(("CURRENT_TIMESTAMP", "NOW")):
        return re.sub(r"\s+", "", default.raw)
    return _NOW_1970


def _literal(literal: Literal, ctx: Context) -> str:
    raw = literal.raw
    if literal.sign:
        raw = raw[1:].strip()
    raw = as_single_quoted(raw, ctx)
    if literal.kind in ("hex", "bits"):
        return _without_introducer(raw)[2:-1]
    if literal.kind == "bool":
        return raw
    if literal.kind == "string" and literal.charset and not literal.national:
        raw = _without_introducer(raw)
    if literal.kind == "string":
        raw = _joined(raw)
    elif literal.kind in ("date", "time", "timestamp"):
        raw = re.sub(r"\s+(?=['\"])", "", raw)
    return literal.sign + strip_quotes(raw)


def _joined(raw: str) -> str:
    """Return the text without the blanks between adjacent strings."""
    return re.sub(r"(?<=')\s+(?=')", "", raw) if re.search(r"'\s+'", raw) else raw


def _without_introducer(raw: str) -> str:
    return re.sub(r"^_\w+\s*", "", raw)


def strip_quotes(text: str) -> str:
    """Return the text without the quotes around it; escape sequences are kept."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"`":
        return text[1:-1]
    return text


def with_table_charset(described: DebeziumColumn, charset: str | None) -> DebeziumColumn:
    """Return the description with the character set of the table, if the column does not have its own."""
    if described.jdbc_type in _WITH_CHARSET and (
        described.charset_name is None or described.charset_name.upper() == "DEFAULT"
    ):
        return replace(described, charset_name=charset)
    return described
