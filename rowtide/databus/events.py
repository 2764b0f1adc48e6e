"""The messages of databus: keys and events, as JSON.

A key is ``{"Pos":{"Name":"binlog.000003","Pos":154},"Action":"DML"}``. The value of ``DML`` is a :class:`RowsEvent`,
in which each cell is the base64 form of the value's text, or null; that of ``DDL`` is a :class:`QueryEvent`, with the
statement in base64. Lines of dumps are rows events. The names are those of the original's Go structures.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json import dumps, loads
from typing import Any

from rowtide.databus.errors import UnreadableMessage
from rowtide.databus.tables import Cell, Table, Value

INSERT, UPDATE, DELETE = "insert", "update", "delete"
DML, DDL, DUMP = "DML", "DDL", "Dump"
"""Actions of keys; ``Dump`` is that of the events of a dump, which have no key."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the binlog; positions of one server can be compared.

    Attributes:
        file: the binlog file, ``binlog.000003``.
        pos: the byte position in it.
    """

    file: str
    pos: int

    def __str__(self) -> str:
        return f"{self.file}:{self.pos}"

    @property
    def server(self) -> str:
        """The name of the file without its number, which may differ after a fail-over."""
        return self.file.rpartition(".")[0]

    def before(self, other: "Position") -> bool:
        """Return whether it is before another position of the same server."""
        return (self.number, self.pos) < (other.number, other.pos)

    @property
    def number(self) -> int:
        """The number of the file; 0 if its name has none."""
        number = self.file.rpartition(".")[2]
        return int(number) if number.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class KafkaKey:
    """The key of a message.

    Attributes:
        position: a position after the previously published event; this event begins at it or after it.
        action: ``DML``, ``DDL`` or ``Dump``.
    """

    position: Position
    action: str

    def encoded(self) -> bytes:
        """Return the key as JSON."""
        position = {"Name": self.position.file, "Pos": self.position.pos}
        return _json({"Pos": position, "Action": self.action})

    @classmethod
    def decode(cls, text: bytes | None) -> "KafkaKey":
        """Read a key.

        Raises:
            ValueError: the text is not valid.
        """
        if text is None:
            raise ValueError("it has no key")
        match _loads(text):
            case {"Pos": {"Name": str(file), "Pos": int(pos)}, "Action": str(action)}:
                return cls(Position(file, pos), action)
        raise ValueError(f"the key is {text[:80]!r}")


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """Rows of a table that were inserted, updated or deleted.

    Attributes:
        table: its structure.
        action: ``insert``, ``update`` or ``delete``.
        rows: the text of each column of each row; in an update, the rows
            before and after it alternate.
    """

    table: Table
    action: str
    rows: tuple[tuple[Cell, ...], ...]

    def values(self) -> list[list[Value]]:
        """Return the rows as Python values."""
        columns = self.table.columns
        return [[column.value(cell) for column, cell in zip(columns, row, strict=True)] for row in self.rows]

    def changes(self) -> Iterator[tuple[tuple[Cell, ...] | None, tuple[Cell, ...] | None]]:
        """Yield the row before and after each change."""
        if self.action == UPDATE:
            yield from zip(self.rows[::2], self.rows[1::2], strict=True)
        else:
            yield from ((row, None) if self.action == DELETE else (None, row) for row in self.rows)

    def key_values(self, row: Sequence[Cell]) -> list[Value]:
        """Return the primary key of a row (``GetPKValues``).

        Raises:
            ValueError: the table has none.
        """
        if not self.table.primary_key:
            raise ValueError(f"table {self.table} has no PK: compare all columns instead")
        return [self.table.columns[place].value(row[place]) for place in self.table.primary_key]

    def encoded(self) -> bytes:
        """Return the event as JSON."""
        rows = [[None if cell is None else base64.b64encode(cell).decode() for cell in row] for row in self.rows]
        return _json({"Table": self.table.fields(), "Action": self.action, "Rows": rows})

    @classmethod
    def decode(cls, text: bytes | None) -> "RowsEvent":
        """Read an event.

        Raises:
            ValueError: the text is not valid.
        """
        fields = _fields(text)
        table, action = Table.of(fields.get("Table")), fields.get("Action")
        if action not in (INSERT, UPDATE, DELETE):
            raise ValueError(f"its action is {action!r} instead of insert, update or delete")
        found = fields.get("Rows")
        if found is not None and not (isinstance(found, list) and all(isinstance(row, list) for row in found)):
            raise ValueError(f"the rows of table {table} are not lists of values")
        rows = tuple(tuple(_cell(cell) for cell in row) for row in found or ())
        for row in rows:
            if len(row) != len(table.columns):
                raise ValueError(
                    f"a row of table {table} has {len(row)} values, and the table {len(table.columns)} columns"
                )
        if action == UPDATE and len(rows) % 2:
            raise ValueError(f"an update of table {table} has {len(rows)} rows; it needs one before and one after each")
        return cls(table, action, rows)


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """A statement that changes the structure of a table.

    Attributes:
        table: its structure after the statement; without columns if it was dropped.
        action: ``alter``, ``create``, ``drop`` or ``truncate``.
        query: the statement, which names the database of each table.
        sql_mode: the SQL mode that the executing session needs; usually empty.
    """

    table: Table
    action: str
    query: str
    sql_mode: str = ""

    def encoded(self) -> bytes:
        """Return the event as JSON."""
        query = base64.b64encode(self.query.encode(errors="surrogateescape")).decode()
        fields = {"Table": self.table.fields(), "Action": self.action, "Query": query}
        return _json(fields | {"SqlMode": self.sql_mode} if self.sql_mode else fields)

    @classmethod
    def decode(cls, text: bytes | None) -> "QueryEvent":
        """Read an event.

        Raises:
            ValueError: the text is not valid.
        """
        fields = _fields(text)
        query = _cell(fields.get("Query"))
        if query is None:
            raise ValueError("it has no statement")
        mode = fields.get("SqlMode") or ""
        return cls(Table.of(fields.get("Table")), str(fields.get("Action")), query.decode(errors="replace"), str(mode))


@dataclass(frozen=True, slots=True)
class Event:
    """An event that a client receives (``EventDiscrip``).

    Attributes:
        header: the key; each event has its own.
        event: the event itself.
        offset: the message's offset in the topic; ``None`` for the events of a dump.
        sequence: its number among the events of the client, from 1.
    """

    header: KafkaKey
    event: RowsEvent | QueryEvent
    offset: int | None = None
    sequence: int = field(default=0, compare=False)


_EVENTS: dict[str, type[RowsEvent | QueryEvent]] = {DML: RowsEvent, DDL: QueryEvent}


def decode_message(
    topic: str, offset: int, key: bytes | None, value: bytes | None
) -> tuple[KafkaKey, RowsEvent | QueryEvent]:
    """Read a message of the topic.

    Raises:
        UnreadableMessage: it is not in databus' form; the error names topic and offset.
    """
    try:
        header = KafkaKey.decode(key)
        return header, _EVENTS[header.action].decode(value)
    except KeyError as error:
        at = f"topic {topic}, partition 0, offset {offset}"
        raise UnreadableMessage(f"{at}: the action of its key is {error} instead of DML or DDL") from error
    except ValueError as error:
        raise UnreadableMessage(
            f"topic {topic}, partition 0, offset {offset}: the message is not one of databus: {error}. Set "
            "unreadable='skip' to skip such messages, or publish to a separate topic"
        ) from error


def _json(fields: dict[str, Any]) -> bytes:
    return dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _loads(text: bytes) -> Any:
    try:
        return loads(text)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def _fields(text: bytes | None) -> dict[str, Any]:
    fields = None if text is None else _loads(text)
    if not isinstance(fields, dict):
        raise ValueError("its value is not a JSON object")  # noqa: TRY004 - one kind of error for all
    return fields


def _cell(text: Any) -> Cell:
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"a value is {text!r} instead of base64 text")  # noqa: TRY004
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"a value is not base64 ({error}): {text[:40]!r}") from error
