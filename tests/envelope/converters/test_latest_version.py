"""Avro in the latest version of a subject (``use.latest.version``)."""

import io
import json

import fastavro
import pytest

from rowtide.envelope.avro.schemas import avro_schema_text
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.registry import RegisteredSchema, SchemaKind
from rowtide.envelope.schema import INT32, STRING, struct
from rowtide.envelope.transforms.record import ConnectRecord

ROW = struct("t.Row", {"id": INT32, "inner": struct("t.Inner", {"name": STRING})})
VALUE = {"id": 1, "inner": {"name": "a"}}


class Latest:
    """A registry with one version."""

    def __init__(self, text: str) -> None:
        self.text = text

    def registered(self, subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        return RegisteredSchema(9, self.text)


def written(text: str) -> bytes | None:
    return AvroConverter(Latest(text)).data(ConnectRecord("t", None, None, None, ROW, VALUE), "value", [])


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
