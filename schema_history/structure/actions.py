"""Collects the actions of an ALTER TABLE by kind, before any of them is applied."""

from dataclasses import dataclass, field

from rowtide.schema_history.ddl.statements import (
    Action,
    AddColumn,
    AddKey,
    AlterDefault,
    AlterVisibility,
    ChangeColumn,
    CheckDef,
    ColumnDef,
    ColumnPlace,
    DropColumn,
    DropKey,
    DropPeriod,
    Element,
    ForeignKeyDef,
    IndexDef,
    PeriodDef,
    RenameColumn,
    RenameKey,
)
from rowtide.schema_history.model import Column, Index, Table
from rowtide.schema_history.structure.columns import build_column
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.keys import index_of, index_of_foreign_key
from rowtide.schema_history.structure.tables import indexes_of_column


class UnknownColumn(LookupError):
    """The statement names a column that the table does not have."""


@dataclass(slots=True)
class PendingActions:
    """The collected actions of an ALTER TABLE; keys are names in lower case."""

    table: Table
    ctx: Context
    dropped: set[str] = field(default_factory=set)
    changed: dict[str, Column] = field(default_factory=dict)
    added: list[tuple[Column, ColumnPlace | None, str | None]] = field(default_factory=list)
    defaults: dict[str, AlterDefault] = field(default_factory=dict)
    visibility: dict[str, bool] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    dropped_keys: set[str] = field(default_factory=set)
    renamed_keys: dict[str, str] = field(default_factory=dict)
    new_keys: list[Index] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)

    def has(self, name: str) -> bool:
        """Return whether the table had the column before the statement."""
        return self.table.column(name) is not None


def collect(pending: PendingActions, action: Action, charset: str, collation: str) -> None:
    """Collect one action; ``charset`` and ``collation`` are those of new columns.

    Raises:
        LookupError: an unknown collation, or a column that the table does not have.
    """
    ctx = pending.ctx
    if isinstance(action, AddColumn):
        if action.if_not_exists and (pending.has(action.column.name) or _is_added(pending, action.column.name)):
            if ctx.mariadb:
                _add_keys(pending, action.column, only_new=True)
            return
        column = build_column(action.column, ctx, charset, collation)
        pending.added.append((column, action.place, None))
        _add_keys(pending, action.column, only_new=action.if_not_exists)
        pending.elements.append(action.column)
    elif isinstance(action, ChangeColumn):
        if not pending.has(action.old) and action.if_exists:
            return
        if not (pending.has(action.old) or ctx.mariadb):  # MariaDB also changes columns that the statement adds
            raise UnknownColumn(f"column {action.old} of table {pending.table.id} is not known")
        column = build_column(action.column, ctx, charset, collation)
        if pending.has(action.old):
            pending.changed.setdefault(action.old.lower(), column)
        pending.added.append((column, action.place, action.old.lower()))
        _add_keys(pending, action.column, only_new=action.if_exists)
        pending.elements.append(action.column)
    elif isinstance(action, DropColumn):
        if pending.has(action.name):
            pending.dropped.add(action.name.lower())
        elif not action.if_exists:
            raise UnknownColumn(f"column {action.name} of table {pending.table.id} is not known")
    elif isinstance(action, AlterDefault):
        if pending.has(action.name) or ctx.mariadb:  # MariaDB also alters columns that the statement adds
            pending.defaults[action.name.lower()] = action
        elif not action.if_exists:
            raise UnknownColumn(f"column {action.name} of table {pending.table.id} is not known")
    elif isinstance(action, AlterVisibility):
        pending.visibility[action.name.lower()] = action.invisible
    elif isinstance(action, RenameColumn):
        if pending.has(action.old):
            pending.renamed[action.old.lower()] = action.new
        elif not action.if_exists:
            raise UnknownColumn(f"column {action.old} of table {pending.table.id} is not known")
    else:
        _collect_key(pending, action)


def _add_keys(pending: PendingActions, column: ColumnDef, *, only_new: bool) -> None:
    """Collect the keys of a column's attributes; with IF [NOT] EXISTS only those whose names are not used.

    MariaDB adds them even if it does not add the column because it exists.
    """
    for index in indexes_of_column(column, pending.ctx):
        if not (only_new and _is_taken(pending, index.name or column.name)):
            pending.new_keys.append(index)


def _is_taken(pending: PendingActions, name: str) -> bool:
    names = {i.name.lower() or i.parts[0].column.lower() for i in (*pending.table.indexes, *pending.new_keys)}
    return name.lower() in names


def _is_added(pending: PendingActions, name: str) -> bool:
    return any(column.name.lower() == name.lower() for column, _, _ in pending.added)


def _collect_key(pending: PendingActions, action: Action) -> None:
    if isinstance(action, AddKey):
        element = action.element
        if isinstance(element, IndexDef):
            if not (element.if_not_exists and _index_exists(pending, element)):
                pending.new_keys.append(index_of(element, pending.ctx))
        elif isinstance(element, ForeignKeyDef):
            if not (element.if_not_exists and _constraint_exists(pending, element.name)):
                pending.new_keys.append(index_of_foreign_key(element))
                pending.elements.append(element)
        elif isinstance(element, CheckDef):
            if not (element.if_not_exists and _constraint_exists(pending, element.name)):
                pending.elements.append(element)
        elif isinstance(element, PeriodDef):
            pending.elements.append(element)
    elif isinstance(action, DropKey):
        name = "primary" if action.kind == "primary" else action.name.lower()
        if not (action.kind == "constraint" and action.if_exists and _is_only_hashed(pending, name)):
            pending.dropped_keys.add(f"{action.kind} {name}")
    elif isinstance(action, DropPeriod):
        pending.dropped_keys.add(f"period {action.name.lower()}")
    elif isinstance(action, RenameKey):
        pending.renamed_keys[action.old.lower()] = action.new


def _is_only_hashed(pending: PendingActions, name: str) -> bool:
    """Return whether MariaDB implements the unique key by a hash: DROP CONSTRAINT IF EXISTS does not find it."""
    if any(constraint.name.lower() == name for constraint in pending.table.constraints):
        return False
    return any(index.name.lower() == name and index.hashed for index in pending.table.indexes)


def _index_exists(pending: PendingActions, element: IndexDef) -> bool:
    if element.kind == "primary":
        return _is_taken(pending, "primary")
    return _is_taken(pending, element.name or (element.parts[0].column if element.parts else ""))


def _constraint_exists(pending: PendingActions, name: str | None) -> bool:
    return name is not None and any(c.name.lower() == name.lower() for c in pending.table.constraints)
