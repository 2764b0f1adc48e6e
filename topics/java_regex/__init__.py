r"""Java's regular expressions in Python: Debezium's properties hold patterns written for ``java.util.regex``.

Every expression is matched in bounded time: by :mod:`re` if that is proved to need few steps, and by
:mod:`rowtide.topics.java_regex.linear_matcher` otherwise.
"""

import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Protocol

from rowtide.topics.java_regex.linear_matcher import Bounds, LinearMatcher
from rowtide.topics.java_regex.parser import LONGEST, InvalidPatternError, parse_java
from rowtide.topics.java_regex.parts import LENGTH

__all__ = ["InvalidPatternError", "Match", "Pattern", "Replacement", "compile_java", "compile_untrusted"]

_MOST_WAYS = 1_000_000
"""The maximum number of ways in which :mod:`re` may try to match a name; they take some milliseconds."""
_MOST_STEPS = 20_000
"""The maximum number of steps of an expression for the linear matcher."""
_WAYS_OF_A_STEP = 20
"""The cost of a step of the linear matcher, in ways of :mod:`re`."""
_UNTRUSTED_COST = 2_000_000
_UNTRUSTED_LENGTH = 1 << 18


class Match(Protocol):
    """The match of an expression: a :class:`re.Match`, or the result of the linear matcher."""

    def __getitem__(self, group: int, /) -> str | None:
        """Return the text of a group, ``None`` if it did not take part."""

    def start(self) -> int:
        """Return the place of the first character."""

    def end(self) -> int:
        """Return the place after the last character."""


class _Found:
    """A result of the linear matcher."""

    def __init__(self, text: str, start: int, end: int, bounds: Bounds) -> None:
        self._text = text
        self._places = {0: start, 1: end}
        while bounds is not None:
            number, place, bounds = bounds
            self._places.setdefault(number, place)

    def __getitem__(self, group: int, /) -> str | None:
        start, end = self._places.get(2 * group), self._places.get(2 * group + 1)
        return None if start is None or end is None else self._text[start:end]

    def start(self) -> int:
        return self._places[0]

    def end(self) -> int:
        return self._places[1]


class Pattern:
    """A compiled Java regular expression.

    Args:
        source: in the syntax of ``java.util.regex.Pattern``.
        ignore_case: ``Pattern.CASE_INSENSITIVE``: ASCII letters match in either case.
        dot_all: ``Pattern.DOTALL``: a dot matches line ends, too.
        longest: the longest expression in Python's syntax, in characters.

    Attributes:
        source: as above.
        groups: the number of groups.
        group_numbers: the numbers of the groups with a name.
        length: of the expression in Python's syntax, in characters.
        cost: an upper bound of the effort to match a name, in paths of :mod:`re`.
        matched_by_re: whether :mod:`re` matches names.

    Raises:
        InvalidPatternError: the pattern is invalid in Java, has no equivalent in Python, or takes too long.
    """

    def __init__(
        self, source: str, *, ignore_case: bool = False, dot_all: bool = False, longest: int = LONGEST
    ) -> None:
        self.source = source
        self._options = (ignore_case, dot_all)
        part = parse_java(source, ignore_case=ignore_case, dot_all=dot_all, longest=longest)
        self._flags = re.ASCII | (re.IGNORECASE if ignore_case else re.NOFLAG)
        try:
            self._compiled = re.compile(part.text, self._flags)
        except (re.error, OverflowError) as error:
            raise InvalidPatternError(source, str(error)) from None
        self.groups = self._compiled.groups
        self.group_numbers = self._compiled.groupindex
        self.length = len(part.text)
        self.cost = part.ways + self.length
        self.matched_by_re = part.ways <= _MOST_WAYS
        self._longest = LENGTH if self.matched_by_re else -1  # text for re, in characters
        if not self.matched_by_re:
            self.cost = part.size * (LENGTH if part.scans else 1) * LENGTH * _WAYS_OF_A_STEP
            if part.refers:
                raise InvalidPatternError(source, "a reference to a group and repetitions: it could take forever")
            if part.size > _MOST_STEPS:
                raise InvalidPatternError(source, "too many repetitions: use smaller numbers of them")
        elif part.refers or part.ways <= LENGTH + 1 or part.size > _MOST_STEPS:
            self._longest = sys.maxsize

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and (self.source, self._options) == (other.source, other._options)

    def __hash__(self) -> int:
        return hash((self.source, self._options))

    def __reduce__(self) -> "tuple[object, ...]":
        return _again, (self.source, *self._options)

    @functools.cached_property
    def _linear(self) -> LinearMatcher:
        ignore_case, dot_all = self._options
        part = parse_java(self.source, ignore_case=ignore_case, dot_all=dot_all)
        return LinearMatcher(part, self._flags)

    def fullmatch(self, text: str) -> Match | None:
        """Match the whole text."""
        if len(text) <= self._longest:
            return self._compiled.fullmatch(text)
        found = self._linear.fullmatch(text)
        return None if found is None else _Found(text, 0, *found)

    def search(self, text: str, at: int = 0) -> Match | None:
        """Find the first match at or after a place."""
        if len(text) <= self._longest:
            return self._compiled.search(text, at)
        found = self._linear.search(text, at)
        return None if found is None else _Found(text, *found)

    def matches(self, text: str) -> Iterator[Match]:
        """Find all matches, as ``Matcher.find`` does."""
        at = 0
        while at <= len(text) and (found := self.search(text, at)) is not None:
            yield found
            at = found.end() + (found.start() == found.end())


def _again(source: str, ignore_case: bool, dot_all: bool) -> Pattern:
    return compile_java(source, ignore_case=ignore_case, dot_all=dot_all)


@functools.lru_cache(maxsize=1024)
def compile_java(pattern: str, *, ignore_case: bool = False, dot_all: bool = False) -> Pattern:
    """Compile a Java regular expression of the configuration; arguments and errors are those of :class:`Pattern`."""
    return Pattern(pattern, ignore_case=ignore_case, dot_all=dot_all)


def compile_untrusted(sources: Iterable[str]) -> tuple[Pattern, ...]:
    """Compile the expressions of a client or a signal, which ignore case: together, they must not take long.

    Raises:
        InvalidPatternError: one of them is invalid, or there are too many.
    """
    patterns: list[Pattern] = []
    length = cost = 0
    for source in sources:
        pattern = Pattern(source, ignore_case=True, longest=_UNTRUSTED_LENGTH - length)
        length, cost = length + pattern.length, cost + pattern.cost
        if cost > _UNTRUSTED_COST:
            raise InvalidPatternError(source, "with those before it, it takes too long to match: use simpler ones")
        patterns.append(pattern)
    return tuple(patterns)


class Replacement:
    r"""A replacement for ``java.util.regex.Matcher.replaceAll``: ``$1``, ``${name}``, ``\`` escapes."""

    __slots__ = ("_parts", "pattern", "text")

    def __init__(self, text: str, pattern: Pattern) -> None:
        """Parse the replacement for a pattern.

        Raises:
            ValueError: a reference is incomplete, or the pattern does not have the group.
        """
        self.text = text
        self.pattern = pattern
        self._parts = tuple(self._parse())

    def _parse(self) -> Iterable[str | int]:
        at, text = 0, self.text
        while at < len(text):
            char = text[at]
            at += 1
            if char == "\\":
                if at == len(text):
                    raise ValueError(
                        f"the replacement {text!r} ends in a backslash: the character to escape is missing"
                    )
                yield text[at]
                at += 1
            elif char == "$":
                match = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}|([0-9])").match(text, at)
                if match is None:
                    raise ValueError(
                        f"illegal group reference in {text!r}: '$' needs a number or a {{name}}, or write '\\$'"
                    )
                at = match.end()
                if match[1]:
                    yield self._named(match[1])
                    continue
                number = int(match[2])
                while at < len(text) and text[at].isdecimal() and number * 10 + int(text[at]) <= self.pattern.groups:
                    number = number * 10 + int(text[at])
                    at += 1
                if number > self.pattern.groups:
                    raise ValueError(
                        f"the replacement {text!r} refers to group {number}, but the pattern has {self.pattern.groups}"
                    )
                yield number
            else:
                yield char

    def _named(self, name: str) -> int:
        try:
            return self.pattern.group_numbers[name]
        except KeyError:
            raise ValueError(
                f"the replacement {self.text!r} refers to group '{name}', which the pattern does not have"
            ) from None

    def expand(self, match: Match) -> str:
        """Return the text for a match; a group that did not take part is empty."""
        return "".join((match[part] or "") if isinstance(part, int) else part for part in self._parts)

    def replace_all(self, text: str) -> str:
        """Replace every match, as ``Matcher.replaceAll`` does."""
        return self._replaced(text, self.pattern.matches(text))

    def replace_first(self, text: str) -> str:
        """Replace the first match, as ``Matcher.replaceFirst`` does."""
        return self._replaced(text, itertools.islice(self.pattern.matches(text), 1))

    def _replaced(self, text: str, matches: Iterable[Match]) -> str:
        parts, at = [], 0
        for match in matches:
            parts += [text[at : match.start()], self.expand(match)]
            at = match.end()
        return "".join([*parts, text[at:]])
