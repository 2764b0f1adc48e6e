"""What differs between two versions of an Avro schema, by field."""

import json
from typing import Any

import pytest

from rowtide.envelope.avro.differences import differences


def record(**fields: Any) -> str:
    described = []
    for name, given in fields.items():
        kind, default = given if isinstance(given, tuple) else (given, ...)
        described.append({"name": name, "type": kind, **({} if default is ... else {"default": default})})
    return json.dumps({"type": "record", "name": "E", "namespace": "a", "fields": described})


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (record(a="int"), record(a="int"), []),
        (record(a="int"), record(a="int", b=(["null", "int"], None)), []),
        (record(a="int"), record(a="int", b="string"), ["the field b is new and has no default"]),
        (record(a="int", b="int"), record(a="int"), ["the field b, which had no default, is gone"]),
        (record(a="int", b="int"), record(a="int", c="int"), ["the field c is new and has no default"]),
        (record(a="int"), record(a="string"), ["the type of a is string instead of int"]),
        (record(a="int"), record(a=["null", "int"]), ["the type of a is int or null instead of int"]),
        (
            record(a=DECIMAL),
            record(a={**DECIMAL, "precision": 9}),
            ["the type of a is bytes (decimal(9, 2)) instead of bytes (decimal(8, 2))"],
        ),
        (
            record(row=["null", json.loads(record(x="int"))]),
            record(row=["null", json.loads(record(x="long"))]),
            ["the type of row.x is long instead of int"],
        ),
        (
            record(items={"type": "array", "items": "int"}),
            record(items={"type": "array", "items": "long"}),
            ["the type of items[] is long instead of int"],
        ),
    ],
)
def test_each_difference_names_its_field(before: str, after: str, found: list[str]) -> None:
    assert [str(one) for one in differences(before, after)] == found
