"""Converters without schemas, and where the id of a schema is written."""

import uuid

import pytest
from confluent_kafka.schema_registry import dual_schema_id_deserializer, header_schema_id_serializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext

from rowtide.envelope.converters.converter import Added
from rowtide.envelope.converters.json import JsonConverter
from rowtide.envelope.converters.plain import BinaryDataConverter, ByteArrayConverter, StringConverter
from rowtide.envelope.converters.registry import RegisteredSchema, SchemaIds, SubjectNames, frame
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.schema import BOOLEAN, BYTES, DECIMAL, FLOAT64, INT32, OPTIONAL_STRING, STRING, Schema, struct
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.transforms.record import ConnectRecord, Side

NUMBER = Schema("bytes", name=DECIMAL, parameters=(("scale", "2"),))


def of(schema: Schema | None, value: object) -> ConnectRecord:
    return ConnectRecord("t", None, None, None, schema, value)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (STRING, "ü", "ü"),
        (INT32, 7, "7"),
        (BOOLEAN, True, "true"),
        (FLOAT64, 1e10, "1.0E10"),
        (NUMBER, -150, "-1.50"),
        (struct("s", {"a": INT32, "b": OPTIONAL_STRING}), {"a": 1, "b": None}, "Struct{a=1}"),
        (Schema("array", items=STRING), ["a", "b"], "[a, b]"),
        (Schema("map", keys=STRING, items=INT32), {"a": 1}, "{a=1}"),
    ],
)
def test_a_string_is_what_java_prints(schema: Schema, value: object, text: str) -> None:
    assert StringConverter().data(of(schema, value), "value", []) == text.encode()


def test_a_tombstone_stays_one() -> None:
    for converter in (StringConverter(), ByteArrayConverter(), BinaryDataConverter(None)):
        assert converter.data(of(None, None), "value", []) is None


def test_bytes_are_written_as_they_are_and_nothing_else() -> None:
    assert ByteArrayConverter().data(of(BYTES, b"\0\xff"), "value", []) == b"\0\xff"
    with pytest.raises(ValueError, match="writes bytes only, and this has the type string"):
        ByteArrayConverter().data(of(STRING, "a"), "value", [])
    with pytest.raises(ValueError, match="no text for bytes"):
        StringConverter().data(of(BYTES, b"a"), "value", [])


def test_what_is_not_bytes_goes_to_the_delegate() -> None:
    json = JsonConverter(JsonSettings(schemas_enable=False, json_format=JsonFormat(replace_null_with_default=False)))
    converter = BinaryDataConverter(json)
    assert converter.data(of(BYTES, b"\1"), "value", []) == b"\1"
    assert converter.data(of(INT32, 5), "value", []) == b"5"
    assert not converter.replaces_null


def test_the_id_of_a_schema_stands_before_the_bytes_or_in_a_header() -> None:
    guid = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
    schema = RegisteredSchema(258, "{}", guid)
    added: Added = []
    assert frame(SchemaIds.PREFIX, schema, "value")(b"x", added) == b"\0\0\0\1\2x"
    assert added == []
    assert frame(SchemaIds.HEADER, schema, "key")(b"x", added) == b"x"
    assert added == [("__key_schema_id", b"\1" + guid.bytes)]
    with pytest.raises(ValueError, match="no global id"):
        frame(SchemaIds.HEADER, RegisteredSchema(1, "{}"), "value")


@pytest.mark.parametrize(("kind", "indexes"), [("AVRO", b""), ("PROTOBUF", b"\4\2\0"), ("PROTOBUF", b"\0")])
@pytest.mark.parametrize("side", ["key", "value"])
def test_confluents_client_reads_and_writes_the_same_header(kind: str, indexes: bytes, side: Side) -> None:
    guid = "01234567-89ab-cdef-0123-456789abcdef"
    added: Added = []
    payload = frame(SchemaIds.HEADER, RegisteredSchema(1, "{}", uuid.UUID(guid)), side, indexes)(b"x", added)
    where = SerializationContext("t", MessageField.KEY if side == "key" else MessageField.VALUE, list(added))
    found = SchemaId(kind)
    assert dual_schema_id_deserializer(payload, where, found).read() == b"x"
    assert str(found.guid) == guid
    assert found.message_indexes == ({b"\4\2\0": [1, 0], b"\0": [0]}.get(indexes))
    theirs = SerializationContext("t", where.field, [])
    assert header_schema_id_serializer(b"x", theirs, SchemaId(kind, 1, guid, found.message_indexes)) == payload
    assert theirs.headers == added


def test_a_strategy_by_record_needs_a_record() -> None:
    assert SubjectNames.TOPIC_RECORD.subject("t", "key", "a.Key") == "t-a.Key"
    with pytest.raises(ValueError, match=r"Set key\.subject\.name\.strategy"):
        SubjectNames.RECORD.subject("t", "key", None)
