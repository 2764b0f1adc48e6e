"""Debezium's table editor: ordered columns by lower-case name, key columns, character set and comment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rowtide.schema_history.ddl.statements import IndexDef
from rowtide.schema_history.debezium_form.columns import with_table_charset, with_value
from rowtide.schema_history.model import Constraint, DebeziumColumn, DebeziumTable, Table
from rowtide.schema_history.server.charsets import unicode_text


class TableEditor:
    """Debezium's description of a table while a statement is applied to it.

    Args:
        table: the description without the columns.
        columns: the columns.
        constraints: those after the statement: the name of a period in a key stands for the period's columns.
    """

    def __init__(
        self,
        table: DebeziumTable | None = None,
        columns: Iterable[DebeziumColumn] = (),
        constraints: Iterable[Constraint] = (),
    ) -> None:
        table = table or DebeziumTable()
        self._periods: Mapping[str, Sequence[str]] = {
            one.name.lower(): one.columns for one in constraints if one.kind == "period"
        }
        self.charset = table.default_charset_name
        self.comment = table.comment
        self.attributes = table.attributes
        self.primary_key = list(table.primary_key)
        self.columns: dict[str, DebeziumColumn] = {c.name.lower(): c for c in columns}

    def get(self, name: str) -> DebeziumColumn | None:
        """Return the column of that name, or ``None``."""
        return self.columns.get(name.lower())

    def add(self, column: DebeziumColumn) -> None:
        """Add a column at the end, or replace the column of the same name in its place.

        A nullable column without a default gets the default NULL, even after DROP DEFAULT.
        """
        if column.optional and not column.has_default:
            column = replace(column, has_default=True, default_expression=None)
        self.columns[column.name.lower()] = column

    def remove(self, name: str) -> None:
        """Remove a column from the table and from the key."""
        known = self.columns.pop(name.lower(), None)
        name = known.name if known is not None else name
        if name in self.primary_key:
            self.primary_key.remove(name)

    def rename(self, old: str, new: str) -> None:
        """Rename a column in the table and in the key."""
        known = self.get(old)
        if known is None:
            return
        renamed = replace(known, name=new)
        self.columns = {
            (new.lower() if key == old.lower() else key): (renamed if key == old.lower() else column)
            for key, column in self.columns.items()
        }
        self.primary_key = [new if name == known.name else name for name in self.primary_key]

    def key_columns(self, index: IndexDef) -> list[str | None]:
        """Return the columns of an index in the server's order, which puts a period's end first.

        An expression is ``None``.
        """
        names: list[str | None] = []
        for part in index.parts:
            if part.without_overlaps:
                names += reversed(self._periods.get(part.column.lower(), ()))
            else:
                names.append(part.column if part.expression is None else None)
        return names

    def set_primary_key(self, names: Sequence[str]) -> None:
        """Set the key of a PRIMARY KEY clause; its columns become NOT NULL."""
        key = []
        for name in names:
            column = self.get(name)
            if column is not None and column.optional:
                has_default = column.has_default and column.default_expression is not None
                column = replace(column, optional=False, has_default=has_default)
                self.add(column)
            key.append(column.name if column is not None else name)
        self.primary_key = key

    def set_unique_key(self, names: Sequence[str | None]) -> None:
        """Use a unique key as the key, if there is none yet and all parts are NOT NULL columns."""
        columns = [self.get(name) if name else None for name in names]
        if not self.primary_key and all(column is not None and not column.optional for column in columns):
            self.primary_key = [column.name for column in columns if column is not None]

    def debezium_table(self) -> DebeziumTable:
        """Return the description without the columns."""
        key = tuple(name for name in self.primary_key if name.lower() in self.columns)
        comment = None if self.comment is None else unicode_text(self.comment)
        return DebeziumTable(self.charset, key, comment, self.attributes)

    def onto(self, table: Table) -> Table:
        """Return the table with this description.

        Columns that Debezium would have lost keep their former description.
        """
        columns = []
        for column in table.columns:
            described = self.get(column.name)
            if described is None:
                described = column.debezium
            if described is not None:
                described = _unicode(with_value(with_table_charset(described, self.charset), column))
            columns.append(replace(column, debezium=described))
        return replace(table, columns=tuple(columns), debezium=self.debezium_table())


def _unicode(column: DebeziumColumn) -> DebeziumColumn:
    """Return the column without the bytes of literals that are not characters."""
    default, comment = column.default_expression, column.comment
    return replace(
        column,
        default_expression=None if default is None else unicode_text(default),
        comment=None if comment is None else unicode_text(comment),
        enum_values=tuple(map(unicode_text, column.enum_values)),
    )
