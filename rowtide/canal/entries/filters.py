r"""Which tables and columns Canal's clients see: ``canal.instance.filter.*`` and the filters of subscriptions.

A filter of tables is a list of regular expressions, separated by commas outside of brackets. Each is matched against
the whole of ``schema.table``, regardless of case. Canal up to 1.1.8 also splits at commas inside ``{}``, which destroys
``a\.\d{1,2}``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rowtide.canal.entries.entry import EntryColumn
from rowtide.topics.filters import divided
from rowtide.topics.java_regex import Pattern, compile_java, compile_untrusted

EVERYTHING = r".*\..*"
"""Canal's default of ``canal.instance.filter.regex``."""


@dataclass(frozen=True, slots=True)
class TablePatterns:
    """A list of regular expressions for tables.

    Attributes:
        text: as written.
    """

    text: str
    _patterns: tuple[Pattern, ...]

    @classmethod
    def parse(cls, text: str) -> "TablePatterns":
        """Parse a list.

        Raises:
            InvalidPatternError: an expression is invalid; the message has it.
        """
        return cls(text, tuple(compile_java(pattern, ignore_case=True) for pattern in _items(text)))

    @classmethod
    def of_client(cls, text: str) -> "TablePatterns":
        """Parse the filter of a subscription.

        Raises:
            InvalidPatternError: an expression is invalid, or the list takes too long to match.
        """
        return cls(text, compile_untrusted(_items(text)))

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, database: str, table: str) -> bool:
        """Return whether an expression matches ``database.table``."""
        name = f"{database}.{table}"
        return any(pattern.fullmatch(name) for pattern in self._patterns)


class EntryFilter:
    """Selects tables: those of the white list, or all if it is empty, except those of the black list.

    Args:
        white: ``canal.instance.filter.regex``, or the filter of a subscription.
        black: ``canal.instance.filter.black.regex``.
    """

    def __init__(self, white: TablePatterns, black: TablePatterns) -> None:
        self.white, self.black = white, black
        self._passes = lru_cache(maxsize=10_000)(self._find)

    def passes(self, database: str, table: str) -> bool:
        """Return whether clients see this table."""
        return self._passes(database, table)

    def _find(self, database: str, table: str) -> bool:
        if self.white and not self.white.match(database, table):
            return False
        return not self.black.match(database, table)


def _items(text: str) -> list[str]:
    return [item for item in (part.strip() for part in divided(text, brackets=True)) if item]


Fields = Mapping[str, frozenset[str]]
"""Columns by ``database.table``, all in upper case."""


def parse_fields(text: str) -> Fields:
    """Parse ``canal.instance.filter.field``: ``database.table:column/column``, separated by commas.

    Raises:
        ValueError: an item is not of this form; the message has it. Canal ignores such an item.
    """
    found: dict[str, frozenset[str]] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        table, colon, columns = item.partition(":")
        if not colon or "." not in table or not columns.strip() or ":" in columns:
            raise ValueError(f"must be database.table:column/column, not {item!r}")
        found[table.strip().upper()] = frozenset(columns.strip().upper().split("/"))
    return found


@dataclass(frozen=True, slots=True)
class EntryColumnFilter:
    """Selects columns of a table: those on its white list, or, without one, those that are not on its black list.

    Attributes:
        white: ``canal.instance.filter.field``.
        black: ``canal.instance.filter.black.field``.
    """

    white: Fields = field(default_factory=dict)
    black: Fields = field(default_factory=dict)

    def kept(self, database: str, table: str, columns: Sequence[EntryColumn]) -> tuple[EntryColumn, ...]:
        """Return the columns that clients see; they keep their places in the table."""
        name = f"{database}.{table}".upper()
        if name in self.white:
            return tuple(column for column in columns if column.name.upper() in self.white[name])
        omitted = self.black.get(name, frozenset())
        return tuple(column for column in columns if column.name.upper() not in omitted)
