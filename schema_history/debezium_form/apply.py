"""The effect of CREATE TABLE, ALTER TABLE and CREATE INDEX on Debezium's description of a table."""

from dataclasses import replace

from rowtide.schema_history.ddl.statements import (
    Action,
    AddColumn,
    AddKey,
    AlterDefault,
    AlterTable,
    ChangeColumn,
    ColumnDef,
    ConvertTo,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropKey,
    IndexDef,
    Literal,
    RenameColumn,
    SetOptions,
    TableOptions,
)
from rowtide.schema_history.debezium_form.columns import debezium_column, strip_quotes, with_default, with_table_charset
from rowtide.schema_history.debezium_form.editor import TableEditor
from rowtide.schema_history.debezium_form.normalizer import as_single_quoted
from rowtide.schema_history.model import DebeziumColumn, Table
from rowtide.schema_history.structure.context import Context


def apply_create_table(table: Table, statement: CreateTable, database_charset: str | None, ctx: Context) -> Table:
    """Return the table with the description that Debezium derives from its CREATE TABLE."""
    editor = TableEditor(constraints=table.constraints)
    for element in statement.elements:
        if isinstance(element, ColumnDef):
            _declare(editor, element, ctx)
        elif isinstance(element, IndexDef):
            _add_index(editor, element)
    options = statement.options
    if options.charset is not None:
        editor.charset = options.charset or database_charset
    editor.charset = editor.charset or database_charset
    editor.comment = _comment(options, ctx)
    return editor.onto(table)


def _comment(options: TableOptions, ctx: Context) -> str | None:
    if options.raw_comment is None:
        return None
    return strip_quotes(as_single_quoted(options.raw_comment, ctx))


def _declare(editor: TableEditor, element: ColumnDef, ctx: Context) -> None:
    described = debezium_column(element, ctx)
    if element.has("PRIMARY"):
        editor.add(described)
        editor.primary_key = [described.name]
    editor.add(described)
    _promote(editor, element, described.name)


def _promote(editor: TableEditor, definition: ColumnDef, name: str) -> None:
    """Use a column with the attribute UNIQUE as the key if there is none, even if it is nullable."""
    serial = definition.type.words[0] == "SERIAL" or definition.has("SERIAL DEFAULT VALUE")
    if (serial or definition.has("UNIQUE")) and not editor.primary_key:
        editor.primary_key = [name]


def _add_index(editor: TableEditor, index: IndexDef) -> None:
    if index.kind == "primary":
        editor.set_primary_key([name for name in editor.key_columns(index) if name is not None])
    elif index.kind == "unique":
        editor.set_unique_key(editor.key_columns(index))


def apply_create_like(table: Table) -> Table:
    """Return the table with the description of a copy: without the comment."""
    return replace(table, debezium=replace(table.debezium, comment=None))


def apply_create_index(table: Table, statement: CreateIndex) -> tuple[Table, bool]:
    """Return the table after CREATE INDEX, and whether Debezium reports it.

    Debezium reports a unique index of plain columns on a table without a key, even if the index does not become the key
    of the records because a column is nullable.
    """
    editor = _editor(table, table)
    names = editor.key_columns(statement.definition)
    if statement.definition.kind != "unique" or editor.primary_key:
        return table, False
    if any(name is None or editor.get(name) is None for name in names):
        return table, False
    editor.set_unique_key(names)
    return editor.onto(table), True


def _editor(before: Table, after: Table) -> TableEditor:
    columns = [column.debezium for column in before.columns if column.debezium is not None]
    return TableEditor(before.debezium, columns, after.constraints)


def apply_alter_table(before: Table, after: Table, statement: AlterTable, ctx: Context) -> Table:
    """Return the altered table with the description that results from the actions, one after the other, as in Debezium.

    If that loses columns, as in ``CHANGE a b INT, CHANGE b a TEXT``, the actions are applied as the server applies
    them: old names refer to the table before the statement.

    Args:
        before: the table before the statement.
        after: the table after the statement, with the old description.
        statement: the statement.
        ctx: the statement's context.
    """
    editor = _editor(before, after)
    for action in statement.actions:
        _alter(editor, action, ctx, before)
    if editor.columns.keys() != {column.name.lower() for column in after.columns}:
        editor = _as_the_server(before, after, statement, ctx)
    return editor.onto(after)


_OLD = "\0"
"""Marks the name of a column before the statement; no name contains it."""


def _as_the_server(before: Table, after: Table, statement: AlterTable, ctx: Context) -> TableEditor:
    editor = _editor(before, after)
    names = [described.name for described in editor.columns.values()]
    for name in names:
        editor.rename(name, _OLD + name)
    keys = [action for action in statement.actions if isinstance(action, AddKey)]
    kept = {name.lower() for name in names}
    kept -= {action.name.lower() for action in statement.actions if isinstance(action, DropColumn)}
    for action in statement.actions:
        if isinstance(action, AddKey):
            continue  # keys refer to the columns after the statement
        if isinstance(action, ChangeColumn) and action.old.lower() not in kept:
            action = action._replace(old=action.column.name, modify=True)  # noqa: PLW2901 - MariaDB changes a new column
        elif isinstance(action, ChangeColumn | RenameColumn):
            kept.discard(action.old.lower())
            action = action._replace(old=_OLD + action.old)  # noqa: PLW2901
        elif isinstance(action, DropColumn | AlterDefault) and editor.get(_OLD + action.name) is not None:
            action = action._replace(name=_OLD + action.name)  # noqa: PLW2901
        _alter(editor, action, ctx, before)
    for name in names:
        editor.rename(_OLD + name, name)
    for action in keys:
        _alter(editor, action, ctx, before)
    return editor


def _alter(editor: TableEditor, action: Action, ctx: Context, before: Table) -> None:
    if isinstance(action, AddColumn):
        if action.if_not_exists and before.column(action.column.name) is not None:
            return
        editor.add(with_table_charset(_added(editor, action, ctx), editor.charset))
        if ctx.mariadb:
            _promote(editor, action.column, action.column.name)
    elif isinstance(action, ChangeColumn):
        _change(editor, action, ctx)
    elif isinstance(action, DropColumn):
        editor.remove(action.name)
    elif isinstance(action, RenameColumn):
        editor.rename(action.old, action.new)
    elif isinstance(action, AlterDefault):
        _alter_default(editor, action, ctx)
    elif isinstance(action, AddKey):
        if isinstance(action.element, IndexDef):
            _add_index(editor, action.element)
    elif isinstance(action, DropKey):
        if action.kind == "primary":
            editor.primary_key = []
    elif isinstance(action, ConvertTo):
        _convert(editor, action)
    elif isinstance(action, SetOptions) and action.options.raw_comment is not None:
        editor.comment = _comment(action.options, ctx)


def _added(editor: TableEditor, action: AddColumn, ctx: Context) -> DebeziumColumn:
    definition = action.column
    described = debezium_column(definition, ctx, explicit_only=action.several and not ctx.mariadb)
    if definition.has("PRIMARY") and not (action.several and not ctx.mariadb):
        editor.add(described)
        editor.primary_key = [described.name]
    return described


def _change(editor: TableEditor, action: ChangeColumn, ctx: Context) -> None:
    known = editor.get(action.old)
    if known is None:
        return
    definition = action.column
    described = debezium_column(definition, ctx, base=None if action.modify else known)
    name = definition.name
    placed = replace(described, name=action.old if action.modify else known.name)
    editor.add(with_table_charset(placed, editor.charset))
    if definition.has("PRIMARY"):
        editor.primary_key = [placed.name]
    if not action.modify and placed.name != name:
        editor.rename(placed.name, name)
    if ctx.mariadb:
        _promote(editor, definition, name)


def _alter_default(editor: TableEditor, action: AlterDefault, ctx: Context) -> None:
    known = editor.get(action.name)
    if known is None:
        return
    default = action.default
    if default is None:
        editor.add(replace(known, has_default=False, default_expression=None))
    elif isinstance(default, Literal) and not ctx.mariadb:
        if default.kind == "null":
            editor.add(replace(known, has_default=True, default_expression=None))
            return
        plain = default._replace(charset=None) if default.charset and default.kind == "string" else default
        if plain is not default:
            raw = default.sign + as_single_quoted(default.raw, ctx)
            editor.add(replace(known, has_default=True, default_expression=raw))
        else:
            editor.add(with_default(known, plain, ctx))
    else:
        editor.add(with_default(known, default, ctx))


def _convert(editor: TableEditor, action: ConvertTo) -> None:
    if action.charset is None:
        return
    editor.charset = action.charset
    for described in list(editor.columns.values()):
        if described.charset_name is not None:
            editor.add(replace(described, charset_name=action.charset))
