"""ALTER TABLE: the actions of a statement on a table, all at once, in the order in which the server takes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rowtide.schema_history import charsets
from rowtide.schema_history.ddl.statements import (
    Action,
    AddColumn,
    AddKey,
    AlterDefault,
    AlterVisibility,
    ChangeColumn,
    CheckDef,
    ColumnDef,
    ConvertTo,
    DropColumn,
    DropKey,
    Element,
    ForeignKeyDef,
    IndexDef,
    PeriodDef,
    Place,
    RenameColumn,
    RenameKey,
    SetOptions,
    SystemVersioning,
    TableOptions,
)
from rowtide.schema_history.model import Column, Constraint, DefaultKind, Index, Table
from rowtide.schema_history.structure.columns import build_column, promote_first_timestamp, with_default
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.keys import index_of, index_of_foreign_key, with_columns
from rowtide.schema_history.structure.tables import (
    SYSTEM_VERSIONED,
    charset_and_collation,
    constraints_of,
    finished,
    indexes_of_column,
    row_columns,
)
from rowtide.schema_history.structure.types import (
    BLOBS,
    CHARACTER_TYPES,
    TEXTS,
    blob_capacity,
    blob_for,
    column_type,
)


class Missing(LookupError):
    """A column or index that the statement names and the table does not have."""


@dataclass(slots=True)
class _Work:
    """An ALTER TABLE in progress; names are compared in lower case."""

    table: Table
    ctx: Context
    dropped: set[str] = field(default_factory=set)
    changed: dict[str, tuple[Column, ColumnDef, Place | None]] = field(default_factory=dict)
    added: list[tuple[Column, Place | None, str | None]] = field(default_factory=list)
    defaults: dict[str, AlterDefault] = field(default_factory=dict)
    visibility: dict[str, bool] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    dropped_keys: set[str] = field(default_factory=set)
    renamed_keys: dict[str, str] = field(default_factory=dict)
    new_keys: list[Index] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return self.table.column(name) is not None


def alter(table: Table, actions: Sequence[Action], ctx: Context) -> Table:
    """The table after the actions; a new name of the table is left to the caller.

    Raises:
        LookupError: an unknown collation, or a column or index that the table does not have.
    """
    charset, collation, convert = _charset(table, actions, ctx)
    work = _Work(table, ctx)
    for action in actions:
        _collect(work, action, charset, collation)
    if not ctx.explicit_timestamp:
        _promote(work)
    columns, renamed = _columns(work)
    if convert is not None:
        columns = [converted(c, *convert, ctx) for c in columns]
    indexes = _indexes(work, columns, renamed)
    options = _options(actions)
    table = replace(
        table,
        columns=tuple(columns),
        indexes=tuple(indexes),
        charset=charset,
        collation=collation,
        comment=table.comment if options.comment is None else options.comment,
        engine=options.engine or table.engine,
        constraints=_constraints(work, renamed),
    )
    for action in actions:
        if isinstance(action, SystemVersioning):
            table = _versioned(table, action.add)
    if options.system_versioning:
        table = _versioned(table, add=True)
    return finished(table, ctx)


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


def _charset(table: Table, actions: Sequence[Action], ctx: Context) -> tuple[str, str, tuple[str, str] | None]:
    options = _options(actions)
    charset, collation, convert = table.charset, table.collation, None
    if options.charset is not None or options.collation is not None:
        charset, collation = charset_and_collation(options, ctx, table.charset, table.collation)
    for action in actions:
        if isinstance(action, ConvertTo):
            given = TableOptions(action.charset, action.collation)
            charset, collation = charset_and_collation(given, ctx, table.charset, table.collation)
            convert = (charset, collation)
    return charset, collation, convert


def _collect(work: _Work, action: Action, charset: str, collation: str) -> None:
    ctx = work.ctx
    if isinstance(action, AddColumn):
        if action.if_not_exists and work.has(action.column.name):
            return
        column = build_column(action.column, ctx, charset, collation)
        work.added.append((column, action.place, None))
        work.new_keys.extend(indexes_of_column(action.column, ctx))
        work.elements.append(action.column)
    elif isinstance(action, ChangeColumn):
        if not work.has(action.old):
            if action.if_exists:
                return
            raise Missing(f"column {action.old} of table {work.table.id} is not known")
        column = build_column(action.column, ctx, charset, collation)
        work.changed[action.old.lower()] = (column, action.column, action.place)
        work.added.append((column, action.place, action.old.lower()))
        work.new_keys.extend(indexes_of_column(action.column, ctx))
        work.elements.append(action.column)
    elif isinstance(action, DropColumn):
        if work.has(action.name):
            work.dropped.add(action.name.lower())
        elif not action.if_exists:
            raise Missing(f"column {action.name} of table {work.table.id} is not known")
    elif isinstance(action, AlterDefault):
        if work.has(action.name):
            work.defaults[action.name.lower()] = action
        elif not action.if_exists:
            raise Missing(f"column {action.name} of table {work.table.id} is not known")
    elif isinstance(action, AlterVisibility):
        work.visibility[action.name.lower()] = action.invisible
    elif isinstance(action, RenameColumn):
        if work.has(action.old):
            work.renamed[action.old.lower()] = action.new
        elif not action.if_exists:
            raise Missing(f"column {action.old} of table {work.table.id} is not known")
    else:
        _collect_key(work, action)


def _collect_key(work: _Work, action: Action) -> None:
    if isinstance(action, AddKey):
        element = action.element
        if isinstance(element, IndexDef):
            if not (element.if_not_exists and _index_exists(work, element)):
                work.new_keys.append(index_of(element))
        elif isinstance(element, ForeignKeyDef):
            if not (element.if_not_exists and _constraint_exists(work, element.name)):
                work.new_keys.append(index_of_foreign_key(element))
                work.elements.append(element)
        elif isinstance(element, CheckDef):
            if not (element.if_not_exists and _constraint_exists(work, element.name)):
                work.elements.append(element)
        elif isinstance(element, PeriodDef):
            work.elements.append(element)
    elif isinstance(action, DropKey):
        name = "primary" if action.kind == "primary" else action.name.lower()
        work.dropped_keys.add(f"{action.kind} {name}")
    elif isinstance(action, RenameKey):
        work.renamed_keys[action.old.lower()] = action.new


def _index_exists(work: _Work, element: IndexDef) -> bool:
    names = {i.name.lower() for i in work.table.indexes}
    if element.kind == "primary":
        return "primary" in names
    name = element.name or (element.parts[0].column if element.parts else "")
    return name.lower() in names


def _constraint_exists(work: _Work, name: str | None) -> bool:
    return name is not None and any(c.name.lower() == name.lower() for c in work.table.constraints)


def _promote(work: _Work) -> None:
    columns = promote_first_timestamp([column for column, _, _ in work.added], work.ctx)
    work.added = [(column, place, old) for column, (_, place, old) in zip(columns, work.added, strict=True)]
    for column, _, old in work.added:
        if old is not None:
            work.changed[old] = (column, *work.changed[old][1:])


def _columns(work: _Work) -> tuple[list[Column], dict[str, str]]:
    """The columns in their new order, and the new name of every old column that is still there."""
    result: list[Column] = []
    renamed: dict[str, str] = {}
    for column in work.table.columns:
        key = column.name.lower()
        if key in work.changed:
            new = work.changed[key][0]
            result.append(new)
            renamed[key] = new.name
        elif key not in work.dropped:
            new = _kept(work, column, key)
            result.append(new)
            renamed[key] = new.name
    for column, place, old in work.added:
        if old is not None and place is None:
            continue
        if place is None:
            result.append(column)
            continue
        if old is not None:
            result = [c for c in result if c is not column]
        if place.after is None:
            result.insert(0, column)
        else:
            wanted = place.after.lower()
            at = next((n for n, c in enumerate(result) if c.name.lower() == wanted), None)
            if at is None:
                raise Missing(f"column {place.after} of table {work.table.id} is not known")
            result.insert(at + 1, column)
    return result, renamed


def _kept(work: _Work, column: Column, key: str) -> Column:
    if key in work.renamed:
        column = replace(column, name=work.renamed[key])
    if key in work.defaults:
        default = work.defaults[key].default
        if default is None:
            column = replace(column, default_kind=DefaultKind.NONE, default=None)
        else:
            column = with_default(column, default, work.ctx)
    if key in work.visibility:
        column = replace(column, invisible=work.visibility[key])
    return column


def _indexes(work: _Work, columns: list[Column], renamed: dict[str, str]) -> list[Index]:
    kept = []
    for index in work.table.indexes:
        name = index.name.lower()
        kinds = ("primary",) if index.kind == "primary" else ("index", "constraint")
        if index.kind == "primary" and "index primary" in work.dropped_keys:
            continue
        if any(f"{kind} {name}" in work.dropped_keys for kind in kinds) and not _is_constraint(work, name):
            continue
        kept.append(replace(index, name=work.renamed_keys.get(name, index.name)))
    return with_columns(kept, work.table.columns, renamed, columns) + work.new_keys


def _is_constraint(work: _Work, name: str) -> bool:
    """Whether DROP CONSTRAINT of that name means a foreign key or check, not an index."""
    if f"index {name}" in work.dropped_keys or f"primary {name}" in work.dropped_keys:
        return False
    return any(c.name.lower() == name for c in work.table.constraints)


def _constraints(work: _Work, renamed: dict[str, str]) -> tuple[Constraint, ...]:
    kept = []
    for constraint in work.table.constraints:
        name = constraint.name.lower()
        if any(f"{kind} {name}" in work.dropped_keys for kind in (constraint.kind, "constraint")):
            continue
        columns = tuple(renamed.get(c.lower(), c) for c in constraint.columns)
        if constraint.kind == "check" and constraint.columns and constraint.columns[0].lower() in work.changed:
            continue  # CHANGE replaces the column's own check
        if constraint.columns and all(c.lower() not in renamed for c in constraint.columns):
            continue
        kept.append(replace(constraint, columns=columns))
    return constraints_of(work.elements, work.table.id.table, kept)


def _versioned(table: Table, add: bool) -> Table:
    if add:
        hidden = table.hidden if any(c.row for c in table.columns) else row_columns()
        return replace(table, kind=SYSTEM_VERSIONED, hidden=hidden)
    columns = tuple(replace(c, without_system_versioning=False) for c in table.columns if c.row is None)
    return replace(table, kind="BASE TABLE", hidden=(), columns=columns)


def converted(column: Column, charset: str, collation: str, ctx: Context) -> Column:
    """A column after CONVERT TO CHARACTER SET; longer characters can make a type larger."""
    if column.data_type not in CHARACTER_TYPES or column.charset in (None, "binary"):
        return column
    assert column.charset is not None
    name = column.data_type
    new = replace(column, charset=charset, collation=collation)
    if charset == "binary" and name not in ("enum", "set"):
        binary = {"char": "binary", "varchar": "varbinary"}.get(name) or BLOBS[TEXTS.index(name)]
        new = replace(new, data_type=binary, charset=None, collation=None)
    elif name in TEXTS and charset != column.charset:
        size = blob_capacity(name) // charsets.max_bytes(column.charset) * charsets.max_bytes(charset)
        larger = blob_for(size, TEXTS)
        if TEXTS.index(larger) > TEXTS.index(name):
            new = replace(new, data_type=larger)
    elif name == "varchar" and (column.length or 0) * charsets.max_bytes(charset) > 65535:
        size = (column.length or 0) * charsets.max_bytes(charset)
        new = replace(new, data_type=blob_for(size, TEXTS), length=None)
    return replace(new, column_type=column_type(new, ctx.server))
