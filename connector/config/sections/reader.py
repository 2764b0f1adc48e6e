"""Reads properties by the catalogue and collects everything that is wrong with them; pure."""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import TypeVar

from rowtide.connector.config.catalogue import FAMILIES, PROPERTIES
from rowtide.connector.config.catalogue.property import Family, Flavor, Property, Status
from rowtide.connector.config.errors import Problem
from rowtide.connector.config.secret import Sanitizer, shown_name
from rowtide.connector.config.sections.removed import replacement_for
from rowtide.topics.java_regex import InvalidPatternError

T = TypeVar("T")

_FAMILY_PATTERNS = tuple((re.compile(family.pattern), family) for family in FAMILIES)


def family_of(name: str) -> Family | None:
    """The family that a name belongs to."""
    return next((family for pattern, family in _FAMILY_PATTERNS if pattern.fullmatch(name)), None)


def nearest(name: str) -> str:
    """A hint with the nearest names that exist, or nothing."""
    near = difflib.get_close_matches(name, PROPERTIES, n=2, cutoff=0.75)
    if not near:
        tail = name.rpartition(".")[2]
        near = [
            known for known in PROPERTIES if known.endswith(f".{name}") or (tail == name and name in known.split("."))
        ][:2]
    return f"; did you mean {' or '.join(near)}?" if near else ""


class Reader:
    """Properties under examination.

    ``reader[PROPERTY]`` is the property's value, or its default if it is not given or wrong; what is wrong is added
    to ``problems`` once, and what is worth knowing to ``notes``.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        flavor: Flavor,
        sanitizer: Sanitizer,
        unneeded: Collection[str] = (),
    ) -> None:
        self.properties = properties
        self.flavor = flavor
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.sanitizer = sanitizer
        self._unneeded = unneeded
        self._values: dict[str, object] = {}
        for property_ in PROPERTIES.values():
            self._values[property_.name] = self._read(property_)
        self._families_and_strangers()

    def __getitem__(self, property_: Property[T]) -> T:
        value: T = self._values[property_.name]  # type: ignore[assignment]  # read with the property's own kind
        return value

    def given(self, property_: Property[T]) -> bool:
        """Whether the property is there with a text that is not empty."""
        return bool(self.properties.get(property_.name, "").strip())

    def below(self, prefix: str) -> dict[str, str]:
        """The properties whose names begin with a prefix, without it."""
        return {name.removeprefix(prefix): text for name, text in self.properties.items() if name.startswith(prefix)}

    def problem(self, name: str, message: str) -> None:
        """Remember something that must be put right."""
        self.problems.append(Problem(shown_name(name), message))

    def missing(self, property_: Property[T]) -> None:
        """Report that a property is needed and not there."""
        if property_.name not in self._unneeded:
            self.problem(property_.name, f"is required. {property_.doc}")

    def _read(self, property_: Property[T]) -> T:
        text = self.properties.get(property_.name)
        if text is None or (not text.strip() and not property_.required):
            if property_.required:
                self.missing(property_)
            return property_.default
        if self.flavor not in property_.flavors:
            self.problem(property_.name, f"does not exist for {self.flavor}")
            return property_.default
        refused = property_.refused.get(text.strip().lower())
        if refused is not None:
            self.problem(property_.name, refused)
            return property_.default
        try:
            value = property_.kind.parse(text)
        except InvalidPatternError as error:
            self.problem(property_.name, str(error))
            return property_.default
        except ValueError as error:
            self.problem(property_.name, f"{error}{self._shown(property_, text)}")
            return property_.default
        self._status(property_, value)
        return value

    def _shown(self, property_: Property[T], text: str) -> str:
        hidden = not property_.kind.shown or self.sanitizer.is_secret(property_.name)
        return "" if hidden else f", not {text!r}"

    def _status(self, property_: Property[T], value: T) -> None:
        if value == property_.default:
            return
        if property_.status is Status.WITHOUT_EFFECT:
            self.notes.append(f"{property_.name} has no effect: {property_.reason}")
        elif property_.status is Status.NOT_YET:
            self.problem(
                property_.name, f"is a property of Debezium that rowtide does not support yet: {property_.reason}"
            )

    def _families_and_strangers(self) -> None:
        named = tuple(
            f"{name.strip()}."
            for owner in ("converters", "post.processors")
            for name in self.properties.get(owner, "").split(",")
            if name.strip()
        )
        for name in self.properties:
            if name in PROPERTIES or (named and name.startswith(named)):
                continue
            family = family_of(name)
            if family is None:
                reason = replacement_for(name)
                self.problem(
                    name, f"is no longer a property: {reason}" if reason else f"is not a known property{nearest(name)}"
                )
            elif family.status is Status.WITHOUT_EFFECT:
                self.notes.append(f"{name} has no effect: {family.reason}")
            elif family.status is Status.NOT_YET:
                self.problem(name, f"is a property of Debezium that rowtide does not support yet: {family.reason}")

    def exclusive(self, one: Property[T], other: Property[T]) -> None:
        """Report two properties that cannot be used together."""
        if self.given(one) and self.given(other):
            self.problem(one.name, f"cannot be used together with {other.name}")
