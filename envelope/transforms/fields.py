"""Kafka Connect's transforms of fields and of schemas, each for the key or the value."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from operator import attrgetter
from typing import Any

from rowtide.envelope.json.java_numbers import float32_of
from rowtide.envelope.json.text import decimal_scale
from rowtide.envelope.schema import INT32, INTEGER_BITS, STRING, Field, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    SchemaCache,
    Side,
    TransformError,
    copy_values,
    require_struct,
    with_fields,
)

_TIMESTAMP = Schema("int64", name="org.apache.kafka.connect.data.Timestamp", version=1)


@dataclass(frozen=True, slots=True)
class Insertion:
    """A field to insert.

    Attributes:
        field: its name and schema.
        value: returns its value for a record.
    """

    field: Field
    value: Callable[[ConnectRecord], Any]


@dataclass(frozen=True, slots=True)
class InsertField:
    """``org.apache.kafka.connect.transforms.InsertField``: inserts metadata of the record or a fixed text."""

    side: Side
    insertions: tuple[Insertion, ...]
    replace_null_with_default: bool
    _schemas: SchemaCache[Schema] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "InsertField":
        """Read ``topic.field``, ``partition.field``, ``timestamp.field``, ``static.field`` and ``static.value``.

        A field name may end with ``!`` (required) or ``?`` (optional, the default).
        """
        insertions = []
        for name, schema, value in _METADATA:
            if spec := options.optional_text(name):
                insertions.append(Insertion(_inserted(spec, schema), value))
        if options.optional_text("offset.field") is not None:
            options.problem("offset.field", "is not supported: a record has no offset before it is written")
        static_name, text = options.optional_text("static.field"), options.optional_text("static.value")
        if static_name and text is None:
            options.problem("static.value", "is required if static.field is set")
        elif static_name and text is not None:
            insertions.append(Insertion(_inserted(static_name, STRING), partial(_constant, text)))
        elif not insertions:
            options.problem("static.field", "no field to insert is configured")
        return cls(side, tuple(insertions), options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the fields after its own."""
        if record.content(self.side) is None:
            return record
        schema, struct = require_struct(record.schema_of(self.side), record.content(self.side))
        values = copy_values(schema, struct, replace_null_with_default=self.replace_null_with_default)
        for insertion in self.insertions:
            values[insertion.field.name] = insertion.value(record)
        return record.with_content(self.side, self._schemas.get(self._schema, schema), values)

    def _schema(self, schema: Schema) -> Schema:
        return with_fields(schema, schema.fields + tuple(insertion.field for insertion in self.insertions))


def _constant(text: str, _record: ConnectRecord) -> str:
    return text


def _inserted(spec: str, schema: Schema) -> Field:
    if spec[-1] in "!?":
        return Field(spec[:-1], schema.with_optional(spec[-1] == "?"))
    return Field(spec, schema.with_optional(True))


_METADATA: tuple[tuple[str, Schema, Callable[[ConnectRecord], Any]], ...] = (
    ("topic.field", STRING, attrgetter("topic")),
    ("partition.field", INT32, attrgetter("partition")),
    ("timestamp.field", _TIMESTAMP, attrgetter("timestamp")),
)


@dataclass(frozen=True, slots=True)
class ReplaceField:
    """``org.apache.kafka.connect.transforms.ReplaceField``: removes or renames fields."""

    side: Side
    exclude: frozenset[str]
    include: frozenset[str] = frozenset()
    renames: tuple[tuple[str, str], ...] = ()
    replace_null_with_default: bool = True
    _schemas: SchemaCache[Schema] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "ReplaceField":
        """Read ``exclude``, ``include``, and ``renames`` with pairs ``old:new``."""
        options.former("blacklist", "it was renamed in Kafka 2.6: use exclude")
        options.former("whitelist", "it was renamed in Kafka 2.6: use include")
        renames = []
        for pair in options.items("renames"):
            old, colon, new = pair.partition(":")
            if not (old and colon and new) or ":" in new:
                options.problem("renames", f"{pair!r} must be old:new")
            renames.append((old, new))
        return cls(
            side,
            frozenset(options.items("exclude")),
            frozenset(options.items("include")),
            tuple(renames),
            options.replaces_nulls(),
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the remaining fields."""
        if record.content(self.side) is None:
            return record
        schema, struct = require_struct(record.schema_of(self.side), record.content(self.side))
        values = copy_values(schema, struct, replace_null_with_default=self.replace_null_with_default)
        renamed = dict(self.renames)
        kept = {renamed.get(name, name): value for name, value in values.items() if self._keeps(name)}
        return record.with_content(self.side, self._schemas.get(self._schema, schema), kept)

    def _keeps(self, name: str) -> bool:
        return name not in self.exclude and (not self.include or name in self.include)

    def _schema(self, schema: Schema) -> Schema:
        renamed = dict(self.renames)
        kept = (Field(renamed.get(one.name, one.name), one.schema) for one in schema.fields if self._keeps(one.name))
        return with_fields(schema, tuple(kept))


@dataclass(frozen=True, slots=True)
class MaskField:
    """``org.apache.kafka.connect.transforms.MaskField``: replaces fields with a fixed value.

    Tombstones are not changed; Kafka Connect fails on them.
    """

    side: Side
    fields: frozenset[str]
    replacement: str | None
    replace_null_with_default: bool

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "MaskField":
        """Read ``fields`` and ``replacement``."""
        fields = frozenset(options.items("fields"))
        if not fields:
            options.problem("fields", "is required")
        replacement = options.optional_text("replacement")
        if replacement == "":
            options.problem("replacement", "must not be empty")
        return cls(side, fields, replacement, options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with masked fields."""
        if record.content(self.side) is None:
            return record
        schema, struct = require_struct(record.schema_of(self.side), record.content(self.side))
        values = copy_values(schema, struct, replace_null_with_default=self.replace_null_with_default)
        for one in schema.fields:
            if one.name in self.fields and values[one.name] is not None:
                values[one.name] = self._masked(one)
        return record.with_content(self.side, schema, values)

    def _masked(self, one: Field) -> Any:
        kind = "decimal" if one.schema.is_decimal else one.schema.type
        if self.replacement is None:
            if kind in _EMPTY:
                return _EMPTY[kind]()
        elif kind in _REPLACEMENTS and not (one.schema.name or "").startswith(_CONNECT_TIMES):
            try:
                return _REPLACEMENTS[kind](one.schema, self.replacement)
            except (ArithmeticError, ValueError) as error:
                raise TransformError(
                    f"field {one.name!r}: {self.replacement!r} is not a number of type {kind}"
                ) from error
        raise TransformError(f"field {one.name!r} has type {kind}, which cannot be masked")


@dataclass(frozen=True, slots=True)
class SetSchemaMetadata:
    """``org.apache.kafka.connect.transforms.SetSchemaMetadata``: sets the name or the version of a schema.

    A record without this side remains unchanged.
    """

    side: Side
    name: str | None
    version: int | None
    replace_null_with_default: bool
    _schemas: SchemaCache[Schema] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "SetSchemaMetadata":
        """Read ``schema.name`` and ``schema.version``."""
        name, version = options.optional_text("schema.name"), options.optional_text("schema.version")
        if name is None and version is None:
            options.problem("schema.name", "is required, or schema.version")
        number = None if version is None else options.integer("schema.version", 1)
        return cls(side, name, number, options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the schema."""
        schema, value = record.schema_of(self.side), record.content(self.side)
        if schema is None:
            return record
        if schema.type == "struct" and value is not None:
            value = copy_values(schema, value, replace_null_with_default=self.replace_null_with_default)
        return record.with_content(self.side, self._schemas.get(self._schema, schema), value)

    def _schema(self, schema: Schema) -> Schema:
        version = schema.version if self.version is None else self.version
        return replace(schema, name=schema.name if self.name is None else self.name, version=version)


_CONNECT_TIMES = ("org.apache.kafka.connect.data.Date", "org.apache.kafka.connect.data.Time")  # and Timestamp
_EMPTY: dict[str, Callable[[], Any]] = {
    "int8": int,
    "int16": int,
    "int32": int,
    "int64": int,
    "float": float,
    "double": float,
    "decimal": int,
    "boolean": bool,
    "string": str,
    "array": list,
    "map": dict,
}


def _integer(bits: int) -> Callable[[Schema, str], Any]:
    def read(_schema: Schema, text: str) -> int:
        half = 1 << (bits - 1)
        return (int(Decimal(text)) + half) % (2 * half) - half  # Java wraps around

    return read


def _unscaled(schema: Schema, text: str) -> int:
    scaled = Decimal(text).scaleb(decimal_scale(schema))
    if scaled != int(scaled):
        raise InvalidOperation
    return int(scaled)


_REPLACEMENTS: dict[str, Callable[[Schema, str], Any]] = {
    **{kind: _integer(bits) for kind, bits in INTEGER_BITS.items()},
    "float": lambda _schema, text: float32_of(Decimal(text)),
    "double": lambda _schema, text: float(Decimal(text)),
    "decimal": _unscaled,
    "string": lambda _schema, text: text,
}
