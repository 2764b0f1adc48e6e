"""Cast with exact values, and its options. ``test_recorded_transforms`` compares it with Kafka Connect's."""

from math import inf, nan
from typing import Any

import pytest

from rowtide.envelope.json.java_numbers import float32_of
from rowtide.envelope.schema import BOOLEAN, DECIMAL, FLOAT64, INT32, INT64, STRING, Schema, struct
from rowtide.envelope.transforms import (
    ConnectRecord,
    Plugin,
    TransformConfigurationError,
    TransformError,
    transform_chain,
)

CAST = "org.apache.kafka.connect.transforms.Cast$Value"
CONNECT = "org.apache.kafka.connect.data."
DATE, TIME = (Schema("int32", name=CONNECT + name, version=1) for name in ("Date", "Time"))
TIMESTAMP = Schema("int64", name=CONNECT + "Timestamp", version=1)
CENTS = Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", "2"),))


def cast(schema: Schema, value: Any, target: str, *, exact: bool = True) -> Any:
    chain = transform_chain([Plugin("c", CAST, {"spec": f"v:{target}"})], exact=exact)
    made = chain.apply(ConnectRecord("t", None, None, None, struct("t.Value", {"v": schema}), {"v": value}))
    assert made is not None
    return made.value["v"]


@pytest.mark.parametrize(
    ("schema", "value", "target", "wrapped"),
    [
        (INT64, 2**31, "int32", -(2**31)),
        (INT32, 300, "int8", 44),
        (FLOAT64, 1e19, "int64", 2**63 - 1),
        (FLOAT64, nan, "int32", 0),
        (FLOAT64, -inf, "int32", -(2**31)),
        (CENTS, 2**70 * 100, "int64", 0),
        (FLOAT64, 1e300, "float32", inf),
        (STRING, "yes", "boolean", False),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_with_exact_values(
    schema: Schema, value: Any, target: str, wrapped: Any
) -> None:
    assert cast(schema, value, target, exact=False) == wrapped, "as in Kafka Connect"
    with pytest.raises(TransformError, match=r"transforms\.c: a record of topic t: field 'v': .+"):
        cast(schema, value, target)


def test_a_value_that_fits_is_cast() -> None:
    assert cast(FLOAT64, -3.99, "int8") == -3
    assert cast(CENTS, -12345, "int32") == -123
    assert cast(STRING, "True", "boolean") is True
    assert cast(FLOAT64, nan, "boolean") is False
    assert cast(FLOAT64, inf, "float32") == inf
    assert cast(CENTS, 5, "string") == "0.05"


def test_days_before_1970_are_days() -> None:
    """Connect writes the time of day of every time before 1970-01-02."""
    assert cast(DATE, -1, "string") == "1969-12-31"
    assert cast(DATE, -1, "string", exact=False) == "00:00:00.000Z"
    assert cast(DATE, -719162, "string") == "0001-01-01"
    assert cast(TIMESTAMP, -1, "string") == "1969-12-31T23:59:59.999Z"
    assert cast(TIME, 86_400_000, "string") == "24:00:00.000Z"
    assert cast(TIME, 3_723_004, "string") == "01:02:03.004Z"


def test_a_number_is_rounded_once_to_a_float() -> None:
    number = 2**60 + 2**36 + 1  # rounded to a double first, this is a tie
    assert float32_of(number) == 2.0**60 + 2.0**37
    assert cast(INT64, number, "float32") == 2.0**60 + 2.0**37


def test_a_name_of_connect_does_not_stay_on_another_type() -> None:
    """With it, Kafka Connect's converter fails: the text would be read as a time."""
    chain = transform_chain([Plugin("c", CAST, {"spec": "string"})])
    made = chain.apply(ConnectRecord("t", None, None, None, TIMESTAMP, 1_700_000_000_123))
    assert made is not None
    assert (made.value_schema, made.value) == (STRING, "2023-11-14T22:13:20.123Z")


def test_a_default_that_cannot_be_cast_is_named() -> None:
    with pytest.raises(TransformError, match="the default of field 'v': the text is not an integer"):
        cast(Schema("string", default="n"), "1", "int32")


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ("", ["is required, for example price:float64,count:int32"]),
        ("a:int,b:bytes", ["'a:int' must be field:type", "'b:bytes' must be field:type"]),
        ("a:b:int8", ["'a:b:int8' must be field:type, with one colon"]),
        ("a:int8,string", ["'string' is a type for the whole value"]),
    ],
)
def test_every_wrong_item_is_reported(spec: str, messages: list[str]) -> None:
    with pytest.raises(TransformConfigurationError) as caught:
        transform_chain([Plugin("c", CAST, {"spec": spec})])
    found = caught.value.problems
    assert [problem.property for problem in found] == ["transforms.c.spec"] * len(messages)
    assert all(problem.message.startswith(message) for problem, message in zip(found, messages, strict=True))


def test_the_schema_is_made_once_per_table() -> None:
    chain = transform_chain([Plugin("c", CAST, {"spec": "v:string"})])
    schema = struct("t.Value", {"v": BOOLEAN})
    first, second = (chain.apply(ConnectRecord("t", None, None, None, schema, {"v": one})) for one in (True, False))
    assert first is not None
    assert second is not None
    assert first.value_schema is second.value_schema
    assert [first.value, second.value] == [{"v": "true"}, {"v": "false"}]
