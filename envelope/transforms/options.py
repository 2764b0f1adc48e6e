"""Reads the options of a transform or predicate and collects all problems."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rowtide.topics.java_regex import InvalidPatternError, Pattern, Replacement, compile_java

_NEVER = compile_java("(?!)")


class OptionProblem(NamedTuple):
    """An invalid property: its full name and the problem."""

    property: str
    message: str


class TransformConfigurationError(ValueError):
    """The configuration of transforms is invalid.

    Attributes:
        problems: all problems.
    """

    def __init__(self, problems: Iterable[OptionProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{problem.property}: {problem.message}" for problem in self.problems))


class Options:
    """The options of one transform or predicate.

    Reading an option declares that it exists; :meth:`unknown` reports all others. An invalid value is reported as a
    problem and replaced by the default, so that all problems of a configuration are found together.

    Attributes:
        problems: the problems found so far.
        exact: whether transforms keep nulls unless an option says otherwise (``rowtide.values=exact``).
    """

    def __init__(self, prefix: str, values: Mapping[str, str], *, exact: bool = False) -> None:
        """Read options.

        Args:
            prefix: prefix of the full property names, such as ``transforms.unwrap.``.
            values: options by their names without the prefix.
            exact: see the attribute.
        """
        self.problems: list[OptionProblem] = []
        self.exact = exact
        self._prefix = prefix
        self._values = values
        self._known: set[str] = set()

    def problem(self, name: str, message: str) -> None:
        """Add a problem of an option."""
        self.problems.append(OptionProblem(self._prefix + name, message))

    def optional_text(self, name: str) -> str | None:
        """Return a text, ``None`` if it is not set."""
        self._known.add(name)
        return self._values.get(name)

    def former(self, name: str, replacement: str) -> str | None:
        """Return the text of an option that no longer exists, and add the problem that names its replacement."""
        value = self.optional_text(name)
        if value is not None:
            self.problem(name, f"is no longer an option: {replacement}")
        return value

    def text(self, name: str, default: str) -> str:
        """Return a text, or its default."""
        value = self.optional_text(name)
        return default if value is None else value

    def required_text(self, name: str) -> str:
        """Return a required text."""
        value = self.optional_text(name)
        if not value:
            self.problem(name, "is required")
        return value or ""

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return a boolean, written ``true`` or ``false``."""
        value = self.text(name, "true" if default else "false").strip().lower()
        if value not in ("true", "false"):
            self.problem(name, f"must be true or false, not {value!r}")
        return value == "true" if value in ("true", "false") else default

    def replaces_nulls(self) -> bool:
        """Return ``replace.null.with.default``: whether a field's default replaces null."""
        return self.boolean("replace.null.with.default", default=not self.exact)

    def integer(self, name: str, default: int) -> int:
        """Return an integer."""
        value = self.text(name, str(default)).strip()
        if not re.fullmatch(r"[+-]?\d+", value):
            self.problem(name, f"must be an integer, not {value!r}")
            return default
        return int(value)

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """Return one of several texts, without regard to case."""
        value = self.text(name, default).strip().lower()
        if value not in allowed:
            self.problem(name, f"must be one of {', '.join(allowed)}, not {value!r}")
            return default
        return value

    def items(self, name: str) -> tuple[str, ...]:
        """Return a comma-separated list without whitespace around the items."""
        value = self.text(name, "").strip()
        return tuple(item.strip() for item in value.split(",")) if value else ()

    def pattern(self, name: str, default: str | None = None) -> Pattern:
        """Return a Java regular expression, required if there is no default."""
        value = self.required_text(name) if default is None else self.text(name, default)
        try:
            return compile_java(value)
        except InvalidPatternError as error:
            self.problem(name, str(error))
            return _NEVER

    def replacement(self, name: str, pattern: Pattern, default: str | None = None) -> Replacement:
        """Return a replacement with references to groups of a pattern, required if there is no default."""
        value = self.required_text(name) if default is None else self.text(name, default)
        try:
            return Replacement(value, pattern)
        except ValueError as error:
            if pattern is not _NEVER:
                self.problem(name, str(error))
            return Replacement("", pattern)

    def others(self) -> dict[str, str]:
        """Return all options that were not read yet, which any name may have."""
        found = {name: value for name, value in self._values.items() if name not in self._known}
        self._known |= found.keys()
        return found

    def unknown(self) -> list[OptionProblem]:
        """Return a problem for each option that was set but never read."""
        return [
            OptionProblem(self._prefix + name, "this option does not exist" + suggestion(name, self._known))
            for name in self._values
            if name not in self._known
        ]


def suggestion(name: str, known: Iterable[str], *, of_class: bool = False) -> str:
    """Return a suggestion of a similar name to append to a message; empty if there is none.

    Args:
        name: the unknown name.
        known: the known ones.
        of_class: compare without the packages, which are alike.
    """
    import difflib  # noqa: PLC0415 - only after a mistake

    compared = {one.rpartition(".")[2] if of_class else one: one for one in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.rpartition(".")[2] if of_class else name, compared, n=1)
    return f"; did you mean {compared[near[0]]}?" if near else ""
