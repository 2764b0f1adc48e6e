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
