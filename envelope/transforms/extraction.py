"""Kafka Connect's ``ValueToKey``, ``ExtractField``, ``HoistField`` and ``Flatten``, which change how fields nest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

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
    with_fields,
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
                "a tombstone has no fields to make a key of. Write none (tombstones.on.delete=false), or exclude "
                "them from this transform: negate a predicate RecordIsTombstone"
            )
        schema, struct = require_struct(record.value_schema, record.value)
        if record.is_schema_change:
            raise TransformError(
                "a schema change has none of the fields of rows. Write none (include.schema.changes=false), or "
                "exclude them from this transform: negate a predicate TopicNameMatches with the name of their topic"
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
            options.problem("field.syntax.version", "V2, paths of nested fields, is not supported: omit it")
        return cls(side, options.required_text("field"), options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the field instead of the struct. A tombstone remains one."""
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

    A tombstone remains one. Kafka Connect turns it into a map without a schema, which would no longer delete anything.
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


class _Flat(NamedTuple):
    """A field of a struct to flatten.

    Attributes:
        name: its name in its struct.
        flat: its name in the flat struct.
        default: the replacement for null.
        inner: the fields, if it is a struct.
    """

    name: str
    flat: str
    default: Any
    inner: "Sequence[_Flat] | None"


@dataclass(frozen=True, slots=True)
class Flatten:
    """``org.apache.kafka.connect.transforms.Flatten``: makes one struct of nested ones. Arrays stay unchanged.

    A field is optional if it, or a struct around it, was. A map is an error, as in Kafka Connect.
    """

    side: Side
    delimiter: str
    replace_null_with_default: bool
    _plans: SchemaCache[tuple[Schema, Sequence[_Flat]]] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "Flatten":
        """Read ``delimiter``."""
        return cls(side, options.text("delimiter", "."), not options.exact)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the flat struct. A record without this side remains unchanged."""
        if record.content(self.side) is None:
            return record
        schema, struct = require_struct(record.schema_of(self.side), record.content(self.side))
        made, plan = self._plans.get(self._plan, schema)
        values = dict.fromkeys(one.name for one in made.fields)
        self._fill(values, plan, struct)
        return record.with_content(self.side, made, values)

    def _fill(self, values: dict[str, Any], plan: Sequence[_Flat], struct: Mapping[str, Any]) -> None:
        for name, flat, default, inner in plan:
            value = struct.get(name)
            if inner is None:
                values[flat] = default if value is None else value
            elif value is not None:
                self._fill(values, inner, value)

    def _plan(self, schema: Schema) -> tuple[Schema, Sequence[_Flat]]:
        fields: list[Field] = []
        plan = self._flattened(schema, "", schema.default, fields, optional=schema.optional)
        return with_fields(schema, tuple(fields)), plan

    def _flattened(
        self, schema: Schema, prefix: str, defaults: Mapping[str, Any] | None, fields: list[Field], *, optional: bool
    ) -> Sequence[_Flat]:
        plan = []
        for name, of in ((one.name, one.schema) for one in schema.fields):
            flat = f"{prefix}{name}"
            optional_here = optional or of.optional
            default = of.default if of.default is not None or defaults is None else defaults.get(name)
            if of.type == "map":
                raise TransformError(f"field {flat!r} is a map, which cannot be flattened: exclude it by ReplaceField")
            inner = None
            if of.type == "struct":
                inner = self._flattened(of, flat + self.delimiter, default, fields, optional=optional_here)
            else:
                fields.append(Field(flat, replace(of, optional=optional_here, default=default)))
            plan.append(_Flat(name, flat, of.default if self.replace_null_with_default else None, inner))
        return plan
