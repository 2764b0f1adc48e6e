"""Everything that Confluent's AvroConverter made of the recorded records: schemas and bytes."""

import io
import json
import math
from typing import Any

import fastavro
import pytest

from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.registry import SubjectNames
from rowtide.envelope.transforms.record import ConnectRecord
from tests.support.recordings.converted import Converted, RecordedRegistry, conversions, files, subjects

OPTIONS = {
    "connect-meta-data-false": {"connect_meta_data": False},
    "scrub": {"scrub_invalid_names": True},
    "discard-type-doc-default": {"discard_type_doc_default": True},
}
NAMES = [name for name in files("avro") if any(conversions("avro", name)) and "no-auto-register" not in name]
"""Some cases have no records; without registration there are errors only."""
SUBJECTS = {"record-name": SubjectNames.RECORD, "topic-record-name": SubjectNames.TOPIC_RECORD}


def record(given: Converted) -> ConnectRecord:
    key = given.side == "key"
    schema, value = given.schema, given.value
    return ConnectRecord(
        given.topic,
        None,
        schema if key else None,
        value if key else None,
        None if key else schema,
        None if key else value,
    )


def decoded(schema: str, data: bytes) -> Any:
    """The value of Avro's bytes. The order of a map's entries means nothing, but that of their bytes differs."""
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(json.loads(schema)), None)


def same(found: Any, expected: Any) -> bool:
    """Whether two values are equal; -0.0, which JSON has lost, equals 0.0."""
    if isinstance(found, float) and isinstance(expected, float):
        return found == expected or (math.isnan(found) and math.isnan(expected))
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[name], expected[name]) for name in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


@pytest.mark.parametrize("name", NAMES)
def test_schemas_and_bytes_are_those_of_the_converter(name: str) -> None:
    option = name.rpartition(".")[2]
    registry = RecordedRegistry()
    settings = AvroFormat(replace_null_with_default=True, **OPTIONS.get(option, {}))
    converter = AvroConverter(registry, settings, SUBJECTS.get(option, SubjectNames.TOPIC))
    for given in conversions("avro", name):
        if given.error is not None:
            with pytest.raises(ValueError, match="not valid in Avro"):
                converter.data(record(given), given.side, [])
            continue
        data = converter.data(record(given), given.side, [])
        if given.data is None or data is None:
            assert data is given.data is None
            continue
        by_id = {number: text for text, number in registry.schemas.items()}
        assert data[0] == 0
        written = by_id[int.from_bytes(data[1:5], "big")]
        assert written == given.schema_text
        if data[5:] != given.data[5:]:
            assert same(decoded(written, data[5:]), decoded(written, given.data[5:]))
            assert len(data) == len(given.data)


@pytest.mark.parametrize("option", SUBJECTS)
def test_subjects_are_those_of_the_strategy(option: str) -> None:
    name = f"options/keys.{option}"
    registry = RecordedRegistry()
    converter = AvroConverter(registry, AvroFormat(replace_null_with_default=True), SUBJECTS[option])
    for given in conversions("avro", name):
        converter.data(record(given), given.side, [])
    assert {subject: len(versions) for subject, versions in registry.subjects.items()} == subjects("avro", name)
