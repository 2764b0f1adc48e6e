"""Options of transforms and predicates, read with all that is wrong with them at once."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rowtide.topics.java_regex import InvalidPatternError, Replacement, compile_java

_NEVER = re.compile(r"(?!)")


class Problem(NamedTuple):
    """Something to put right: the property's full name, and what is wrong with it."""

    property: str
    message: str


class TransformConfigurationError(ValueError):
    """Transforms that cannot be made from their properties.

    Attributes:
        problems: all of them.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{problem.property}: {problem.message}" for problem in self.problems))


class Options:
    """The options of one transform or predicate.

    Each method names an option that exists, so that in the end every other name is known to be wrong. A value that is
    wrong is noted as a problem, and the default given instead, so that all problems of a configuration are found.

    Attributes:
        problems: what was found so far.
    """

    def __init__(self, prefix: str, given: Mapping[str, str]) -> None:
        """Prepare to read.

        Args:
            prefix: of the full property names, such as ``transforms.unwrap.``.
            given: options by their names behind the prefix.
        """
        self.problems: list[Problem] = []
        self._prefix = prefix
        self._given = given
        self._known: set[str] = set()

    def problem(self, name: str, message: str) -> None:
        """Note that an option is wrong."""
        self.problems.append(Problem(self._prefix + name, message))

    def optional_text(self, name: str) -> str | None:
        """Text, ``None`` if it is not given."""
        self._known.add(name)
        return self._given.get(name)

    def text(self, name: str, default: str) -> str:
        """Text with a default."""
        given = self.optional_text(name)
        return default if given is None else given

    def required_text(self, name: str) -> str:
        """Text that must be given."""
        given = self.optional_text(name)
        if not given:
            self.problem(name, "is required")
        return given or ""

    def boolean(self, name: str, *, default: bool) -> bool:
        """``true`` or ``false``."""
        given = self.text(name, "true" if default else "false").strip().lower()
        if given not in ("true", "false"):
            self.problem(name, f"must be true or false, not {given!r}")
        return given == "true" if given in ("true", "false") else default

    def integer(self, name: str, default: int) -> int:
        """A whole number."""
        given = self.text(name, str(default)).strip()
        if not re.fullmatch(r"[+-]?\d+", given):
            self.problem(name, f"must be a whole number, not {given!r}")
            return default
        return int(given)

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """One of several texts, without regard to case."""
        given = self.text(name, default).strip().lower()
        if given not in allowed:
            self.problem(name, f"must be one of {', '.join(allowed)}, not {given!r}")
            return default
        return given

    def items(self, name: str) -> tuple[str, ...]:
        """A comma-separated list, without the blanks around its items."""
        given = self.text(name, "").strip()
        return tuple(item.strip() for item in given.split(",")) if given else ()

    def pattern(self, name: str, default: str | None = None) -> re.Pattern[str]:
        """A Java regular expression, required if there is no default."""
        given = self.required_text(name) if default is None else self.text(name, default)
        try:
            return compile_java(given)
        except InvalidPatternError as error:
            self.problem(name, str(error))
            return _NEVER

    def replacement(self, name: str, pattern: re.Pattern[str], default: str | None = None) -> Replacement:
        """A replacement text with references to groups of a pattern, required if there is no default."""
        given = self.required_text(name) if default is None else self.text(name, default)
        try:
            return Replacement(given, pattern)
        except ValueError as error:
            if pattern is not _NEVER:
                self.problem(name, str(error))
            return Replacement("", pattern)

    def unknown(self) -> list[Problem]:
        """A problem for each option that was given but never asked for."""
        return [
            Problem(self._prefix + name, "there is no such option" + suggestion(name, self._known))
            for name in self._given
            if name not in self._known
        ]


def suggestion(name: str, known: Iterable[str]) -> str:
    """The nearest known name, as the end of a message; empty if none is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
