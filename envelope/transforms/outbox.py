"""``io.debezium.transforms.outbox.EventRouter``: turns the rows of an outbox table into events."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from functools import partial
from typing import Any

from rowtide.envelope.json.text import schema_text
from rowtide.envelope.name_adjustment import ADJUSTMENT_MODES, field_name_adjuster
from rowtide.envelope.schema import Field, Schema
from rowtide.envelope.transforms.json_payload import JsonExpander, NotExpandableError
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    Header,
    TransformError,
    field_of,
    require_struct,
    typed_value_of,
    value_of,
)
from rowtide.envelope.transforms.routing import routed_name
from rowtide.topics.java_regex import Pattern, Replacement

logger = logging.getLogger(__name__)

_PLACEMENTS = ("header", "envelope", "partition")
_MILLISECONDS = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}


@dataclass(frozen=True, slots=True)
class AdditionalField:
    """A column that is added to the event.

    Attributes:
        column: its name.
        placement: ``header``, ``envelope`` or ``partition``.
        alias: its name in the event.
    """

    column: str
    placement: str
    alias: str


@dataclass(frozen=True, slots=True)
class EventRouter:
    """Turns each row inserted into an outbox table into an event. Later changes of the row are ignored.

    Attributes:
        event_id, event_key, payload, timestamp, schema_version: names of columns (``table.field.event.*``).
        additional: ``table.fields.additional.placement``.
        ignore_missing: whether ``table.field.additional.missing`` is ``ignore``.
        route_by: column that determines the topic.
        pattern, replacement: derive the topic from the value of that column.
        tombstone_on_empty: whether an empty payload becomes a tombstone.
        on_update: ``warn``, ``error`` or ``fatal``.
        expander: expands JSON payloads; ``None`` to keep them as text.
        replace_null_with_default: whether a column's default replaces NULL, as in Debezium.
    """

    event_id: str
    event_key: str
    payload: str
    timestamp: str | None
    schema_version: str | None
    additional: tuple[AdditionalField, ...]
    ignore_missing: bool
    route_by: str
    pattern: Pattern
    replacement: Replacement
    tombstone_on_empty: bool
    on_update: str
    expander: JsonExpander | None
    replace_null_with_default: bool = True
    _schemas: dict[Any, Schema] = attribute(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Options) -> "EventRouter":
        """Read the options of Debezium, except those for tracing."""
        pattern = options.pattern("route.topic.regex", "(?<routedByValue>.*)")
        nulls = options.choice("table.json.payload.null.behavior", ("ignore", "optional_bytes"), "ignore")
        adjust = field_name_adjuster(options.choice("field.name.adjustment.mode", ADJUSTMENT_MODES, "none"))
        expand = options.boolean("table.expand.json.payload", default=False)
        options.optional_text("table.field.event.type")  # Debezium accepts it without effect
        return cls(
            options.text("table.field.event.id", "id"),
            options.text("table.field.event.key", "aggregateid"),
            options.text("table.field.event.payload", "payload"),
            options.optional_text("table.field.event.timestamp"),
            options.optional_text("table.field.event.schema.version"),
            _additional(options, "table.fields.additional.placement"),
            options.choice("table.field.additional.missing", ("error", "ignore"), "error") == "ignore",
            options.text("route.by.field", "aggregatetype"),
            pattern,
            options.replacement("route.topic.replacement", pattern, "outbox.event.${routedByValue}"),
            options.boolean("route.tombstone.on.empty.payload", default=False),
            options.choice("table.op.invalid.behavior", ("warn", "error", "fatal"), "warn"),
            JsonExpander(nulls == "optional_bytes", adjust, options.exact) if expand else None,
            not options.exact,
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the event of an inserted row, ``None`` for updates, deletes and tombstones."""
        if record.value is None:
            return None
        if not record.is_envelope:
            return record
        envelope, change = require_struct(record.value_schema, record.value)
        operation = value_of(envelope, change, "op")
        if operation == "u":
            self._refuse_update(record)
        if operation in ("u", "d", "t"):
            return None
        schema, row = require_struct(field_of(envelope, "after").schema, change.get("after"))
        return self._event(record, schema, row, value_of(envelope, change, "ts_ms"))

    def _refuse_update(self, record: ConnectRecord) -> None:
        message = "a row of the outbox table of topic %s was updated; only inserted rows become events"
        if self.on_update == "fatal":
            raise TransformError(message % record.topic + " (table.op.invalid.behavior is fatal)")
        logger.log(logging.ERROR if self.on_update == "error" else logging.WARNING, message, record.topic)

    def _event(self, record: ConnectRecord, schema: Schema, row: Mapping[str, Any], processed: Any) -> ConnectRecord:
        value = partial(value_of, schema, row, replace_null_with_default=self.replace_null_with_default)
        payload_schema, payload = field_of(schema, self.payload).schema, value(self.payload)
        headers = [Header("id", field_of(schema, self.event_id).schema, value(self.event_id))]
        timestamp = self._timestamp(schema, row, processed)
        if self.expander is not None and isinstance(payload, str):
            payload_schema, payload = self._expanded(record, payload_schema, payload)
        aggregate = typed_value_of(schema, row, self.route_by, "string")
        if aggregate is None:
            raise TransformError(f"column {self.route_by} (route.by.field) is null: the event has no topic")
        partition = None
        extra: dict[str, Any] = {}
        present = [one for one in self.additional if not self.ignore_missing or schema.field(one.column) is not None]
        for one in present:
            if one.placement == "header":
                header_schema = field_of(schema, one.column).schema
                headers.append(Header(one.alias, header_schema, value(one.column)))
            elif one.placement == "envelope":
                extra[one.alias] = value(one.column)
            else:
                partition = typed_value_of(schema, row, one.column, "int32")
        topic = routed_name(aggregate, self.pattern, self.replacement)
        event = ConnectRecord(
            aggregate if topic is None else topic,
            partition,
            field_of(schema, self.event_key).schema,
            value(self.event_key),
            payload_schema,
            payload,
            record.headers + tuple(headers),
            timestamp,
        )
        if self.tombstone_on_empty and _is_empty(payload):
            return replace(event, value_schema=None, value=None)
        if not any(one.placement == "envelope" for one in self.additional):
            return event
        value_schema = self._value_schema(schema, row, payload_schema, payload, present, aggregate)
        return replace(event, value_schema=value_schema, value={"payload": payload, **extra})

    def _timestamp(self, schema: Schema, row: Mapping[str, Any], processed: Any) -> int | None:
        if self.timestamp is None:
            return processed if processed is None else int(processed)
        value = typed_value_of(schema, row, self.timestamp, "int64")
        name = field_of(schema, self.timestamp).schema.name
        if value is None:
            return None if processed is None else int(processed)
        if name not in _MILLISECONDS:
            raise TransformError(
                f"column {self.timestamp} (table.field.event.timestamp) has type {name or 'int64'}, not a time:"
                " use a DATETIME column"
            )
        quotient = abs(value) // _MILLISECONDS[name]
        return int(quotient if value >= 0 else -quotient)  # Java rounds towards zero

    def _expanded(self, record: ConnectRecord, schema: Schema, payload: str) -> tuple[Schema, Any]:
        assert self.expander is not None
        try:
            return self.expander.expand(self.payload, payload)
        except NotExpandableError as error:
            logger.warning("the payload of an event of topic %s is kept as text: %s", record.topic, error)
            return schema, payload

    def _value_schema(
        self,
        schema: Schema,
        row: Mapping[str, Any],
        payload_schema: Schema,
        payload: Any,
        present: list[AdditionalField],
        aggregate: str,
    ) -> Schema:
        """Return the schema of payload and additional columns.

        Debezium caches one schema for each payload schema or, with ``table.field.event.schema.version``, for each
        version. It keeps the name that it got from the first event, whatever the topic of the others.
        """
        version = None if self.schema_version is None else typed_value_of(schema, row, self.schema_version, "int32")
        fields = (
            Field("payload", payload_schema),
            *(Field(one.alias, field_of(schema, one.column).schema) for one in present if one.placement == "envelope"),
        )
        identity = schema_text(payload_schema) if self.schema_version is None else version
        known = self._schemas.get(identity)
        if known is not None and (
            known.fields == fields or (_is_null_for(known, payload) and known.fields[1:] == fields[1:])
        ):
            return known
        owner, point, last = (schema.name or "").rpartition(".")
        name = f"{owner}{point}{aggregate}.{last}" if schema.name else aggregate
        made = Schema("struct", name=name, version=version, fields=fields)
        if len(self._schemas) >= _LIMIT:
            self._schemas.clear()
        self._schemas[identity] = made
        return made


_LIMIT = 10_000


def _is_null_for(schema: Schema, payload: Any) -> bool:
    """Return whether a payload is null and the schema allows that."""
    return payload is None and schema.fields[0].schema.optional


def _is_empty(payload: Any) -> bool:
    return payload is None or (isinstance(payload, str) and not payload.strip(_JAVA_BLANKS))


_JAVA_BLANKS = "".join(map(chr, range(33)))


def _additional(options: Options, name: str) -> tuple[AdditionalField, ...]:
    found = []
    for item in options.items(name):
        parts = [part.strip() for part in item.split(":")]
        if len(parts) not in (2, 3) or parts[1].lower() not in _PLACEMENTS:
            options.problem(
                name,
                f"{item!r} must be column:placement or column:placement:alias, "
                f"where placement is one of {', '.join(_PLACEMENTS)}",
            )
            continue
        found.append(AdditionalField(parts[0], parts[1].lower(), parts[-1] if len(parts) == 3 else parts[0]))
    return tuple(found)
