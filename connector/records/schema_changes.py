"""Schema change messages (``include.schema.changes``), from statements, snapshots and signals alike."""

from functools import cache
from typing import Any

from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.converters.json import json_message
from rowtide.envelope.schema import Schema
from rowtide.envelope.schema_change import change_value, key_schema, value_schema
from rowtide.schema_history.catalog.changes import SchemaChange


@cache
def _schemas(connector: str) -> tuple[Schema, Schema]:
    return key_schema(connector), value_schema(connector)


def schema_change_message(
    settings: PipelineSettings,
    change: SchemaChange,
    source: dict[str, Any],
    offset: SourceOffset,
    *,
    now_ms: int,
    ts_ms: int,
) -> Batch:
    """Return the message of a change of structure.

    Args:
        settings: of the records.
        change: the change.
        source: the ``source`` block.
        offset: the resume position after the message.
        now_ms: when it is made, in milliseconds since the epoch.
        ts_ms: when the source made the change, in milliseconds since the epoch.
    """
    schemas = _schemas(settings.connector)
    value = change_value(change, source, now_ms, comments=settings.rules.values.include_schema_comments)
    key = json_message(schemas[0], {"databaseName": change.database}, settings.keys)
    data = json_message(schemas[1], value, settings.values)
    message = key, data, settings.headers
    return Batch(settings.naming.schema_change, 0, [message], offset, len(key) + len(data), ts_ms, schemas)
