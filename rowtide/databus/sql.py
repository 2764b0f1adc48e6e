"""SQL statements that repeat an event on another MySQL server (``Do`` of the original SDK)."""

import struct
from collections.abc import Sequence

from rowtide.databus.errors import NoStatement
from rowtide.databus.events import QueryEvent, RowsEvent
from rowtide.databus.tables import Cell, Column, ColumnType, Table

_ESCAPES = str.maketrans({"\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z", "'": "\\'", '"': '\\"', "\\": "\\\\"})
_NUMBERS = (ColumnType.NUMBER, ColumnType.FLOAT, ColumnType.BIT)


def statements(event: RowsEvent | QueryEvent) -> list[str]:
    """Return the statements of an event, one for each changed row: REPLACE, UPDATE or DELETE.

    A row is found by its primary key, and by all its columns if the table has none; of several equal rows, one is
    changed. Numbers are not quoted, so that MySQL does not compare them as floating-point numbers. The session needs
    the character set utf8mb4 and, as TIMESTAMP is in UTC, ``time_zone='+00:00'``.

    Raises:
        NoStatement: the rows or the action are not those of an event.
    """
    if isinstance(event, QueryEvent):
        return [event.query]
    table = event.table
    if not table.columns:
        raise NoStatement(f"Do: Have No Statement: the structure of table {table} in the event has no columns")
    makers = {"insert": _replace, "update": _update, "delete": _delete}
    if event.action not in makers:
        raise NoStatement(f"Do: Have No Match Action: {event.action!r}; it must be insert, update or delete")
    return [makers[event.action](table, before, after) for before, after in event.changes()]


def escaped(text: str) -> str:
    """Return a text escaped for the quotes of a statement (``EscapeStringBackslash``).

    It is not valid with sql_mode NO_BACKSLASH_ESCAPES.
    """
    return text.translate(_ESCAPES)


def literal(column: Column, cell: Cell) -> str:
    """Return a value of a column as SQL."""
    value = column.value(cell)
    if value is None or cell is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if column.type in _NUMBERS and not isinstance(value, str):
        return cell.decode()
    return f"'{escaped(str(value))}'"


def _replace(table: Table, _before: Sequence[Cell] | None, after: Sequence[Cell] | None) -> str:
    values = _set_values(table, after or ())
    names = ",".join(name for name, _ in values)
    return f"REPLACE INTO {_name(table)} ({names}) VALUES ({','.join(value for _, value in values)})"


def _update(table: Table, before: Sequence[Cell] | None, after: Sequence[Cell] | None) -> str:
    values = ",".join(f"{name}={value}" for name, value in _set_values(table, after or ()))
    return f"UPDATE {_name(table)} SET {values} WHERE {_condition(table, before or ())}"


def _set_values(table: Table, row: Sequence[Cell]) -> list[tuple[str, str]]:
    """Return the names and values of a row's columns; MySQL computes the generated ones."""
    cells = zip(table.columns, row, strict=True)
    return [(_quoted(column.name), literal(column, cell)) for column, cell in cells if not column.generated]


def _delete(table: Table, before: Sequence[Cell] | None, _after: Sequence[Cell] | None) -> str:
    return f"DELETE FROM {_name(table)} WHERE {_condition(table, before or ())}"


def _condition(table: Table, row: Sequence[Cell]) -> str:
    places = table.primary_key or range(len(table.columns))
    compare = _is if table.primary_key else _is_exactly
    found = " AND ".join(compare(table.columns[place], row[place]) for place in places)
    return found if table.primary_key else f"{found} LIMIT 1"


def _is_exactly(column: Column, cell: Cell) -> str:
    """Return a condition that is false for other texts, even if they are equal in the collation of the column."""
    if cell is not None and column.type is ColumnType.STRING and not isinstance(column.value(cell), bytes):
        return f"CAST(CONVERT({_quoted(column.name)} USING utf8mb4) AS BINARY)=X'{cell.hex()}'"
    return _is(column, cell)


def _is(column: Column, cell: Cell) -> str:
    name, value = _quoted(column.name), literal(column, cell)
    if cell is None:
        return f"{name} IS NULL"
    if column.type is ColumnType.JSON:
        return f"{name}=CAST({value} AS JSON)"  # a document equals no text
    if column.raw_type.startswith("float") and isinstance(column.value(cell), float):
        return f"{name}={_of_single_precision(float(value))!r}"
    return f"{name}={value}"


def _of_single_precision(number: float) -> float:
    """Return the value of a FLOAT column as MySQL compares it, in double precision: 1.1 is 1.100000023841858."""
    found: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return found


def _name(table: Table) -> str:
    return f"{_quoted(table.schema)}.{_quoted(table.name)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
