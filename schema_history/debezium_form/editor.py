"""Debezium's table editor: columns by lower-case name in an order, the key's columns, character set and comment."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rowtide.schema_history.debezium_form.columns import with_table_charset, with_value
from rowtide.schema_history.model import DebeziumColumn, DebeziumTable, Table


class TableEditor:
    """A table's form while a statement is applied to it."""

    def __init__(self, form: DebeziumTable | None = None, columns: Iterable[DebeziumColumn] = ()) -> None:
        form = form or DebeziumTable()
        self.charset = form.default_charset_name
        self.comment = form.comment
        self.attributes = form.attributes
        self.primary_key = list(form.primary_key)
        self.columns: dict[str, DebeziumColumn] = {c.name.lower(): c for c in columns}

    def get(self, name: str) -> DebeziumColumn | None:
        """The column of that name."""
        return self.columns.get(name.lower())

    def add(self, form: DebeziumColumn) -> None:
        """Add a column at the end, or replace the one of its name in its place.

        A column that can be NULL has NULL for its default from then on, if it has none: even behind DROP DEFAULT.
        """
        if form.optional and not form.has_default:
            form = replace(form, has_default=True, default_expression=None)
        self.columns[form.name.lower()] = form

    def remove(self, name: str) -> None:
        """Remove a column, also from the key."""
        known = self.columns.pop(name.lower(), None)
        name = known.name if known is not None else name
        if name in self.primary_key:
            self.primary_key.remove(name)

    def rename(self, old: str, new: str) -> None:
        """Rename a column in its place, also in the key."""
        known = self.get(old)
        if known is None:
            return
        renamed = replace(known, name=new)
        self.columns = {
            (new.lower() if key == old.lower() else key): (renamed if key == old.lower() else column)
            for key, column in self.columns.items()
        }
        self.primary_key = [new if name == known.name else name for name in self.primary_key]

    def set_primary_key(self, names: Sequence[str]) -> None:
        """The key of a PRIMARY KEY clause: its columns cannot be NULL."""
        key = []
        for name in names:
            form = self.get(name)
            if form is not None and form.optional:
                has_default = form.has_default and form.default_expression is not None
                form = replace(form, optional=False, has_default=has_default)
                self.add(form)
            key.append(form.name if form is not None else name)
        self.primary_key = key

    def set_unique_key(self, names: Sequence[str | None]) -> None:
        """Promote a unique key, if there is no key yet and all its parts are columns that cannot be NULL."""
        forms = [self.get(name) if name else None for name in names]
        if not self.primary_key and all(form is not None and not form.optional for form in forms):
            self.primary_key = [form.name for form in forms if form is not None]

    def debezium_table(self) -> DebeziumTable:
        """The table's part of the form."""
        key = tuple(name for name in self.primary_key if name.lower() in self.columns)
        return DebeziumTable(self.charset, key, self.comment, self.attributes)

    def onto(self, table: Table) -> Table:
        """The table with this form; columns that Debezium would not know get one from the server's truth."""
        columns = []
        for column in table.columns:
            form = self.get(column.name)
            if form is None:
                form = column.debezium
            if form is not None:
                form = with_value(with_table_charset(form, self.charset), column)
            columns.append(replace(column, debezium=form))
        return replace(table, columns=tuple(columns), debezium=self.debezium_table())
