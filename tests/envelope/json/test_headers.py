"""Headers, recorded from SimpleHeaderConverter 4.3.1 on Java 17."""

from typing import Any

import pytest

from rowtide.envelope.json.headers import header_text
from rowtide.envelope.schema import BOOLEAN, BYTES, DECIMAL, FLOAT32, FLOAT64, INT32, STRING, Schema, struct

CONNECT = "org.apache.kafka.connect.data."
DATE, TIME = Schema("int32", name=CONNECT + "Date"), Schema("int32", name=CONNECT + "Time")
TIMESTAMP = Schema("int64", name=CONNECT + "Timestamp", optional=True)
DECIMAL_2 = Schema("bytes", name=DECIMAL, parameters=(("scale", "2"),), optional=True)
EVERYTHING = struct(
    None,
    {
        'a"\\x': Schema("int32", optional=True, default=5),
        "b": BYTES.with_optional(True),
        "s": STRING.with_optional(True),
        "d": DECIMAL_2,
        "t": TIMESTAMP,
        "l": Schema("array", items=STRING, optional=True),
        "m": Schema("map", keys=INT32, items=FLOAT64, optional=True),
        "f": FLOAT32.with_optional(True),
    },
)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (STRING, 'a"b\\c\né😀\ud83d', 'a"b\\c\né😀?'),
        (STRING.with_optional(True), None, None),
        (BYTES, b"\x01\x02\xff", "AQL/"),
        (FLOAT64, 1e23, "9.999999999999999E22"),
        (FLOAT64, float("nan"), "NaN"),
        (FLOAT32, 0.10000000149011612, "0.1"),
        (BOOLEAN, True, "true"),
        (DECIMAL_2, 150, "1.50"),
        (DATE, 400, "1971-02-05"),
        (DATE, 0, "00:00:00.000Z"),
        (TIME, 12345, "00:00:12.345Z"),
        (TIMESTAMP, 1700000000123, "2023-11-14T22:13:20.123Z"),
        (TIMESTAMP, 34560000000, "1971-02-05"),
        (TIMESTAMP, -1, "23:59:59.999Z"),
        (TIMESTAMP, -86400000, "00:00:00.000Z"),
        (TIMESTAMP, 253402300799999, "9999-12-31T23:59:59.999Z"),
        (TIMESTAMP, 253402300800000, "10000-01-01"),
        (TIMESTAMP, 2**63 - 1, "292278994-08-17T07:12:55.807Z"),
        (TIMESTAMP, -(2**63), "16:47:04.192Z"),
        (DATE, 2**31 - 1, "5881580-07-11"),
        (
            EVERYTHING,
            {},
            '{"a\\"\\\\x":5,"b":null,"s":null,"d":null,"t":null,"l":null,"m":null,"f":null}',
        ),
        (
            EVERYTHING,
            {"b": b"\t", "s": 'q"\\\n\té', "d": 100, "t": 5, "l": ["x", "y"], "m": {1: 2.0}, "f": float("inf")},
            '{"a\\"\\\\x":5,"b":"CQ==","s":"q\\"\\\\\n\té","d":1.00,"t":00:00:00.005Z,"l":["x","y"],"m":{1:2.0},"f":Infinity}',
        ),
        (struct(None, {"x": struct(None, {"q": INT32})}), {"x": {"q": 1}}, '{"x":{"q":1}}'),
        (Schema("array", items=STRING), ["x", None], '["x",null]'),
    ],
)
def test_a_header_is_written_like_simple_header_converter(schema: Schema, value: Any, text: str | None) -> None:
    assert header_text(schema, value) == text
