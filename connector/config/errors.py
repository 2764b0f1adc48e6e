"""The error about an invalid configuration: all problems together, each with its property."""

from collections.abc import Iterable
from typing import NamedTuple

from rowtide.errors import ConnectorError


class Problem(NamedTuple):
    """One problem of a configuration.

    Attributes:
        property: the property's name, or the file's if the file cannot be read.
        message: what is wrong and how to fix it; never contains a secret.
    """

    property: str
    message: str

    def __str__(self) -> str:
        return f"{self.property}: {self.message}"


class ConfigurationError(ConnectorError, ValueError):
    """An invalid configuration.

    Attributes:
        problems: all problems, in the order of the catalogue.
    """

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self.problems: tuple[Problem, ...] = tuple(Problem(*problem) for problem in problems)
        count = len(self.problems)
        heading = "the configuration has a problem" if count == 1 else f"the configuration has {count} problems"
        super().__init__(f"{heading}:\n" + "\n".join(f"  - {problem}" for problem in self.problems))
