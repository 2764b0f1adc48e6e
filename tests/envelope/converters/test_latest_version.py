"""Avro in the latest version of a subject (``use.latest.version``)."""

import io
import json
from decimal import Decimal

import fastavro
import pytest

from rowtide.envelope.avro.schemas import AvroFormat, avro_schema_text
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.registry import RegisteredSchema, SchemaKind
from rowtide.envelope.schema import BYTES, DECIMAL, FLOAT64, INT32, INT64, STRING, Schema, struct
from rowtide.envelope.transforms.record import ConnectRecord

MILLIS = Schema("int64", name="io.debezium.time.Timestamp", version=1)
DECIMALS = Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", "3"), ("connect.decimal.precision", "10")))
ROW = struct("t.Row", {"id": INT32, "inner": struct("t.Inner", {"name": STRING})})
VALUE = {"id": 1, "inner": {"name": "a"}}


class Latest:
    """A registry with one version."""

    def __init__(self, text: str) -> None:
        self.text = text

    def registered(self, subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        return RegisteredSchema(9, self.text)


def written(text: str) -> bytes | None:
    return AvroConverter(Latest(text), AvroFormat()).data(ConnectRecord("t", None, None, None, ROW, VALUE), "value", [])


def test_a_version_with_more_fields_is_written() -> None:
    latest = json.loads(avro_schema_text(ROW))
    latest["fields"].insert(0, {"name": "more", "type": ["null", "int"], "default": None})
    data = written(json.dumps(latest))
    assert data is not None
    assert data[:5] == b"\0\0\0\0\x09"
    assert fastavro.schemaless_reader(io.BytesIO(data[5:]), latest, None) == {"more": None, **VALUE}


def test_a_version_that_lacks_a_field_would_lose_its_values() -> None:
    latest = json.loads(avro_schema_text(ROW))
    latest["fields"][1]["type"]["fields"] = []
    with pytest.raises(ValueError, match=r"lacks the field inner\.name, whose values would be lost"):
        written(json.dumps(latest))


@pytest.mark.parametrize(
    ("schema", "latest", "reason"),
    [
        (INT64, "int", "v is int instead of long"),
        (STRING, "int", "v is int instead of string"),
        (INT32, "string", "v is string instead of int"),
        (STRING, "bytes", "v is bytes instead of string"),
        (BYTES, "string", "v is string instead of bytes"),
        (FLOAT64, "long", "v is long instead of double"),
        (FLOAT64, "float", "v is float instead of double"),
        (STRING, "boolean", "v is boolean instead of string"),
        (
            DECIMALS,
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            r"v is bytes \(decimal\(10, 2\)\) instead of bytes \(decimal\(10, 3\)\)",
        ),
        (
            DECIMALS,
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
            r"v is bytes \(decimal\(9, 3\)\)",
        ),
        (
            MILLIS,
            {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
            "v is io.debezium.time.MicroTimestamp instead",
        ),
        (STRING.with_optional(True), "string", "v may be null, which that version does not allow"),
        (STRING.with_optional(True), ["null"], "v would always be null"),
        (Schema("array", items=INT64), {"type": "array", "items": "int"}, r"v\[\] is int instead of long"),
        (INT32, {"type": "enum", "name": "e", "symbols": ["a"]}, "v is enum instead of int"),
    ],
)
def test_a_version_whose_types_would_change_values_is_not_written(schema: Schema, latest: object, reason: str) -> None:
    latest_text = json.dumps(
        {"type": "record", "name": "Row", "namespace": "t", "fields": [{"name": "v", "type": latest}]}
    )
    record = ConnectRecord("t", None, None, None, struct("t.Row", {"v": schema}), {"v": None})
    with pytest.raises(ValueError, match=f"latest version of subject t-value cannot represent the values: {reason}"):
        AvroConverter(Latest(latest_text), AvroFormat()).data(record, "value", [])


@pytest.mark.parametrize(
    ("schema", "value", "latest"),
    [
        (INT32, 5, "long"),
        (INT32, 5, ["null", "int"]),
        (INT32.with_optional(True), None, ["string", "null", "long"]),
        (MILLIS, 5, "long"),
        (DECIMALS, 5, {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}),
    ],
)
def test_a_version_with_wider_types_is_written(schema: Schema, value: object, latest: object) -> None:
    text = json.dumps({"type": "record", "name": "Row", "namespace": "t", "fields": [{"name": "v", "type": latest}]})
    record = ConnectRecord("t", None, None, None, struct("t.Row", {"v": schema}), {"v": value})
    data = AvroConverter(Latest(text), AvroFormat()).data(record, "value", [])
    assert data is not None
    found = fastavro.schemaless_reader(io.BytesIO(data[5:]), json.loads(text), None)
    assert found == {"v": Decimal("0.005") if schema is DECIMALS else value}


def test_a_version_with_a_field_that_has_neither_values_nor_a_default() -> None:
    latest = json.loads(avro_schema_text(ROW))
    latest["fields"].append({"name": "more", "type": "int"})
    with pytest.raises(ValueError, match="its field more has neither values nor a default"):
        written(json.dumps(latest))
