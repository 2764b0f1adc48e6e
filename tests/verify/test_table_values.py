"""The values of Spark's tables: equal ones of every type have one text, and damaged ones differ."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.verify.table_values import is_same_value, is_wrong_type, spark_text


@pytest.mark.parametrize(
    ("kind", "spark_type", "value", "text"),
    [
        ("int", "int", None, "-"),
        ("bit", "boolean", True, "b1"),
        ("bit", "binary", bytearray(b"\x01\x02"), "i258"),
        ("binary", "binary", bytearray(b"\x01\0"), "x01"),
        ("blob", "binary", bytearray(b"\x01\0"), "x0100"),
        ("time", "bigint", -5, "h-5"),
        ("bigint", "bigint", -5, "i-5"),
        ("float", "float", "1.6777216E7", "f16777216.0"),
        ("json", "string", '{"b":1.0, "a":[]}', 'j{"a":[],"b":1}'),
        ("date", "date", -1, "t1969-12-31"),
        ("datetime", "timestamp_ntz", 1, "t1970-01-01T00:00:00.000001"),
        ("timestamp", "timestamp", 0, "t1970-01-01T00:00:00+00:00"),
        ("date", "date", 10**7, "t10000000 units since 1970"),
        ("vector", "array<float>", [1.5], "l[1.5]"),
    ],
)
def test_each_type_has_the_text_of_the_decoder(kind: str, spark_type: str, value: Any, text: str) -> None:
    assert spark_text(kind, spark_type, exact=True)(value) == text


@pytest.mark.parametrize(
    ("topic", "table", "kind", "spark_type", "same"),
    [
        ("d1.5", "s1.50", "decimal", "string", True),
        ("d1.5", "s1.51", "decimal", "string", False),
        ("t2024-01-01", "t2024-01-01T00:00:00", "datetime", "timestamp_ntz", True),
        ("t2024-01-01", "t2024-01-01T00:00:01", "datetime", "timestamp_ntz", False),
        ('j{"a":1}', 's{"a": 1}', "text", "string", True),
        ('j"YQ=="', 's"base64:type15:YQ=="', "text", "string", True),
        ("f3.14159274", "f3.1415927", "float", "float", True),
        ("f3.1415927", "f3.1415930", "float", "float", False),
        ("f0.1", "f0.10000000149011612", "double", "double", False),
        ("sa\\,b", "sa,b", "enum", "string", True),
        ("i1", "-", "int", "int", False),
        ("-", "i0", "int", "int", False),
        ("?", "sx", "text", "string", True),
    ],
)
def test_values_are_the_same_in_a_wider_type_only(
    topic: str, table: str, kind: str, spark_type: str, same: bool
) -> None:
    assert is_same_value(topic, table, kind, spark_type, {"double"}) is same


def test_a_float_that_became_a_double_has_its_nearest_number() -> None:
    assert is_same_value("f0.1", "f0.10000000149011612", "double", "double", {"float", "double"})


@pytest.mark.parametrize(
    ("spark_type", "records", "wrong"),
    [
        ("int", {"int32"}, False),
        ("string", {"int32"}, True),
        ("bigint", {"int32", "int64"}, False),
        ("decimal(20,0)", {"int64"}, False),
        ("timestamp", {"io.debezium.time.MicroTimestamp"}, True),
        ("string", {"some.other.Type"}, False),
    ],
)
def test_a_column_has_a_type_of_its_records(spark_type: str, records: set[str], wrong: bool) -> None:
    assert is_wrong_type(spark_type, records) is wrong
