"""Builds the SQL that cuts a table into ranges of its key. Pure.

::

    key:   ─────────┤ bound 1 ├─────────┤ bound 2 ├───────── last
    range:  key <= bound 1    bound 1 < key <= bound 2    bound 2 < key

The server finds the bounds and compares them, so the order is that of its collations. Every key is in exactly one
range, whatever the bounds are: a range includes its upper bound and all rows that are equal to it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rowtide.connector.source.server_queries import quoted, quoted_table
from rowtide.schema_history.model import Column, Index, KeyPart, Table, TableId
from rowtide.schema_history.structure.type_names import BINARY_TYPES, CHARACTER_TYPES, INTEGERS

Bound = tuple[str, ...]
"""A key as texts that are exact: digits, hexadecimal bytes, or the server's text. They suit JSON."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The conversion of values of a type to the client and back.

    Attributes:
        selected: the expression to select, with ``{}`` for the column.
        literal: the literal to compare the column with, with ``{}`` for the text.
        text: the possible texts; others would change the statement.
    """

    selected: str
    literal: str
    text: re.Pattern[str]


_NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)
_PRINTED = re.compile(r"[-0-9A-Fa-f:. ]+")
_HEX = re.compile(r"([0-9A-Fa-f]{2})*")
_EXACT = _Form("CAST({} AS CHAR)", "{}", _NUMBER)
_FLOATING = _Form("{} + 0e0", "{}", _NUMBER)  # FLOAT is printed with six digits, as DOUBLE with all
_INDEX = _Form("CAST({} AS UNSIGNED)", "{}", _NUMBER)  # an ENUM and a SET are ordered by number, not by text
_QUOTED = _Form("CAST({} AS CHAR)", "'{}'", _PRINTED)
_BYTES = _Form("HEX({})", "x'{}'", _HEX)
_FORMS = {
    **dict.fromkeys((*INTEGERS, "decimal"), _EXACT),
    **dict.fromkeys(("float", "double"), _FLOATING),
    **dict.fromkeys(("bit", "enum", "set"), _INDEX),
    **dict.fromkeys(("date", "datetime", "timestamp", "time", "year", "uuid", "inet4", "inet6"), _QUOTED),
    **dict.fromkeys(BINARY_TYPES, _BYTES),
}
_TEXTS = CHARACTER_TYPES - {"enum", "set"}


class KeyRanges:
    """The ranges of a table's key.

    Args:
        table: the table's name.
        columns: the columns of the key, in order.
        descending: whether the index has the column in descending order, for each column; by default none.

    Attributes:
        columns: the columns of the key.

    Raises:
        ValueError: a column's type cannot be compared exactly (JSON, geometries, vectors); the message names it.
    """

    def __init__(self, table: TableId, columns: Sequence[Column], descending: Sequence[bool] = ()) -> None:
        self.columns = tuple(columns)
        self._table = quoted_table(table)
        self._names = [quoted(column.name) for column in columns]
        self._forms = [_form(column) for column in columns]
        self._descending = tuple(descending) or (False,) * len(self.columns)

    @property
    def order(self) -> str:
        """The columns of ``ORDER BY``."""
        return self._order(reverse=False)

    def bound_query(self, lower: Bound | None, rows: int, *, upto: Bound | None = None, condition: str = "") -> str:
        """Return the query for the last key of the next range; it returns no row if the range has fewer rows.

        Args:
            lower: the upper bound of the range before; ``None`` for the first range.
            rows: the number of rows that the range should have; it has more if several rows have its upper bound.
            upto: the largest key to find.
            condition: a further condition for rows to count, as SQL.
        """
        return f"{self._select(self.where(lower, upto), condition)} ORDER BY {self.order} LIMIT 1 OFFSET {rows - 1}"

    def last_query(self, condition: str = "") -> str:
        """Return the query for the largest key; it returns no row if there are no keys.

        Args:
            condition: a condition for rows to count, as SQL.
        """
        return f"{self._select(self.where(None, None), condition)} ORDER BY {self._order(reverse=True)} LIMIT 1"

    def rows_query(self, selected: Sequence[str], where: str, condition: str = "") -> str:
        """Return the query for the rows of a range, in the order of the key.

        Args:
            selected: the expressions that select the columns.
            where: the range: from :meth:`where`, or :attr:`nulls`.
            condition: a further condition, as SQL.
        """
        expressions = ", ".join(selected) or "1"
        return f"SELECT {expressions} FROM {self._table} WHERE {where}{_more(condition)} ORDER BY {self.order}"

    def bound(self, row: Sequence[Any]) -> Bound:
        """Return the bound in a row of the result of one of these queries."""
        return tuple(repr(value) if isinstance(value, float) else str(value) for value in row)

    def where(self, lower: Bound | None, upper: Bound | None) -> str:
        """Return the condition for the keys of a range, without those that are NULL.

        Args:
            lower: the bound below the range; ``None`` for the first range.
            upper: the last key of the range; ``None`` for the last range.

        Raises:
            ValueError: a bound does not belong to this key.
        """
        parts = [f"{name} IS NOT NULL" for name, column in zip(self._names, self.columns, strict=True) if _open(column)]
        if lower is not None:
            parts.append(self._beyond(self._literals(lower), above=True))
        if upper is not None:
            parts.append(self._beyond(self._literals(upper), above=False))
        return " AND ".join(parts) or "TRUE"

    @property
    def nulls(self) -> str | None:
        """The condition for the keys that are in no range because a column is NULL; ``None`` if none can be."""
        parts = [f"{name} IS NULL" for name, column in zip(self._names, self.columns, strict=True) if _open(column)]
        return f"({' OR '.join(parts)})" if parts else None

    def _select(self, where: str, condition: str) -> str:
        selected = ", ".join(form.selected.format(name) for form, name in zip(self._forms, self._names, strict=True))
        return f"SELECT {selected} FROM {self._table} WHERE {where}{_more(condition)}"

    def _order(self, *, reverse: bool) -> str:
        # With the table, because an alias in the SELECT list has precedence over a column's name alone.
        pairs = zip(self._names, self._descending, strict=True)
        return ", ".join(f"{self._table}.{name}{' DESC' * (down != reverse)}" for name, down in pairs)

    def _literals(self, bound: Bound) -> list[str]:
        if len(bound) != len(self._forms):
            raise ValueError(f"{bound!r} is not a key of the {len(self._forms)} columns {', '.join(self._names)}")
        return [_literal(form, text) for form, text in zip(self._forms, bound, strict=True)]

    def _beyond(self, literals: Sequence[str], *, above: bool) -> str:
        """Return ``key > literals``, or ``key <= literals``, in a form that uses an index, unlike row values.

        For three columns: ``a >= x AND (a > x OR (a = x AND (b > y OR (b = y AND c > z))))``.
        """
        strict = [">" if down != above else "<" for down in self._descending]
        condition = ""
        for name, literal, sign in reversed(list(zip(self._names, literals, strict, strict=True))):
            if condition:
                condition = f"({name} {sign} {literal} OR ({name} = {literal} AND {condition}))"
            else:
                condition = f"{name} {sign}{'' if above else '='} {literal}"
        if len(literals) == 1:
            return condition
        return f"{self._names[0]} {strict[0]}= {literals[0]} AND {condition}"


def _form(column: Column) -> _Form:
    kind = column.data_type
    if kind in _TEXTS and column.charset not in (None, "binary"):
        return _Form("HEX({})", f"_{column.charset} x'{{}}'", _HEX)
    if kind in _TEXTS:
        return _BYTES
    form = _FORMS.get(kind)
    if form is None:
        raise ValueError(f"column {column.name} is a {column.column_type}, which cannot have ranges")
    return form


def _literal(form: _Form, text: str) -> str:
    if not form.text.fullmatch(text):
        raise ValueError(f"{text!r:.100} is not a value of a key")
    if form is _FLOATING and "e" not in text.lower():
        text += "e0"  # without an exponent it would be a DECIMAL
    return form.literal.format(text)


def _more(condition: str) -> str:
    return f" AND ({condition})" if condition else ""


def _open(column: Column) -> bool:
    """Return whether the column can be NULL."""
    return column.nullable


@dataclass(frozen=True, slots=True)
class ChunkKey:
    """The key by which a table is divided.

    Attributes:
        columns: its columns.
        descending: whether the index has the column in descending order.
        unique: whether a key identifies its row.
    """

    columns: tuple[Column, ...]
    descending: tuple[bool, ...]
    unique: bool

    @property
    def signature(self) -> str:
        """The properties that determine the order of the key.

        The bounds of a key are bounds of all keys with its signature.
        """
        parts = zip(self.columns, self.descending, strict=True)
        return ", ".join(f"{one.name} {one.column_type} {one.collation}{' DESC' * down}" for one, down in parts)

    def ranges(self, table: TableId) -> KeyRanges:
        """Return the ranges of this key in its table. Raises ``ValueError`` if a type cannot be compared exactly."""
        return KeyRanges(table, self.columns, self.descending)


def row_key(table: Table) -> ChunkKey | None:
    """Return the key that identifies a table's rows: its primary key, or else a unique key of NOT NULL columns."""
    for index in sorted(table.indexes, key=lambda index: index.kind != "primary"):
        columns = _columns(table, index.parts)
        if index.unique and columns and not any(map(_open, columns)):
            if index.kind != "primary" and not all(map(_is_whole, index.parts)):
                continue
            return ChunkKey(columns, tuple(part.descending for part in index.parts), unique=True)
    return None


def resumable_key(table: Table, *, exact: bool) -> ChunkKey | None:
    """Return the key that identifies a table's rows, if its values are equal in a result set and in row events.

    Args:
        table: the table's structure.
        exact: whether FLOAT is read with all digits; otherwise, a result set has six digits.
    """
    key = row_key(table)
    if key is None or (not exact and any(column.data_type == "float" for column in key.columns)):
        return None
    try:
        key.ranges(table.id)
    except ValueError:
        return None
    return key


def surrogate_key(table: Table, name: str) -> ChunkKey | None:
    """Return the key that consists of one column (``surrogate-key``); ``None`` if the table has no such column."""
    column = table.column(name)
    if column is None:
        return None
    unique = any(_is_unique(index, column) for index in table.indexes)
    return ChunkKey((column,), (False,), unique=unique and not column.nullable)


def chunk_ranges(table: Table, surrogate: str | None = None) -> tuple[ChunkKey, KeyRanges]:
    """Return the key by which a table is divided, and its ranges: the surrogate key, otherwise that of the rows.

    Raises:
        ValueError: there is no such key, or a type cannot be compared exactly; the message says which.
    """
    key = row_key(table) if surrogate is None else surrogate_key(table, surrogate)
    if key is None:
        raise ValueError(f"it has no {f'column {surrogate}' if surrogate else 'primary key'}")
    return key, key.ranges(table.id)


def _columns(table: Table, parts: Sequence[KeyPart]) -> tuple[Column, ...]:
    """Return the columns of an index; none if it has an expression or the name of a period."""
    found: Callable[[str], Column | None] = table.column
    columns = tuple(column for part in parts if (column := found(part.column)) is not None)
    return columns if len(columns) == len(parts) else ()


def _is_whole(part: KeyPart) -> bool:
    return part.length is None and not part.period


def _is_unique(index: Index, column: Column) -> bool:
    return index.unique and len(index.parts) == 1 and index.parts[0].column.lower() == column.name.lower()
