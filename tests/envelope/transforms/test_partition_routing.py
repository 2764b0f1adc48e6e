"""Partitions compared with those of Debezium's PartitionRouting.

``partitions.json.gz`` has what the original class (Debezium 3.6.1.Final, Java 17) chose for changes with every type:
fields, number of partitions, hash function, change, partition.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rowtide.envelope.java_hashes import java_hash
from rowtide.envelope.schema import (
    BOOLEAN,
    BYTES,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT64,
    STRING,
    Schema,
    struct,
)
from rowtide.envelope.transforms import (
    ConnectRecord,
    TransformConfigurationError,
    TransformError,
)
from tests.support.transforms import chain_from_properties

CONNECT = "org.apache.kafka.connect.data."
FIELDS = {
    "i8": INT8,
    "i16": INT16,
    "i": INT32,
    "l": INT64,
    "f": FLOAT32,
    "d": FLOAT64,
    "b": BOOLEAN,
    "s": STRING,
    "dec": Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", "2"),)),
    "date": Schema("int32", name=f"{CONNECT}Date", version=1),
    "time": Schema("int32", name=f"{CONNECT}Time", version=1),
    "ts": Schema("int64", name=f"{CONNECT}Timestamp", version=1),
}
ROW = struct("s.d.t.Value", {name: schema.with_optional(True) for name, schema in FIELDS.items()}, optional=True)
SOURCE = struct("io.debezium.connector.mysql.Source", {"table": STRING, "pos": INT64})
ENVELOPE = struct(
    "s.d.t.Envelope", {"before": ROW, "after": ROW, "source": SOURCE, "op": STRING, "ts_ms": OPTIONAL_INT64}
)
RECORDED = json.loads(gzip.decompress((Path(__file__).parent / "partitions.json.gz").read_bytes()))
CHANGE = {"before": None, "after": {"i": 7}, "source": {"table": "t", "pos": 4}, "op": "c", "ts_ms": 5}


def partition(fields: str, number: str, function: str, value: Any) -> int | None:
    chain = chain_from_properties(
        {
            "transforms": "p",
            "transforms.p.type": "io.debezium.transforms.partitions.PartitionRouting",
            "transforms.p.partition.payload.fields": fields,
            "transforms.p.partition.topic.num": number,
            "transforms.p.partition.hash.function": function,
        }
    )
    record = chain.apply(ConnectRecord("s.d.t", None, None, None, ENVELOPE if value else None, value))
    assert record is not None
    return record.partition


@pytest.mark.parametrize("function", ["java", "murmur"])
def test_partitions_are_those_of_debezium(function: str) -> None:
    cases = [one for one in RECORDED if one[2] == function]
    assert len(cases) > 50
    for fields, number, _, value, expected in cases:
        assert partition(fields, str(number), function, value) == expected


def test_a_record_without_the_fields_keeps_its_partition() -> None:
    for value in (None, {**CHANGE, "op": "t", "after": None}, {**CHANGE, "after": None}):
        assert partition("change.i", "8", "java", value) is None
    assert partition("change.i", "8", "java", CHANGE) == 7
    assert partition("before.i, after.i", "8", "java", CHANGE) == 7, "Debezium fails on a row that is null"


def test_a_struct_has_no_hash() -> None:
    with pytest.raises(TransformError, match=r"partition\.payload\.fields: source: a struct has no hash"):
        partition("source", "8", "java", CHANGE)


def test_bytes_have_the_hash_of_a_byte_buffer() -> None:
    assert java_hash(BYTES, b"\x01\xff") == ((31 - 1) * 31 + 1) & 0xFFFFFFFF


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(TransformConfigurationError) as caught:
        partition("", "0", "sha", CHANGE)
    assert [problem.property for problem in caught.value.problems] == [
        "transforms.p.partition.payload.fields",
        "transforms.p.partition.topic.num",
        "transforms.p.partition.hash.function",
    ]
