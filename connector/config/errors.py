"""What is wrong with a configuration: all of it at once, each problem with the property it belongs to."""

from collections.abc import Iterable
from typing import NamedTuple


class Problem(NamedTuple):
    """One thing to put right.

    Attributes:
        property: the property's name, or the file's when the file itself cannot be read.
        message: what is wrong and what to do about it; never a secret.
    """

    property: str
    message: str

    def __str__(self) -> str:
        return f"{self.property}: {self.message}"


class ConfigurationError(ValueError):
    """A configuration that cannot be used.

    Attributes:
        problems: everything that was found, in the order of the catalogue.
    """

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self.problems: tuple[Problem, ...] = tuple(Problem(*problem) for problem in problems)
        count = len(self.problems)
        heading = "the configuration has a problem" if count == 1 else f"the configuration has {count} problems"
        super().__init__(f"{heading}:\n" + "\n".join(f"  - {problem}" for problem in self.problems))
