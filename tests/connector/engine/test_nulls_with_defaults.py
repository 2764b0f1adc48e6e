"""With exact values, no converter writes a column's default for a null; with Debezium's values, all of them do."""

import io
import json
from typing import Any

import fastavro
import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine import converters
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.records import transforms
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import LOSSLESS
from rowtide.connector.records.transforms import Transformer
from rowtide.envelope.json.text import value_text
from rowtide.envelope.protobuf.reader import ProtobufReader
from rowtide.envelope.schema import DECIMAL, INT32, Schema
from rowtide.testing import change
from tests.support.configurations import PROPERTIES
from tests.support.recordings.converted import RecordedRegistry
from tests.support.recordings.golden import Case

DEFAULTS: dict[str, Any] = {"n": 7, "t": "x", "b": True, "y": b"\1", "d": 150, "f": 1.5}
SCALE = (("scale", "2"),)
ROW = {
    "id": INT32,
    "n": Schema("int32", optional=True, default=7),
    "t": Schema("string", optional=True, default="x"),
    "b": Schema("boolean", optional=True, default=True),
    "y": Schema("bytes", optional=True, default=b"\1"),
    "d": Schema("bytes", optional=True, name=DECIMAL, version=1, parameters=SCALE, default=150),
    "f": Schema("double", optional=True, default=1.5),
}
NULLS = {"id": 1, **dict.fromkeys(DEFAULTS)}
JSON = "org.apache.kafka.connect.json.JsonConverter"
URL = {"{}.converter.schema.registry.url": "http://registry"}
CONFLUENT = "io.confluent.connect."
EVENTS = {"{}.converter": "io.debezium.converters.CloudEventsConverter"}
FORMS = {
    "json": {"{}.converter": JSON, "{}.converter.schemas.enable": "false"},
    "avro": {"{}.converter": CONFLUENT + "avro.AvroConverter", **URL},
    "apicurio": {
        "{}.converter": "io.apicurio.registry.utils.converter.AvroConverter",
        "{}.converter.apicurio.registry.url": "http://registry/apis/registry/v2",
        "{}.converter.apicurio.registry.as-confluent": "true",
        "{}.converter.apicurio.registry.use-id": "contentId",
        "{}.converter.apicurio.registry.headers.enabled": "false",
    },
    "protobuf": {"{}.converter": CONFLUENT + "protobuf.ProtobufConverter", **URL},
    "wrapped protobuf": {
        "{}.converter": CONFLUENT + "protobuf.ProtobufConverter",
        "{}.converter.wrapper.for.nullables": "true",
        **URL,
    },
    "binary data": {
        "{}.converter": "io.debezium.converters.BinaryDataConverter",
        "{}.converter.delegate.converter.type": JSON,
        "{}.converter.delegate.converter.type.schemas.enable": "false",
    },
    "events in json": {**EVENTS, "{}.converter.json.schemas.enable": "false"},
    "events in avro": {
        **EVENTS,
        "{}.converter.serializer.type": "avro",
        "{}.converter.data.serializer.type": "avro",
        "{}.converter.avro.schema.registry.url": "http://registry",
    },
}
FLATTEN = {"transforms": "flat", "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState"}
HEADER = "__debezium.newkey"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> RecordedRegistry:
    made = RecordedRegistry()
    monkeypatch.setattr(converters, "_registry", lambda _config: made)
    return made


def written(properties: dict[str, str]) -> tuple[bytes, bytes, dict[str, Any]]:
    """The bytes of the key, the value and the headers of an update with nulls before, after and in the key."""
    settings = pipeline_settings(from_properties(PROPERTIES | properties), "run")
    assert settings.transforms is not None
    record = change(ROW, before=NULLS, after=NULLS, key=tuple(ROW), topic="shop.shop.orders")
    assert record.key_schema is not None
    assert record.value_schema is not None
    key = value_text(record.key_schema, record.key, LOSSLESS.json_format).encode()
    value = value_text(record.value_schema, record.value, LOSSLESS.json_format).encode()
    schemas = record.key_schema, record.value_schema
    given = Batch(record.topic, -1, [(key, value, [(HEADER, key)])], SourceOffset("b", 4), 0, 0, schemas)
    (message,) = Transformer(settings.transforms).batch(given).messages
    assert message[0] is not None
    assert message[1] is not None
    return message[0], message[1], dict(message[2])


def read(form: str, data: bytes, registry: RecordedRegistry) -> Any:
    """A key or value by its schema in the registry."""
    texts = {number: text for text, number in registry.schemas.items()}
    if form in ("json", "binary data", "events in json"):
        return json.loads(data)
    text = texts[int.from_bytes(data[1:5], "big")]
    if "protobuf" in form:
        return ProtobufReader(text).message((0,))[1](data[6:])
    return fastavro.schemaless_reader(io.BytesIO(data[5:]), fastavro.parse_schema(json.loads(text)), None)


def nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in DEFAULTS if row[name] is None}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_nulls_in_keys_before_and_after(
    form: str, exact: bool, compiled: bool, registry: RecordedRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(transforms, "native", None)
    sides = ("value",) if "events" in form else ("key", "value")
    properties = {name.format(side): text for side in sides for name, text in FORMS[form].items()}
    headers = {"header.converter": JSON, "header.converter.schemas.enable": "false"}
    values = {"rowtide.values": "exact" if exact else "debezium"}
    expected = dict.fromkeys(DEFAULTS) if exact else {}
    direct = form == "json"  # without another converter, the codec writes the headers, see below
    for keeps_headers in (headers,) if direct else ({}, headers):
        key, value, found = written(properties | keeps_headers | values)
        one = read(form, value, registry)
        rows = one["data"] if "events" in form else one
        if form == "events in avro":
            rows = read(form, rows, registry)
        assert nulls(rows["before"]) == nulls(rows["after"]) == expected
        if "key" in sides:
            assert nulls(read(form, key, registry)) == expected
        assert nulls(json.loads(found[HEADER])) == expected, "the header with the other key"


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("form", [form for form in FORMS if "events" not in form])
def test_nulls_of_flattened_records(form: str, exact: bool, registry: RecordedRegistry) -> None:
    properties = {name.format("value"): text for name, text in FORMS[form].items()}
    _, value, _ = written(properties | FLATTEN | {"rowtide.values": "exact" if exact else "debezium"})
    assert nulls(read(form, value, registry)) == (dict.fromkeys(DEFAULTS) if exact else {})


@pytest.mark.parametrize("form", ["avro", "apicurio", "events in avro"])
def test_optional_fields_without_a_default_have_null_as_theirs(form: str, registry: RecordedRegistry) -> None:
    written({name.format("value"): text for name, text in FORMS[form].items()})
    fields = [field for text in registry.schemas for field in _fields(json.loads(text))]
    optional = [field for field in fields if isinstance(field["type"], list) and field["type"][0] == "null"]
    assert {"before", "after", "transaction"} & {field["name"] for field in optional}
    assert all("default" in field and field["default"] is None for field in optional)


def _fields(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [field for one in schema for field in _fields(one)]
    if not isinstance(schema, dict):
        return []
    inner = [field for field in schema.get("fields", ()) for field in (field, *_fields(field["type"]))]
    return inner + _fields(schema.get("items")) + (_fields(schema["type"]) if isinstance(schema["type"], dict) else [])


@pytest.mark.parametrize("with_transforms", [False, True])
@pytest.mark.parametrize("exact", [True, False])
def test_nulls_of_a_changed_key_in_the_stream(exact: bool, with_transforms: bool) -> None:
    case = Case("defaults-in-schemas")
    properties = case.properties() | {
        "rowtide.values": "exact" if exact else "debezium",
        "message.key.columns": r"def\.t2:id,i1",
        "key.converter": JSON,
        "key.converter.schemas.enable": "false",
        "event.converting.failure.handling.mode": "warn",
    }
    if with_transforms:
        properties |= FLATTEN
    settings = pipeline_settings(from_properties(properties), "run")
    outputs = replay(case.binlog, settings, case.start, lambda: 0)
    messages = [one for output in outputs if isinstance(output, Batch) for one in output.messages]
    other = [dict(headers)[HEADER] for _, _, headers in messages if HEADER in dict(headers)]
    if exact:  # NULL replaced 5
        assert {one and one.decode() for one in other} == {'{"id":2,"i1":null}'}
        assert any(key == b'{"id":2,"i1":null}' for key, _, _ in messages)
    else:  # without transforms, the key is still 5
        assert set(other) == ({b'{"id":2,"i1":5}'} if with_transforms else set())
