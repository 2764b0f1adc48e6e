"""Builds the table of a CREATE TABLE, with everything that the server adds."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count

from rowtide.schema_history.ddl.statements import (
    CheckDef,
    ColumnDef,
    CreateSequence,
    CreateTable,
    DataType,
    Element,
    ForeignKeyDef,
    IndexDef,
    PeriodDef,
    ReferenceDef,
    TableOptions,
)
from rowtide.schema_history.model import (
    Column,
    Constraint,
    Database,
    DefaultKind,
    Extra,
    Index,
    KeyPart,
    Reference,
    Table,
    TableId,
)
from rowtide.schema_history.server import charsets
from rowtide.schema_history.structure.columns import (
    build_column,
    promote_first_timestamp,
    with_zero_timestamp,
    zero_moment,
)
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.keys import (
    HASHED_SHAPE,
    byte_width,
    index_of,
    index_of_foreign_key,
    named,
    normalized_parts,
    without_covered,
)
from rowtide.schema_history.structure.type_names import BLOBS, SPATIAL, TEXTS

_MAX_KEY_BYTES = 3072
SYSTEM_VERSIONED = "SYSTEM VERSIONED"
ROW_HASH = "DB_ROW_HASH_"
"""Prefix of the names of hidden hash columns."""
_HASHING_ENGINES = frozenset({"MEMORY", "HEAP"})
"""Storage engines with their own hash indexes."""
ENGINES_WITH_FOREIGN_KEYS = frozenset({"", "INNODB", "NDB", "NDBCLUSTER"})
"""In capitals. All others ignore FOREIGN KEY; ``""`` is the default."""


def charset_and_collation(
    options: TableOptions, ctx: Context, inherited_charset: str, inherited_collation: str
) -> tuple[str, str]:
    """Return the character set and collation of options, or the inherited ones.

    Raises:
        LookupError: an unknown character set or collation.
    """
    charset = options.charset
    if charset == "":
        charset = inherited_charset
        if options.collation is None:
            own = charsets.default_collation(charset, ctx.flavor, ctx.server.version_number)
            return charset, own if ctx.mariadb else inherited_collation
    if charset is not None:
        charset = charsets.charset_name(charset)
    if options.collation:
        named_collation = charsets.known_collation(options.collation, charset or inherited_charset, ctx.flavor)
        if named_collation is None:
            raise LookupError(f"unknown collation {options.collation}")
        return charsets.charset_of(named_collation), named_collation
    if charset is not None:
        if not charsets.is_charset(charset):
            raise LookupError(f"unknown character set {charset}")
        return charset, ctx.default_collation(charset)
    if options.collation == "" and ctx.mariadb:  # COLLATE DEFAULT
        return inherited_charset, ctx.default_collation(inherited_charset)
    return inherited_charset, inherited_collation


def build_table(statement: CreateTable, table_id: TableId, database: Database | None, ctx: Context) -> Table:
    """Build the table of a CREATE TABLE.

    Raises:
        LookupError: an unknown character set or collation.
    """
    inherited = inherited_charset(database, ctx)
    charset, collation = charset_and_collation(statement.options, ctx, *inherited)
    columns = [build_column(e, ctx, charset, collation) for e in statement.elements if isinstance(e, ColumnDef)]
    indexes = indexes_of(statement.elements, ctx)
    constraints = constraints_of(statement.elements, table_id, ctx)
    if not ctx.explicit_timestamp:
        new = {c.name.lower() for c in columns}
        columns = promote_first_timestamp(columns, ctx, new, primary_names(indexes), period_names(constraints))
    table = Table(
        id=table_id,
        columns=tuple(columns),
        indexes=tuple(indexes),
        charset=charset,
        collation=collation,
        comment=statement.options.comment or "",
        engine=statement.options.engine or "",
        constraints=constraints,
    )
    versioned = statement.options.system_versioning
    if ctx.mariadb:
        table = with_versioning(table, statement.elements, versioned)
        if statement.options.sequence:
            table = replace(table, kind="SEQUENCE")
    return finished(table, ctx)


def inherited_charset(database: Database | None, ctx: Context) -> tuple[str, str]:
    """Return the character set and collation of a database; those of the server if the database is not known."""
    if database is not None:
        return database.charset, database.collation
    return charsets.charset_of(ctx.server_collation), ctx.server_collation


def indexes_of(elements: Sequence[Element], ctx: Context) -> list[Index]:
    """Return the indexes of a list of elements, in its order; the name is ``""`` if the server chooses it."""
    indexes = []
    for element in elements:
        if isinstance(element, ColumnDef):
            indexes.extend(indexes_of_column(element, ctx))
        elif isinstance(element, IndexDef):
            indexes.append(index_of(element, ctx))
        elif isinstance(element, ForeignKeyDef):
            indexes.append(index_of_foreign_key(element))
    return indexes


def indexes_of_column(column: ColumnDef, ctx: Context) -> list[Index]:
    """Return the indexes of a column's attributes."""
    part = (KeyPart(column.name),)
    if ctx.mariadb and column.has("PRIMARY"):
        return [Index("PRIMARY", part, "primary")]
    indexes = []
    if column.type.words[0] == "SERIAL" or column.has("SERIAL DEFAULT VALUE"):
        indexes.append(Index("", part, "unique"))
    for attribute in column.attributes:
        if attribute.kind == "PRIMARY":
            indexes.append(Index("PRIMARY", part, "primary"))
        elif attribute.kind == "UNIQUE" and not any(i.kind == "unique" for i in indexes):
            indexes.append(Index("", part, "unique"))
        elif attribute.kind == "REFERENCES" and _has_references_of_columns(ctx):
            indexes.append(Index("", part, generated=True))
    return indexes


def constraints_of(
    elements: Sequence[Element],
    table_id: TableId,
    ctx: Context,
    known: Sequence[Constraint] = (),
    former: Sequence[Constraint] = (),
) -> tuple[Constraint, ...]:
    """Return the constraints of a list of elements; those without a name get the server's names.

    Args:
        elements: the elements.
        table_id: their table.
        ctx: the statement's context.
        known: the constraints that stay.
        former: those before the statement.
    """
    result, table = list(known), table_id.table
    numbers = count(_highest_number(table, former) + 1)
    for element in elements:
        if isinstance(element, ForeignKeyDef):
            given = element.name or (element.index_name if _names_foreign_keys_by_index(ctx) else None)
            name = given or f"{table}_ibfk_{next(numbers)}"
            result.append(Constraint(name, "foreign", element.columns, _reference(element.reference, table_id)))
        elif isinstance(element, CheckDef):
            name = element.name or _next_check(table, result)
            result.append(Constraint(name, "check"))
        elif isinstance(element, PeriodDef) and element.name.upper() != "SYSTEM_TIME":
            result.append(Constraint(element.name, "period", (element.start, element.end)))
        elif isinstance(element, ColumnDef):
            for attribute in element.attributes:
                if isinstance(attribute.value, ForeignKeyDef) and _has_references_of_columns(ctx):
                    name, referenced = f"{table}_ibfk_{next(numbers)}", _reference(attribute.value.reference, table_id)
                    result.append(Constraint(name, "foreign", (element.name,), referenced))
                elif attribute.kind == "CHECK" and isinstance(attribute.value, CheckDef):
                    name = attribute.value.name or _next_check(table, result)
                    result.append(Constraint(name, "check", (element.name,)))
    return tuple(result)


def _reference(definition: ReferenceDef, child: TableId) -> Reference:
    """Return the reference of a foreign key.

    A parent without a database is in that of the child, whatever the session's is.
    """
    (database, table), columns, on_delete, on_update = definition
    return Reference(TableId(database or child.database, table), columns, on_delete, on_update)


def _names_foreign_keys_by_index(ctx: Context) -> bool:
    """Return whether FOREIGN KEY ``index_name`` names the constraint, too: not since MySQL 8.0.16."""
    return ctx.mariadb or ctx.server.version_number < 80016


def _has_references_of_columns(ctx: Context) -> bool:
    """Return whether REFERENCES of a column is a foreign key: since MySQL 9.0 and MariaDB 10.5, ignored before."""
    return ctx.server.version_number >= (100500 if ctx.mariadb else 90000)


def _highest_number(table: str, known: Sequence[Constraint]) -> int:
    """Return the highest number in foreign key names generated by the server; 0 if there is none."""
    prefix = f"{table}_ibfk_".lower()
    names = (one.name.lower() for one in known if one.kind == "foreign")
    numbers = (name[len(prefix) :] for name in names if name.startswith(prefix))
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def _next_check(table: str, known: Sequence[Constraint]) -> str:
    taken = {c.name.lower() for c in known}
    number = 1
    while f"{table}_chk_{number}".lower() in taken:
        number += 1
    return f"{table}_chk_{number}"


def with_versioning(table: Table, elements: Sequence[Element], versioned: bool) -> Table:
    """Return the table as a system-versioned one of MariaDB: its kind, and its hidden columns."""
    definitions = {e.name.lower(): e for e in elements if isinstance(e, ColumnDef)}
    with_columns = {n for n, d in definitions.items() if d.has("WITH SYSTEM VERSIONING")}
    periods = any(isinstance(e, PeriodDef) and e.name.upper() == "SYSTEM_TIME" for e in elements)
    if not (versioned or with_columns):
        return replace(table, columns=tuple(replace(c, without_system_versioning=False) for c in table.columns))
    columns = table.columns
    if not versioned:
        columns = tuple(
            c if c.name.lower() in with_columns or c.row else replace(c, without_system_versioning=True)
            for c in columns
        )
    hidden = () if periods or any(c.row for c in columns) else row_columns()
    return replace(table, columns=columns, hidden=hidden, kind=SYSTEM_VERSIONED)


def row_columns() -> tuple[Column, ...]:
    """Return the two hidden columns of a system-versioned table that does not declare them."""
    return tuple(
        Column(name, "timestamp(6)", "timestamp", nullable=False, fsp=6, row=row)
        for name, row in (("row_start", Extra.ROW_START), ("row_end", Extra.ROW_END))
    )


def finished(table: Table, ctx: Context) -> Table:
    """Return the table with the effects of columns and indexes on each other.

    The effects are NOT NULL keys, index names and foreign keys.
    """
    if table.engine.upper() not in ENGINES_WITH_FOREIGN_KEYS:
        table = replace(table, constraints=tuple(c for c in table.constraints if c.kind != "foreign"))
    indexes = [normalized_parts(i, table.columns, ctx) for i in _with_periods(table)]
    indexes = without_covered(indexes)
    if ctx.mariadb:
        indexes = _with_hashes(indexes, table)
    table = replace(table, indexes=named(indexes), columns=with_keys(table, indexes, ctx))
    if ctx.mariadb:
        versioning = tuple(c for c in table.hidden if c.row is not None)
        table = replace(table, hidden=versioning + row_hashes(sum(i.hashed for i in table.indexes)))
    return table


def _with_periods(table: Table) -> list[Index]:
    """Return the indexes with the columns that MariaDB adds.

    These are the columns of a period, and row_end in unique keys without row_start.
    """
    periods = {c.name.lower(): c.columns for c in table.constraints if c.kind == "period"}
    row_end = next((c.name for c in table.columns if c.row is Extra.ROW_END), None)
    system = {c.name.lower() for c in table.columns if c.row is not None}
    result = []
    for index in table.indexes:
        parts: list[KeyPart] = []
        for part in index.parts:
            if part.period and part.column.lower() in periods:
                parts.extend(KeyPart(name, period=True) for name in reversed(periods[part.column.lower()]))
            else:
                parts.append(part)
        if row_end is not None and index.unique and system.isdisjoint(p.column.lower() for p in parts):
            parts.append(KeyPart(row_end))
        result.append(replace(index, parts=tuple(parts)))
    return result


def primary_names(indexes: Iterable[Index]) -> set[str]:
    """Return the names in lower case of the columns of the primary key."""
    return {part.column.lower() for index in indexes if index.kind == "primary" for part in index.parts}


def period_names(constraints: Iterable[Constraint]) -> set[str]:
    """Return the names in lower case of the start and end columns of periods."""
    return {name.lower() for c in constraints if c.kind == "period" for name in c.columns}


def with_keys(table: Table, indexes: Sequence[Index], ctx: Context) -> tuple[Column, ...]:
    """Return the columns; those of the primary key and of periods become NOT NULL and lose the default NULL."""
    names = primary_names(indexes) | period_names(table.constraints)
    return tuple(_as_key(column, ctx) if column.name.lower() in names else column for column in table.columns)


def _as_key(column: Column, ctx: Context) -> Column:
    if not column.nullable and column.default_kind is not DefaultKind.NULL:
        return column
    kind = DefaultKind.NONE if column.default_kind is DefaultKind.NULL else column.default_kind
    column = replace(column, nullable=False, default_kind=kind)
    if ctx.mariadb and column.on_update is not None and kind is DefaultKind.NONE:
        return replace(column, default_kind=DefaultKind.LITERAL, default=zero_moment(column.fsp))
    return column if ctx.explicit_timestamp or not ctx.mariadb else with_zero_timestamp(column, ctx)


def _with_hashes(indexes: Sequence[Index], table: Table) -> list[Index]:
    """Return the indexes; MariaDB uses a hash for UNIQUE keys with USING HASH, and for those too long for an index."""
    known = {c.name.lower(): c for c in table.columns}
    capable = table.engine.upper() in _HASHING_ENGINES
    return [
        replace(i, hashed=not capable and i.kind == "unique" and (i.hashed or _is_hashed(i, known))) for i in indexes
    ]


def row_hashes(count: int) -> tuple[Column, ...]:
    """Return the hidden columns of ``count`` unique keys with a hash."""
    return tuple(
        Column(f"{ROW_HASH}{number}", "bigint(20) unsigned", "bigint", length=20, unsigned=True)
        for number in range(1, count + 1)
    )


def _is_hashed(index: Index, columns: dict[str, Column]) -> bool:
    size = 0
    for part in index.parts:
        column = columns.get(part.column.lower())
        if column is None:
            return False
        if column.data_type in SPATIAL and column.data_type != "point" and part.length == HASHED_SHAPE:
            return True
        if part.length is None and (column.data_type in TEXTS or column.data_type in BLOBS):
            return True
        if part.length is None:
            size += byte_width(column)
        else:
            width = charsets.max_bytes(column.charset) if column.charset else 1
            size += part.length * width
    return size > _MAX_KEY_BYTES


_BIGINT = DataType(("BIGINT",), ("21",))
_VALUES = ("next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment")
_COMMENTS = {
    "start_value": "start value when sequences is created or value if RESTART is used",
    "increment": "increment value",
    "cycle_option": "0 if no cycles are allowed, 1 if the sequence should begin a new cycle "
    "when maximum_value is passed",
    "cycle_count": "How many cycles have been done",
}


def build_sequence(table_id: TableId, statement: CreateSequence, database: Database | None, ctx: Context) -> Table:
    """Return the table after CREATE SEQUENCE."""
    charset, collation = charset_and_collation(statement.options, ctx, *inherited_charset(database, ctx))
    return Table(
        id=table_id,
        columns=_columns(statement.type or _BIGINT, ctx),
        charset=charset,
        collation=collation,
        comment=statement.options.comment or "",
        engine=statement.options.engine or "",
        kind="SEQUENCE",
    )


def alter_sequence(table: Table, data_type: DataType, ctx: Context) -> Table:
    """Return the table after ALTER SEQUENCE ... AS type."""
    return replace(table, columns=_columns(data_type, ctx))


def _columns(data_type: DataType, ctx: Context) -> tuple[Column, ...]:
    if not data_type.arguments:
        data_type = data_type._replace(arguments=(str(_WIDTHS[data_type.words[-1].lower()]),))
    types = dict.fromkeys(_VALUES, data_type)
    types["increment"] = _BIGINT
    types["cache_size"] = DataType(("BIGINT",), ("21",), options=("UNSIGNED",))
    types["cycle_option"] = DataType(("TINYINT",), ("1",), options=("UNSIGNED",))
    types["cycle_count"] = _BIGINT
    columns = []
    for name, written in types.items():
        column = build_column(ColumnDef(name, written), ctx, "utf8mb4", "utf8mb4_general_ci")
        comment = _COMMENTS.get(name, "")
        columns.append(replace(column, nullable=False, default_kind=DefaultKind.NONE, comment=comment))
    return tuple(columns)


_WIDTHS = {"tinyint": 5, "smallint": 7, "mediumint": 9, "int": 12, "integer": 12, "bigint": 21}
