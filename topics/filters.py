"""Selection of tables and columns by name: captured tables, captured columns, key columns.

The patterns are Debezium's: comma-separated Java regular expressions, each matched against the whole name (``db``,
``db.table``, ``db.table.column``), case-insensitive for ASCII letters.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rowtide.topics.java_regex import InvalidPatternError, Pattern, compile_java
from rowtide.topics.online_schema_change import NO_HELPERS, Exists, HelperNames

_NAME = re.compile(r"(?:[A-Za-z0-9_-]|\\?\.)+")
"""An expression that is a name: ``db\\.table``, or ``db.table``, where the dot matches other characters, too."""

BUILTIN_DATABASES = frozenset({"mysql", "performance_schema", "sys", "information_schema"})


def split_list(text: str) -> tuple[str, ...]:
    r"""Split a list of regular expressions at commas without a preceding backslash.

    Blanks around items, empty items and duplicates are removed; ``\,`` becomes a comma.

    Raises:
        InvalidPatternError: the text ends in a single backslash.
    """
    return tuple(dict.fromkeys(item.strip().replace("\\,", ",") for item in divided(text) if item.strip()))


def joined_list(items: Iterable[str]) -> str:
    r"""Join a list so that :func:`split_list` finds the same items: ``,`` in an item becomes ``\,``."""
    return ",".join(re.sub(r"(?s)\\.|,", lambda found: "\\," if found[0] == "," else found[0], item) for item in items)


def divided(text: str, *, brackets: bool = False) -> Iterator[str]:
    """Split a text at commas without a preceding backslash; the parts are unchanged.

    Args:
        text: the text.
        brackets: do not split between brackets of any kind.

    Raises:
        InvalidPatternError: the text ends in a single backslash.
    """
    start = at = depth = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
            if at == len(text):
                raise InvalidPatternError(text, "it ends in a backslash that escapes nothing")
        elif brackets and text[at] in "([{":
            depth += 1
        elif brackets and text[at] in ")]}":
            depth -= 1
        elif text[at] == "," and depth <= 0:
            yield text[start:at]
            start = at + 1
        at += 1
    yield text[start:]


class TableNames(Protocol):
    """A selection of tables by their names."""

    def match(self, name: str) -> bool:
        """Return whether ``database.table`` is one of them."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """A list of regular expressions, each of which must match a whole name.

    Attributes:
        sources: the expressions as they were written.
    """

    sources: tuple[str, ...]
    _names: Mapping[str, int] = field(repr=False, compare=False)  # a list may have thousands
    _compiled: tuple[tuple[int, Pattern], ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> "Patterns":
        """Parse a comma-separated list; raises ``InvalidPatternError``, which names the invalid expression."""
        return cls.of(split_list(text))

    @classmethod
    def of(cls, expressions: Iterable[str]) -> "Patterns":
        """Compile expressions; raises ``InvalidPatternError``, which names the invalid one."""
        sources = tuple(expressions)
        names: dict[str, int] = {}
        compiled = []
        for place, source in enumerate(sources):
            is_name = _NAME.fullmatch(source)
            if is_name:
                names.setdefault(source.replace("\\", "").lower(), place)
            if not is_name or "." in source.replace("\\.", ""):
                compiled.append((place, compile_java(source, ignore_case=True)))
        return cls(sources, names, tuple(compiled))

    def match(self, name: str) -> bool:
        """Return whether one of the expressions matches the whole name."""
        if self._names and name.isascii() and name.lower() in self._names:
            return True
        return any(pattern.fullmatch(name) for _, pattern in self._compiled)

    def lists(self, name: str) -> bool:
        """Return whether one of the items is exactly this name, not an expression that matches it."""
        return name.isascii() and name.lower() in self._names

    def index(self, name: str) -> int:
        """Index of the first expression that matches the whole name; the number of expressions if none does."""
        known = self._names.get(name.lower()) if name.isascii() else None
        end = len(self.sources) if known is None else known
        return next((place for place, pattern in self._compiled if place < end and pattern.fullmatch(name)), end)


@dataclass(frozen=True, slots=True)
class Selection:
    """An include list or an exclude list, never both; without a list, everything is selected.

    Attributes:
        include: if set, only names that it matches are selected.
        exclude: if set, and ``include`` is not, names that it matches are not selected.
    """

    include: Patterns | None = None
    exclude: Patterns | None = None

    def selects(self, name: str) -> bool:
        """Return whether the name is selected."""
        if self.include is not None:
            return self.include.match(name)
        return self.exclude is None or not self.exclude.match(name)


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Selects the captured tables.

    Attributes:
        databases: ``database.include.list`` and ``database.exclude.list``, for names of databases.
        tables: ``table.include.list`` and ``table.exclude.list``, for ``db.table``.
        ignore_builtin: exclude the server's own databases (``table.ignore.builtin``).
        always: tables captured regardless of the lists (``signal.data.collection``), as (database, table).
        helpers: the names of helper tables of online schema changes, which :class:`CapturedNames` omits.
    """

    databases: Selection = EVERYTHING
    tables: Selection = EVERYTHING
    ignore_builtin: bool = True
    always: frozenset[tuple[str, str]] = frozenset()
    helpers: HelperNames = NO_HELPERS

    def captures(self, database: str, table: str) -> bool:
        """Return whether the lists select the table."""
        if (database, table) in self.always:
            return True
        return self.eligible(database, table) and self.tables.selects(f"{database}.{table}")

    def captures_database(self, database: str) -> bool:
        """Return whether the database lists select the database."""
        return self.databases.selects(database)

    def eligible(self, database: str, table: str) -> bool:
        """Return whether the table's database is captured, regardless of the table lists."""
        if (database, table) in self.always:
            return True
        return self.databases.selects(database) and not (self.ignore_builtin and is_builtin(database))


class CapturedNames:
    """Returns which tables are captured: those that the lists select, without helper tables of online schema changes.

    A helper table is captured if ``table.include.list`` contains its exact name.

    Args:
        tables: the lists.
        exists: returns which tables exist.
    """

    def __init__(self, tables: TableFilter, exists: Exists) -> None:
        self._tables = tables
        self._exists = exists

    @classmethod
    def among(cls, tables: TableFilter, names: Iterable[tuple[str, str]]) -> "CapturedNames":
        """Return the captured ones among the named tables, as (database, table)."""
        known = frozenset(names)
        return cls(tables, lambda database, table: (database, table) in known)

    def captures(self, database: str, table: str) -> bool:
        """Return whether the table is captured."""
        return self._tables.captures(database, table) and self.helped(database, table) is None

    def helped(self, database: str, table: str) -> str | None:
        """Return the table that this one helps to change; ``None`` if this is not a helper table."""
        include = self._tables.tables.include
        listed = include is not None and include.lists(f"{database}.{table}")
        if listed or (database, table) in self._tables.always:
            return None
        return self._tables.helpers.table_of(database, table, self._exists)

    def leaves_out(self, database: str, table: str) -> bool:
        """Return whether the lists select the table, but it is a helper table."""
        return self._tables.captures(database, table) and self.helped(database, table) is not None

    def keeps_structure(self, database: str, table: str) -> bool:
        """Return whether a table's structure is needed: it is captured, or may take the name of a captured table."""
        if self._tables.captures(database, table):
            return True
        helped = self.helped(database, table)
        return helped is not None and self._tables.captures(database, helped)


def is_builtin(database: str) -> bool:
    """Return whether it is one of the server's own databases."""
    return database.lower() in BUILTIN_DATABASES


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """Selects the columns in the values of records; keys always have their columns.

    Attributes:
        columns: ``column.include.list`` and ``column.exclude.list``, for ``db.table.column``.
    """

    columns: Selection = EVERYTHING

    def captures(self, database: str, table: str, column: str) -> bool:
        """Return whether the column is part of the records' values."""
        return self.columns.selects(f"{database}.{table}.{column}")


_KEY_ITEM = re.compile(r"\s*([^:]+):([^:,]+(?:,[^:,]+)*)\s*")


@dataclass(frozen=True, slots=True)
class MessageKeys:
    """Selects the columns of keys that are not the primary key (``message.key.columns``).

    Attributes:
        columns: patterns for ``db.table.column``, in the order of the key's fields.
    """

    columns: tuple[Patterns, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "MessageKeys":
        """Parse ``db.table:column,column;…``, where table and column are regular expressions.

        Raises:
            InvalidPatternError: an expression is invalid.
            ValueError: an item does not have that form.
        """
        columns: list[Patterns] = []
        for item in filter(str.strip, text.split(";")):
            match = _KEY_ITEM.fullmatch(item)
            if match is None:
                raise ValueError(f"{item.strip()!r} is not of the form 'database.table:column,column'")
            columns += (Patterns.parse(f"{match[1].strip()}.{column.strip()}") for column in match[2].split(","))
        return cls(tuple(columns))

    def key_columns(self, database: str, table: str, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the key's columns, in the order of the patterns; ``()`` if the primary key is the key.

        Args:
            database: the table's database.
            table: the table.
            columns: all columns of the table in order.
        """
        found: dict[str, None] = {}
        for patterns in self.columns:
            for column in columns:
                if patterns.match(f"{database}.{table}.{column}"):
                    found.setdefault(column)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ColumnSelector:
    """Selects columns by ``db.table.column``, or by ``db.table.TYPE``; without a list none.

    The lists are ``column.propagate.source.type`` and ``datatype.propagate.source.type``.
    """

    patterns: Patterns | None = None

    def selects(self, database: str, table: str, name: str) -> bool:
        """Return whether a table's columns of this name, or of this type, such as ``INT UNSIGNED``, are selected."""
        return self.patterns is not None and self.patterns.match(f"{database}.{table}.{name}")
