"""The envelope of Debezium's first releases (``source.struct.version=v1``).

The value has version 1 and the fields ``op``, ``before``, ``after``, ``source`` and ``ts_ms``. ``source`` has fewer
fields, the time in seconds, and ``snapshot`` is true or null. A transform before all others converts the current
envelope.
"""

from collections.abc import Mapping
from typing import Any

from rowtide.envelope.schema import (
    BOOLEAN,
    INT32,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    Field,
    Schema,
    struct,
)
from rowtide.envelope.transforms.record import ConnectRecord, SchemaCache, field_of, with_fields


def source_schema(name: str) -> Schema:
    """Return the schema of the old ``source``, which has no version."""
    return struct(
        name,
        {
            "name": STRING,
            "server_id": INT64,
            "ts_sec": INT64,
            "gtid": OPTIONAL_STRING,
            "file": STRING,
            "pos": INT64,
            "row": INT32,
            "snapshot": BOOLEAN.with_optional(True),
        },
    )


class LegacyEnvelope:
    """Converts change events, and the ``source`` of schema changes, to the old format. Other records stay the same."""

    def __init__(self) -> None:
        self._schemas: SchemaCache[Schema] = SchemaCache()

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record in the old format."""
        schema, value = record.value_schema, record.value
        if schema is None or value is None or schema.field("source") is None:
            return record
        source = _source(value["source"])
        if record.is_envelope:
            change = {name: value.get(name) for name in ("op", "before", "after", "ts_ms")}
            return record.with_content("value", self._schemas.get(_envelope, schema), {**change, "source": source})
        return record.with_content("value", self._schemas.get(_with_old_source, schema), {**value, "source": source})


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    snapshot = source["snapshot"] not in (None, "false")
    return {
        "name": source["name"],
        "server_id": source["server_id"],
        "ts_sec": 0 if snapshot else source["ts_ms"] // 1000,
        "gtid": source["gtid"],
        "file": source["file"],
        "pos": source["pos"],
        "row": source["row"],
        "snapshot": True if snapshot else None,
    }


def _old_source(schema: Schema) -> Schema:
    return source_schema(field_of(schema, "source").schema.name or "")


def _envelope(schema: Schema) -> Schema:
    row = field_of(schema, "before").schema
    fields = {"op": STRING, "before": row, "after": row, "source": _old_source(schema), "ts_ms": OPTIONAL_INT64}
    return struct(schema.name, fields, version=1)


def _with_old_source(schema: Schema) -> Schema:
    source = _old_source(schema)
    return with_fields(
        schema, tuple(Field(one.name, source if one.name == "source" else one.schema) for one in schema.fields)
    )
