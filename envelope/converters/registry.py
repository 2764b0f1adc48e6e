"""Converters with a schema registry: its interface, the names of subjects, and the forms of schema ids in records."""

import abc
import enum
import uuid
from collections.abc import Callable, Mapping
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from rowtide.envelope.converters.converter import Added
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import ConnectRecord, SchemaCache, Side

SchemaKind = Literal["AVRO", "PROTOBUF"]


class RegisteredSchema(NamedTuple):
    """A schema in a registry.

    Attributes:
        id: its number.
        text: the text to write, which may be an older version's (``use.latest.version``).
        guid: its global id, for registries that have one.
    """

    id: int
    text: str
    guid: uuid.UUID | None = None


class SchemaRegistration(NamedTuple):
    """The data that a converter registers for a schema."""

    subject: str
    kind: SchemaKind
    text: str


class Registering(Protocol):
    """A converter with a schema registry."""

    def registration(self, topic: str, side: Side, schema: Schema) -> SchemaRegistration:
        """Return the data to register for the keys or values of a topic.

        Raises:
            ValueError: the schema cannot be written.
        """
        ...


class Registry(Protocol):
    """A schema registry."""

    def registered(self, subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        """Return a schema with its id: it is registered, looked up, or replaced by the latest version.

        Args:
            subject: the subject.
            kind: the language of the schema.
            text: the schema.

        Raises:
            RegistryError: the registry cannot be reached or refuses the schema, or lacks it.
        """
        ...


class SubjectNames(enum.StrEnum):
    """``key.subject.name.strategy`` and ``value.subject.name.strategy``."""

    TOPIC = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    RECORD = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    TOPIC_RECORD = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"

    def subject(self, topic: str, side: Side, record: str | None) -> str:
        """Return a subject.

        Args:
            topic: the topic.
            side: key or value.
            record: the full name of the record or message; ``None`` if the schema is of another type.

        Raises:
            ValueError: the strategy needs a record.
        """
        if self is SubjectNames.TOPIC:
            return f"{topic}-{side}"
        if record is None:
            raise ValueError(
                f"{self.value} needs a struct, but the {side} is not one. Set {side}.subject.name.strategy"
            )
        return record if self is SubjectNames.RECORD else f"{topic}-{record}"


class SchemaIds(enum.StrEnum):
    """``key.schema.id.serializer`` and ``value.schema.id.serializer``: where a record has the id of its schema."""

    PREFIX = "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer"
    HEADER = "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer"


Frame = Callable[[bytes, Added], bytes]
"""From the bytes of a value to those that are sent, and headers."""


def frame(ids: SchemaIds, schema: RegisteredSchema, side: Side, message_indexes: bytes = b"") -> Frame:
    """Return the function that adds the id of a schema to the bytes of a value.

    The bytes are preceded by 0 and the id as four bytes, most significant first. In a header, ``__key_schema_id`` or
    ``__value_schema_id``, it is 1 and the sixteen bytes of the global id.

    Args:
        ids: where the id is written.
        schema: the schema.
        side: key or value.
        message_indexes: which message of a Protobuf schema it is, as written after the id.

    Raises:
        ValueError: the registry gives schemas no global id, which a header needs.
    """
    if ids is SchemaIds.PREFIX:
        prefix = b"\x00" + schema.id.to_bytes(4, "big") + message_indexes
        return lambda data, _added: prefix + data
    if schema.guid is None:
        raise ValueError(
            f"the schema registry has no global id for the schema {schema.id}, so a header cannot name it. Set "
            f"{side}.schema.id.serializer={SchemaIds.PREFIX.value}"
        )
    header = (SCHEMA_ID_HEADERS[side], b"\x01" + schema.guid.bytes + message_indexes)

    def with_header(data: bytes, added: Added) -> bytes:
        added.append(header)
        return data

    return with_header


SCHEMA_ID_HEADERS: Mapping[Side, str] = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""The header that names the schema of a key or a value."""


Write = Callable[[object, Added], bytes]
"""From a value to the bytes that are sent, and headers."""


class FormatSettings(Protocol):
    """The settings of a converter's schemas and values."""

    @property
    def replace_null_with_default(self) -> bool: ...


F = TypeVar("F", bound=FormatSettings)


class RegistryConverter(abc.ABC, Generic[F]):
    """A converter that writes the id of a schema with each key or value.

    Args:
        registry: the schema registry.
        settings: the settings for schemas and values.
        subjects: the names of subjects.
        ids: the place of schema ids in records.
    """

    def __init__(
        self,
        registry: Registry,
        settings: F,
        subjects: SubjectNames = SubjectNames.TOPIC,
        ids: SchemaIds = SchemaIds.PREFIX,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._subjects = subjects
        self._ids = ids
        self._writers: SchemaCache[Write] = SchemaCache()

    @property
    def replaces_null(self) -> bool:
        """Whether null becomes the default of its schema."""
        return self._settings.replace_null_with_default

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes of a key or value; see :class:`~rowtide.envelope.converters.converter.Converter`."""
        schema, value = record.schema_of(side), record.content(side)
        if schema is None or value is None:
            return None
        write = self._writers.get(lambda of: self._writer(record.topic, side, of), schema, topic=record.topic)
        return write(value, added)

    @abc.abstractmethod
    def _writer(self, topic: str, side: Side, schema: Schema) -> Write:
        """Register a schema, and return the function that writes its values."""
