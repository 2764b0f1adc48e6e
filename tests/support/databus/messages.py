"""Messages of databus for tests."""

from __future__ import annotations

from rowtide.databus.events import DML, KafkaKey, Position, RowsEvent
from rowtide.databus.tables import Cell, Column, ColumnType, Index, Table

ITEMS = Table(
    "shop",
    "items",
    (
        Column("id", ColumnType.NUMBER, "bigint unsigned", is_auto=True),
        Column("name", ColumnType.STRING, "varchar(40)"),
        Column("price", ColumnType.FLOAT, "decimal(20,4)"),
        Column("state", ColumnType.ENUM, "enum('new','sold')", enum_values=("new", "sold")),
        Column("tags", ColumnType.SET, "set('a','b','c')", set_values=("a", "b", "c")),
        Column("image", ColumnType.STRING, "varbinary(20)"),
    ),
    (Index("PRIMARY", ("id",)),),
    (0,),
)
"""A table with a column of each kind that matters."""
ROW: tuple[Cell, ...] = (b"18446744073709551615", "Käse".encode(), b"0.1000", b"sold", b"a,c", b"\x00\xff")


def item(number: int) -> tuple[Cell, ...]:
    """A row of the table."""
    return (str(number).encode(), None, None, None, None, None)


def message(file: str, pos: int, *numbers: int) -> tuple[bytes, bytes]:
    """Key and value of a message that inserts rows."""
    event = RowsEvent(ITEMS, "insert", tuple(item(number) for number in numbers))
    return KafkaKey(Position(file, pos), DML).encoded(), event.encoded()
