"""``io.debezium.transforms.ExtractNewRecordState``: replaces the envelope by the row."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from functools import partial
from typing import Any

from rowtide.envelope.schema import STRING, Field, Schema
from rowtide.envelope.transforms.fields import InsertField, Insertion, ReplaceField
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    Header,
    SchemaCache,
    TransformError,
    copy_values,
    field_of,
    require_struct,
    typed_value_of,
    with_fields,
)

_MODES = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
_REWRITES = ("rewrite", "rewrite-with-tombstone")
_TRANSACTION = ("id", "total_order", "data_collection_order")
_ENVELOPE = ("op", "ts_ms", "ts_us", "ts_ns")
_STRUCTS = ("before", "after", "source", "transaction")


@dataclass(frozen=True, slots=True)
class FieldReference:
    """A field of the envelope to add to the row or to the headers.

    Attributes:
        struct: the struct that contains it, ``None`` for the envelope itself.
        field: its name in the struct.
        name: its name in the row or the headers.
    """

    struct: str | None
    field: str
    name: str

    @classmethod
    def parse(cls, text: str, prefix: str) -> "FieldReference":
        """Parse ``field`` or ``struct.field``, optionally followed by ``:name``.

        Raises:
            ValueError: the text has another format.
        """
        path, colon, name = text.partition(":")
        parts = path.split(".")
        if not all(parts) or len(parts) > 2 or ":" in name or (colon and not name):
            raise ValueError(f"{text!r} must be field, struct.field or struct.field:name")
        if len(parts) == 2:
            struct, field = parts
            if struct not in _STRUCTS:
                raise ValueError(
                    f"{text!r}: change events have no struct {struct!r}; their structs are {', '.join(_STRUCTS)}"
                )
            return cls(struct, field, prefix + (name or f"{struct}_{field}"))
        field = path
        owner = "transaction" if field in _TRANSACTION else None if field in _ENVELOPE else "source"
        return cls(owner, field, prefix + (name or field))

    def resolved(self, envelope: Schema) -> "ResolvedField | None":
        """Find the field in an envelope's schema, ``None`` if it does not exist.

        A field that is missing in its struct is also looked up in the envelope, where another transform may add it.
        """
        owner = envelope if self.struct is None else field_of(envelope, self.struct).schema
        inside = owner.field(self.field)
        found = inside or envelope.field(self.field)
        if found is None:
            return None
        schema = replace(found.schema, optional=True, default=None)
        return ResolvedField(self.name, schema, self.struct, self.field, inside is not None)


@dataclass(frozen=True, slots=True)
class ResolvedField:
    """A field that exists in the envelope's schema.

    Attributes:
        name: its name in the row or the headers.
        schema: its schema, optional and without a default.
        struct: the struct that the reference names, ``None`` for the envelope.
        field: its name in the struct.
        inside: whether it is in the struct; else it is in the envelope.
    """

    name: str
    schema: Schema
    struct: str | None
    field: str
    inside: bool

    def value(self, change: Mapping[str, Any]) -> Any:
        """Return the field's value, ``None`` if its struct is null, such as ``transaction`` in a snapshot."""
        if self.struct is None:
            return change.get(self.field)
        owner = change.get(self.struct)
        if owner is None:
            return None
        return owner.get(self.field) if self.inside else change.get(self.field)


@dataclass(frozen=True, slots=True)
class _EnvelopeLayout:
    """The parts of an envelope schema that the transform uses."""

    before: Schema
    after: Schema
    fields: tuple[ResolvedField, ...]
    headers: tuple[ResolvedField, ...]
    rows: SchemaCache[Schema] = attribute(default_factory=SchemaCache)

    def with_added(self, row: Schema) -> Schema:
        """Return a row's schema with the added fields."""
        return with_fields(row, row.fields + tuple(Field(one.name, one.schema) for one in self.fields))


@dataclass(frozen=True, slots=True)
class ExtractNewRecordState:
    """Replaces a change event by its row.

    Attributes:
        mode: ``delete.tombstone.handling.mode``.
        add_fields, add_headers: fields of the envelope to keep.
        route_by_field: field of the row that contains the new topic.
        replace_null_with_default: whether ``rewrite`` replaces nulls by defaults.
        drop_header: name of the header that lists the fields to drop.
        drop_from_key: whether they are dropped from the key too.
        drop_optional_only: whether required fields are kept.
    """

    mode: str
    add_fields: tuple[FieldReference, ...]
    add_headers: tuple[FieldReference, ...]
    route_by_field: str | None
    replace_null_with_default: bool
    drop_header: str | None
    drop_from_key: bool
    drop_optional_only: bool
    _layouts: SchemaCache[_EnvelopeLayout] = attribute(default_factory=SchemaCache, repr=False, compare=False)
    _deleted_inserters: tuple[InsertField, InsertField] = attribute(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare the transforms that insert ``__deleted``."""
        inserters = tuple(_deleted_inserter(deleted, self.replace_null_with_default) for deleted in ("false", "true"))
        object.__setattr__(self, "_deleted_inserters", inserters)

    @classmethod
    def from_options(cls, options: Options) -> "ExtractNewRecordState":
        """Read the options of Debezium."""
        _former(options)
        return cls(
            options.choice("delete.tombstone.handling.mode", _MODES, "tombstone"),
            _references(options, "add.fields"),
            _references(options, "add.headers"),
            options.text("route.by.field", "") or None,
            options.replaces_nulls(),
            options.text("drop.fields.header.name", "").strip() or None,
            options.boolean("drop.fields.from.key", default=False),
            options.boolean("drop.fields.keep.schema.compatible", default=True),
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record with its row, ``None`` to drop it."""
        if record.value is None:
            if self.mode != "rewrite-with-tombstone":
                return None
            deleted = (Header(one.name, STRING, "d") for one in self.add_headers if one.field == "op")
            return record.with_headers(tuple(deleted))
        if not record.is_envelope:
            return record
        envelope, change = require_struct(record.value_schema, record.value)
        layout = self._layouts.get(self._layout, envelope)
        if layout.headers:
            record = record.with_headers(
                tuple(Header(one.name, one.schema, one.value(change)) for one in layout.headers)
            )
        if change.get("after") is not None:
            return self._changed(record, layout, change)
        if change.get("before") is not None:
            return self._deleted(record, layout, change)
        return None  # truncate

    def _layout(self, envelope: Schema) -> _EnvelopeLayout:
        return _EnvelopeLayout(
            field_of(envelope, "before").schema,
            field_of(envelope, "after").schema,
            tuple(found for one in self.add_fields if (found := one.resolved(envelope)) is not None),
            tuple(found for one in self.add_headers if (found := one.resolved(envelope)) is not None),
        )

    def _deleted(
        self, record: ConnectRecord, layout: _EnvelopeLayout, change: Mapping[str, Any]
    ) -> ConnectRecord | None:
        if self.mode == "drop":
            return None
        if self.mode in _REWRITES:
            result = self._deleted_inserters[1].apply(record.with_content("value", layout.before, change["before"]))
        elif self.mode == "tombstone":
            # The schema stays, for consumers that need it, such as a JDBC sink.
            result = record.with_content("value", layout.after, None)
        else:
            result = record.with_content("value", None, None)
        result = self._routed(result, layout.before, change["before"])
        result = self._without_dropped(result)
        return result if result.value is None else self._with_added(result, layout, change)

    def _changed(self, record: ConnectRecord, layout: _EnvelopeLayout, change: Mapping[str, Any]) -> ConnectRecord:
        result = record.with_content("value", layout.after, change["after"])
        if self.mode in _REWRITES:
            result = self._deleted_inserters[0].apply(result)
        schema, row = require_struct(result.value_schema, result.value)
        result = self._routed(result, schema, row)
        return self._without_dropped(self._with_added(result, layout, change))

    def _routed(self, record: ConnectRecord, schema: Schema, row: Mapping[str, Any]) -> ConnectRecord:
        if self.route_by_field is None:
            return record
        topic = typed_value_of(schema, row, self.route_by_field, "string")
        return record if topic is None or not topic.strip() else replace(record, topic=topic)

    @staticmethod
    def _with_added(record: ConnectRecord, layout: _EnvelopeLayout, change: Mapping[str, Any]) -> ConnectRecord:
        schema, row = require_struct(record.value_schema, record.value)
        values = copy_values(schema, row, replace_null_with_default=False)
        for one in layout.fields:
            values[one.name] = one.value(change)
        return record.with_content("value", layout.rows.get(layout.with_added, schema), values)

    def _without_dropped(self, record: ConnectRecord) -> ConnectRecord:
        if self.drop_header is None:
            return record
        listed = next((header.value for header in record.headers if header.name == self.drop_header), None)
        if not listed:
            return record
        if not isinstance(listed, list):
            raise TransformError(f"the header {self.drop_header} must be a list of field names")
        if self.drop_from_key and record.key is not None and record.key_schema is not None:
            record = self._side_without(record, "key", record.key_schema, listed)
        if record.value_schema is not None:
            record = self._side_without(record, "value", record.value_schema, listed)
        return record

    def _side_without(self, record: ConnectRecord, side: Any, schema: Schema, listed: list[str]) -> ConnectRecord:
        dropped = frozenset(
            listed
            if not self.drop_optional_only
            else [one.name for one in schema.fields if one.schema.optional and one.name in listed]
        )
        return ReplaceField(side, dropped).apply(record) if dropped else record


def _former(options: Options) -> None:
    """Add a problem for each option of former versions of Debezium, with the one that replaces it."""
    drop = (options.optional_text("drop.tombstones") or "true").strip().lower()
    handling = (options.optional_text("delete.handling.mode") or "drop").strip().lower()
    mode = f"use delete.tombstone.handling.mode={_MODE_OF.get((handling, drop), 'delete-to-tombstone')}"
    options.former("drop.tombstones", mode)
    options.former("delete.handling.mode", mode)
    options.former("operation.header", "use add.headers=op")
    source = options.optional_text("add.source.fields") or ""
    fields = ",".join(f"source.{item.strip()}" for item in source.split(","))
    options.former("add.source.fields", f"use add.fields={fields}")


_MODE_OF = {
    ("drop", "true"): "drop",
    ("drop", "false"): "tombstone",
    ("rewrite", "true"): "rewrite",
    ("rewrite", "false"): "rewrite-with-tombstone",
}
"""The mode that replaces the former ``delete.handling.mode`` and ``drop.tombstones``."""


def _references(options: Options, name: str) -> tuple[FieldReference, ...]:
    prefix = options.text(f"{name}.prefix", "__")
    references = []
    for item in options.items(name):
        try:
            references.append(FieldReference.parse(item, prefix))
        except ValueError as error:
            options.problem(name, str(error))
    return tuple(references)


def _deleted_inserter(deleted: str, replace_null_with_default: bool) -> InsertField:
    field = Field("__deleted", STRING.with_optional(True))
    return InsertField("value", (Insertion(field, partial(_text, deleted)),), replace_null_with_default)


def _text(text: str, _record: ConnectRecord) -> str:
    return text
