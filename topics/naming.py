"""Names of topics: Debezium's naming strategies.

The parts of a name are joined by the delimiter, characters that Kafka does not allow are replaced, and the name is
truncated to 249 characters. Different tables can thus get the same name; ``TopicNames`` detects it, Debezium does not.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rowtide.topics.java_regex import Replacement

MAX_LENGTH = 249
"""The maximum length of a topic name in Kafka."""

_INVALID = re.compile(r"[^a-zA-Z0-9._\-]")
_INVALID_OR_UNDERSCORE = re.compile(r"[^a-zA-Z0-9.\-]")
PHYSICAL_TABLE_FIELD = "__dbz__physicalTableIdentifier"


class TopicNameClashError(ValueError):
    """Two tables would be written to one topic, although no configured rule merges them.

    Attributes:
        owner: database and name of the table that uses the topic; ``None`` for one of the connector's own topics.
    """

    def __init__(self, message: str, owner: tuple[str, str] | None = None) -> None:
        super().__init__(message)
        self.owner = owner


def sanitized(name: str) -> str:
    """Replace each UTF-16 unit that Kafka does not allow by ``_``, and truncate the name to 249 characters."""
    return _limited(_INVALID.sub(lambda match: "_" * (1 + (match[0] > "\uffff")), name), "_")


def sanitized_unicode(name: str) -> str:
    """Replace each UTF-16 unit that Kafka does not allow, and ``_``, by ``_uXXXX``; truncate to 249 characters."""
    return _limited(_INVALID_OR_UNDERSCORE.sub(lambda match: _escaped(match[0]), name), "_u002e")


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"_u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _limited(name: str, dot: str) -> str:
    if name in (".", ".."):  # names that Kafka rejects although their characters are valid
        return dot * len(name)
    return name[:MAX_LENGTH]


@dataclass(frozen=True, slots=True)
class KeyAugment:
    """The field that a regex naming strategy adds to the keys of tables that share a topic.

    Attributes:
        field: name of the field.
        value: its value, which identifies the table.
    """

    field: str
    value: str


class TopicNaming(Protocol):
    """A naming strategy: the topics of tables and of the connector's own records."""

    @property
    def schema_change(self) -> str:
        """The topic of schema changes."""
        ...

    @property
    def heartbeat(self) -> str:
        """The topic of heartbeats."""
        ...

    @property
    def transaction(self) -> str:
        """The topic of transaction metadata."""
        ...

    @property
    def reserved(self) -> Mapping[str, str]:
        """The topics that no table may have, and their purposes."""
        ...

    def data_change(self, database: str, table: str) -> str:
        """Return the topic of a table, which is also the prefix of the names of its schemas."""
        ...

    def key_augment(self, database: str, table: str) -> KeyAugment | None:
        """Return the field to add to the keys of a table, if any."""
        ...

    def shares_topic(self, database: str, table: str) -> bool:
        """Return whether the table shares its topic with others as configured."""
        ...


class NameParts(enum.Enum):
    """The parts of a table's name that the name of its topic contains."""

    DATABASE_AND_TABLE = enum.auto()
    TABLE = enum.auto()


@dataclass(frozen=True, slots=True)
class Routing:
    """The settings of the regex strategies: a new name for matching topics, and a field that keeps keys unique.

    Attributes:
        topic: ``topic.regex`` with ``topic.replacement``.
        key: ``topic.key.field.regex`` with ``topic.key.field.replacement``, applied to the original topic name of the
            table, before invalid characters are replaced.
        key_field: ``topic.key.field.name``.
        enforce_uniqueness: ``topic.key.enforce.uniqueness``.
    """

    topic: Replacement
    key: Replacement | None = None
    key_field: str = PHYSICAL_TABLE_FIELD
    enforce_uniqueness: bool = True


@dataclass(frozen=True, slots=True)
class StandardNaming:
    """Debezium's naming strategies; the attributes select the strategy.

    Attributes:
        prefix: ``topic.prefix``.
        parts: database and table (``Default…``), or the table alone (``Schema…``).
        unicode: replace invalid characters by ``_uXXXX`` instead of ``_`` (``…Unicode…``).
        delimiter: ``topic.delimiter``.
        heartbeat_prefix: ``topic.heartbeat.prefix``.
        heartbeat_name: ``topic.heartbeat.name``, the complete name.
        transaction_suffix: ``topic.transaction``.
        routing: the settings of the ``…Regex…`` strategies.
    """

    prefix: str
    parts: NameParts = NameParts.DATABASE_AND_TABLE
    unicode: bool = False
    delimiter: str = "."
    heartbeat_prefix: str = "__debezium-heartbeat"
    heartbeat_name: str | None = None
    transaction_suffix: str = "transaction"
    routing: Routing | None = None

    @property
    def schema_change(self) -> str:
        """The topic of schema changes: the prefix."""
        return self.prefix

    @property
    def heartbeat(self) -> str:
        """The topic of heartbeats."""
        return self.heartbeat_name or self.delimiter.join((self.heartbeat_prefix, self.prefix))

    @property
    def transaction(self) -> str:
        """The topic of transaction metadata."""
        return self.delimiter.join((self.prefix, self.transaction_suffix))

    @property
    def reserved(self) -> Mapping[str, str]:
        """The topics of the connector's own records."""
        return {
            self.schema_change: "schema changes",
            self.heartbeat: "heartbeats",
            self.transaction: "transaction metadata",
        }

    def _own_name(self, database: str, table: str) -> str:
        parts = (self.prefix, database, table) if self.parts is NameParts.DATABASE_AND_TABLE else (self.prefix, table)
        return self.delimiter.join(filter(None, parts))

    def _sanitized(self, database: str, table: str) -> str:
        name = self._own_name(database, table)
        return sanitized_unicode(name) if self.unicode else sanitized(name)

    def data_change(self, database: str, table: str) -> str:
        """Return the topic of a table.

        A routed name is sanitised too; Debezium does not do that, and Kafka would reject it.
        """
        name = self._sanitized(database, table)
        if self.routing is None or self.routing.topic.pattern.fullmatch(name) is None:
            return name
        return sanitized(self.routing.topic.replace_all(name)) or name

    def key_augment(self, database: str, table: str) -> KeyAugment | None:
        """Return, with routing, the field that distinguishes the keys of merged tables.

        All other tables also have it.
        """
        routing = self.routing
        if routing is None or not routing.enforce_uniqueness:
            return None
        name = self._own_name(database, table)
        if routing.key is not None and routing.key.pattern.fullmatch(name) is not None:
            return KeyAugment(routing.key_field, routing.key.replace_all(name))
        return KeyAugment(routing.key_field, name)

    def shares_topic(self, database: str, table: str) -> bool:
        """Return whether the table is routed, or the name does not contain its database."""
        if self.parts is NameParts.TABLE:
            return True
        return (
            self.routing is not None
            and self.routing.topic.pattern.fullmatch(self._sanitized(database, table)) is not None
        )


@dataclass(frozen=True, slots=True)
class OneTopic:
    """One topic for all tables and statements, in messages that are not Debezium's.

    Attributes:
        topic: the topic.
        others: names the topics of the other records.
    """

    topic: str
    others: TopicNaming

    @property
    def schema_change(self) -> str:
        """The topic, which also has the statements."""
        return self.topic

    @property
    def heartbeat(self) -> str:
        """The topic of heartbeats."""
        return self.others.heartbeat

    @property
    def transaction(self) -> str:
        """The topic of transaction metadata."""
        return self.others.transaction

    @property
    def reserved(self) -> Mapping[str, str]:
        """No topics, because the one for all tables is configured."""
        return {}

    def data_change(self, database: str, table: str) -> str:
        """Return the topic."""
        return self.topic

    def key_augment(self, database: str, table: str) -> KeyAugment | None:
        """Return ``None``: nothing is added to keys."""
        return None

    def shares_topic(self, database: str, table: str) -> bool:
        """Return true: every table does."""
        return True


@dataclass(slots=True)
class TopicNames:
    """A cache of the topics of tables, which detects unintended clashes.

    Attributes:
        naming: the naming strategy.
    """

    naming: TopicNaming
    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _owners: dict[str, tuple[str, str]] = field(default_factory=dict)
    _reserved: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._reserved = self.naming.reserved

    def data_change(self, database: str, table: str) -> str:
        """Return the topic of a table.

        Raises:
            TopicNameClashError: another table, or the connector itself, already uses the topic. Tables that share a
                topic as configured do not clash, nor does a table that replaces a dropped one (see ``release``).
        """
        known = self._names.get((database, table))
        if known is not None:
            return known
        name = self.naming.data_change(database, table)
        if name in self._reserved:
            raise TopicNameClashError(
                f"table {database}.{table} would be written to topic {name!r}, which is for {self._reserved[name]}; "
                "change topic.prefix, topic.delimiter or topic.transaction, or exclude the table"
            )
        if not self.naming.shares_topic(database, table):
            owner = self._owners.setdefault(name, (database, table))
            if owner != (database, table):
                raise TopicNameClashError(
                    f"tables {owner[0]}.{owner[1]} and {database}.{table} would both be written to topic {name!r}, "
                    "because Kafka does not allow all characters of their names; set topic.naming.strategy="
                    "io.debezium.schema.DefaultUnicodeTopicNamingStrategy, rename one of them, or exclude it by "
                    "table.exclude.list",
                    owner,
                )
        self._names[(database, table)] = name
        return name

    def release(self, database: str, table: str) -> None:
        """Release the topic of a table that was dropped or renamed, so that another table can use it."""
        name = self._names.pop((database, table), None)
        if name is not None and self._owners.get(name) == (database, table):
            del self._owners[name]
