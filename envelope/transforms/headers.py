"""Kafka Connect's ``HeaderFrom``, ``InsertHeader`` and ``DropHeaders``, and Debezium's ``HeaderToValue``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rowtide.envelope.schema import BOOLEAN, INTEGER_BITS, STRING, Field, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    Header,
    SchemaCache,
    Side,
    TransformError,
    copy_values,
    field_of,
    require_struct,
    value_of,
    with_fields,
)


@dataclass(frozen=True, slots=True)
class HeaderFrom:
    """``org.apache.kafka.connect.transforms.HeaderFrom``: copies or moves fields of the key or value to headers."""

    side: Side
    fields: tuple[str, ...]
    headers: tuple[str, ...]
    moves: bool
    replace_null_with_default: bool
    _schemas: SchemaCache[Schema] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "HeaderFrom":
        """Read ``fields``, ``headers`` and ``operation``."""
        fields, headers = options.items("fields"), options.items("headers")
        for name, given in (("fields", fields), ("headers", headers)):
            if not given:
                options.problem(name, "is required")
        if len(fields) != len(headers):
            options.problem("headers", f"must have as many names as fields: {len(fields)}, not {len(headers)}")
        return cls(side, fields, headers, _moves(options), options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the headers. A record without this side remains unchanged."""
        if record.schema_of(self.side) is None or record.content(self.side) is None:
            return record
        schema, struct = require_struct(record.schema_of(self.side), record.content(self.side))
        found = tuple(
            Header(
                header,
                field_of(schema, name).schema,
                value_of(schema, struct, name, replace_null_with_default=self.replace_null_with_default),
            )
            for name, header in zip(self.fields, self.headers, strict=True)
        )
        if self.moves:
            kept = self._schemas.get(self._without, schema)
            record = record.with_content(self.side, kept, {one.name: struct.get(one.name) for one in kept.fields})
        return record.with_headers(found)

    def _without(self, schema: Schema) -> Schema:
        return with_fields(schema, tuple(one for one in schema.fields if one.name not in self.fields))


@dataclass(frozen=True, slots=True)
class HeaderToValue:
    """``io.debezium.transforms.HeaderToValue``: copies or moves headers to fields of the value.

    A field may be within structs (``after.source_file``); one that does not exist yet becomes an optional struct. In
    Debezium, a struct that gets a field is no longer optional, so a deletion, whose ``after`` is null, fails. With
    ``exact``, the struct stays null, and its header stays a header.

    Attributes:
        fields: the path of the field for each header.
        moves: whether the headers are removed.
        exact: whether null stays null where a field has a default, and structs stay optional.
    """

    fields: Mapping[str, tuple[str, ...]]
    moves: bool
    exact: bool
    _schemas: SchemaCache[Schema] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Options) -> "HeaderToValue":
        """Read ``headers``, ``fields`` and ``operation``."""
        headers, fields = options.items("headers"), options.items("fields")
        for name, given in (("headers", headers), ("fields", fields)):
            if not given:
                options.problem(name, "is required")
            elif any(not one or re.search(r"\s", one) for one in given):
                options.problem(name, "must be names without spaces, separated by commas")
        if len(fields) != len(headers):
            options.problem("fields", f"must have as many names as headers: {len(headers)}, not {len(fields)}")
        # Of a repeated header, Debezium uses the first field.
        paths = {name: tuple(path.split(".")) for name, path in reversed(list(zip(headers, fields, strict=False)))}
        return cls(paths, _moves(options), options.exact)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the fields. A tombstone, and a record without the headers, remain unchanged."""
        found = tuple(one for one in record.headers if one.name in self.fields)
        if record.value is None or not found:
            return record
        schema, value = require_struct(record.value_schema, record.value)
        schemas = [schema]
        for one in found:
            if one.schema is None:
                raise TransformError(f"header {one.name!r} is null, so it has no type for a field")
            schemas.append(one.schema)
        names = " ".join(one.name for one in found)
        paths = [self.fields[one.name] for one in found]
        made = self._schemas.get(
            lambda of, *types: self._with(of, [*zip(paths, types, strict=True)]), *schemas, topic=names
        )
        without = {one.name for one, path in zip(found, paths, strict=True) if self._is_missing(schema, value, path)}
        added = [(self.fields[one.name], one.value) for one in found if one.name not in without]
        record = record.with_content("value", made, self._values(schema, value, added))
        if not self.moves:
            return record
        kept = tuple(one for one in record.headers if one.name in without or one.name not in self.fields)
        return replace(record, headers=kept)

    def _is_missing(self, schema: Schema, struct: Mapping[str, Any], path: tuple[str, ...]) -> bool:
        """Return whether the field has no place because a struct on the path is null."""
        for name in path[:-1]:
            known = schema.field(name)
            if known is None:
                return False
            inner = struct.get(name)
            if inner is None and self.exact and known.schema.optional:
                return True
            if inner is None:
                raise TransformError(
                    f"field {name!r} is null, so a header cannot become a field in it: limit the transform by a "
                    "predicate, or set rowtide.values=exact, which leaves it null"
                )
            schema, struct = known.schema, inner
        return False

    def _with(self, schema: Schema, added: Sequence[tuple[tuple[str, ...], Schema]]) -> Schema:
        """Return a struct schema with fields by their paths."""
        fields = {one.name: one.schema for one in schema.fields}
        nested: dict[str, list[tuple[tuple[str, ...], Schema]]] = {}
        for (name, *rest), type_ in added:
            if rest:
                nested.setdefault(name, []).append((tuple(rest), type_))
                continue
            known = fields.setdefault(name, type_)
            if (known.type, known.name) != (type_.type, type_.name):
                raise TransformError(f"field {name!r} has type {known.type}, but its header has {type_.type}")
        for name, inner in nested.items():
            outer = fields.get(name, _NEW)
            if outer.type != "struct":
                raise TransformError(f"field {name!r} has type {outer.type}: a header cannot become a field in it")
            optional = outer is _NEW or (self.exact and outer.optional)
            fields[name] = self._with(outer, inner).with_optional(optional)
        return with_fields(schema, tuple(Field(name, one) for name, one in fields.items()))

    def _values(
        self, schema: Schema | None, struct: Mapping[str, Any], added: Sequence[tuple[tuple[str, ...], Any]]
    ) -> dict[str, Any]:
        values = {} if schema is None else copy_values(schema, struct, replace_null_with_default=not self.exact)
        nested: dict[str, list[tuple[tuple[str, ...], Any]]] = {}
        for (name, *rest), value in added:
            if rest:
                nested.setdefault(name, []).append((tuple(rest), value))
            else:
                values[name] = value
        for name, inner in nested.items():
            known = None if schema is None else schema.field(name)
            values[name] = self._values(None if known is None else known.schema, values.get(name, {}), inner)
        return values


_NEW = Schema("struct")


def _moves(options: Options) -> bool:
    """Read ``operation``: ``copy`` or ``move``."""
    return bool(options.required_text("operation")) and options.choice("operation", ("copy", "move"), "copy") == "move"


@dataclass(frozen=True, slots=True)
class InsertHeader:
    """``org.apache.kafka.connect.transforms.InsertHeader``: adds a header with the same value to every record."""

    header: Header

    @classmethod
    def from_options(cls, options: Options) -> "InsertHeader":
        """Read ``header`` and ``value.literal``, whose type is that of its text: ``1`` is a number."""
        name = options.required_text("header")
        return cls(Header(name, *_literal(options.required_text("value.literal"))))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the header."""
        return record.with_headers((self.header,))


@dataclass(frozen=True, slots=True)
class DropHeaders:
    """``org.apache.kafka.connect.transforms.DropHeaders``: removes headers by their names."""

    names: frozenset[str]

    @classmethod
    def from_options(cls, options: Options) -> "DropHeaders":
        """Read ``headers``."""
        names = options.items("headers")
        if not names:
            options.problem("headers", "is required")
        return cls(frozenset(names))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record without the headers."""
        return replace(record, headers=tuple(one for one in record.headers if one.name not in self.names))


def _literal(text: str) -> tuple[Schema | None, Any]:
    """Return the schema and value of a literal, as Connect's ``Values.parseString``.

    Integers have the smallest type.
    """
    if text == "null":
        return None, None
    if text in ("true", "false"):
        return BOOLEAN, text == "true"
    if re.fullmatch(r"-?[0-9]{1,19}", text):
        number = int(text)
        for kind, bits in INTEGER_BITS.items():
            if -(1 << bits - 1) <= number < 1 << bits - 1:
                return Schema(kind), number
    if len(text) > 1 and text[0] == text[-1] == '"':
        return STRING, text[1:-1]
    return STRING, text
