"""The parts of a message that are found without parsing it."""

import json

import pytest

pytestmark = pytest.mark.spark

TAILS = [
    ('"op":"u","ts_ms":1,"ts_us":1000,"ts_ns":1000000', "u"),
    ('"transaction":null,"op":"r","ts_ms":null', "r"),
    ('"op":"d","ts_ms":1,"transaction":null', "d"),
    ('"op":"c"', "c"),
    ('"op" : "c", "ts_ms": 1', "c"),
    ('"op":"c","transaction":{"id":"1","op":"x"}', "c"),
    ('"op":"c","more":{"op":"x"}', "c"),
    ('"op":"c","text":' + json.dumps(',"op":"x","ts_ms":1}'), "c"),
    (json.dumps('x,"op":"y') + ':1,"op":"c","ts_ms":1', "c"),
    ('"text":"' + "ä" * 200 + '","op":"c","ts_ms":1', "c"),
    ('"op":null,"ts_ms":1', None),
    ('"ts_ms":1', None),
]
"""The end of an envelope, and its operation."""


def test_the_operation_is_that_of_the_envelope(spark) -> None:
    from rowtide.spark_consumers.messages.records import split_messages

    values = [f'{{"before":null,"after":{{"op":"z"}},{tail}}}' for tail, _ in TAILS]
    values += [f'{{"schema":{{"type":"struct"}},"payload":{value}}}' for value in values]
    rows = [(0, number, None, bytearray(value.encode())) for number, value in enumerate(values)]
    raw = spark.createDataFrame(rows, "partition int, offset bigint, key binary, value binary")
    found = split_messages(raw).orderBy("offset").select("op").collect()
    assert [row["op"] for row in found] == [operation for _, operation in TAILS] * 2


def test_the_schemas_of_a_sample_are_those_that_were_written_first_and_without_whitespace() -> None:
    from rowtide.spark_consumers.messages.records import known_schemas

    escaped = json.dumps({"type": "struct", "default": ',"payload":'}, separators=(",", ":"))
    written = [
        (b'{"schema":{"type":"int32"},"payload":1}', f'{{"schema":{escaped},"payload":{{}}}}'.encode()),
        (b'{"schema":{"type":"int32"},"payload":2}', None),
        (None, '{"schema":{"name":"ä"},"payload":{"schema":{},"payload":1}}'.encode()),
    ]
    found = known_schemas(written)
    assert set(found.key.values()) == {'{"type":"int32"}'}
    assert set(found.value.values()) == {escaped, '{"name":"ä"}'}
    others = [
        b'{"schema":null,"payload":1}',
        b'{"before":null,"after":{"a":1}}',
        b'{ "schema":{},"payload":1}',
        b'{"schema":{}}',
        b"",
    ]
    assert known_schemas((other, other) for other in others) == known_schemas([])


def test_a_schema_that_is_not_utf_8_is_the_schema_of_no_message(spark) -> None:
    from rowtide.spark_consumers.messages.records import known_schemas, split_messages

    value = bytearray(b'{"schema":{"name":"\xe4"},"payload":{"op":"c"}}')
    known = known_schemas([(None, bytes(value))])
    raw = spark.createDataFrame([(0, 0, None, value)], "partition int, offset bigint, key binary, value binary")
    assert split_messages(raw, known).collect()[0]["value_version"] not in known.value
