"""Tables of topics in Avro and Protobuf equal those of the same records in JSON."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.claim_check import ClaimCheck
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.protobuf import ProtobufConverter
from rowtide.envelope.converters.registry import RegisteredSchema, SchemaIds, SchemaKind
from rowtide.envelope.protobuf.messages import ProtobufFormat
from rowtide.envelope.transforms.record import ConnectRecord
from rowtide.spark_consumers.errors import RegistryError
from rowtide.spark_consumers.settings import Layout
from tests.spark_consumers.test_tables_of_recorded_topics import TOPICS
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.enveloped import parse_enveloped
from tests.support.recordings.recorded_tables import Recorded, fold, recorded, same_rows

pytestmark = pytest.mark.spark

NULLS = ProtobufFormat(optional_for_nullables=True, scrub_invalid_names=True)
ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}


class Registry:
    """A registry in memory, as converters and ``rowtide tables`` see it."""

    def __init__(self) -> None:
        self.kinds: list[tuple[SchemaKind, str]] = []

    def registered(self, _subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        if (kind, text) not in self.kinds:
            self.kinds.append((kind, text))
        number = self.kinds.index((kind, text)) + 1
        return RegisteredSchema(number, text, uuid.UUID(int=number))

    def __call__(self, number: int | bytes) -> tuple[str, str]:
        place = number if isinstance(number, int) else int.from_bytes(number, "big")
        if place > len(self.kinds):
            raise RegistryError(f"the schema registry does not have schema {place}")
        return self.kinds[place - 1]


Row = dict[str, Any]


def written(records: list[Recorded], converter: Any) -> list[Row]:
    """The records as a converter writes them."""
    return [of_converter(record, converter) for record in records]


def of_converter(record: Recorded, converter: Any) -> Row:
    key_schema, key = parse_enveloped(record.key) if record.key else (None, None)
    schema, value = parse_enveloped(record.value) if record.value else (None, None)
    given = ConnectRecord(record.topic, None, key_schema, key, schema, value)
    headers: list[tuple[str, bytes | None]] = []
    sides = {side: converter.data(given, side, headers) for side in ("key", "value")}
    named = [{"key": name, "value": data} for name, data in headers]
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset, "headers": named, **sides}


@pytest.fixture
def tables(spark, tmp_path: Path):
    """Return a function that makes tables of records and returns the outcomes by topic."""
    import pyarrow as pa

    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    kinds = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
    schema = pa.schema([*kinds, ("key", pa.binary()), ("value", pa.binary()), ("headers", header)])

    def make(rows: list[Row], registry: Registry, schemas: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
        settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), schemas=schemas or {}, registry=registry, **more)
        return {one.name.topic: one for one in update_tables(spark, FrameSource(frame), settings, ".*")}

    return make


SOME = ("num.decs", "tim.ts", "k.comp")
"""Decimals, dates and times, and a topic whose key changes."""


def topics(names: Collection[str]) -> dict[str, list[Recorded]]:
    """The records of recorded topics, by topic."""
    found: dict[str, list[Recorded]] = {
        f"{case}.{topic}": [] for case, inside in TOPICS.items() for topic in inside if topic in names
    }
    for case in {name.partition(".")[0] for name in found}:
        for record in recorded(case):
            if record.topic in found:
                found[record.topic].append(record)
    return found


def described(records: list[Recorded]) -> dict[str, Any]:
    """The schemas of a topic, as the schema history has them: with the columns of all versions."""
    keys = [json.loads(record.key)["schema"] for record in records if record.key]
    values = [json.loads(record.value)["schema"] for record in records if record.value]
    fields = {field["field"]: field for schema in keys for field in schema["fields"]}
    return {"value": values[-1], **({"key": {**keys[-1], "fields": [*fields.values()]}} if keys else {})}


@pytest.mark.parametrize(
    "names",
    [SOME, pytest.param([name for inside in TOPICS.values() for name in inside], marks=pytest.mark.nightly)],
    ids=["some", "all"],
)
@pytest.mark.parametrize("kind", [AvroConverter, pytest.param(ProtobufConverter, marks=pytest.mark.nightly)])
def test_tables_are_those_of_the_same_records_in_json(
    tables, rows_of, tmp_path: Path, kind: Any, names: Collection[str]
) -> None:
    registry, by_topic = Registry(), topics(names)
    form = AvroFormat(scrub_invalid_names=True) if kind is AvroConverter else NULLS
    rows = []
    for records, ids in zip(by_topic.values(), cycle(SchemaIds)):
        rows += written(records, kind(registry, form, ids=ids))
    schemas = {topic: described(records) for topic, records in by_topic.items()}
    found = tables(rows, registry, {} if kind is AvroConverter else schemas)
    assert {topic: one.error for topic, one in found.items()} == dict.fromkeys(by_topic)
    for topic, records in by_topic.items():
        assert found[topic].records == len(records)
        same_rows(rows_of(str(tmp_path / found[topic].name.path)), fold(records))


def test_a_topic_may_have_records_in_every_form(tables, rows_of, tmp_path: Path) -> None:
    registry = Registry()
    records = [row_of(number, "v" * number) for number in range(6)]
    avro, headed = AvroConverter(registry, AvroFormat()), AvroConverter(registry, AvroFormat(), ids=SchemaIds.HEADER)
    rows = [of_converter(record, (avro, headed)[at % 2]) for at, record in enumerate(records[:4])]
    for record in records[4:]:
        key, value = (text.encode() for text in (record.key or "", record.value or ""))
        rows.append({"topic": "p.d.t", "partition": 0, "offset": record.offset, "key": key, "value": value})
    for row in rows[1:5]:
        row["value"] = claim_check(tmp_path / "claims", row["value"])
    [found] = tables(rows, registry, claim_checks=str(tmp_path / "claims")).values()
    assert found.error is None
    same_rows(rows_of(str(tmp_path / found.name.path)), [{"id": number, "text": "v" * number} for number in range(6)])


def test_a_message_that_cannot_be_decoded_is_named_and_leaves_the_table_alone(tables, tmp_path: Path) -> None:
    for kind in (AvroConverter, ProtobufConverter):
        registry = Registry()
        topic = f"p.d.{kind.__name__}"
        records = [row_of(number, "abc", topic) for number in range(3)]
        rows = written(records, kind(registry, NULLS if kind is ProtobufConverter else AvroFormat()))
        rows[1]["value"] = rows[1]["value"][:-1]
        [found] = tables(rows, registry, {topic: described(records)}).values()
        assert f"topic {topic}, partition 0, offset 1: the value does not fit schema 2" in found.error
        assert not (tmp_path / found.name.path).exists()
        rows[1]["value"] = b"\0\1"
        [found] = tables(rows, registry).values()
        assert f"topic {topic}, partition 0, offset 1: the value begins with a zero byte, but does not" in found.error


@pytest.mark.parametrize("kind", [AvroConverter, pytest.param(ProtobufConverter, marks=pytest.mark.nightly)])
def test_history_needs_envelopes_in_any_form(tables, rows_of, tmp_path: Path, kind: Any) -> None:
    from tests.spark_consumers.test_histories import expected, versions

    topic, registry, placeless = Topic("p.d.t", [ID, TEXT], ["id"]), Registry(), Topic("p.d.flat", [ID, TEXT], ["id"])
    first, second = {"id": 1, "text": "a"}, {"id": 1, "text": None}
    topic.change("c", None, first, 10)
    topic.change("u", first, second, 20)
    topic.change("u", second, first, 20, row=1)
    topic.change("d", first, None, 30)
    topic.tombstone({"id": 1})
    topic.change("c", None, second, 40)
    # The same row after ExtractNewRecordState.
    schema = {"type": "struct", "fields": [ID, TEXT], "optional": False}
    key = {"type": "struct", "fields": [ID], "optional": False}
    placeless._append(0, placeless._message(key, {"id": 1}), placeless._message(schema, first))
    converter = kind(registry, NULLS if kind is ProtobufConverter else AvroFormat())
    schemas = {"p.d.t": described(topic.records)}
    rows = written([*topic.records, *placeless.records], converter)
    found = tables(rows, registry, schemas, layout=Layout.HISTORY)
    assert found["p.d.t"].error is None
    assert versions(rows_of(str(tmp_path / "p.d.t"))) == expected(topic)
    assert "topic p.d.flat, partition 0, offset 0" in found["p.d.flat"].error
    assert "remove the transform that unwraps the envelope (ExtractNewRecordState)" in found["p.d.flat"].error
    assert not (tmp_path / "p.d.flat").exists()


def test_a_schema_that_the_registry_lacks_names_the_first_record(tables, tmp_path: Path) -> None:
    registry = Registry()
    rows = written([row_of(number, "abc") for number in range(3)], AvroConverter(registry, AvroFormat()))
    rows[2]["value"] = b"\0\0\0\0\x63rest"
    [found] = tables(rows, registry).values()
    assert found.error == (
        "topic p.d.t, partition 0, offset 2: the value names schema 99: the schema registry does not have schema 99"
    )
    assert not (tmp_path / found.name.path).exists()


def test_null_that_cannot_be_told_from_an_empty_text_is_an_error(tables) -> None:
    registry = Registry()
    records = [row_of(1, "abc")]
    [found] = tables(
        written(records, ProtobufConverter(registry, ProtobufFormat())), registry, {"p.d.t": described(records)}
    ).values()
    assert "NULL in column text cannot be distinguished from zero or an empty string" in found.error
    assert "value.converter.optional.for.nullables=true" in found.error


def claim_check(folder: Path, value: bytes) -> bytes:
    """Put a value into the folder of claim checks, and return what is in Kafka instead."""
    digest = hashlib.sha256(value).hexdigest()
    (folder / "p.d.t").mkdir(parents=True, exist_ok=True)
    (folder / "p.d.t" / digest).write_bytes(value)
    return ClaimCheck(f"s3://elsewhere/p.d.t/{digest}", digest, len(value)).record_value()


def row_of(number: int, text: str, topic: str = "p.d.t") -> Recorded:
    row = {"type": "struct", "fields": [ID, TEXT], "optional": True, "name": f"{topic}.Value"}
    source = {"type": "struct", "fields": [], "optional": False, "name": "src", "field": "source"}
    fields = [{**row, "field": "before"}, {**row, "field": "after"}, source, {"type": "string", "field": "op"}]
    schema = {"type": "struct", "fields": fields, "optional": False, "name": f"{topic}.Envelope"}
    payload = {"before": None, "after": {"id": number, "text": text}, "source": {}, "op": "c"}
    key = {"type": "struct", "fields": [ID], "optional": False, "name": f"{topic}.Key"}
    return Recorded(
        topic,
        0,
        number,
        json.dumps({"schema": key, "payload": {"id": number}}),
        json.dumps({"schema": schema, "payload": payload}),
    )
