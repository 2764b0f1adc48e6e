"""Kafka Connect's ``ValueToKey``, ``ExtractField`` and ``HoistField``, which make a struct of fields, and one of it."""

from dataclasses import dataclass, field

from rowtide.envelope.schema import Field, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    SchemaCache,
    Side,
    TransformError,
    field_of,
    require_struct,
    value_of,
)


@dataclass(frozen=True, slots=True)
class ValueToKey:
    """``org.apache.kafka.connect.transforms.ValueToKey``: replaces the key by a struct of fields of the value.

    A tombstone has no fields. It is an error, as in Kafka Connect: with its former key, it would delete nothing.
    """

    fields: tuple[str, ...]
    replace_null_with_default: bool
    _schemas: SchemaCache[Schema] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Options) -> "ValueToKey":
        """Read ``fields``."""
        fields = options.items("fields")
        if not fields:
            options.problem("fields", "is required")
        return cls(fields, options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the new key."""
        if record.value is None:
            raise TransformError(
                "a tombstone has no fields to make a key of. Write none (tombstones.on.delete=false), or leave them "
                "out here: negate a predicate RecordIsTombstone"
            )
        schema, struct = require_struct(record.value_schema, record.value)
        if record.is_schema_change:
            raise TransformError(
                "a schema change has none of the fields of rows. Write none (include.schema.changes=false), or leave "
                "them out here: negate a predicate TopicNameMatches with the name of their topic"
            )
        key_schema = self._schemas.get(self._schema, schema)
        key = {
            name: value_of(schema, struct, name, replace_null_with_default=self.replace_null_with_default)
            for name in self.fields
        }
        return record.with_content("key", key_schema, key)

    def _schema(self, schema: Schema) -> Schema:
        return Schema("struct", fields=tuple(Field(name, field_of(schema, name).schema) for name in self.fields))


@dataclass(frozen=True, slots=True)
class ExtractField:
    """``org.apache.kafka.connect.transforms.ExtractField``: replaces the key or the value by one of its fields."""

    side: Side
    field: str
    replace_null_with_default: bool

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "ExtractField":
        """Read ``field``, the name of a field; paths of nested fields are not supported."""
        if options.choice("field.syntax.version", ("v1", "v2"), "v1") == "v2":
            options.problem("field.syntax.version", "V2, paths of nested fields, is not supported: leave it out")
        return cls(side, options.required_text("field"), options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the field in place of the struct. A tombstone remains one."""
        schema, value = record.schema_of(self.side), record.content(self.side)
        if schema is None:
            return record
        if value is None and schema.type == "struct":
            return record.with_content(self.side, field_of(schema, self.field).schema, None)
        schema, struct = require_struct(schema, value)
        found = value_of(schema, struct, self.field, replace_null_with_default=self.replace_null_with_default)
        return record.with_content(self.side, field_of(schema, self.field).schema, found)


@dataclass(frozen=True, slots=True)
class HoistField:
    """``org.apache.kafka.connect.transforms.HoistField``: wraps the key or the value in a struct with one field.

    A tombstone remains one. Kafka Connect makes a map without a schema of it, which would no longer delete anything.
    """

    side: Side
    name: str
    _schemas: SchemaCache[Schema] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "HoistField":
        """Read ``field``, the name of the field."""
        return cls(side, options.required_text("field"))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the struct."""
        schema = record.schema_of(self.side)
        if schema is None:
            return record
        wrapped = self._schemas.get(lambda of: Schema("struct", fields=(Field(self.name, of),)), schema)
        return record.with_content(self.side, wrapped, {self.name: record.content(self.side)})
