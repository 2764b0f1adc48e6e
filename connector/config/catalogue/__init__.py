"""The catalogue of properties: Debezium's for MySQL and MariaDB, Kafka Connect's, Canal's, databus', and rowtide's own.

There is one module per section of the reference. The loader looks up values by the constants defined there.
"""

from types import ModuleType
from typing import Any

from rowtide.connector.config.catalogue import (
    canal,
    capture,
    connect,
    connection,
    converters,
    databus,
    history,
    running,
    snapshot,
    topics,
    values,
)
from rowtide.connector.config.catalogue.property import Family, Property

__all__ = ["FAMILIES", "PROPERTIES", "SECTIONS", "entries"]

SECTIONS: tuple[ModuleType, ...] = (
    connection,
    capture,
    values,
    snapshot,
    running,
    topics,
    history,
    connect,
    converters,
    canal,
    databus,
)
"""The sections, in the order of the reference; each has a ``TITLE``."""


def entries(section: ModuleType) -> tuple[Property[Any] | Family, ...]:
    """Return the properties and families of a section, in order."""
    found: list[Property[Any] | Family] = []
    for value in vars(section).values():
        if isinstance(value, Property | Family):
            found.append(value)
        elif isinstance(value, converters.ConverterProperties):
            found += value.entries()
    return tuple(found)


PROPERTIES: dict[str, Property[Any]] = {
    entry.name: entry for section in SECTIONS for entry in entries(section) if isinstance(entry, Property)
}
"""All properties with a fixed name, by name."""

FAMILIES: tuple[Family, ...] = tuple(
    entry for section in SECTIONS for entry in entries(section) if isinstance(entry, Family)
)
"""All families; a more specific one comes before a more general one."""
