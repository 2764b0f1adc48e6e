"""The record that transforms work on, and what they do with its structs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from rowtide.envelope.schema import Field, Schema

Side = Literal["key", "value"]
T = TypeVar("T")


class TransformError(ValueError):
    """A record that a transform cannot work on."""


class Header(NamedTuple):
    """A header; a null header has no schema."""

    name: str
    schema: Schema | None
    value: Any


@dataclass(frozen=True, slots=True)
class ConnectRecord:
    """A record before it becomes bytes. Values are as :mod:`rowtide.envelope.schema` describes them.

    Transforms never change a record or a value in place: they give a new one.

    Attributes:
        topic: its topic.
        partition: its partition, ``None`` to let the key decide.
        key_schema, key: both ``None`` without a key.
        value_schema, value: both ``None`` for a tombstone.
        headers: in their order; names may repeat.
        timestamp: milliseconds since the epoch, ``None`` to leave it to the producer.
    """

    topic: str
    partition: int | None
    key_schema: Schema | None
    key: Any
    value_schema: Schema | None
    value: Any
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None

    def schema_of(self, side: Side) -> Schema | None:
        """The schema of key or value."""
        return self.key_schema if side == "key" else self.value_schema

    def content(self, side: Side) -> Any:
        """Key or value."""
        return self.key if side == "key" else self.value

    def with_content(self, side: Side, schema: Schema | None, value: Any) -> "ConnectRecord":
        """The same record with another key or value."""
        # Spelled out, since dataclasses.replace takes ten times as long.
        kept = self.headers, self.timestamp
        if side == "key":
            return ConnectRecord(self.topic, self.partition, schema, value, self.value_schema, self.value, *kept)
        return ConnectRecord(self.topic, self.partition, self.key_schema, self.key, schema, value, *kept)

    def with_headers(self, headers: "tuple[Header, ...]") -> "ConnectRecord":
        """The same record with more headers behind its own."""
        return replace(self, headers=self.headers + headers)

    @property
    def is_envelope(self) -> bool:
        """Whether the value's schema is that of a change event."""
        schema = self.value_schema
        return schema is not None and schema.name is not None and schema.name.endswith(".Envelope")


class Transform(Protocol):
    """A single message transform."""

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """The record that takes the place of ``record``, or ``None`` to drop it.

        Raises:
            TransformError: the transform cannot work on this record.
        """
        ...


class Predicate(Protocol):
    """Decides whether a transform is applied to a record."""

    def test(self, record: ConnectRecord) -> bool:
        """Whether the record is meant."""
        ...


def field_of(schema: Schema, name: str) -> Field:
    """A field that must be there.

    Raises:
        TransformError: it is not.
    """
    field = schema.field(name)
    if field is None:
        known = ", ".join(field.name for field in schema.fields)
        raise TransformError(f"{schema.name or 'the struct'} has no field {name!r}; its fields are {known}")
    return field


def value_of(schema: Schema, struct: Mapping[str, Any], name: str) -> Any:
    """A field's value, its default for null.

    Raises:
        TransformError: there is no such field.
    """
    field = field_of(schema, name)
    value = struct.get(name)
    return field.schema.default if value is None else value


def typed_value_of(schema: Schema, struct: Mapping[str, Any], name: str, kind: str) -> Any:
    """A field's value as it stands, without its default for null, if its type is as expected.

    Connect's typed getters (``Struct.getString``) leave the default out, the general one does not.

    Raises:
        TransformError: there is no such field, or its type is another.
    """
    field = field_of(schema, name)
    if field.schema.type != kind:
        raise TransformError(f"field {name!r} of {schema.name or 'the struct'} is {field.schema.type}, not {kind}")
    return struct.get(name)


def require_struct(schema: Schema | None, value: Any) -> tuple[Schema, Mapping[str, Any]]:
    """A value that must be a struct.

    Raises:
        TransformError: it is not.
    """
    if schema is None or schema.type != "struct" or value is None:
        raise TransformError(f"a struct is needed, not {'null' if value is None or schema is None else schema.type}")
    return schema, value


def copy_values(schema: Schema, struct: Mapping[str, Any], *, replace_null_with_default: bool) -> dict[str, Any]:
    """All fields of a struct, null replaced by the default if asked for."""
    if replace_null_with_default:
        return {
            field.name: field.schema.default if (value := struct.get(field.name)) is None else value
            for field in schema.fields
        }
    return {field.name: struct.get(field.name) for field in schema.fields}


def with_fields(schema: Schema, fields: tuple[Field, ...]) -> Schema:
    """A struct schema with other fields, as Connect's ``copySchemaBasics`` makes it: required, without a default.

    Raises:
        TransformError: two fields have the same name.
    """
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise TransformError(f"the value would have two fields of the name {repeated!r}")
    return replace(schema, optional=False, default=None, fields=fields)


class SchemaCache(Generic[T]):
    """What was made of schemas, by their identity: the schemas of a table's records are shared by all of them."""

    __slots__ = ("_made",)

    LIMIT = 10_000

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[tuple[Schema, ...], T]] = {}

    def get(self, make: Callable[..., T], *schemas: Schema) -> T:
        """What ``make`` gives for the schemas, or gave before."""
        identity = tuple(map(id, schemas))
        known = self._made.get(identity)
        if known is not None:
            return known[1]
        if len(self._made) >= self.LIMIT:
            self._made.clear()
        made = make(*schemas)
        self._made[identity] = (schemas, made)  # holding the schemas keeps their identities from being used again
        return made
