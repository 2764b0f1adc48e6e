"""Reading Protobuf: values that the converter has written, every recorded key and value among them."""

import struct as bits
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.envelope.avro.reader import connect_value
from rowtide.envelope.converters.protobuf import ProtobufConverter
from rowtide.envelope.protobuf.messages import ProtobufFormat
from rowtide.envelope.protobuf.reader import ProtobufReader, message_indexes
from rowtide.envelope.schema import DECIMAL, Schema, struct
from rowtide.envelope.transforms.record import ConnectRecord
from tests.envelope.converters.test_avro_golden import record, same
from tests.support.recordings.converted import RecordedRegistry, conversions, files

NAMES = [name for name in files("protobuf") if any(conversions("protobuf", name)) and "options" not in name]
FORMATS = [
    ProtobufFormat(scrub_invalid_names=True),
    ProtobufFormat(optional_for_nullables=True, scrub_invalid_names=True),
    ProtobufFormat(wrapper_for_nullables=True, scrub_invalid_names=True),
]


def decoded(text: str, data: bytes) -> tuple[Schema, Any]:
    """The schema and the value of what a converter wrote."""
    indexes, start = message_indexes(data[5:])
    schema, decode = ProtobufReader(text).message(indexes)
    return schema, connect_value(schema, decode(data[5 + start :]))


def written(schema: Schema, value: Any, *, null: bool) -> Any:
    """A value as Protobuf can tell it: by place instead of name, null as zero unless ``null``, no null lists."""
    if schema.type == "struct":
        return None if value is None else [written(one.schema, value.get(one.name), null=null) for one in schema.fields]
    if schema.type in {"array", "map"}:
        items = schema.items
        assert items is not None
        if not value:
            return [] if schema.type == "array" else {}
        if schema.type == "map":
            return {key: written(items, part, null=null) for key, part in value.items()}
        return [written(items, part, null=null) for part in value]
    if schema.type == "float" and value is not None:
        return float(f"{value:.7g}")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None and not null and not (schema.name or "").startswith("org.apache.kafka.connect.data."):
        return {"string": "", "bytes": b"", "boolean": False}.get(schema.type, 0)
    return value


@pytest.mark.parametrize("settings_", FORMATS, ids=["plain", "optional", "wrapper"])
@pytest.mark.parametrize("name", NAMES)
def test_what_the_converter_writes_is_read(name: str, settings_: ProtobufFormat) -> None:
    registry = RecordedRegistry()
    converter = ProtobufConverter(registry, settings_)
    for one in conversions("protobuf", name):
        data = converter.data(record(one), one.side, [])
        if data is None:
            continue
        text = {number: text for text, number in registry.schemas.items()}[int.from_bytes(data[1:5], "big")]
        schema, value = decoded(text, data)
        null = settings_.tells_null
        assert same(written(schema, value, null=null), written(one.schema, one.value, null=null))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_bytes_are_read_with_the_recorded_schema(name: str) -> None:
    for one in conversions("protobuf", name):
        if one.data is None or one.schema_text is None:
            continue
        schema, value = decoded(one.schema_text, one.data)
        if name != "temporal-connect":  # a TIME of 24 hours became one of 0
            assert same(written(schema, value, null=False), written(one.schema, one.value, null=False))


KEY = struct(
    "s.d.t.Key",
    {
        "small": Schema("int16"),
        "number": Schema("int64", optional=True),
        "text": Schema("string", optional=True),
        "data": Schema("bytes", optional=True),
        "price": Schema("bytes", optional=True, name=DECIMAL, version=1, parameters=(("scale", "2"),)),
        "values": Schema("array", items=Schema("int32")),
        "vector": Schema("array", optional=True, items=Schema("float")),
        "pairs": Schema("map", keys=Schema("string"), items=Schema("int64")),
    },
)
INT64S = st.integers(-(2**63), 2**63 - 1)
ROWS = st.fixed_dictionaries(
    {
        "small": st.integers(-(2**15), 2**15 - 1),
        "number": st.none() | INT64S,
        "text": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "data": st.none() | st.binary(),
        "price": st.none() | st.integers(-(10**40), 10**40),
        "values": st.lists(st.integers(-(2**31), 2**31 - 1)),
        "vector": st.none() | st.lists(st.floats(width=32, allow_nan=False), min_size=1),
        "pairs": st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), INT64S),
    }
)


@given(ROWS, st.sampled_from(FORMATS[1:]))
@settings(max_examples=200, deadline=None)
def test_any_row_is_read_as_it_was_written(row: dict[str, Any], format_: ProtobufFormat) -> None:
    registry = RecordedRegistry()
    data = ProtobufConverter(registry, format_).data(ConnectRecord("t", None, None, None, KEY, row), "value", [])
    assert data is not None
    [text] = registry.schemas
    assert decoded(text, data)[1] == row


OTHERS = """
// what other writers have
syntax = "proto3";
package a.b;
import "google/protobuf/wrappers.proto";
option java_package = "x";
enum Colour { option allow_alias = true; RED = 0; BLUE = 2; }
message First { reserved 4, 5; }
message Second {
  /* one of two */
  oneof which { string text = 1; sint32 number = 2 [deprecated = true]; }
  map<string, Inner> inner = 3;
  repeated fixed32 packed = 4 [packed = true];
  a.b.Colour colour = 5;
  .a.b.Second.Inner other = 6;
  google.protobuf.Int64Value wrapped = 7;
  message Inner { optional bool flag = 1; extensions 100 to 200; }
}
service Nothing { rpc Call (First) returns (Second) {} }
"""


def test_a_schema_of_another_writer_is_read() -> None:
    schema, decode = ProtobufReader(OTHERS).message((1,))
    assert schema.name == "a.b.Second"
    assert [(one.name, one.schema.type, one.schema.optional) for one in schema.fields] == [
        ("text", "string", True),
        ("number", "int32", True),
        ("inner", "map", False),
        ("packed", "array", False),
        ("colour", "string", False),
        ("other", "struct", True),
        ("wrapped", "int64", True),
    ]
    data = b"\x10\x03\x1a\x07\x0a\x01k\x12\x02\x08\x01\x22\x08" + bits.pack("<II", 1, 2) + b"\x28\x02\x3a\x00"
    assert decode(data) == {
        "text": None,
        "number": -2,
        "inner": {"k": {"flag": True}},
        "packed": [1, 2],
        "colour": "BLUE",
        "other": None,
        "wrapped": 0,
    }


def test_a_nested_message_is_found_by_its_indexes() -> None:
    indexes, start = message_indexes(b"\x04\x02\x00rest")
    assert (indexes, start) == ((1, 0), 3)
    schema, decode = ProtobufReader(OTHERS).message(indexes)
    assert schema.name == "a.b.Second.Inner"
    assert decode(b"\x08\x00") == {"flag": False}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a\x05ab", "needs 5 bytes, but has only 2"),
        (b"\x0a", "ends within a number"),
        (b"\x08\x01", "field text of message Second has the wire type 0"),
        (b"\x78\x01", "message Second has no field 15"),
        (b"\x0b", "has the unknown wire type 3"),
        (b"\x0a\x01\xff", "utf-8"),
        (b"\x38" + b"\xff" * 9, "ends within a number"),
        (b"\x38" + b"\xff" * 11, "a number has more than ten bytes"),
    ],
)
def test_damaged_bytes_are_an_error(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ProtobufReader(OTHERS).message((1,))[1](data)


def test_a_number_has_the_bits_of_its_type() -> None:
    """A writer's field may be wider, and all readers take the lower bits."""
    text = "message A { int32 a = 1; uint32 b = 2; sint32 c = 3; int64 d = 4; }"
    wide = b"\xff" * 9 + b"\x01"
    data = b"".join(tag + wide for tag in (b"\x08", b"\x10", b"\x18", b"\x20"))
    assert ProtobufReader(text).message((0,))[1](data) == {"a": -1, "b": 2**32 - 1, "c": -(2**31), "d": -1}


def test_a_decimal_is_not_moved_to_a_scale_that_no_column_has() -> None:
    text = """import "confluent/type/decimal.proto";
        message A { confluent.type.Decimal a = 1 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}]; }"""
    decimal = b"\x0a\x01\x05\x18\x80\x80\x80\x80\x20"  # 5 with the scale 2**33
    with pytest.raises(ValueError, match="a decimal has the scale 8589934592, but its field has 2"):
        ProtobufReader(text).message((0,))[1](b"\x0a\x09" + decimal)


def test_long_lists_take_a_time_in_proportion() -> None:
    data = b"\x0a\x01a" * 200_000
    assert ProtobufReader("message A { repeated string a = 1; }").message((0,))[1](data) == {"a": ["a"] * 200_000}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message A { B b = 1; }", "refers to B, which it does not define"),
        ("message A { A a = 1; }", "contains itself"),
        ("message A { string b = 1", "ends unexpectedly"),
        ("message A string b = 1;", "'string' where '{' is expected"),
        ("enum A { B = 0; }", r"has no message \[0\]"),
    ],
)
def test_a_schema_that_connect_does_not_have_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ProtobufReader(text).message((0,))


def test_a_date_that_protobuf_does_not_have_is_an_error() -> None:
    schema = struct("a.A", {"d": Schema("int32", name="org.apache.kafka.connect.data.Date", version=1)})
    converter = ProtobufConverter(RecordedRegistry(), ProtobufFormat())
    for days in (2**31 - 1, 3_000_000):
        with pytest.raises(ValueError, match="field 'd' of A: a date is not one of the years 1 to 9999"):
            converter.data(ConnectRecord("t", None, None, None, schema, {"d": days}), "value", [])
