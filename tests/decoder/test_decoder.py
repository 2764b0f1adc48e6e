"""Forms of records, and records that are not changes."""

import datetime as dt
import hashlib
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

import rowtide
from rowtide.decoder.decoder import Decoder
from rowtide.decoder.errors import ClaimCheckUnavailable, DecodeError, RegistryUnavailable
from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.claim_check import ClaimCheck
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.protobuf import ProtobufConverter
from rowtide.envelope.converters.registry import RegisteredSchema, SchemaIds, SchemaKind
from rowtide.envelope.json.text import enveloped_text, schema_text
from rowtide.envelope.protobuf.messages import ProtobufFormat
from rowtide.envelope.schema import DECIMAL, FLOAT32, INT32, INT64, OPTIONAL_STRING, STRING, Schema, struct
from rowtide.envelope.transforms.record import ConnectRecord
from tests.support.recordings.golden import Case

ROW = struct(
    "s.d.t.Value",
    {
        "id": INT32,
        "price": Schema("bytes", optional=True, name=DECIMAL, version=1, parameters=(("scale", "2"),)),
        "made": Schema("int64", optional=True, name="io.debezium.time.MicroTimestamp", version=1),
        "note": OPTIONAL_STRING,
    },
    optional=True,
)
SOURCE = struct("src", {"db": STRING, "table": STRING, "file": STRING, "pos": INT64, "ts_ms": INT64})
ENVELOPE = struct("s.d.t.Envelope", {"before": ROW, "after": ROW, "source": SOURCE, "op": STRING, "ts_ms": INT64})
DECIMALS = struct("s.d.t.Value", {"v": Schema("bytes", name=DECIMAL, parameters=(("scale", "2"),))})
VECTORS = struct("s.d.t.Value", {"v": Schema("array", items=FLOAT32, name="io.debezium.data.FloatVector")})
KEY = struct("s.d.t.Key", {"id": INT32})
AT = dt.datetime(1970, 1, 1, 0, 0, 1, 1)  # noqa: DTZ001 - MySQL's DATETIME has no zone
AFTER = {"id": 1, "price": -150, "made": 1_000_001, "note": None}
VALUE = {
    "before": None,
    "after": AFTER,
    "source": {"db": "d", "table": "t", "file": "binlog.1", "pos": 4, "ts_ms": 1700000000123},
    "op": "c",
    "ts_ms": 1700000000456,
}


def text(schema: Schema, value: Any) -> bytes:
    return enveloped_text(schema, value).encode()


def test_a_record_becomes_a_change_with_python_values() -> None:
    change = Decoder().decode("s.d.t", text(KEY, {"id": 1}), text(ENVELOPE, VALUE), [("h", b"x")])
    assert isinstance(change, rowtide.Change)
    assert (change.op, change.database, change.table, change.topic) == ("c", "d", "t", "s.d.t")
    assert dict(change.key or {}) == {"id": 1}
    assert change.after == {
        "id": 1,
        "price": Decimal("-1.50"),
        "made": AT,
        "note": None,
    }
    assert change.before is None
    assert (change.position.file, change.position.pos) == ("binlog.1", 4)
    assert change.timestamp == dt.datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=dt.UTC)
    assert change.schema.primary_key == ("id",)
    with pytest.raises(DecodeError, match="use the key and value of the message"):
        change.to_debezium()


@pytest.mark.parametrize(
    ("right", "wrong", "column"),
    [
        ('"id":1,', '"id":"1",', "column id has a value of the type str, but its schema says int"),
        ('"id":1,', '"id":1.5,', "column id has a value of the type float, but its schema says int"),
        ('"id":1,', '"id":true,', "column id has a value of the type bool, but its schema says int"),
        ('"note":null', '"note":5', "column note has a value of the type int, but its schema says str"),
    ],
)
def test_a_value_of_another_type_than_its_schema_says_is_an_error(right: str, wrong: str, column: str) -> None:
    value = text(ENVELOPE, VALUE).decode().replace(right, wrong).encode()
    assert wrong in value.decode()
    with pytest.raises(DecodeError, match=column):
        Decoder().decode("s.d.t", None, value)


def test_a_tombstone_is_none() -> None:
    assert Decoder().decode("t", b'{"id":1}', None) is None


def test_json_without_schemas_keeps_the_values_of_json() -> None:
    document = {**VALUE, "after": {"id": 1, "price": "/2o=", "big": 2**70}}
    change = Decoder().decode("s.d.t", b'{"id":1}', json.dumps(document).encode())
    assert change is not None
    assert change.after == {"id": 1, "price": "/2o=", "big": 2**70}
    assert dict(change.key or {}) == {"id": 1}


def test_members_in_another_order_and_blanks_do_not_matter() -> None:
    document = json.loads(text(ENVELOPE, VALUE))
    other = json.dumps({"payload": document["payload"], "schema": document["schema"]}, indent=1)
    change = Decoder().decode("s.d.t", None, other.encode())
    assert change is not None
    assert change.after is not None
    assert change.after["price"] == Decimal("-1.50")
    assert change.key is None


def test_a_schema_that_changes_is_read_again() -> None:
    decoder = Decoder()
    wider = struct("s.d.t.Value", {**{field.name: field.schema for field in ROW.fields}, "more": INT32}, optional=True)
    envelope = struct(
        "s.d.t.Envelope", {"before": wider, "after": wider, "source": SOURCE, "op": STRING, "ts_ms": INT64}
    )
    for schema, row in ((ENVELOPE, AFTER), (envelope, {**AFTER, "more": 5}), (ENVELOPE, AFTER)):
        change = decoder.decode("s.d.t", None, text(schema, {**VALUE, "after": row}))
        assert change is not None
        assert change.columns == tuple(row)


def test_an_unwrapped_record_is_a_change_of_its_row() -> None:
    fields = {field.name: field.schema for field in ROW.fields} | {
        "__deleted": OPTIONAL_STRING,
        "__op": OPTIONAL_STRING,
    }
    schema = struct("s.d.t.Value", fields)
    change = Decoder().decode("s.d.t", None, text(schema, {**AFTER, "__deleted": "false", "__op": "r"}))
    assert change is not None
    assert (change.op, change.database, change.table) == ("r", "d", "t")
    assert change.columns == ("id", "price", "made", "note")
    gone = Decoder().decode("s.d.t", None, text(schema, {**AFTER, "__deleted": "true", "__op": None}))
    assert gone is not None
    assert (gone.op, gone.after) == ("d", None)


def test_recorded_cloud_events_are_changes() -> None:
    decoder, found = Decoder(), []
    for record in Case("cloudevents-json").records:
        if record["topic"].startswith("cloudevents-json.ce") and record["value"]:
            key = None if record["key"] is None else record["key"].encode()
            change = decoder.decode(record["topic"], key, record["value"].encode())
            assert change is not None
            found.append(change)
    assert {change.op for change in found} >= {"r", "c"}
    first = found[0]
    assert (first.database, first.table, first.position.file) == ("ce", "item", "binlog.000001")
    assert first.after is not None
    assert first.after["price"] == Decimal("1.50")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"not json", "cannot be decoded"),
        (b"[1]", "is not a row change"),
        (b"\0\0\0\0\1x", "needs a schema registry"),
        (text(struct("io.debezium.connector.common.Heartbeat", {"ts_ms": INT64}), {"ts_ms": 1}), "Heartbeat"),
        (b'{"before":null,"after":null,"source":1,"op":"c"}', "cannot be decoded"),
        (b"", "cannot be decoded"),
        (b'{"before":null,"after":{"a":' + b"[" * 5000 + b"]" * 5000 + b'},"source":{},"op":"c"}', "RecursionError"),
        (b'{"before":null,"after":{"id":1},"source":{"db":"d"},"op":"x"}', "its op is 'x'"),
        (b'{"before":null,"after":{"id":1},"source":{"db":"d"},"op":"c","ts_ms":"many"}', "ValueError"),
        (b'{"schema":' + schema_text(DECIMALS).encode() + b',"payload":{"v":"!!!!"}}', "base64"),
        (b'{"schema":' + schema_text(VECTORS).encode() + b',"payload":{"v":["1"]}}', "not a float"),
    ],
)
def test_what_is_not_a_change_is_an_error_that_names_the_topic(value: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message) as caught:
        Decoder().decode("some.topic", None, value)
    assert "some.topic" in str(caught.value)


@pytest.mark.parametrize(
    ("topic", "value", "kind"),
    [
        ("__debezium-heartbeat.s", {"ts_ms": 1}, "a heartbeat"),
        (
            "s.transaction",
            {"status": "BEGIN", "id": "u:1", "event_count": None, "data_collections": None, "ts_ms": 1},
            "transaction metadata",
        ),
        ("s", {"source": {"db": "d"}, "ts_ms": 1, "ddl": "DROP TABLE t", "tableChanges": []}, "a schema change"),
        ("h", {"source": {}, "position": {}, "ddl": "", "tableChanges": []}, "a record of the schema history"),
    ],
)
def test_other_records_without_schemas_are_not_taken_for_rows(topic: str, value: object, kind: str) -> None:
    with pytest.raises(DecodeError, match=f"a record of topic {topic} cannot be decoded.*, but {kind}"):
        Decoder().decode(topic, None, json.dumps(value).encode())


@pytest.mark.parametrize("columns", [("source", "op"), ("specversion",), ("specversion", "data")])
def test_columns_may_have_the_names_of_an_envelope(columns: tuple[str, ...]) -> None:
    row = {"id": 1, **dict.fromkeys(columns, "1.0")}
    schema = struct("s.d.t.Value", {"id": INT32, **dict.fromkeys(columns, STRING)})
    change = Decoder().decode("s.d.t", None, text(schema, row))
    assert change is not None
    assert change.after == row


def test_names_of_digits_stay_names() -> None:
    schema = struct("s.2024.007.Value", {"id": INT32, "__db": STRING, "__table": STRING, "__source_pos": STRING})
    row = {"id": 1, "__db": "2024", "__table": "007", "__source_pos": "15"}
    change = Decoder().decode("s.2024.007", None, text(schema, row))
    assert change is not None
    assert (change.database, change.table, change.position.pos) == ("2024", "007", 15)


def test_a_key_without_a_schema_has_the_values_of_its_columns() -> None:
    decoder = Decoder()
    for given, columns in ((b'{"id":1}', {"id": 1}), (b'{"id":1,"made":1000001}', {"id": 1, "made": AT})):
        change = decoder.decode("s.d.t", given, text(ENVELOPE, VALUE))
        assert change is not None
        assert dict(change.key or {}) == columns


def test_a_schema_is_read_once_wherever_it_stands() -> None:
    decoder = Decoder()
    document = json.loads(text(ENVELOPE, VALUE))
    other = json.dumps({"payload": document["payload"], "schema": document["schema"]}).encode()
    event = {"specversion": "1.0", "iodebeziumop": "c", "iodebeziumdb": "d", "iodebeziumtable": "t", "data": document}
    for value in (other, json.dumps(document).encode(), json.dumps(event).encode()):
        first, second = (decoder.decode("s.d.t", None, value) for _ in range(2))
        assert first is not None
        assert second is not None
        assert first.after == {**AFTER, "price": Decimal("-1.50"), "made": AT}
        assert first.columns is second.columns


def test_the_default_of_a_column_may_be_any_text_of_java() -> None:
    row = struct("s.d.t.Value", {"id": INT32, "note": Schema("string", default="a#")}, optional=True)
    schema = struct("s.d.t.Envelope", {"before": row, "after": row, "source": SOURCE, "op": STRING, "ts_ms": INT64})
    value = enveloped_text(schema, {**VALUE, "after": {"id": 1, "note": "b"}}).replace("a#", "a\\ud83d")
    assert r"a\ud83d" in value
    change = Decoder().decode("s.d.t", None, value.encode())
    assert change is not None
    assert change.after == {"id": 1, "note": "b"}


def test_a_cloud_event_says_more_than_its_row() -> None:
    event = {
        "specversion": "1.0", "iodebeziumop": "r", "iodebeziumdb": "d", "iodebeziumtable": "t",
        "iodebeziumgtid": "u:5", "iodebeziumpos": "15", "iodebeziumtxid": "u:5", "iodebeziumtxtotalorder": "1",
        "data": {"id": 1},
    }  # fmt: skip
    change = Decoder().decode("s.d.t", None, json.dumps(event).encode())
    assert change is not None
    assert (change.op, change.gtid, change.position.pos, change.after) == ("r", "u:5", 15, {"id": 1})
    event["data"] = {"before": None, "after": {"id": 1}}
    change = Decoder().decode("s.d.t", None, json.dumps(event).encode())
    assert change is not None
    assert change.transaction is not None


class Registry:
    """A registry of one schema, or whose answer is an error."""

    def __init__(self, text: str = "", error: Exception | None = None) -> None:
        self.schema_str, self.schema_type, self.error = text, "AVRO", error

    def registered(self, _subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        self.schema_str, self.schema_type = text, kind
        return RegisteredSchema(1, text, uuid.UUID("f1234567-89ab-cdef-0123-456789abcdef"))

    def get_schema(self, _number: int) -> "Registry":
        if self.error is not None:
            raise self.error
        return self

    def get_schema_by_guid(self, _guid: str) -> "Registry":
        return self


@pytest.mark.parametrize("ids", SchemaIds)
@pytest.mark.parametrize("converter", [AvroConverter, ProtobufConverter])
def test_an_unwrapped_row_wherever_the_id_of_its_schema_is(
    converter: type[AvroConverter] | type[ProtobufConverter], ids: SchemaIds
) -> None:
    registry, schema = Registry(), struct("s.d.t.Value", {"id": INT32, "note": STRING})
    headers: list[tuple[str, bytes | None]] = []
    record = ConnectRecord("s.d.t", None, None, None, schema, {"id": 1, "note": "abc"})
    settings: Any = AvroFormat() if converter is AvroConverter else ProtobufFormat()
    data = converter(registry, settings, ids=ids).data(record, "value", headers)
    change = Decoder(registry).decode("s.d.t", None, data, headers)
    assert change is not None
    assert change.after == {"id": 1, "note": "abc"}
    for damaged in (data[:-1], data[:5], data + b"\0") if data and ids is SchemaIds.PREFIX else ():
        with pytest.raises(DecodeError, match=r"topic s\.d\.t cannot be decoded: the value does not fit schema 1"):
            Decoder(registry).decode("s.d.t", None, damaged, headers)


def test_a_schema_of_another_kind_is_named() -> None:
    registry = Registry("{}")
    registry.schema_type = "JSON"
    with pytest.raises(DecodeError, match="schema 1 is JSON: records can be decoded in Avro and Protobuf"):
        Decoder(registry).decode("s.d.t", None, b"\0\0\0\0\1x")


def test_a_missing_schema_is_not_a_registry_that_is_away() -> None:
    missing, away = Registry(error=SchemaRegistryError(404, 40403, "Schema not found")), Registry(error=OSError("no"))
    with pytest.raises(DecodeError, match="does not have schema 1: Schema not found"):
        Decoder(missing).decode("s.d.t", None, b"\0\0\0\0\1x")
    with pytest.raises(RegistryUnavailable, match="did not return schema 1: OSError: no"):
        Decoder(away).decode("s.d.t", None, b"\0\0\0\0\1x")


def test_a_claim_check_is_read_from_its_folder_and_verified(tmp_path: Path) -> None:
    value = b'{"before":null,"after":{"id":1},"source":{"db":"shop","table":"a"},"op":"c","ts_ms":1}'
    digest = hashlib.sha256(value).hexdigest()
    check = ClaimCheck(f"s3://elsewhere/shop.shop.a/{digest}", digest, len(value))
    stored = tmp_path / check.name
    stored.parent.mkdir()
    stored.write_bytes(value)
    decoder = Decoder(claim_checks=str(tmp_path))
    change = decoder.decode("shop.shop.a", None, check.record_value(), check.headers())
    assert change is not None
    assert change.after == {"id": 1}
    with pytest.raises(ClaimCheckUnavailable, match="Give claim_checks="):
        Decoder().decode("shop.shop.a", None, check.record_value(), check.headers())
    stored.write_bytes(value.replace(b"1", b"2", 1))
    with pytest.raises(ClaimCheckUnavailable, match="it was changed or damaged"):
        decoder.decode("shop.shop.a", None, check.record_value())
    stored.unlink()
    with pytest.raises(ClaimCheckUnavailable, match=f"topic shop.shop.a cannot be decoded.*{digest}"):
        decoder.decode("shop.shop.a", None, check.record_value())
    with pytest.raises(ClaimCheckUnavailable, match="is damaged"):
        decoder.decode("shop.shop.a", None, check.record_value() + b" ")


@pytest.mark.parametrize(
    ("placeholder", "note"),
    [("__debezium_unavailable_value", "__debezium_unavailable_value"), ("hex:ff61", "\ufffda"), ("none", "none")],
)
def test_the_placeholder_is_a_value_in_records_of_a_snapshot(placeholder: str, note: str) -> None:
    decoder = Decoder(placeholder=placeholder)
    for op, found in (("c", rowtide.UNAVAILABLE), ("r", note), ("u", rowtide.UNAVAILABLE)):
        value = VALUE | {"op": op, "after": AFTER | {"note": note}}
        change = decoder.decode("s.d.t", None, text(ENVELOPE, value))
        assert change is not None
        assert change.after is not None
        assert change.after["note"] == found
