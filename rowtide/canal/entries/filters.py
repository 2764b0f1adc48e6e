r"""Which tables Canal's clients see: ``canal.instance.filter.regex`` and the filters of subscriptions.

A filter is a list of regular expressions, divided by commas outside of brackets. Each is matched against the whole of
``schema.table``, regardless of case. Canal up to 1.1.8 also divides at commas inside of ``{}``, which destroys
``a\.\d{1,2}``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from rowtide.topics.java_regex import compile_java

EVERYTHING = r".*\..*"
"""Canal's default of ``canal.instance.filter.regex``."""

_OPENING, _CLOSING = "([{", ")]}"


def split_patterns(text: str) -> list[str]:
    """The regular expressions of a list, without blanks around them."""
    return [item for item in (part.strip() for part in _parts(text)) if item]


def _parts(text: str) -> Iterator[str]:
    depth = begin = at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == "," and depth <= 0:
            yield text[begin:at]
            begin = at + 1
        at += 1
    yield text[begin:]


@dataclass(frozen=True, slots=True)
class TablePatterns:
    """A list of regular expressions for tables.

    Attributes:
        text: as written.
    """

    text: str
    _patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def parse(cls, text: str) -> "TablePatterns":
        """Parse a list.

        Raises:
            InvalidPatternError: an expression is invalid; the message has it.
        """
        return cls(text, tuple(compile_java(pattern, ignore_case=True) for pattern in split_patterns(text)))

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, database: str, table: str) -> bool:
        """Whether an expression matches ``database.table``."""
        name = f"{database}.{table}"
        return any(pattern.fullmatch(name) for pattern in self._patterns)


class EntryFilter:
    """Which tables pass: those of the white list, or all if it is empty, but none of the black list.

    Args:
        white: ``canal.instance.filter.regex``, or the filter of a subscription.
        black: ``canal.instance.filter.black.regex``.
    """

    def __init__(self, white: TablePatterns, black: TablePatterns) -> None:
        self.white, self.black = white, black
        self._passes = lru_cache(maxsize=10_000)(self._find)

    def passes(self, database: str, table: str) -> bool:
        """Whether clients see this table."""
        return self._passes(database, table)

    def _find(self, database: str, table: str) -> bool:
        if self.white and not self.white.match(database, table):
            return False
        return not self.black.match(database, table)
