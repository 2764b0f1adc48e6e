"""Flatten, HeaderToValue, SwapGeometryCoordinates and VectorToJsonConverter with exact values, and their options."""

from collections.abc import Mapping
from struct import pack
from typing import Any

import pytest

from rowtide.envelope.schema import BYTES, FLOAT32, INT32, INT64, OPTIONAL_INT32, STRING, Schema, struct
from rowtide.envelope.transforms import (
    ConnectRecord,
    Header,
    Plugin,
    TransformConfigurationError,
    TransformError,
    transform_chain,
)
from rowtide.envelope.transforms.geometry import swapped_wkb

KAFKA = "org.apache.kafka.connect.transforms."
DEBEZIUM = "io.debezium.transforms."
ROW = struct("t.Value", {"id": INT32, "n": Schema("int32", optional=True, default=9)}, optional=True)
ENVELOPE = struct("t.Envelope", {"before": ROW, "after": ROW, "op": STRING})
DELETED = {"before": {"id": 1, "n": None}, "after": None, "op": "d"}
HEADERS = (Header("h", STRING, "x"), Header("n", INT64, 7))


def applied(
    type_: str,
    options: Mapping[str, str],
    schema: Schema = ENVELOPE,
    value: Any = DELETED,
    headers: tuple[Header, ...] = HEADERS,
    *,
    exact: bool = True,
) -> ConnectRecord:
    chain = transform_chain([Plugin("a", type_, options)], exact=exact)
    made = chain.apply(ConnectRecord("t", None, None, None, schema, value, headers))
    assert made is not None
    return made


def header_to_value(fields: str, operation: str = "copy", *, exact: bool = True, **options: Any) -> ConnectRecord:
    given = {"headers": "h,n", "fields": fields, "operation": operation}
    return applied(DEBEZIUM + "HeaderToValue", given, exact=exact, **options)


def test_null_stays_null_in_a_flat_struct() -> None:
    flat = applied(KAFKA + "Flatten$Value", {"delimiter": "_"})
    assert flat.value == {"before_id": 1, "before_n": None, "after_id": None, "after_n": None, "op": "d"}
    replaced = applied(KAFKA + "Flatten$Value", {"delimiter": "_"}, exact=False)
    assert replaced.value == {**flat.value, "before_n": 9}, "a struct that is null has no defaults, as in Kafka Connect"


def test_a_map_cannot_be_flattened() -> None:
    schema = struct("t.Value", {"m": Schema("map", keys=STRING, items=INT32)})
    with pytest.raises(TransformError, match="field 'm' is a map, which cannot be flattened: exclude it"):
        applied(KAFKA + "Flatten$Value", {}, schema, {"m": {}})


def test_a_header_does_not_become_a_field_of_a_missing_row() -> None:
    """Debezium makes ``after`` required, so that its converter fails on a deletion."""
    made = header_to_value("after.h,op_n", "move")
    assert made.headers == HEADERS[:1], "it is not lost"
    assert made.value == {**DELETED, "op_n": 7}
    assert made.value_schema is not None
    after = made.value_schema.field("after")
    assert after is not None
    assert after.schema.optional
    assert [field.name for field in after.schema.fields] == ["id", "n", "h"]
    with pytest.raises(TransformError, match="field 'after' is null, so a header cannot become a field in it"):
        header_to_value("after.h,op_n", exact=False)


def test_structs_are_made_for_the_whole_path() -> None:
    """Debezium loses the field within two structs that do not exist yet."""
    made = header_to_value("a.b.c,a.d")
    assert made.value["a"] == {"d": 7, "b": {"c": "x"}}


def test_records_can_have_different_headers() -> None:
    """Debezium uses the schema of the first record for all of them."""
    chain = transform_chain(
        [Plugin("a", DEBEZIUM + "HeaderToValue", {"headers": "h,n", "fields": "h,n", "operation": "move"})]
    )
    for headers in (HEADERS[:1], HEADERS, ()):
        made = chain.apply(ConnectRecord("t", None, None, None, ENVELOPE, DELETED, headers))
        assert made is not None
        assert made.value == {**DELETED, **{one.name: one.value for one in headers}}
        assert made.headers == ()


@pytest.mark.parametrize(
    ("fields", "headers", "message"),
    [
        ("op.x,n", HEADERS, "field 'op' has type string: a header cannot become a field in it"),
        ("h,op", HEADERS, "field 'op' has type string, but its header has int64"),
        ("h,n", (Header("h", None, None),), "header 'h' is null, so it has no type for a field"),
    ],
)
def test_a_header_that_cannot_become_a_field(fields: str, headers: tuple[Header, ...], message: str) -> None:
    with pytest.raises(TransformError, match=message):
        header_to_value(fields, headers=headers)


@pytest.mark.parametrize(
    ("type_", "options", "names"),
    [
        ("HeaderToValue", {}, ["headers", "fields", "operation"]),
        ("HeaderToValue", {"headers": "a,b c", "fields": "x", "operation": "swap"}, ["headers", "fields", "operation"]),
        ("SwapGeometryCoordinates", {"srids": "4326,wgs84"}, ["srids"]),
        ("GeometryFormatTransformer", {"format": "wkt"}, ["format"]),
        ("VectorToJsonConverter", {"format": "json"}, ["format"]),
    ],
)
def test_wrong_options_are_reported(type_: str, options: dict[str, str], names: list[str]) -> None:
    with pytest.raises(TransformConfigurationError) as caught:
        transform_chain([Plugin("a", DEBEZIUM + type_, options)])
    assert [problem.property for problem in caught.value.problems] == [f"transforms.a.{name}" for name in names]


def test_swapping_twice_gives_the_same_geometry() -> None:
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    line = bytes.fromhex("00000000020000000200000000000000000000000000000001") + bytes(range(16))
    collection = bytes.fromhex("010700000002000000") + point + line  # the second one has the other byte order
    assert swapped_wkb(point) == bytes.fromhex("010100000000000000000000400000000000" + "00f03f")
    assert swapped_wkb(swapped_wkb(collection)) == collection
    assert swapped_wkb(collection)[9:] == swapped_wkb(point) + swapped_wkb(line)


GEOMETRY = struct("io.debezium.data.geometry.Geometry", {"wkb": BYTES, "srid": OPTIONAL_INT32})


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_geometry_becomes_extended_and_back(order: str) -> None:
    def reformatted(wkb: bytes, srid: int | None, form: str = "wkb") -> Any:
        value = {"g": {"wkb": wkb, "srid": srid}}
        record = applied(
            DEBEZIUM + "GeometryFormatTransformer", {"format": form}, struct("t.Value", {"g": GEOMETRY}), value
        )
        return record.value["g"]["wkb"]

    mark = b"\x01" if order == "<" else b"\x00"
    point = mark + pack(order + "Idd", 1, 1.0, 2.0)
    extended = mark + pack(order + "IIdd", 0x20000001, 4326, 1.0, 2.0)
    assert reformatted(point, 4326) == extended
    assert reformatted(extended, 4326) == reformatted(extended, 4326, "ewkb") == point
    assert reformatted(point, 4326, "ewkb") == reformatted(point, None) == point
    with pytest.raises(TransformError, match="ends unexpectedly"):
        reformatted(b"\x01\x01", 4326)


@pytest.mark.parametrize(
    ("wkb", "message"), [("01010000", "ends unexpectedly, after 4"), ("0108000000", "8 is not a type")]
)
def test_bytes_that_are_not_a_geometry(wkb: str, message: str) -> None:
    value = {"g": {"wkb": bytes.fromhex(wkb), "srid": 4326}}
    with pytest.raises(TransformError, match=message):
        applied(DEBEZIUM + "SwapGeometryCoordinates", {}, struct("t.Value", {"g": GEOMETRY}), value)


def test_null_stays_null_next_to_a_vector() -> None:
    vector = Schema("array", name="io.debezium.data.FloatVector", version=1, items=FLOAT32)
    schema = struct("t.Value", {"v": vector, **{field.name: field.schema for field in ROW.fields}})
    value = {"v": [0.5, 1e10], "id": 1, "n": None}
    made = applied(DEBEZIUM + "VectorToJsonConverter", {}, schema, value)
    assert made.value == {"v": '{ "values": [0.5, 1.0E10] }', "id": 1, "n": None}
    assert applied(DEBEZIUM + "VectorToJsonConverter", {}, schema, value, exact=False).value["n"] == 9
