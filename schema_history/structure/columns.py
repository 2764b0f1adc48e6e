"""Builds the column that the server creates from a definition."""

import re
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from rowtide.schema_history.ddl.columns import accept_literal, accept_now
from rowtide.schema_history.ddl.cursor import Cursor
from rowtide.schema_history.ddl.expressions import canonical
from rowtide.schema_history.ddl.lexer import END
from rowtide.schema_history.ddl.statements import ColumnDef, DataType, Default, Expression, Literal, Now
from rowtide.schema_history.errors import UnparsedStatement
from rowtide.schema_history.model import Column, DefaultKind, Extra, Generation
from rowtide.schema_history.server import charsets
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.literals import number_text, value_text
from rowtide.schema_history.structure.type_names import BLOBS, TEXTS
from rowtide.schema_history.structure.types import column_type, resolve

T = TypeVar("T")

_NEGATED = re.compile(r"-\s*\(\s*([\d.eE]+)\s*\)")
_CALL = re.compile(r"[\w$.`]+\s*(?:\([^()]*\))?|_\w+\s*'[^']*'|[xX]'[0-9A-Fa-f]*'")
_PI = re.compile(r"pi\s*\(\s*\)", re.IGNORECASE)
_DATES = frozenset(("date", "time", "timestamp"))
_LARGE = frozenset((*TEXTS, *BLOBS, "json"))


def build_column(definition: ColumnDef, ctx: Context, table_charset: str, table_collation: str) -> Column:
    """Build the column of a definition. Effects of the other columns of the table are left to the caller.

    Raises:
        LookupError: an unknown character set or collation.
    """
    collate = definition.last("COLLATE")
    written = definition.type
    collation = str(collate.value) if collate else None
    resolved = resolve(written, collation, ctx, table_charset, table_collation)
    serial = written.words[0] == "SERIAL" or definition.has("SERIAL DEFAULT VALUE")
    comment = definition.last("COMMENT")
    srid = definition.last("SRID")
    column = Column(
        name=definition.name,
        column_type="",
        data_type=resolved.data_type,
        nullable=_nullable(definition, ctx, resolved.data_type, serial),
        auto_increment=serial or definition.has("AUTO_INCREMENT"),
        generation=_generation(definition, ctx),
        invisible=_invisible(definition),
        charset=resolved.charset,
        collation=resolved.collation,
        comment=str(comment.value) if comment else "",
        length=resolved.length,
        scale=resolved.scale,
        fsp=resolved.fsp,
        unsigned=resolved.unsigned,
        zerofill=resolved.zerofill,
        labels=resolved.labels,
        srid=srid.value if srid and isinstance(srid.value, int) and not ctx.mariadb else None,
        row=_row(definition),
        without_system_versioning=definition.has("WITHOUT SYSTEM VERSIONING"),
        not_secondary=definition.has("NOT SECONDARY"),
        compressed=resolved.compressed or definition.has("COMPRESSED"),
        written=_written(written),
    )
    column = replace(column, column_type=column_type(column, ctx.server))
    update = definition.last("ON UPDATE")
    if update is not None:
        column = replace(column, on_update=column.fsp)
    return _with_default(column, definition, ctx)


def _written(written: DataType) -> str:
    """Return the spelling of a type, as in ``Column.written``."""
    size = f"({','.join(written.arguments)})" if written.arguments else ""
    sign = " unsigned" if "UNSIGNED" in written.options or "ZEROFILL" in written.options else ""
    zerofill = " zerofill" if "ZEROFILL" in written.options else ""
    return sys.intern(" ".join(written.words).lower() + size + sign + zerofill)


def _nullable(definition: ColumnDef, ctx: Context, data_type: str, serial: bool) -> bool:
    nullable = None
    for attribute in definition.attributes:
        if attribute.kind in ("NOT NULL", "PRIMARY", "AUTO_INCREMENT", "SERIAL DEFAULT VALUE", "ROW"):
            nullable = False
        elif attribute.kind == "NULL":
            nullable = True
    if definition.has("PRIMARY") and not ctx.mariadb:
        return False
    if nullable is not None:
        return nullable
    if serial:
        return False
    if data_type != "timestamp" or ctx.explicit_timestamp:
        return True
    return ctx.mariadb and _generation(definition, ctx) is not None


def _generation(definition: ColumnDef, ctx: Context) -> Generation | None:
    for attribute in definition.attributes:
        if attribute.kind in ("VIRTUAL", "STORED") and isinstance(attribute.value, Expression):
            text = attribute.value.text
            if not ctx.mariadb:
                text = canonical(text, ctx.dialect, ctx.connection_charset)
            return Generation(text, attribute.kind == "STORED")
    return None


def _invisible(definition: ColumnDef) -> bool:
    invisible = False
    for attribute in definition.attributes:
        if attribute.kind in ("VISIBLE", "INVISIBLE"):
            invisible = attribute.kind == "INVISIBLE"
    return invisible


def _row(definition: ColumnDef) -> Extra | None:
    row = definition.last("ROW")
    if row is None:
        return None
    return Extra.ROW_START if row.value == "START" else Extra.ROW_END


def _with_default(column: Column, definition: ColumnDef, ctx: Context) -> Column:
    given = definition.last("DEFAULT")
    if column.generation is not None:
        return column
    if column.sets_itself and ctx.mariadb:
        return with_unused_default(column, given.value, ctx) if given else column  # type: ignore[arg-type]
    if given is None or definition.has("SERIAL DEFAULT VALUE") or (column.auto_increment and not ctx.mariadb):
        if column.compressed and not column.nullable:
            return replace(column, default_kind=DefaultKind.LITERAL, default="")
        if ctx.mariadb and column.on_update is not None and not column.nullable:
            return replace(column, default_kind=DefaultKind.LITERAL, default=zero_moment(column.fsp))
        if column.auto_increment or not column.nullable:
            return column
        return replace(column, default_kind=DefaultKind.NULL)
    assert isinstance(given.value, Literal | Now | Expression)
    default = folded(given.value, ctx)
    if isinstance(default, Literal) and default.kind == "null" and not column.nullable:
        return column
    return with_default(column, default, ctx)


def with_default(column: Column, default: Default, ctx: Context) -> Column:
    """Return the column with a default."""
    default = folded(default, ctx)
    if isinstance(default, Now):
        if column.data_type in ("timestamp", "datetime"):
            return replace(column, default_kind=DefaultKind.NOW, default=now_text(column.fsp, ctx))
        return replace(column, default_kind=DefaultKind.EXPRESSION, default=now_text(default.fsp, ctx))
    if isinstance(default, Expression):
        return replace(column, default_kind=DefaultKind.EXPRESSION, default=expression_text(default.text, ctx))
    if default.kind == "null":
        return replace(column, default_kind=DefaultKind.NULL, default=None)
    if not ctx.mariadb and (column.data_type in _LARGE or column.data_type == "vector"):
        # Without strict mode the server ignores an empty default of a TEXT, BLOB or VECTOR.
        kind = DefaultKind.NULL if column.nullable else DefaultKind.NONE
        return replace(column, default_kind=kind, default=None)
    if ctx.mariadb and (shown := _shown_expression(default, column)) is not None:
        return replace(column, default_kind=DefaultKind.EXPRESSION, default=shown)
    return replace(column, default_kind=DefaultKind.LITERAL, default=value_text(default, column, ctx))


def with_unused_default(column: Column, default: Default | None, ctx: Context) -> Column:
    """Return a column of MariaDB whose value the server sets, with a default.

    MariaDB keeps only expressions and NOW, unused.

    ALTER COLUMN accepts such a default and SHOW CREATE TABLE shows it, but CREATE TABLE does not accept it.
    """
    column = replace(column, default_kind=DefaultKind.NONE, default=None)
    default = folded(default, ctx) if default is not None else None
    if default is None or isinstance(default, Literal):
        return column
    if isinstance(default, Now):
        return replace(column, default_kind=DefaultKind.EXPRESSION, default=now_text(default.fsp, ctx))
    return replace(column, default_kind=DefaultKind.EXPRESSION, default=expression_text(default.text, ctx))


def _shown_expression(default: Literal, column: Column) -> str | None:
    """Return the text of a literal that MariaDB stores as an expression; ``None`` if it stores the value.

    MariaDB stores as expressions: literals of TEXT and BLOB except strings, and dates in multi-byte character sets.
    """
    if column.data_type not in _LARGE:
        if default.kind not in _DATES or column.charset is None or charsets.is_ascii_based(column.charset):
            return None
        return f"convert({default.kind.upper()}'{default.value}' using {column.charset})"
    if default.kind == "string":
        return default.raw if default.charset and not default.national else None
    if default.kind == "number":
        return number_text(default.sign, default.value)
    if default.kind == "bool":
        return "1" if default.value == "TRUE" else "0"
    if default.charset and default.kind in ("bits", "hex"):
        return f"_{default.charset}{_quoted(charsets.decoded(_octets(default), default.charset))}"
    if default.kind == "bits":
        size = (len(default.value) + 7) // 8
        return f"0x{int(default.value, 2):0{2 * size}X}" if default.value else "b''"
    if default.kind == "hex":
        return default.raw if default.raw.startswith("0x") else f"X{default.raw[1:]}"
    return f"{default.kind.upper()}'{default.value}'"


def _octets(default: Literal) -> bytes:
    """Return the bytes of a hexadecimal or binary literal."""
    digits = f"{int(default.value or '0', 2):x}" if default.kind == "bits" else default.value
    return bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def expression_text(text: str, ctx: Context) -> str:
    """Return an expression in the server's form; for MariaDB only the parentheses around operations are added."""
    if not ctx.mariadb:
        return canonical(text, ctx.dialect, ctx.connection_charset)
    return text if _CALL.fullmatch(text) else f"({text})"


def folded(default: Default, ctx: Context) -> Default:
    """Return the literal or NOW that MariaDB finds in an expression inside any number of parentheses."""
    if not (ctx.mariadb and isinstance(default, Expression)):
        return default
    text = _PI.sub("3.141592653589793", _NEGATED.sub(r"-\1", default.text))
    return _alone(text, ctx, accept_literal) or _alone(text, ctx, accept_now) or default


def literal_in(expression: Expression, ctx: Context) -> Literal | None:
    """Return the literal that is the whole expression, or ``None``.

    For ALTER COLUMN SET DEFAULT both servers unwrap it.
    """
    return _alone(expression.text, ctx, accept_literal)


def _alone(text: str, ctx: Context, accept: Callable[[Cursor], T | None]) -> T | None:
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    try:
        cursor = Cursor(text, ctx.dialect)
        found = accept(cursor)
    except UnparsedStatement:
        return None
    return found if found is not None and cursor.token.kind is END else None


def now_text(fsp: int, ctx: Context) -> str:
    """Return CURRENT_TIMESTAMP in the server's form."""
    if ctx.mariadb:
        return f"current_timestamp({fsp or ''})"
    return f"CURRENT_TIMESTAMP({fsp})" if fsp else "CURRENT_TIMESTAMP"


def promote_first_timestamp(
    columns: Sequence[Column], ctx: Context, new: Collection[str], primary: Collection[str], periods: Collection[str]
) -> list[Column]:
    """Without explicit_defaults_for_timestamp, set NOW for the first TIMESTAMP without a default, zero for the others.

    Args:
        columns: all columns of the table.
        ctx: the statement's context.
        new: names in lower case of the columns that the statement defines; others get no zero date.
        primary: names in lower case of the primary key; in MySQL they get no zero date.
        periods: names in lower case of the columns of periods; in MariaDB they do not get NOW.
    """
    result = list(columns)
    stamps = [n for n, column in enumerate(columns) if column.data_type == "timestamp"]
    for at in stamps:
        column = columns[at]
        if at == stamps[0] and _is_bare(column) and column.name.lower() not in periods:
            now = now_text(column.fsp, ctx) if ctx.mariadb or column.name.lower() in new else None
            result[at] = replace(column, default_kind=DefaultKind.NOW, default=now, on_update=column.fsp)
        elif column.name.lower() in new and (ctx.mariadb or column.name.lower() not in primary):
            result[at] = with_zero_timestamp(column, ctx)
    return result


def _is_bare(column: Column) -> bool:
    has_default = column.default_kind is not DefaultKind.NONE or column.on_update is not None
    return not (column.nullable or has_default or column.generation or column.row)


def with_zero_timestamp(column: Column, ctx: Context) -> Column:
    """Return the column with the zero date, if it is a NOT NULL TIMESTAMP without a default."""
    if column.data_type != "timestamp" or column.nullable or column.default_kind is not DefaultKind.NONE or column.row:
        return column
    if column.generation is not None and ctx.mariadb:
        return column
    return replace(column, default_kind=DefaultKind.LITERAL, default=zero_moment(column.fsp))


def zero_moment(fsp: int) -> str:
    """Return the zero date with ``fsp`` fractional digits."""
    return "0000-00-00 00:00:00" + ("." + "0" * fsp if fsp else "")
