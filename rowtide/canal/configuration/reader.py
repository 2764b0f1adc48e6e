"""Reads the values of Canal's properties files, and collects all problems.

``${name:default}`` stands for an environment variable, or for its default.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from rowtide.connector.config.errors import Problem
from rowtide.connector.config.files.files import read_file
from rowtide.topics.java_regex import InvalidPatternError

_PLACEHOLDER = re.compile(r"\$\{([^}:]+)(?::([^}]*))?\}")

T = TypeVar("T")


class CanalPropertyReader:
    """Reads values of properties, and collects the problems.

    Args:
        place: the file, for messages.
        values: the properties; empty ones count as absent.
        defaults: the defaults of all properties.

    Attributes:
        problems: the problems found so far.
    """

    def __init__(self, place: str, values: Mapping[str, str], defaults: Mapping[str, str]) -> None:
        self._place = place
        self._values = {**defaults, **{name: value for name, value in values.items() if value}}
        self.problems: list[Problem] = []

    def problem(self, name: str, message: str) -> None:
        """Report a problem with a property."""
        self.problems.append(Problem(f"{self._place}: {name}", message))

    def text(self, name: str) -> str:
        """Return a value, or the default."""
        return self._values[name].strip()

    def required(self, name: str) -> str:
        """Return a value, or report that it is missing."""
        value = self.text(name)
        if not value:
            self.problem(name, "is required")
        return value

    def parsed(self, name: str, parse: Callable[[str], T], otherwise: T) -> T:
        """Return a value parsed by ``parse``, or report its ``ValueError``."""
        try:
            return parse(self.text(name))
        except (ValueError, InvalidPatternError) as error:
            self.problem(name, str(error))
            return otherwise

    def number(self, name: str, minimum: int = 0, otherwise: int = 0) -> int:
        """Return an integer of at least ``minimum``; ``otherwise`` if there is none."""

        def parse(text: str) -> int:
            if not text.isascii() or not text.isdigit() or int(text) < minimum:
                raise ValueError(f"must be an integer of at least {minimum}, not {text!r}")
            return int(text)

        return self.parsed(name, parse, otherwise) if self.text(name) else otherwise

    def flag(self, name: str) -> bool:
        """Return whether a value is ``true`` or ``false``."""

        def parse(text: str) -> bool:
            if text.lower() not in ("true", "false"):
                raise ValueError(f"must be true or false, not {text!r}")
            return text.lower() == "true"

        return self.parsed(name, parse, otherwise=False)


def read_properties(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a file, with placeholders replaced.

    Raises:
        ConfigurationError: it cannot be read.
    """

    def value(match: re.Match[str]) -> str:
        return environ.get(match[1].strip(), match[2] or "")

    return {name: _PLACEHOLDER.sub(value, text) for name, text in read_file(path).properties.items()}
