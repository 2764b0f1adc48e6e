"""``io.debezium.transforms.ByLogicalTableRouter``: routes the shards of a table to one topic."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from functools import partial

from rowtide.envelope.name_adjustment import ADJUSTMENT_MODES, schema_name_adjuster
from rowtide.envelope.schema import STRING, Field, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    SchemaCache,
    copy_values,
    field_of,
    require_struct,
    with_fields,
)
from rowtide.envelope.transforms.routing import routed_name
from rowtide.topics.java_regex import Pattern, Replacement


@dataclass(frozen=True, slots=True)
class ByLogicalTableRouter:
    """Routes records to another topic, renames their schemas, and adds the physical table to their keys.

    Attributes:
        pattern, replacement: ``topic.regex`` and ``topic.replacement``.
        key_field: ``key.field.name``, ``None`` to keep keys.
        key_pattern, key_replacement: derive the value of the key field from the old topic; ``None`` for the topic.
        adjust: function of ``schema.name.adjustment.mode``.
    """

    pattern: Pattern
    replacement: Replacement
    key_field: str | None
    key_pattern: Pattern | None
    key_replacement: Replacement | None
    adjust: Callable[[str], str]
    _schemas: SchemaCache[Schema] = attribute(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Options) -> "ByLogicalTableRouter":
        """Read the options of Debezium; the size of its cache has no effect."""
        pattern = options.pattern("topic.regex")
        key_pattern = key_replacement = None
        if options.text("key.field.regex", "").strip():
            key_pattern = options.pattern("key.field.regex")
            key_replacement = options.replacement("key.field.replacement", key_pattern)
        else:
            options.optional_text("key.field.replacement")
        unique = options.boolean("key.enforce.uniqueness", default=True)
        name = options.text("key.field.name", "__dbz__physicalTableIdentifier")
        options.integer("logical.table.cache.size", 16)
        return cls(
            pattern,
            options.replacement("topic.replacement", pattern),
            name if unique else None,
            key_pattern,
            key_replacement,
            schema_name_adjuster(options.choice("schema.name.adjustment.mode", ADJUSTMENT_MODES, "none")),
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record in the topic of its logical table; a record whose topic does not match is not changed."""
        topic = routed_name(record.topic, self.pattern, self.replacement)
        if not topic:
            return record
        result = replace(record, topic=topic, key_schema=None, key=None)
        if record.key is not None:
            schema, key = require_struct(record.key_schema, record.key)
            values = copy_values(schema, key, replace_null_with_default=False)
            if self.key_field is not None:
                values[self.key_field] = self._physical_table(record.topic)
            renamed = self._schemas.get(partial(self._key_schema, topic), schema, topic=topic)
            result = result.with_content("key", renamed, values)
        if record.value is None or not record.is_envelope:
            return result
        envelope, change = require_struct(record.value_schema, record.value)
        values = copy_values(envelope, change, replace_null_with_default=True)
        renamed = self._schemas.get(partial(self._envelope_schema, topic), envelope, topic=topic)
        return result.with_content("value", renamed, values)

    def _physical_table(self, topic: str) -> str:
        if self.key_pattern is None or self.key_replacement is None:
            return topic
        name = routed_name(topic, self.key_pattern, self.key_replacement)
        return topic if name is None else name

    def _key_schema(self, topic: str, schema: Schema) -> Schema:
        added = () if self.key_field is None else (Field(self.key_field, STRING),)
        renamed = with_fields(schema, schema.fields + added)
        return replace(renamed, optional=schema.optional, name=self.adjust(f"{topic}.Key"))

    def _envelope_schema(self, topic: str, envelope: Schema) -> Schema:
        row = replace(field_of(envelope, "before").schema, name=self.adjust(f"{topic}.Value"), default=None)
        fields = tuple(
            Field(one.name, row if one.name in ("before", "after") else one.schema) for one in envelope.fields
        )
        return replace(envelope, name=self.adjust(f"{topic}.Envelope"), fields=fields, default=None)
