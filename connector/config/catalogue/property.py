"""The entries of the catalogue: single properties, and families of properties with variable names."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rowtide.connector.config.catalogue.kinds import Kind
from rowtide.schema_history.server.query_event import Flavor

T = TypeVar("T")


class Status(enum.Enum):
    """The support of a property by rowtide."""

    SUPPORTED = "supported"
    PARTLY = "partly supported"
    WITHOUT_EFFECT = "accepted, without effect"
    NOT_YET = "not supported yet"


BOTH = frozenset(Flavor)
MYSQL_ONLY = frozenset({Flavor.MYSQL})


@dataclass(frozen=True, slots=True)
class Property(Generic[T]):
    """A property with a fixed name.

    Attributes:
        name: its name in Debezium, Kafka Connect or Kafka.
        kind: its type.
        default: the value if it is absent.
        exact: the value if it is absent and values are exact (``rowtide.values``); ``None`` if it is the same.
        doc: one or two sentences for a newcomer.
        status: how rowtide supports it. A property that is not supported yet may be set to its default.
        reason: why it has no effect, the alternative, or which values are supported.
        flavors: the servers for which it exists.
        required: whether a connector cannot start without it.
        refused: former values of Debezium and values that rowtide does not support, each with the alternative.
        default_text: the default in the reference, if it is not the value itself.
        ignorable: whether ``rowtide.ignore.unsupported`` may omit it, because all records stay the same.
    """

    name: str
    kind: Kind[T]
    default: T
    doc: str
    status: Status = Status.SUPPORTED
    reason: str = ""
    flavors: frozenset[Flavor] = BOTH
    required: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    default_text: str | None = None
    ignorable: bool = False
    exact: T | None = None

    def default_for(self, *, exact: bool) -> T:
        """Return the value of a configuration without this property."""
        return self.exact if exact and self.exact is not None else self.default


def given(property_: Property[T]) -> T:
    """Declare a field of the model that has the value of a property."""
    declared: T = field(metadata={"property": property_})
    return declared


@dataclass(frozen=True, slots=True)
class Family:
    """Properties whose names contain a variable part, such as ``topic.creation.<group>.partitions``.

    Attributes:
        form: the name pattern in the reference.
        pattern: a regular expression that matches the whole name.
        doc: one or two sentences for a newcomer.
        status: as for a property.
        reason: as for a property.
        ignorable: as for a property.
    """

    form: str
    pattern: str
    doc: str
    status: Status = Status.SUPPORTED
    reason: str = ""
    ignorable: bool = False
