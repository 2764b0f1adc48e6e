"""The record that transforms process, and operations on its structs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from rowtide.envelope.schema import Field, Schema

Side = Literal["key", "value"]
T = TypeVar("T")


class RejectedValue(ValueError):
    """A value cannot be used.

    Args:
        message: the error, without values of rows.
        detail: details, which may contain a value of a row.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class TransformError(RejectedValue):
    """A transform cannot process a record."""


def described(error: TransformError, *, show_values: bool) -> str:
    """Return the message of an error, with the detail of its cause if values of rows may be shown."""
    cause: BaseException | None = error
    while cause is not None and not getattr(cause, "detail", ""):
        cause = cause.__cause__
    if cause is None:
        return str(error)
    return f"{error}: {cause.detail}" if show_values else f"{error} (errors.log.include.messages=true shows more)"  # type: ignore[attr-defined]


class Header(NamedTuple):
    """A header. A null header has no schema."""

    name: str
    schema: Schema | None
    value: Any


@dataclass(frozen=True, slots=True)
class ConnectRecord:
    """A record before serialization. Its values are those of :mod:`rowtide.envelope.schema`.

    Transforms never change a record or a value in place; they return a new one.

    Attributes:
        topic: its topic.
        partition: its partition, ``None`` if the key determines it.
        key_schema, key: both ``None`` without a key.
        value_schema, value: both ``None`` for a tombstone.
        headers: in order; names may repeat.
        timestamp: milliseconds since the epoch, ``None`` if the producer sets it.
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
        """Return the schema of the key or the value."""
        return self.key_schema if side == "key" else self.value_schema

    def content(self, side: Side) -> Any:
        """Return the key or the value."""
        return self.key if side == "key" else self.value

    def with_content(self, side: Side, schema: Schema | None, value: Any) -> "ConnectRecord":
        """Return the record with another key or value."""
        # dataclasses.replace takes ten times as long.
        kept = self.headers, self.timestamp
        if side == "key":
            return ConnectRecord(self.topic, self.partition, schema, value, self.value_schema, self.value, *kept)
        return ConnectRecord(self.topic, self.partition, self.key_schema, self.key, schema, value, *kept)

    def with_headers(self, headers: "tuple[Header, ...]") -> "ConnectRecord":
        """Return the record with more headers after its own."""
        return replace(self, headers=self.headers + headers)

    @property
    def is_envelope(self) -> bool:
        """Whether the value's schema is that of a change event."""
        schema = self.value_schema
        return schema is not None and schema.name is not None and schema.name.endswith(".Envelope")

    @property
    def is_schema_change(self) -> bool:
        """Whether the value's schema is that of a schema change."""
        schema = self.value_schema
        return schema is not None and schema.name is not None and schema.name.endswith(".SchemaChangeValue")


class Transform(Protocol):
    """A single message transform."""

    def apply(self, record: ConnectRecord) -> ConnectRecord | Iterable[ConnectRecord] | None:
        """Return the transformed record or several, ``None`` to drop it.

        Raises:
            TransformError: the transform cannot process this record.
        """
        ...


class Predicate(Protocol):
    """Selects the records to which a transform is applied."""

    def test(self, record: ConnectRecord) -> bool:
        """Return whether the record is selected."""
        ...


def field_of(schema: Schema, name: str) -> Field:
    """Return a field of a struct schema.

    Raises:
        TransformError: the field does not exist.
    """
    field = schema.field(name)
    if field is None:
        known = ", ".join(field.name for field in schema.fields)
        raise TransformError(f"{schema.name or 'the struct'} has no field {name!r}; its fields are {known}")
    return field


def value_of(schema: Schema, struct: Mapping[str, Any], name: str, *, replace_null_with_default: bool = True) -> Any:
    """Return a field's value, optionally with its default for null.

    Raises:
        TransformError: the field does not exist.
    """
    field = field_of(schema, name)
    value = struct.get(name)
    return field.schema.default if value is None and replace_null_with_default else value


def typed_value_of(schema: Schema, struct: Mapping[str, Any], name: str, kind: str) -> Any:
    """Return a field's value, without replacing null by the default.

    Connect's typed getters (``Struct.getString``) ignore the default, unlike ``Struct.get``.

    Raises:
        TransformError: the field does not exist, or has another type.
    """
    field = field_of(schema, name)
    if field.schema.type != kind:
        raise TransformError(
            f"field {name!r} of {schema.name or 'the struct'} has type {field.schema.type}, not {kind}"
        )
    return struct.get(name)


def require_struct(schema: Schema | None, value: Any) -> tuple[Schema, Mapping[str, Any]]:
    """Return the schema and the value of a struct.

    Raises:
        TransformError: the value is not a struct, or null.
    """
    if schema is None or schema.type != "struct" or value is None:
        raise TransformError(f"expected a struct, not {'null' if value is None or schema is None else schema.type}")
    return schema, value


def copy_values(schema: Schema, struct: Mapping[str, Any], *, replace_null_with_default: bool) -> dict[str, Any]:
    """Return all fields of a struct; null is optionally replaced by the default."""
    if replace_null_with_default:
        return {
            field.name: field.schema.default if (value := struct.get(field.name)) is None else value
            for field in schema.fields
        }
    return {field.name: struct.get(field.name) for field in schema.fields}


def convert_fields(
    schema: Schema,
    struct: Mapping[str, Any],
    changes: Iterable[tuple[str, Callable[[Any], Any]]],
    *,
    replace_null_with_default: bool,
) -> dict[str, Any]:
    """Return all fields of a struct as :func:`copy_values`, some of them converted unless they are null.

    Raises:
        TransformError: a conversion raised ``ValueError``.
    """
    values = copy_values(schema, struct, replace_null_with_default=replace_null_with_default)
    for name, convert in changes:
        value = values[name]
        if value is not None:
            try:
                values[name] = convert(value)
            except TransformError:
                raise
            except ValueError as error:
                raise TransformError(f"field {name!r}: {error}") from error
    return values


def with_fields(schema: Schema, fields: tuple[Field, ...]) -> Schema:
    """Return a required struct schema with other fields and no default, as Connect's ``copySchemaBasics`` does.

    Raises:
        TransformError: two fields have the same name.
    """
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise TransformError(f"the value would have two fields with the name {repeated!r}")
    return replace(schema, optional=False, default=None, fields=fields)


class SchemaCache(Generic[T]):
    """A cache of objects derived from schemas, by their identity: all records of a table share the same schemas."""

    __slots__ = ("_made",)

    LIMIT = 10_000

    def __init__(self) -> None:
        self._made: dict[tuple[str | int, ...], tuple[tuple[Schema, ...], T]] = {}

    def __reduce__(self) -> "tuple[type[SchemaCache[T]], tuple[()]]":
        """Pickle it as an empty cache, because another process has other schemas."""
        return SchemaCache, ()

    def get(self, make: Callable[..., T], *schemas: Schema, topic: str = "") -> T:
        """Return the cached result of ``make`` for the schemas, and for the topic if it depends on one."""
        identity: tuple[str | int, ...] = (topic, *map(id, schemas))
        known = self._made.get(identity)
        if known is not None:
            return known[1]
        if len(self._made) >= self.LIMIT:
            self._made.clear()
        made = make(*schemas)
        self._made[identity] = (schemas, made)  # a reference to the schemas prevents the reuse of their ids
        return made
