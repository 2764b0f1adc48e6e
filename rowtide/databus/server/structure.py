"""The structure of a table as messages embed it, from the schema history."""

from collections.abc import Sequence

from rowtide.databus.tables import Column, ColumnType, Index, Table
from rowtide.schema_history import model
from rowtide.schema_history.structure.type_names import INTEGERS

_TYPES = {
    **dict.fromkeys((*INTEGERS, "year"), ColumnType.NUMBER),
    **dict.fromkeys(("float", "double", "decimal"), ColumnType.FLOAT),
    "enum": ColumnType.ENUM,
    "set": ColumnType.SET,
    "datetime": ColumnType.DATETIME,
    "timestamp": ColumnType.TIMESTAMP,
    "date": ColumnType.DATE,
    "time": ColumnType.TIME,
    "bit": ColumnType.BIT,
    "json": ColumnType.JSON,
}


def described(table: model.Table, columns: Sequence[model.Column]) -> Table:
    """Return the structure of a table.

    Args:
        table: the table.
        columns: its published columns. Without a column of the primary key, it has none.
    """
    places = {column.name: place for place, column in enumerate(columns)}
    key = table.primary_key
    return Table(
        table.id.database,
        table.id.table,
        tuple(map(_column, columns)),
        tuple(_index(index) for index in sorted(table.indexes, key=lambda index: index.kind != "primary")),
        tuple(places[name] for name in key) if places.keys() >= set(key) else (),
    )


def dropped(table: model.TableId) -> Table:
    """Return the structure of a table that no longer exists."""
    return Table(table.database, table.table)


def _column(column: model.Column) -> Column:
    kind = _TYPES.get(column.data_type, ColumnType.STRING)
    generation = column.generation
    return Column(
        column.name,
        kind,
        column.column_type,
        column.auto_increment,
        column.labels if kind is ColumnType.ENUM else (),
        column.labels if kind is ColumnType.SET else (),
        is_virtual=generation is not None and not generation.stored,
        is_stored=column.row is not None or (generation is not None and generation.stored),
    )


def _index(index: model.Index) -> Index:
    """Return an index; parts that are expressions have no names."""
    return Index(index.name, tuple(part.column for part in index.parts))
