"""Parses properties with the catalogue and collects all problems; pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from rowtide.connector.config.catalogue import FAMILIES, PROPERTIES, connect
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.connector.config.errors import Problem
from rowtide.connector.config.secret import Sanitizer, masked_name
from rowtide.schema_history.server.query_event import Flavor
from rowtide.topics.java_regex import InvalidPatternError

T = TypeVar("T")

_H = "schema.history.internal"

REMOVED = {
    "database.server.name": "it was renamed in Debezium 2.0: use topic.prefix",
    "database.whitelist": "it was renamed: use database.include.list",
    "database.blacklist": "it was renamed: use database.exclude.list",
    "table.whitelist": "it was renamed: use table.include.list",
    "table.blacklist": "it was renamed: use table.exclude.list",
    "column.whitelist": "it was renamed: use column.include.list",
    "column.blacklist": "it was renamed: use column.exclude.list",
    "database.history.store.only.monitored.tables.ddl": f"it was renamed: use {_H}.store.only.captured.tables.ddl",
    "sanitize.field.names": "it was replaced in Debezium 2.0: use field.name.adjustment.mode=avro",
    "gtid.new.channel.position": "it was removed in Debezium 1.5: new sources are read from their beginning",
    "snapshot.new.tables": "it was removed in Debezium 1.9: new tables are read by signals (incremental snapshots)",
    "internal.implementation": "it was removed in Debezium 2.0",
    "snapshot.minimal.locks": "it was replaced: use snapshot.locking.mode=minimal or extended",
    "schema.include.list": "MySQL's schemas are databases: use database.include.list",
    "schema.exclude.list": "MySQL's schemas are databases: use database.exclude.list",
    "database.dbname": "it is a property of other connectors: use database.include.list",
    "database.names": "it is a property of other connectors: use database.include.list",
    "slot.name": "it is a property of the PostgreSQL connector",
    "plugin.name": "it is a property of the PostgreSQL connector",
    "interval.handling.mode": "it is a property of the PostgreSQL connector",
}
"""Former properties of Debezium."""

_NOT_YET = "is a property of Debezium that rowtide does not support yet"
_PREFIXES = ((re.compile(r"database\.history(\..*|$)"), _H),)

_FAMILY_PATTERNS = tuple((re.compile(family.pattern), family) for family in FAMILIES)


def family_of(name: str) -> Family | None:
    """Return the family that a property's name belongs to, if any."""
    return next((family for pattern, family in _FAMILY_PATTERNS if pattern.fullmatch(name)), None)


def nearest(name: str) -> str:
    """Return a hint with the most similar known names, or an empty text."""
    import difflib  # noqa: PLC0415 - only after a mistake

    near = difflib.get_close_matches(name, PROPERTIES, n=2, cutoff=0.75)
    if not near:
        tail = name.rpartition(".")[2]
        near = [
            known for known in PROPERTIES if known.endswith(f".{name}") or (tail == name and name in known.split("."))
        ][:2]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def replacement_for(name: str) -> str | None:
    """Return why a former property of Debezium was removed, and its replacement; ``None`` for any other name."""
    if name in REMOVED:
        return REMOVED[name]
    for pattern, prefix in _PREFIXES:
        if match := pattern.fullmatch(name):
            return f"it was renamed in Debezium 2.0: use {prefix}{match[1]}"
    return None


class PropertyReader:
    """Parsed properties: ``reader[PROPERTY]`` is the value, or the default if the property is absent or invalid.

    Attributes:
        exact: whether absent properties have their defaults for exact values (``rowtide.values``).
        problems: everything that is invalid.
        warnings: properties without effect, and other remarks.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        flavor: Flavor,
        sanitizer: Sanitizer,
        not_required: Collection[str] = (),
        *,
        exact: bool = False,
    ) -> None:
        self.properties = properties
        self.flavor = flavor
        self.exact = exact
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self.sanitizer = sanitizer
        self._not_required = not_required
        self._values: dict[str, object] = {}
        self._ignores = properties.get(connect.IGNORE_UNSUPPORTED.name, "").strip().lower() == "true"
        for property_ in PROPERTIES.values():
            self._values[property_.name] = self._read(property_)
        self._check_other_names()

    def __getitem__(self, property_: Property[T]) -> T:
        value: T = self._values[property_.name]  # type: ignore[assignment]  # read with the property's own kind
        return value

    def declared(self, model: type[Any]) -> dict[str, Any]:
        """Return the values of the dataclass fields that take them from properties (``given``), by field."""
        found = ((field.name, field.metadata.get("property")) for field in fields(model))
        return {name: self[property_] for name, property_ in found if property_ is not None}

    def is_set(self, property_: Property[T]) -> bool:
        """Return whether the property is present with a text that is not blank."""
        return bool(self.properties.get(property_.name, "").strip())

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the properties whose names start with a prefix, by the rest of their names."""
        return {name.removeprefix(prefix): text for name, text in self.properties.items() if name.startswith(prefix)}

    def problem(self, name: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(masked_name(name), message))

    def missing(self, property_: Property[T]) -> None:
        """Add the problem that a required property is absent."""
        if property_.name not in self._not_required:
            self.problem(property_.name, f"is required. {property_.doc}")

    def _read(self, property_: Property[T]) -> T:
        text, default = self.properties.get(property_.name), property_.default_for(exact=self.exact)
        if text is None or (not text.strip() and not property_.required):
            if property_.required:
                self.missing(property_)
            return default
        if self.flavor not in property_.flavors:
            self.problem(property_.name, f"does not exist for {self.flavor}")
            return default
        refused = property_.refused.get(text.strip().lower())
        if refused is not None:
            self._unsupported(property_, property_.name, refused)
            return default
        try:
            value = property_.kind.parse(text)
        except InvalidPatternError as error:
            self.problem(property_.name, str(error))
            return default
        except ValueError as error:
            self.problem(property_.name, f"{error}{self._shown(property_, text)}")
            return default
        self._status(property_, value)
        return value

    def _shown(self, property_: Property[T], text: str) -> str:
        hidden = not property_.kind.shown or self.sanitizer.is_secret(property_.name)
        return "" if hidden else f", not {text!r}"

    def _status(self, property_: Property[T], value: T) -> None:
        if value == property_.default:
            return
        if property_.status is Status.WITHOUT_EFFECT:
            self.warnings.append(f"{property_.name} has no effect: {property_.reason}")
        elif property_.status is Status.NOT_YET:
            self._unsupported(property_, property_.name, f"{_NOT_YET}: {property_.reason}")

    def _unsupported(self, entry: Property[T] | Family, name: str, message: str) -> None:
        """Add a problem, or omit the property if the user wants to start anyway."""
        if not entry.ignorable:
            self.problem(name, message)
        elif self._ignores:
            self.warnings.append(f"{name} is skipped (rowtide.ignore.unsupported): {message}")
        else:
            self.problem(name, f"{message}. All records are the same without it: --ignore-unsupported skips it")

    def _check_other_names(self) -> None:
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
                self.warnings.append(f"{name} has no effect: {family.reason}")
            elif family.status is Status.NOT_YET:
                self._unsupported(family, name, f"{_NOT_YET}: {family.reason}")

    def exclusive(self, one: Property[Any], other: Property[Any]) -> None:
        """Add a problem to the second property, as in Debezium, if two mutually exclusive ones are both set."""
        if self.is_set(one) and self.is_set(other):
            self.problem(other.name, f"cannot be used together with {one.name}")
