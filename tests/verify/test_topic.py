"""The records of a topic are read by the ids of their schemas, whichever converter wrote them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from rowtide.decoder.decoder import Decoder
from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.registry import RegisteredSchema, SchemaIds, SchemaKind
from rowtide.envelope.json.reader import schema_from_json, value_from_json
from rowtide.envelope.transforms.record import ConnectRecord
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord
from rowtide.verify.topic import Topic, TopicRecord
from tests.support.recordings.golden import Case

TOPIC = "keys.k.comp"


class Found(NamedTuple):
    """A schema, as confluent-kafka's client gives it."""

    schema_type: SchemaKind
    schema_str: str


class Registry:
    """Registers schemas, and finds them by both ids."""

    def __init__(self) -> None:
        self._schemas: list[Found] = []

    def registered(self, _subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        if (found := Found(kind, text)) not in self._schemas:
            self._schemas.append(found)
        number = self._schemas.index(found)
        return RegisteredSchema(number, text, uuid.UUID(int=number))

    def get_schema(self, number: int) -> Found:
        return self._schemas[number]

    def get_schema_by_guid(self, guid: str) -> Found:
        return self._schemas[uuid.UUID(guid).int]


class Reader:
    """A topic of these records."""

    def __init__(self, records: list[StoredRecord]) -> None:
        self._records = records

    def extents(self, _name: str) -> Mapping[int, Extent]:
        return {0: Extent(0, len(self._records))}

    def read(self, _name: str, _extents: Mapping[int, Extent]) -> Iterator[StoredRecord]:
        yield from self._records


def recorded() -> list[StoredRecord]:
    """The records of a table, in JSON with schemas."""
    found = [one for one in Case("keys").records if one["topic"] == TOPIC]
    return [
        StoredRecord(0, at, 0, one["key"] and one["key"].encode(), one["value"] and one["value"].encode())
        for at, one in enumerate(found)
    ]


def rewritten(record: StoredRecord, converter: AvroConverter) -> StoredRecord:
    headers: list[tuple[str, bytes | None]] = []
    schemas, values = [], []
    for text in (record.key, record.value):
        given = None if text is None else json.loads(text)
        schemas.append(None if given is None else schema_from_json(given["schema"]))
        values.append(None if given is None else value_from_json(schemas[-1], given["payload"]))
    one = ConnectRecord(TOPIC, None, schemas[0], values[0], schemas[1], values[1])
    key, value = converter.data(one, "key", headers), converter.data(one, "value", headers)
    return StoredRecord(0, record.offset, 0, key, value, tuple(headers))


@pytest.mark.parametrize("ids", SchemaIds)
def test_the_changes_in_avro_are_those_in_json(ids: SchemaIds) -> None:
    registry = Registry()
    records, converter = recorded(), AvroConverter(registry, AvroFormat(), ids=ids)
    written = [rewritten(record, converter) for record in records]
    assert all(one.value != other.value for one, other in zip(records, written, strict=True) if one.value)
    found = list(Topic([TOPIC], Reader(written), Decoder(registry)).new_records())  # type: ignore[arg-type]
    expected = list(Topic([TOPIC], Reader(records), Decoder()).new_records())  # type: ignore[arg-type]
    assert [one.place for one in found] == [one.place for one in expected]
    assert list(map(facts, found)) == list(map(facts, expected))
    assert {one.change.op for one in found if one.change} >= {"c", "u", "d"}


def facts(record: TopicRecord) -> object:
    change = record.change
    return None if change is None else (change.op, change.key, change.before, change.after, change.position)
