"""``io.debezium.converters.CloudEventsConverter``: CloudEvents 1.0 in JSON or Avro, with data in JSON or Avro.

The source is Debezium's ``CloudEventsConverter`` and ``CloudEventsMaker``. As there, records that are not row changes,
such as schema changes and transaction metadata, have no value.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

from rowtide.envelope.converters.converter import Added, Transcoding
from rowtide.envelope.converters.json import json_message
from rowtide.envelope.json.text import value_text
from rowtide.envelope.schema import BYTES, INT32, STRING, Field, Schema
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.transforms.record import ConnectRecord, Header, SchemaCache, Side

Serializer = Literal["json", "avro"]
MetadataSource = Literal["value", "header", "generate"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TRANSACTION = ("id", "total_order", "data_collection_order")
_CONTENT_TYPES: Mapping[Serializer, str] = {"json": "application/json", "avro": "application/avro"}
_PLACE_OF_DATA = '"data":null}'


class AvroData(Protocol):
    """The converter of Avro parts."""

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes with the id of their schema before them."""
        ...


@dataclass(frozen=True, slots=True)
class CloudEventsFormat:
    """Settings of ``CloudEventsConverter``.

    Attributes:
        serializer: ``serializer.type``.
        data_serializer: ``data.serializer.type``.
        json: ``json.*``: settings of JSON.
        extensions: ``extension.attributes.enable``.
        tracing: ``opentelemetry.tracing.attributes.enable``.
        adjust_schema_name: function of ``schema.name.adjustment.mode``.
        schema_name: ``schema.cloudevents.name``.
        metadata: ``metadata.source``: where the metadata of a record is.
        fields: the same for ``id``, ``type``, ``traceparent`` and ``dataSchemaName``.
        registry_url: the URL in ``dataschema``.
    """

    serializer: Serializer = "json"
    data_serializer: Serializer = "json"
    json: JsonSettings = field(default_factory=JsonSettings)
    extensions: bool = True
    tracing: bool = False
    adjust_schema_name: Callable[[str], str] = str
    schema_name: str | None = None
    metadata: MetadataSource = "value"
    fields: Mapping[str, MetadataSource] = field(default_factory=dict)
    registry_url: str = ""

    def source_of(self, name: str) -> MetadataSource:
        """Return the source of a metadata field."""
        return self.fields.get(name, self.metadata)


class CloudEventsConverter:
    """CloudEvents.

    Args:
        settings: the settings.
        avro: the converter of Avro parts; ``None`` without any.
    """

    tells_null = True

    def __init__(self, settings: CloudEventsFormat, avro: AvroData | None = None) -> None:
        self._settings = settings
        self._avro = avro
        self._data_schemas: SchemaCache[Schema] = SchemaCache()
        self._event_schemas: SchemaCache[Schema] = SchemaCache()

    @property
    def replaces_null(self) -> bool:
        """Whether null becomes the default of its schema."""
        return self._settings.json.json_format.replace_null_with_default

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes of an event; ``None`` for a tombstone and a record that is not a change of a row."""
        settings = self._settings
        schema, value = record.schema_of(side), record.content(side)
        if schema is None or value is None:
            return None
        in_header = settings.metadata == "header"
        if in_header and not all(_last(record, name) for name in ("source", "op")):
            return None
        if not in_header and not record.is_envelope:
            return None
        if schema.type != "struct":
            raise ValueError("a CloudEvent needs a struct. Set another converter, or remove the transform ExtractField")
        source = (
            _required(record, "source") if in_header else Header("source", _field(schema, "source"), value["source"])
        )
        if source.schema is None or not {"connector", "name", "file", "pos", "db", "ts_ms"} <= _names(source.schema):
            raise ValueError("source is not that of a change, which a CloudEvent needs")
        data_schema, data = self._data(record, schema, value, source)
        if settings.data_serializer == "avro":
            return self._with_avro(record, source, value, data_schema, data, added)
        event_schema, event = self._event(record, value, source, data_schema, data, None)
        form = settings.json.json_format
        if not settings.json.schemas_enable:
            return value_text(event_schema, event, form).encode()
        # Only the data has a schema: the event itself is plain JSON.
        text = value_text(event_schema, {**event, "data": None}, form)
        assert text.endswith(_PLACE_OF_DATA)
        return text.removesuffix("null}").encode() + json_message(data_schema, data, settings.json) + b"}"

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return ``None``: an event has parts of the record in other places."""
        return None

    def _with_avro(
        self, record: ConnectRecord, source: Header, value: Any, data_schema: Schema, data: Any, added: Added
    ) -> bytes:
        """Return an event whose data is in Avro."""
        assert self._avro is not None
        settings = self._settings
        topic = record.topic if settings.serializer == "json" else f"{record.topic}-data"
        inner = self._avro.data(ConnectRecord(topic, None, None, None, data_schema, data), "value", [])
        assert inner is not None
        uri = f"{settings.registry_url}/schemas/ids/{int.from_bytes(inner[1:5], 'big')}"
        event_schema, event = self._event(record, value, source, BYTES, inner, uri)
        if settings.serializer == "json":
            return value_text(event_schema, event, settings.json.json_format).encode()
        outer = self._avro.data(ConnectRecord(record.topic, None, None, None, event_schema, event), "value", added)
        assert outer is not None
        return outer

    def _data(self, record: ConnectRecord, schema: Schema, value: Any, source: Header) -> tuple[Schema, Any]:
        """Return the data of an event: before and after, or the whole value if the metadata is in headers."""
        settings = self._settings
        if settings.source_of("dataSchemaName") == "header":
            name = str(_required(record, "dataSchemaName").value)
        else:
            name = f"io.debezium.connector.{source.value['connector']}.Data"
        names = [one.name for one in schema.fields] if settings.metadata == "header" else ["before", "after"]

        def made(of: Schema) -> Schema:
            return Schema("struct", name=name, fields=tuple(Field(one, _field(of, one)) for one in names))

        found = self._data_schemas.get(made, schema, topic=name)
        return found, {one: value.get(one) for one in names}

    def _event(
        self, record: ConnectRecord, value: Any, source: Header, data_schema: Schema, data: Any, uri: str | None
    ) -> tuple[Schema, dict[str, Any]]:
        settings, block = self._settings, source.value
        connector, name = block["connector"], block["name"]
        fields = {
            "id": f"name:{name};file:{block['file']};pos:{block['pos']}",
            "source": f"/debezium/{connector}/{name}",
            "specversion": "1.0",
            "type": f"io.debezium.connector.{connector}.DataChangeEvent",
            "time": _time(block["ts_ms"]),
            "datacontenttype": _CONTENT_TYPES[settings.data_serializer],
        }
        for own in ("id", "type"):
            if settings.source_of(own) == "header":
                fields[own] = str(_required(record, own).value)
        if uri is not None:
            fields["dataschema"] = uri
        event: dict[str, Any] = dict(fields)
        if settings.tracing:
            event["traceparent"] = str(_required(record, "traceparent").value)
        if settings.extensions:
            event |= self._extensions(record, value, source)
        event["data"] = data
        assert source.schema is not None
        prefix = settings.schema_name or f"{name}.{block['db']}.CloudEvents.Envelope"
        full_name = settings.adjust_schema_name(prefix)
        schema = self._event_schemas.get(
            lambda of, data: self._event_schema(of, data, full_name, uri is not None),
            source.schema,
            data_schema,
            topic=full_name,
        )
        return schema, event

    def _extensions(self, record: ConnectRecord, value: Any, source: Header) -> dict[str, Any]:
        assert source.schema is not None
        in_header = self._settings.metadata == "header"
        operation = _required(record, "op").value if in_header else value["op"]
        found: dict[str, Any] = {_extension("op"): operation}
        for one in source.schema.fields:
            member = source.value.get(one.name)
            member = one.schema.default if member is None else member
            found[_extension(one.name)] = str(member) if one.schema.type == "int64" and member is not None else member
        if in_header:
            header = _last(record, "transaction")
            transaction = None if header is None else header.value
        else:
            transaction = value.get("transaction")
        for name in _TRANSACTION:
            member = None if transaction is None else transaction[name]
            found[_extension(f"tx{name}")] = None if member is None else str(member)
        return found

    def _event_schema(self, source: Schema, data: Schema, name: str, with_uri: bool) -> Schema:
        settings = self._settings
        names = ["id", "source", "specversion", "type", "time", "datacontenttype"]
        names += ["dataschema"] if with_uri else []
        names += ["traceparent"] if settings.tracing else []
        fields = [Field(one, STRING) for one in names]
        if settings.extensions:
            fields.append(Field(_extension("op"), STRING))
            fields += [Field(_extension(one.name), _extension_schema(one.schema)) for one in source.fields]
            fields += [Field(_extension(f"tx{one}"), STRING.with_optional(True)) for one in _TRANSACTION]
        fields.append(Field("data", data if data is BYTES else data.with_optional(True)))  # JSON data come later
        return Schema("struct", name=name, fields=tuple(fields))


def _names(schema: Schema) -> set[str]:
    return {field.name for field in schema.fields}


def _field(schema: Schema, name: str) -> Schema:
    found = schema.field(name)
    if found is None:
        raise ValueError(f"{schema.name or 'the struct'} has no field {name!r}, which a CloudEvent needs")
    return found.schema


def _last(record: ConnectRecord, name: str) -> Header | None:
    return next((header for header in reversed(record.headers) if header.name == name), None)


def _required(record: ConnectRecord, name: str) -> Header:
    found = _last(record, name)
    if found is None or found.value is None:
        raise ValueError(
            f"there is no header {name}, which metadata.source names: HeaderFrom copies a field to a header, and "
            f"metadata.source=…,{name}:generate needs none"
        )
    return found


def _extension(name: str) -> str:
    """Return the name of an extension attribute: letters and digits only."""
    return "iodebezium" + re.sub(r"[^A-Za-z0-9]", "", name)


def _extension_schema(schema: Schema) -> Schema:
    """Return the schema of an extension attribute: CloudEvents has no numbers of 64 bits."""
    plain = INT32 if schema.type in {"int8", "int16", "int32"} else STRING
    return plain.with_optional(schema.optional)


def _time(ts_ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ts_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
