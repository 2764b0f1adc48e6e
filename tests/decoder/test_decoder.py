"""Forms of records, and what is no change."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

import rowtide
from rowtide.decoder.decoder import Decoder
from rowtide.decoder.errors import DecodeError
from rowtide.envelope.json.text import enveloped_text
from rowtide.envelope.schema import DECIMAL, INT32, INT64, OPTIONAL_STRING, STRING, Schema, struct
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
KEY = struct("s.d.t.Key", {"id": INT32})
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
        "made": dt.datetime(1970, 1, 1, 0, 0, 1, 1),  # noqa: DTZ001
        "note": None,
    }
    assert change.before is None
    assert (change.position.file, change.position.pos) == ("binlog.1", 4)
    assert change.timestamp == dt.datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=dt.UTC)
    assert change.schema.primary_key == ("id",)
    with pytest.raises(DecodeError, match="it is the record that was decoded"):
        change.to_debezium()


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
        (b"[1]", "is not a change of a row"),
        (b"\0\0\0\0\1x", "needs a schema registry"),
        (text(struct("io.debezium.connector.common.Heartbeat", {"ts_ms": INT64}), {"ts_ms": 1}), "Heartbeat"),
        (b'{"before":null,"after":null,"source":1,"op":"c"}', "cannot be decoded"),
        (b"", "cannot be decoded"),
    ],
)
def test_what_is_no_change_is_an_error_that_names_the_topic(value: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message) as caught:
        Decoder().decode("some.topic", None, value)
    assert "some.topic" in str(caught.value)
