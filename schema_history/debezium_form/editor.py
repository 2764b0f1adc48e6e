"""Debezium's table editor: ordered columns by lower-case name, key columns, character set and comment."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rowtide.schema_history.debezium_form.columns import with_table_charset, with_value
from rowtide.schema_history.model import DebeziumColumn, DebeziumTable, Table


class TableEditor:
    """Debezium's description of a table while a statement is applied to it."""

    def __init__(self, described: DebeziumTable | None = None, columns: Iterable[DebeziumColumn] = ()) -> None:
        described = described or DebeziumTable()
        self.charset = described.default_charset_name
        self.comment = described.comment
        self.attributes = described.attributes
        self.primary_key = list(described.primary_key)
        self.columns: dict[str, DebeziumColumn] = {c.name.lower(): c for c in columns}

    def get(self, name: str) -> DebeziumColumn | None:
        """The column of that name, or ``None``."""
        return self.columns.get(name.lower())

    def add(self, described: DebeziumColumn) -> None:
        """Add a column at the end, or replace the column of the same name in its place.

        A nullable column without a default gets the default NULL, even after DROP DEFAULT.
        """
        if described.optional and not described.has_default:
            described = replace(described, has_default=True, default_expression=None)
        self.columns[described.name.lower()] = described

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

    def set_primary_key(self, names: Sequence[str]) -> None:
        """Set the key of a PRIMARY KEY clause; its columns become NOT NULL."""
        key = []
        for name in names:
            described = self.get(name)
            if described is not None and described.optional:
                has_default = described.has_default and described.default_expression is not None
                described = replace(described, optional=False, has_default=has_default)
                self.add(described)
            key.append(described.name if described is not None else name)
        self.primary_key = key

    def set_unique_key(self, names: Sequence[str | None]) -> None:
        """Use a unique key as the key, if there is none yet and all parts are NOT NULL columns."""
        descriptions = [self.get(name) if name else None for name in names]
        if not self.primary_key and all(described is not None and not described.optional for described in descriptions):
            self.primary_key = [described.name for described in descriptions if described is not None]

    def debezium_table(self) -> DebeziumTable:
        """The description without the columns."""
        key = tuple(name for name in self.primary_key if name.lower() in self.columns)
        return DebeziumTable(self.charset, key, self.comment, self.attributes)

    def onto(self, table: Table) -> Table:
        """The table with this description; columns that Debezium would have lost keep their former one."""
        columns = []
        for column in table.columns:
            described = self.get(column.name)
            if described is None:
                described = column.debezium
            if described is not None:
                described = with_value(with_table_charset(described, self.charset), column)
            columns.append(replace(column, debezium=described))
        return replace(table, columns=tuple(columns), debezium=self.debezium_table())
