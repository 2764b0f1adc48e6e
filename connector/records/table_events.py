"""The effects of a statement or a snapshot on a table as a whole, for sinks that keep tables. Pure."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

from rowtide.schema_history.model import Column, DefaultKind, Table, TableId
from rowtide.schema_history.structure.type_names import BINARY_TYPES, CHARACTER_TYPES, INTEGERS

Kind = Literal["only", "read", "unread", "known", "create", "alter", "rename", "drop", "refuse"]

_INTEGERS = INTEGERS | {"year"}


class Unknown:
    """The type of :data:`UNKNOWN`."""

    __slots__ = ()


UNKNOWN: Final = Unknown()
"""A value that the server has set and that the binlog does not have."""


class TableEvent(NamedTuple):
    """An event that concerns a table as a whole.

    Attributes:
        kind: ``only``: a snapshot of all tables begins, and others than ``listed`` are no longer captured; ``read``: a
            snapshot reads all rows of the table; ``unread``: it is captured from this position, and its rows are not
            read; ``known``: the same, and the stream continues where it was; ``create``: an empty table; ``alter``;
            ``rename`` from ``former``; ``drop``; ``refuse``: rows change that the binlog does not have.
        id: the table.
        before: the captured columns before an ``alter``.
        after: the captured columns, unless the table is gone.
        renamed: the former and the new name of each renamed column.
        values: of an ``alter``: the value of each added column in the rows that exist, or ``UNKNOWN``.
        former: the name before a ``rename``.
        reason: of ``refuse``.
        listed: of ``only``.
    """

    kind: Kind
    id: TableId
    before: Sequence[Column] = ()
    after: Sequence[Column] = ()
    renamed: Sequence[tuple[str, str]] = ()
    values: dict[str, Any] | None = None
    former: TableId | None = None
    reason: str = ""
    listed: Sequence[TableId] = ()


def added_value(column: Column, seconds: int) -> Any:
    """Return the value that existing rows have in a column that ALTER TABLE adds.

    ``UNKNOWN`` if only the server knows it.

    The types are those of :class:`~rowtide.connector.records.change.Row`; a date that does not exist is ``None``.

    Args:
        column: the column.
        seconds: the time of the statement, since the epoch.
    """
    if column.generation is not None or column.sets_itself:
        return UNKNOWN
    kind = column.data_type
    match column.default_kind:
        case DefaultKind.EXPRESSION:
            return UNKNOWN
        case DefaultKind.NOW if column.default is not None or column.on_update is None:
            if kind == "timestamp" and not column.fsp:  # a DATETIME is in the zone of the session, which is not known
                return dt.datetime.fromtimestamp(seconds, dt.UTC)
            return UNKNOWN
        case DefaultKind.LITERAL if column.default is not None:
            try:
                return _literal(column, column.default)
            except (ValueError, ArithmeticError):
                return UNKNOWN
    return None if column.nullable else _implicit(column)


def _literal(column: Column, text: str) -> Any:
    kind = column.data_type
    if kind in _INTEGERS:
        return int(Decimal(text))
    if kind == "decimal":
        return Decimal(text)
    if kind in ("float", "double"):
        return float(text)
    if kind == "bit":
        number = int(text or "0", 2)
        return bool(number) if (column.length or 1) == 1 else number
    if kind in CHARACTER_TYPES:
        return text.rstrip(" ") if kind == "char" else text
    if kind in BINARY_TYPES:
        data = text.encode("latin-1")
        return data.ljust(column.length or 1, b"\0") if kind == "binary" else data
    if kind in ("date", "datetime") and text.startswith("0000-00-00"):
        return None
    if kind == "date":
        return dt.date.fromisoformat(text[:10])
    if kind == "datetime":
        return dt.datetime.fromisoformat(text)
    if kind == "timestamp" and text.startswith("0000-00-00"):
        return None
    if kind == "time":
        hours, minutes, rest = text.lstrip("-").split(":")
        value = dt.timedelta(hours=int(hours), minutes=int(minutes), microseconds=int(Decimal(rest) * 1_000_000))
        return -value if text.startswith("-") else value
    return UNKNOWN


def _implicit(column: Column) -> Any:
    """Return MySQL's implicit default of a NOT NULL column without an explicit one."""
    kind = column.data_type
    if kind == "enum":
        return column.labels[0]
    if kind in ("date", "datetime", "timestamp"):
        return None
    if kind in CHARACTER_TYPES or kind in BINARY_TYPES:
        return _literal(column, "")
    if kind == "time":
        return dt.timedelta()
    if kind in _INTEGERS or kind in ("decimal", "float", "double", "bit"):
        return _literal(column, "0")
    return UNKNOWN


def captured_columns(table: Table, names: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of a table with these names."""
    known = {column.name: column for column in table.row_columns}
    return tuple(known[name] for name in names)
