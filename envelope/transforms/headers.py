"""Kafka Connect's transforms of headers: ``HeaderFrom``, ``InsertHeader`` and ``DropHeaders``."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from rowtide.envelope.schema import BOOLEAN, INTEGER_BITS, STRING, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    Header,
    SchemaCache,
    Side,
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
    operation: Literal["copy", "move"]
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
        if not options.required_text("operation"):
            return cls(side, fields, headers, "copy", options.replaces_nulls())
        operation = options.choice("operation", ("copy", "move"), "copy")
        return cls(side, fields, headers, cast('Literal["copy", "move"]', operation), options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the headers. A record without this side remains as it is."""
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
        if self.operation == "move":
            kept = self._schemas.get(self._without, schema)
            record = record.with_content(self.side, kept, {one.name: struct.get(one.name) for one in kept.fields})
        return record.with_headers(found)

    def _without(self, schema: Schema) -> Schema:
        return with_fields(schema, tuple(one for one in schema.fields if one.name not in self.fields))


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
    """The schema and value of a literal, as Connect's ``Values.parseString``: integers have the smallest type."""
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
