"""Which tables and columns are captured, what happens to a column, which columns make the key: pure selectors.

The patterns are Debezium's: comma-separated Java regular expressions, each matched against the whole name
(``db``, ``db.table``, ``db.table.column``) without regard to the case of ASCII letters. This module knows no
properties and no structure: it answers questions about names.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rowtide.topics.java_regex import InvalidPatternError, compile_java

BUILTIN_DATABASES = frozenset({"mysql", "performance_schema", "sys", "information_schema"})


def split_list(text: str) -> tuple[str, ...]:
    r"""Split Debezium's list of regular expressions at commas that no back-slash precedes.

    Blanks around an item are dropped, empty items and repeated ones too; ``\,`` becomes a comma.

    Raises:
        InvalidPatternError: the text ends in a lone back-slash.
    """
    return tuple(dict.fromkeys(item.strip().replace("\\,", ",") for item in _split(text) if item.strip()))


def _split(text: str) -> Iterator[str]:
    start = at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
            if at == len(text):
                raise InvalidPatternError(text, "it ends in a back-slash that escapes nothing")
        elif text[at] == ",":
            yield text[start:at]
            start = at + 1
        at += 1
    yield text[start:]


@dataclass(frozen=True, slots=True)
class Patterns:
    """A list of regular expressions; a name belongs to it if one of them matches the whole name.

    Attributes:
        sources: the expressions as they were written.
    """

    sources: tuple[str, ...]
    _compiled: tuple[re.Pattern[str], ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> "Patterns":
        """Read a comma-separated list; raises ``InvalidPatternError`` naming the expression that is wrong."""
        sources = split_list(text)
        return cls(sources, tuple(compile_java(source, ignore_case=True) for source in sources))

    def match(self, name: str) -> bool:
        """Whether one of the expressions matches the whole name."""
        return any(pattern.fullmatch(name) for pattern in self._compiled)

    def place(self, name: str) -> int:
        """Index of the first expression that matches the whole name; their number if none does."""
        matching = (place for place, pattern in enumerate(self._compiled) if pattern.fullmatch(name))
        return next(matching, len(self._compiled))


@dataclass(frozen=True, slots=True)
class Selection:
    """An include list or an exclude list; with neither, everything is selected. Both together cannot be configured.

    Attributes:
        include: if given, only names that it matches are selected.
        exclude: if given and ``include`` is not, names that it matches are not selected.
    """

    include: Patterns | None = None
    exclude: Patterns | None = None

    def selects(self, name: str) -> bool:
        """Whether the name is selected."""
        if self.include is not None:
            return self.include.match(name)
        return self.exclude is None or not self.exclude.match(name)


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Which tables' rows become records.

    Attributes:
        databases: by ``database.include.list`` and ``database.exclude.list``, on the database's name.
        tables: by ``table.include.list`` and ``table.exclude.list``, on ``db.table``.
        ignore_builtin: leave the server's own databases out (``table.ignore.builtin``).
        always: tables captured whatever the lists say (``signal.data.collection``), as (database, table).
    """

    databases: Selection = EVERYTHING
    tables: Selection = EVERYTHING
    ignore_builtin: bool = True
    always: frozenset[tuple[str, str]] = frozenset()

    def captures(self, database: str, table: str) -> bool:
        """Whether rows of the table become records."""
        if (database, table) in self.always:
            return True
        return self.eligible(database, table) and self.tables.selects(f"{database}.{table}")

    def captures_database(self, database: str) -> bool:
        """Whether tables of the database can be captured, as far as the database's name tells."""
        return self.databases.selects(database)

    def eligible(self, database: str, table: str) -> bool:
        """Whether the table's database is captured, whatever the table lists say."""
        if (database, table) in self.always:
            return True
        return self.databases.selects(database) and not (self.ignore_builtin and is_builtin(database))


def is_builtin(database: str) -> bool:
    """Whether a database belongs to the server itself."""
    return database.lower() in BUILTIN_DATABASES


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """Which columns the values of records have; a key has its columns in any case.

    Attributes:
        columns: by ``column.include.list`` and ``column.exclude.list``, on ``db.table.column``.
    """

    columns: Selection = EVERYTHING

    def captures(self, database: str, table: str, column: str) -> bool:
        """Whether the column is part of the records' values."""
        return self.columns.selects(f"{database}.{table}.{column}")


_KEY_ITEM = re.compile(r"\s*([^:]+):([^:,]+(?:,[^:,]+)*)\s*")


@dataclass(frozen=True, slots=True)
class MessageKeys:
    """Which columns make the key where it is not the primary key (``message.key.columns``).

    Attributes:
        columns: patterns on ``db.table.column``; their order is the order of the key's fields.
    """

    columns: tuple[Patterns, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "MessageKeys":
        """Read ``db.table:column,column;…``, where table and column are regular expressions.

        Raises:
            InvalidPatternError: an expression is not valid.
            ValueError: an item is not of that form.
        """
        columns: list[Patterns] = []
        for item in filter(str.strip, text.split(";")):
            match = _KEY_ITEM.fullmatch(item)
            if match is None:
                raise ValueError(f"{item.strip()!r} is not of the form 'database.table:column,column'")
            columns += (Patterns.parse(f"{match[1].strip()}.{column.strip()}") for column in match[2].split(","))
        return cls(tuple(columns))

    def key_columns(self, database: str, table: str, columns: Sequence[str]) -> tuple[str, ...]:
        """The key's columns, in the order of the configured patterns; none: the primary key is the key.

        Args:
            database: the table's database.
            table: the table.
            columns: all columns of the table, in their order.
        """
        found: dict[str, None] = {}
        for patterns in self.columns:
            for column in columns:
                if patterns.match(f"{database}.{table}.{column}"):
                    found.setdefault(column)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ColumnSelector:
    """Columns chosen by ``db.table.column`` (``column.propagate.source.type``); an absent list chooses none."""

    patterns: Patterns | None = None

    def selects(self, database: str, table: str, column: str) -> bool:
        """Whether the column is chosen."""
        return self.patterns is not None and self.patterns.match(f"{database}.{table}.{column}")


@dataclass(frozen=True, slots=True)
class TypeSelector:
    """Columns chosen by ``db.table.TYPE`` (``datatype.propagate.source.type``); an absent list chooses none."""

    patterns: Patterns | None = None

    def selects(self, database: str, table: str, type_name: str) -> bool:
        """Whether columns of the type, for example ``INT UNSIGNED``, are chosen in that table."""
        return self.patterns is not None and self.patterns.match(f"{database}.{table}.{type_name}")
