"""Connect schemas for the topics of a connector whose messages have none, taken from its schema history."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.config.model import JsonConverterConfig, ProtobufConverterConfig
from rowtide.connector.engine.converters import json_settings
from rowtide.connector.engine.pipeline_settings import record_rules
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.envelope.json.text import DEFAULT_FORMAT, schema_text
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.recovery.table_history import merge_recorded
from rowtide.schema_history.store.history_record import RecordedTable, parse_record
from rowtide.spark_consumers.errors import SchemaMissingError, SettingsError

Json = dict[str, Any]
Schemas = dict[str, Json]
"""The Connect schemas of ``key`` and ``value``."""

_INTEGERS = ("int8", "int16", "int32", "int64")
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_LABELS = ("io.debezium.data.Enum", "io.debezium.data.EnumSet")


class HistorySchemas(Mapping[str, Mapping[str, Any]]):
    """The schemas of every topic of captured tables, from a connector's configuration.

    Configuration and history are read at the first access, so that a job whose messages have schemas needs neither.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """Prepare to read configuration files."""
        self._paths = paths
        self._lock = threading.Lock()
        self._history: _History | None = None

    def __getitem__(self, topic: str) -> Mapping[str, Any]:
        """Return the schemas of ``key`` and ``value``.

        Raises:
            SettingsError: the configuration or the history cannot be used.
            SchemaMissingError: values of a column were written with types that cannot be distinguished.
        """
        history = self._read()
        merged: Schemas = {}
        for recorded in history.tables[topic]:
            for side, schema in _schemas_of(recorded, topic, history.config).items():
                merged[side] = _merge(merged.get(side), schema, topic)
        return merged

    def __iter__(self) -> Iterator[str]:
        return iter(self._read().tables)

    def __len__(self) -> int:
        return len(self._read().tables)

    def _read(self) -> "_History":
        with self._lock:
            if self._history is None:
                self._history = _read_history(self._paths)
            return self._history


@dataclass(frozen=True, slots=True)
class _History:
    """A connector's configuration, and all recorded versions of the tables of each topic, oldest first."""

    config: Configuration
    tables: Mapping[str, list[RecordedTable]]


def _read_history(paths: Sequence[str]) -> _History:
    named = ", ".join(paths)
    way_out = "Give the schemas of its topics with --schemas"
    try:
        config = load(paths, not_required={"database.password"})
    except ConfigurationError as error:
        raise SettingsError(f"the schema history of {named} cannot be found: {error}\n{way_out}") from error
    if config.transforms:
        raise SettingsError(
            f"{named}: the connector has transforms, which change its records, so the schema history does not describe "
            f"them. {way_out}"
        )
    if not isinstance(config.converters.value, JsonConverterConfig | ProtobufConverterConfig):
        raise SettingsError(f"{named}: value.converter is neither JsonConverter nor ProtobufConverter. {way_out}")
    capture, naming = config.capture.tables, config.topics.naming
    tables: dict[str, list[RecordedTable]] = {}
    try:
        from rowtide.connector.engine.wiring import history_source  # noqa: PLC0415 - needs the extra

        with history_source(config) as source:
            for record in source.store.replay(parse_record):
                for table in record.tables:
                    if table.fields is not None and capture.captures(table.id.database, table.id.table):
                        tables.setdefault(naming.data_change(table.id.database, table.id.table), []).append(table)
    except (SchemaHistoryError, ModuleNotFoundError) as error:
        raise SettingsError(f"{named}: the schema history cannot be read: {error}. {way_out}") from error
    return _History(config, tables)


def _schemas_of(recorded: RecordedTable, topic: str, config: Configuration) -> Schemas:
    table = merge_recorded(None, recorded, all_applied=False)
    augment = config.topics.naming.key_augment(table.id.database, table.id.table)
    schema = table_schema(table, topic, record_rules(config), "stream", lambda _table, _column: None, augment)
    converter = config.converters.value
    json_format = json_settings(converter).json_format if isinstance(converter, JsonConverterConfig) else DEFAULT_FORMAT
    return {
        side: json.loads(schema_text(found, json_format=json_format))
        for side, found in (("key", schema.key), ("value", schema.envelope))
        if found is not None
    }


def _merge(old: Json | None, new: Json, topic: str) -> Json:
    """Return a schema with the columns of two versions of a table.

    A message does not show the version that it was written with, so a column must be read in the same way in both.
    """
    if old is None:
        return new
    before = {field["field"]: field for field in old["fields"]}
    fields = [_common(before.pop(field["field"], None), field, topic) for field in new["fields"]]
    return {**new, "fields": [*fields, *before.values()]}


def _common(old: Json | None, new: Json, topic: str) -> Json:
    if old is None:
        return new
    if old["type"] == new["type"] == "struct" and new["field"] in ("before", "after"):
        return _merge(old, new, topic)
    merged = _wider(old, new) or _wider(new, old)
    if merged is None:
        raise SchemaMissingError(
            f"topic {topic}: column {new['field']} was changed from {_shown(old)} to {_shown(new)}, and messages "
            f"without schemas do not show which of the two a value has. If all messages in the topic have the same "
            f"type, give its schemas with --schemas; else write the topic again with schemas.enable=true"
        )
    # Rows older than the column have the default with which it was added.
    return {**merged, "optional": old["optional"], **({"default": old["default"]} if "default" in old else {})}


def _wider(old: Json, new: Json) -> Json | None:
    """Return ``new`` without its default if it can also read all values of ``old``."""
    kept = {name: value for name, value in new.items() if name != "default"}
    if old["type"] in _INTEGERS and new["type"] in _INTEGERS and old.get("name") == new.get("name") is None:
        same_sign = _is_unsigned_bigint(old) == _is_unsigned_bigint(new)
        return kept if same_sign and _INTEGERS.index(old["type"]) <= _INTEGERS.index(new["type"]) else None
    if (old["type"], old.get("name")) != (new["type"], new.get("name")):
        return None
    parameters, others = new.get("parameters", {}), old.get("parameters", {})
    if new.get("name") == _DECIMAL:
        precisions = [int(found.get("connect.decimal.precision", 0)) for found in (others, parameters)]
        return kept if others.get("scale") == parameters.get("scale") and precisions[0] <= precisions[1] else None
    if new.get("name") in _LABELS:
        escaped = ["\\" in found.get("allowed", "") for found in (others, parameters)]
        return kept if escaped[0] <= escaped[1] else None  # labels are unescaped if one of them is escaped
    return kept if others.get("length") == parameters.get("length") else None


def _is_unsigned_bigint(schema: Json) -> bool:
    """Return whether negative values stand for those from 2^63 (with ``column.propagate.source.type``)."""
    return bool(schema.get("parameters", {}).get("__debezium.source.column.type", "").startswith("BIGINT UNSIGNED"))


def _shown(schema: Json) -> str:
    return " ".join(str(part) for part in (schema["type"], schema.get("name"), schema.get("parameters")) if part)
