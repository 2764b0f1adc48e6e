"""What is known about a property: one entry of the catalogue."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rowtide.connector.config.catalogue.kinds import Kind

T = TypeVar("T")


class Flavor(enum.StrEnum):
    """The kind of server, which also chooses the Debezium connector whose records are reproduced."""

    MYSQL = "mysql"
    MARIADB = "mariadb"


class Status(enum.Enum):
    """What rowtide does with a property."""

    SUPPORTED = "supported"
    WITHOUT_EFFECT = "accepted, without effect"
    NOT_YET = "not supported yet"


BOTH = frozenset(Flavor)
MYSQL_ONLY = frozenset({Flavor.MYSQL})


@dataclass(frozen=True, slots=True)
class Property(Generic[T]):
    """A property with one name.

    Attributes:
        name: as Debezium, Kafka Connect or Kafka have it.
        kind: how its text is read.
        default: what holds if it is not given.
        doc: one or two sentences for a newcomer.
        status: what rowtide does with it. One that is not supported yet may still be given with its default, which
            asks for exactly what rowtide does.
        reason: why it has no effect, or what to do instead.
        flavors: the servers it exists for.
        required: whether a connector cannot start without it.
        refused: values that Debezium once had or rowtide lacks, each with what to do instead.
        default_text: how the reference shows the default when it is not the value itself.
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


@dataclass(frozen=True, slots=True)
class Family:
    """Properties whose names share a form and carry something of their own: ``topic.creation.<group>.partitions``.

    Attributes:
        form: the form as the reference prints it.
        pattern: a regular expression that the whole name matches.
        doc: one or two sentences for a newcomer.
        status: as for a property.
        reason: as for a property.
    """

    form: str
    pattern: str
    doc: str
    status: Status = Status.SUPPORTED
    reason: str = ""
