"""Applies ALTER TABLE to a table: all actions together, in the order of the server."""

from collections.abc import Sequence
from dataclasses import replace

from rowtide.schema_history.ddl.statements import (
    Action,
    AlterDefault,
    ColumnDef,
    ConvertTo,
    Default,
    Expression,
    SetOptions,
    SystemVersioning,
    TableOptions,
)
from rowtide.schema_history.model import Column, Constraint, Database, DefaultKind, Index, Table
from rowtide.schema_history.structure.actions import PendingActions, UnknownColumn, collect
from rowtide.schema_history.structure.charset_conversion import converted, redefined_text
from rowtide.schema_history.structure.columns import (
    literal_in,
    promote_first_timestamp,
    with_default,
    with_unused_default,
)
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.keys import reprinted, with_columns
from rowtide.schema_history.structure.literals import padded
from rowtide.schema_history.structure.tables import (
    SYSTEM_VERSIONED,
    charset_and_collation,
    constraints_of,
    finished,
    inherited_charset,
    period_names,
    primary_names,
    row_columns,
)
from rowtide.schema_history.structure.type_names import TEXTS


def alter(table: Table, actions: Sequence[Action], ctx: Context, database: Database | None = None) -> Table:
    """Return the table after the actions. RENAME TO is left to the caller.

    Args:
        table: the table before.
        actions: the actions in the order of the statement.
        ctx: the statement's context.
        database: the database whose character set DEFAULT means.

    Raises:
        LookupError: an unknown collation, or a column that the table does not have.
    """
    (charset, collation), inherited, convert = _charset(table, actions, ctx, database)
    pending = PendingActions(table, ctx)
    for action in actions:
        collect(pending, action, *inherited)
    placed = _columns(pending)
    columns = [column for column, _ in placed]
    renamed = _renamed(pending, placed)
    constraints = _constraints(pending, renamed)
    if not ctx.explicit_timestamp and (not ctx.mariadb or _is_about_timestamps(pending)):
        new = {c.name.lower() for c, _, _ in pending.added}
        primary = primary_names((*table.indexes, *pending.new_keys))
        columns = promote_first_timestamp(columns, ctx, new, primary, period_names(constraints))
    if convert is not None:
        columns = _converted(pending, columns, *convert)
    indexes = _indexes(pending, columns, renamed)
    options = _options(actions)
    table = replace(
        table,
        columns=tuple(columns),
        indexes=tuple(indexes),
        charset=charset,
        collation=collation,
        comment=table.comment if options.comment is None else options.comment,
        engine=options.engine or table.engine,
        constraints=constraints,
    )
    for action in actions:
        if isinstance(action, SystemVersioning):
            table = _with_system_versioning(table, action.add)
    if options.system_versioning:
        table = _with_system_versioning(table, add=True)
    return finished(table, ctx)


def _converted(pending: PendingActions, columns: Sequence[Column], charset: str, collation: str) -> list[Column]:
    defined = {e.name.lower(): e for e in pending.elements if isinstance(e, ColumnDef)}
    replaced = {new.name.lower(): pending.table.column(old) for old, new in pending.changed.items()}
    result = []
    for column in columns:
        definition = defined.get(column.name.lower())
        # BINARY alone means the binary collation of the target character set.
        keeps = definition is not None and definition.type.binary and not definition.type.charset
        written = definition.type if definition is not None else None
        new = column if keeps else converted(column, charset, collation, pending.ctx, written)
        if definition is not None and column.data_type in TEXTS:
            given = definition.type.arguments
            before = replaced.get(definition.name.lower())
            new = redefined_text(new, int(given[0]) if given else None, before, pending.ctx)
        result.append(new)
    return result


def _is_about_timestamps(pending: PendingActions) -> bool:
    """Return whether the statement defines a TIMESTAMP or its default: only then does MariaDB promote the first one."""
    named = [column for column in pending.table.columns if column.name.lower() in pending.defaults]
    return any(c.data_type == "timestamp" for c in (*named, *(column for column, _, _ in pending.added)))


def _options(actions: Sequence[Action]) -> TableOptions:
    merged = TableOptions()
    for action in actions:
        if isinstance(action, SetOptions):
            given = action.options
            merged = TableOptions(
                given.charset if given.charset is not None else merged.charset,
                given.collation if given.collation is not None else merged.collation,
                given.comment if given.comment is not None else merged.comment,
                given.raw_comment if given.raw_comment is not None else merged.raw_comment,
                given.engine or merged.engine,
                given.system_versioning or merged.system_versioning,
            )
    return merged


def _charset(
    table: Table, actions: Sequence[Action], ctx: Context, database: Database | None
) -> tuple[tuple[str, str], tuple[str, str], tuple[str, str] | None]:
    """Return the character set and collation of the table after the actions, of new columns, and of CONVERT TO."""
    own, convert, last, collation = (table.charset, table.collation), None, 0, None
    for number, action in enumerate(actions):
        if isinstance(action, ConvertTo):
            base = own if action.charset is not None else inherited_charset(database, ctx)
            written = "" if action.charset is None and ctx.mariadb else action.charset
            # In MariaDB an explicit collation of one CONVERT TO also applies to the next one.
            collation = action.collation or (collation if ctx.mariadb else None)
            convert, last = charset_and_collation(TableOptions(written, collation), ctx, *base), number
    # In MySQL, CONVERT TO overrides the options before it.
    options = _options(actions if ctx.mariadb else actions[last:])
    if convert is not None:
        if options.charset is None and options.collation is None:
            return convert, convert, convert
        if not ctx.mariadb and options.collation is None:
            return convert, convert, convert  # the same character set, so the collation stays
        base = inherited_charset(database, ctx) if options.charset == "" else convert
        return charset_and_collation(options, ctx, *base), convert, convert
    if options.charset is not None or options.collation is not None:
        base = inherited_charset(database, ctx) if options.charset == "" else own
        own = charset_and_collation(options, ctx, *base)
    return own, own, None


def _columns(pending: PendingActions) -> list[tuple[Column, str]]:
    """Return the columns in their new order, each with its former name in lower case, which indexes still have."""
    result: list[tuple[Column, str]] = []
    defaults = dict(pending.defaults)
    for column in pending.table.columns:
        key = column.name.lower()
        if key in pending.dropped:
            continue
        if key in pending.changed:
            result.append((pending.changed[key], key))
        else:
            result.append((_kept(pending, column, key, defaults), key))
    for column, place, old in pending.added:
        if old is not None and old not in pending.dropped and pending.changed.get(old) is column:
            if place is None:
                continue
            result = [entry for entry in result if entry[0] is not column]
        elif old is not None:  # MariaDB has dropped or changed the column before: this replaces a new column
            del result[_index(pending, result, column.name)]
        if pending.ctx.mariadb and (default := defaults.pop(column.name.lower(), None)) is not None:
            column = _with_new_default(column, default.default, pending.ctx)  # noqa: PLW2901
        entry = (column, column.name.lower() if old is None else old)
        if place is None:
            result.append(entry)
        elif place.after is None:
            result.insert(0, entry)
        else:
            result.insert(_index(pending, result, place.after) + 1, entry)
    return _with_row_id_first(pending, result)


def _index(pending: PendingActions, placed: Sequence[tuple[Column, str]], name: str) -> int:
    for at, (column, _) in enumerate(placed):
        if column.name.lower() == name.lower():
            return at
    raise UnknownColumn(f"column {name} of table {pending.table.id} is not known")


def _with_row_id_first(pending: PendingActions, placed: list[tuple[Column, str]]) -> list[tuple[Column, str]]:
    """Return the columns in MySQL's order, with a generated invisible primary key before all others."""
    first = pending.table.columns[0] if pending.table.columns else None
    if first is None or pending.ctx.mariadb or first.name.lower() != "my_row_id":
        return placed
    if not (first.invisible and first.auto_increment and first.unsigned and first.data_type == "bigint"):
        return placed
    return sorted(placed, key=lambda entry: entry[0] is not first)


def _renamed(pending: PendingActions, placed: Sequence[tuple[Column, str]]) -> dict[str, str]:
    """Return new names by old ones: for each, the first column in the new order that had the old name."""
    names: dict[str, str] = {}
    for column, key in placed:
        names.setdefault(key, column.name)
    known = {c.name.lower() for c in pending.table.columns}
    return {key: name for key, name in names.items() if key in known}


def _kept(pending: PendingActions, column: Column, key: str, defaults: dict[str, AlterDefault]) -> Column:
    """Return a column that is not redefined, with its new default from ``defaults``, which is consumed."""
    if key in pending.renamed:
        column = replace(column, name=pending.renamed[key])
    if key in defaults and not (key in pending.renamed and pending.ctx.mariadb):  # MariaDB applies only one of the two
        column = _with_new_default(column, defaults.pop(key).default, pending.ctx)
    elif column.data_type == "char" and column.default is not None and not pending.ctx.mariadb:
        column = replace(column, default=padded(column.default, column, pending.ctx))
    if key in pending.visibility:
        column = replace(column, invisible=pending.visibility[key])
    return column


def _with_new_default(column: Column, default: Default | None, ctx: Context) -> Column:
    if isinstance(default, Expression):
        default = literal_in(default, ctx) or default
    if column.sets_itself and ctx.mariadb:
        return with_unused_default(column, default, ctx)
    if column.default_kind is DefaultKind.NOW and (ctx.mariadb or default is None):
        # MariaDB ignores the clause, MySQL drops the value but not the property.
        return column if ctx.mariadb else replace(column, default=None)
    if default is None and ctx.mariadb and column.generation is not None:
        return replace(column, default_kind=DefaultKind.EXPRESSION, default=None)  # it is no longer shown as NULL
    if default is None or column.auto_increment:
        return replace(column, default_kind=DefaultKind.NONE, default=None)
    changed = with_default(column, default, ctx)
    if changed.default_kind is DefaultKind.NOW:
        return replace(changed, default_kind=DefaultKind.EXPRESSION)
    return changed


def _indexes(pending: PendingActions, columns: list[Column], renamed: dict[str, str]) -> list[Index]:
    kept = []
    for index in pending.table.indexes:
        name = index.name.lower()
        kinds = ("index", "constraint", *(("primary",) if index.kind == "primary" else ()))
        if any(f"{kind} {name}" in pending.dropped_keys for kind in kinds) and not _is_constraint(pending, name):
            continue
        kept.append(replace(index, name=pending.renamed_keys.get(name, index.name)))
    kept = [reprinted(i, pending.table.columns) for i in kept]
    return with_columns(kept, pending.table.columns, renamed, columns, pending.dropped, pending.ctx) + pending.new_keys


def _is_constraint(pending: PendingActions, name: str) -> bool:
    """Return whether DROP CONSTRAINT of that name means a foreign key or check, not an index."""
    if f"index {name}" in pending.dropped_keys or f"primary {name}" in pending.dropped_keys:
        return False
    return any(c.name.lower() == name and c.kind != "period" for c in pending.table.constraints)


def _drops(kind: str) -> tuple[str, ...]:
    return ("period",) if kind == "period" else (kind, "constraint")


def _constraints(pending: PendingActions, renamed: dict[str, str]) -> tuple[Constraint, ...]:
    kept = []
    for constraint in pending.table.constraints:
        name = constraint.name.lower()
        if any(f"{kind} {name}" in pending.dropped_keys for kind in _drops(constraint.kind)):
            continue
        columns = tuple(renamed.get(c.lower(), c) for c in constraint.columns)
        if constraint.kind == "check" and constraint.columns and constraint.columns[0].lower() in pending.changed:
            continue  # CHANGE replaces the column's own check
        if constraint.columns and all(c.lower() not in renamed for c in constraint.columns):
            continue
        kept.append(replace(constraint, columns=columns))
    return constraints_of(pending.elements, pending.table.id, pending.ctx, kept, pending.table.constraints)


def _with_system_versioning(table: Table, add: bool) -> Table:
    if add:
        hidden = table.hidden if any(c.row for c in table.columns) else row_columns()
        return replace(table, kind=SYSTEM_VERSIONED, hidden=hidden)
    columns = tuple(column for column in table.columns if column.row is None)
    return replace(table, kind="BASE TABLE", hidden=(), columns=columns)
