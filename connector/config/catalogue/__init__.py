"""Every property that rowtide knows: Debezium's for MySQL and MariaDB, Kafka Connect's, and its own.

One module per section of the reference; a property's constant there is also the key under which the loader reads it.
"""

from types import ModuleType
from typing import Any

from rowtide.connector.config.catalogue import capture, connect, connection, history, running, snapshot, topics, values
from rowtide.connector.config.catalogue.property import Family, Property

__all__ = ["FAMILIES", "PROPERTIES", "SECTIONS", "entries"]

SECTIONS: tuple[ModuleType, ...] = (connection, capture, values, snapshot, running, topics, history, connect)
"""The sections in the order of the reference; each has a ``TITLE``."""


def entries(section: ModuleType) -> tuple[Property[Any] | Family, ...]:
    """What a section holds, in its order."""
    return tuple(value for value in vars(section).values() if isinstance(value, Property | Family))


PROPERTIES: dict[str, Property[Any]] = {
    entry.name: entry for section in SECTIONS for entry in entries(section) if isinstance(entry, Property)
}
"""All properties with a name of their own."""

FAMILIES: tuple[Family, ...] = tuple(
    entry for section in SECTIONS for entry in entries(section) if isinstance(entry, Family)
)
"""All families, more special ones first."""
