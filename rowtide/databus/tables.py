"""The structure of a table in databus' messages, and the values of its columns, with the names of go-mysql."""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any

Cell = bytes | None
"""The text of a value; ``None`` for NULL."""
Value = int | float | Decimal | str | bytes | None
"""A value in Python."""


class ColumnType(IntEnum):
    """The kind of a column (``schema.TYPE_*`` of go-mysql)."""

    NUMBER = 1
    FLOAT = 2
    ENUM = 3
    SET = 4
    STRING = 5
    DATETIME = 6
    TIMESTAMP = 7
    DATE = 8
    TIME = 9
    BIT = 10
    JSON = 11


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: its name.
        type: its kind.
        raw_type: its type in MySQL, ``decimal(10,2) unsigned``.
        is_auto: whether it is AUTO_INCREMENT.
        enum_values: the labels of an ENUM.
        set_values: the members of a SET.
        is_virtual: whether MySQL computes its values when it reads them ...
        is_stored: ... or when it writes them. The original has neither in its messages, because its go-mysql is older.
    """

    name: str
    type: ColumnType
    raw_type: str
    is_auto: bool = False
    enum_values: tuple[str, ...] = ()
    set_values: tuple[str, ...] = ()
    is_virtual: bool = False
    is_stored: bool = False

    @property
    def generated(self) -> bool:
        """Whether statements cannot set its values."""
        return self.is_virtual or self.is_stored

    @property
    def binary(self) -> bool:
        """Whether its values are bytes."""
        return _BINARY.match(self.raw_type) is not None

    def value(self, cell: Cell) -> Value:
        """Return a value of the column: exact numbers, ENUM and SET as text, and bytes for non-text values."""
        if cell is None:
            return None
        if self.binary:
            return cell
        try:
            text = cell.decode()
        except UnicodeDecodeError:
            return cell
        match self.type:
            case ColumnType.NUMBER | ColumnType.BIT if _INTEGER.fullmatch(text):
                return int(text)
            case ColumnType.FLOAT if _NUMBER.fullmatch(text):
                return Decimal(text) if self.raw_type.startswith("decimal") else float(text)
            case ColumnType.ENUM:
                return self._label(text)
            case ColumnType.SET:
                return self._members(text)
        return text

    def _label(self, text: str) -> str:
        """Return the label; except in dumps, the original server writes its index."""
        if text in self.enum_values or not text.isdecimal():
            return text
        index = int(text)
        return self.enum_values[index - 1] if 0 < index <= len(self.enum_values) else text if index else ""

    def _members(self, text: str) -> str:
        if not text.isdecimal() or text in self.set_values:
            return text
        bits = int(text)
        return ",".join(member for place, member in enumerate(self.set_values) if bits >> place & 1)


_BINARY = re.compile(
    r"(var)?binary|(tiny|medium|long)?blob|geom|point|linestring|polygon|multi(point|linestring|polygon)|vector"
)
_INTEGER = re.compile(r"-?\d+")
_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a table: its name and columns."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The structure of a table, as it was at the event (``schema.Table``).

    Attributes:
        schema: its database.
        name: its name.
        columns: its columns, in their order.
        indexes: its indexes, the primary key first.
        primary_key: the places of its primary key's columns.
    """

    schema: str
    name: str
    columns: tuple[Column, ...] = ()
    indexes: tuple[Index, ...] = ()
    primary_key: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    def fields(self) -> dict[str, Any]:
        """Return the structure in the original's JSON form."""
        columns = [
            {
                "Name": column.name,
                "Type": int(column.type),
                "RawType": column.raw_type,
                "IsAuto": column.is_auto,
                "EnumValues": list(column.enum_values) or None,
                "SetValues": list(column.set_values) or None,
                **({"IsVirtual": True} if column.is_virtual else {}),
                **({"IsStored": True} if column.is_stored else {}),
            }
            for column in self.columns
        ]
        indexes = [
            {
                "Name": index.name,
                "Columns": list(index.columns),
                "Cardinality": list(range(1, len(index.columns) + 1)),
            }
            for index in self.indexes
        ]
        return {
            "Schema": self.schema,
            "Name": self.name,
            "Columns": columns,
            "Indexes": indexes,
            "PKColumns": list(self.primary_key) or None,
        }

    @classmethod
    def of(cls, fields: Any) -> "Table":
        """Read a structure.

        Raises:
            ValueError: it is not a structure, or names a column that does not exist.
        """
        try:
            columns = tuple(
                Column(
                    str(column["Name"]),
                    ColumnType(column["Type"]),
                    str(column.get("RawType") or ""),
                    bool(column.get("IsAuto")),
                    tuple(column.get("EnumValues") or ()),
                    tuple(column.get("SetValues") or ()),
                    bool(column.get("IsVirtual")),
                    bool(column.get("IsStored")),
                )
                for column in fields["Columns"] or ()
            )
            indexes = tuple(
                Index(str(index["Name"]), tuple(index["Columns"] or ())) for index in fields.get("Indexes") or ()
            )
            key = tuple(fields.get("PKColumns") or ())
            table = cls(str(fields["Schema"]), str(fields["Name"]), columns, indexes, key)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"it has no structure of a table ({error!r})") from error
        if not all(isinstance(place, int) and 0 <= place < len(columns) for place in key):
            raise ValueError(f"the primary key of table {table} has columns {key}, and the table {len(columns)}")
        return table
