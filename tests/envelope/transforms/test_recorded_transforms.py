"""Transforms compared byte for byte with those of Debezium and Kafka Connect.

``recorded.json.gz`` contains the output of the original classes (Debezium 3.6.1.Final, Kafka 4.3.1, Java 17) for
records of the golden cases and for records that it contains itself. The converter does not replace nulls by defaults,
so that it is visible which transform replaces them. An ``error`` is the exception of the reference, where rowtide stops
too; records that rowtide processes although the reference fails are skipped.
"""

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rowtide.envelope.json.headers import header_text
from rowtide.envelope.json.text import JsonFormat, enveloped_text
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms import ConnectRecord, Header, TransformError
from tests.support.recordings.enveloped import parse_enveloped
from tests.support.transforms import chain_from_properties

TESTS = Path(__file__).parents[2]
RECORDED = json.loads(gzip.decompress((Path(__file__).parent / "recorded.json.gz").read_bytes()))
WITH_NULLS = JsonFormat(replace_null_with_default=False)


@cache
def golden(case: str) -> dict[tuple[str, int, int], dict[str, Any]]:
    with gzip.open(TESTS / "golden" / case / "golden" / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return {(record["topic"], record["partition"], record["offset"]): record for record in records}


def parsed(text: str | None) -> tuple[Schema | None, Any]:
    return (None, None) if text is None else parse_enveloped(text)


def input_record(description: Mapping[str, Any]) -> ConnectRecord:
    if "record" in description:
        record = description["record"]
        headers = tuple(Header(name, *parsed(text)) for name, text in record["headers"])
        timestamp = record["timestamp"]
    else:
        case, topic, partition, offset = description["golden"]
        record = golden(case)[topic, partition, offset]
        headers = tuple(Header(name, Schema("string"), text) for name, text in record["headers"])
        timestamp = 1700000000123
    key, value = parsed(record["key"]), parsed(record["value"])
    return ConnectRecord(record["topic"], record["partition"], *key, *value, headers, timestamp)


def text(schema: Schema | None, value: Any) -> str | None:
    return None if schema is None else enveloped_text(schema, value, WITH_NULLS)


def output(record: ConnectRecord | None, headers_before: int) -> dict[str, Any] | None:
    if record is None:
        return None
    added = record.headers[headers_before:]
    headers = [[one.name, None if one.schema is None else header_text(one.schema, one.value)] for one in added]
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": text(record.key_schema, record.key),
        "value": text(record.value_schema, record.value),
        "added_headers": headers,
    }


CASES = [(group["inputs"], case) for group in RECORDED["groups"] for case in group["cases"]]


@pytest.mark.parametrize(
    ("inputs", "case"),
    CASES,
    ids=[
        ",".join(f"{k.partition('.')[2]}={v}" for k, v in case["config"].items() if "." in k)[:80] for _, case in CASES
    ],
)
def test_transforms_equal_the_reference(inputs: list[Any], case: dict[str, Any]) -> None:
    chain = chain_from_properties(case["config"])
    compared = 0
    for description, expected in zip(inputs, case["outputs"], strict=True):
        if expected is not None and expected.get("fails"):
            continue
        record = input_record(description)
        compared += 1
        if expected is not None and "error" in expected:
            with pytest.raises(TransformError, match="a record of topic"):
                chain.apply(record)
            continue
        made = chain.apply(record)
        found = output(made, len(record.headers))
        if made is not None and found is not None and len(made.headers) < len(record.headers):
            found["headers"] = [header.name for header in made.headers]
        assert found == expected
    assert compared
