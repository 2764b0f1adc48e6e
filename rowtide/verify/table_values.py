"""The canonical texts of a Spark table's values, and and their comparison with those of the topic. Pure.

The values of the topic come from the decoder. Nothing here uses the conversion of ``rowtide tables``: a check that
shares the code it checks cannot find its faults.
"""

import datetime as dt
import json
import re
import struct
from collections.abc import Callable, Collection
from decimal import Decimal, InvalidOperation
from typing import Any

from rowtide.connector.records.canonical import NULL, UNKNOWN, is_equal, json_text, six_digits, value_text

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone
_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def spark_text(kind: str, spark_type: str, *, exact: bool) -> Callable[[Any], str]:
    """Return the function from a column's values to their texts.

    Args:
        kind: the data type of the column in the source, such as ``varchar``.
        spark_type: its type in the table.
        exact: whether values are exact, as for :func:`canonical_values`.
    """
    convert = _converter(kind, spark_type, exact=exact)
    return lambda value: NULL if value is None else convert(value)


def _converter(kind: str, spark_type: str, *, exact: bool) -> Callable[[Any], str]:
    match spark_type:
        case "float":
            return (lambda text: value_text(float(text))) if exact else (lambda text: six_digits(float(text)))
        case "bigint" if kind == "time":
            return lambda micros: f"h{micros}"
        case "string" if kind == "json":
            return lambda text: "j" + json_text(text, exact=exact)
        case "binary" if kind == "bit":
            return lambda data: f"i{int.from_bytes(data, 'big')}"
        case "binary" if kind == "binary":
            return lambda data: "x" + bytes(data).rstrip(b"\0").hex()
        case "date":
            return _moment(lambda days: dt.date.fromordinal(days + _EPOCH_DAY))
        case "timestamp_ntz":
            return _moment(lambda micros: _EPOCH + dt.timedelta(microseconds=micros))
        case "timestamp":
            return _moment(lambda micros: _UTC + dt.timedelta(microseconds=micros))
    if spark_type.startswith("struct<") and "wkb:binary" in spark_type:
        return lambda shape: f"g{shape['srid'] or 0}:{bytes(shape['wkb'] or b'').hex()}"
    if spark_type.startswith(("array<", "map<", "struct<")):
        return lambda value: "l" + json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), default=str)
    return lambda value: value_text(bytes(value) if isinstance(value, bytearray) else value)


def _moment(make: Callable[[int], dt.date]) -> Callable[[int], str]:
    def text(number: int) -> str:
        try:
            return value_text(make(number))
        except (OverflowError, ValueError):  # Spark has more years than MySQL and Python
            return f"t{number} units since 1970"

    return text


def _plain(value: Any) -> Any:
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def is_same_value(topic: str, table: str, kind: str, spark_type: str, records: Collection[str]) -> bool:
    """Return whether the values of two texts are equal; the table may have a wider type than the record.

    Args:
        topic: the text of the topic's value.
        table: the text of the table's value.
        kind: the data type of the column in the source.
        spark_type: its type in the table.
        records: its types in the records.
    """
    if topic == UNKNOWN or is_equal(topic, table):
        return True
    if NULL in (topic, table):
        return False
    tags = topic[0] + table[0]
    if tags == "ff" and (spark_type == "float" or (spark_type == "double" and "float" in records)):
        return _single(topic) == _single(table)
    if tags in ("ds", "is"):
        return _same_number(topic, table)
    if tags == "js":
        return topic[1:] in (json_text(table[1:]), json_text(table[1:], exact=False))
    if tags == "tt":  # DATE that became DATETIME
        return f"{topic}T00:00:00" == table
    if kind in ("enum", "set"):  # of which Debezium's snapshot and stream escape differently
        return topic.replace("\\", "") == table.replace("\\", "")
    return False


def _single(text: str) -> bytes:
    try:
        return struct.pack("<f", float(text[1:]) + 0.0)
    except OverflowError:
        return text.encode()


def _same_number(topic: str, table: str) -> bool:
    try:
        return Decimal(topic[1:]) == Decimal(table[1:])
    except InvalidOperation:
        return False


_TIME = "io.debezium.time."
_DATA = "io.debezium.data."
_CONNECT = "org.apache.kafka.connect.data."
_TYPES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": r"bigint|decimal\(20,0\)", "float": "float",
    "double": "double", "boolean": "boolean", "string": "string", "bytes": "binary",
    f"{_CONNECT}Decimal": r"decimal\(\d+,\d+\)|string", f"{_CONNECT}Date": "date", f"{_CONNECT}Time": "bigint",
    f"{_CONNECT}Timestamp": "timestamp_ntz", f"{_TIME}Date": "date", f"{_TIME}IsoDate": "date",
    f"{_TIME}Timestamp": "timestamp_ntz", f"{_TIME}MicroTimestamp": "timestamp_ntz",
    f"{_TIME}NanoTimestamp": "timestamp_ntz", f"{_TIME}IsoTimestamp": "timestamp_ntz",
    f"{_TIME}ZonedTimestamp": "timestamp", f"{_TIME}Time": "bigint", f"{_TIME}MicroTime": "bigint",
    f"{_TIME}NanoTime": "bigint", f"{_TIME}IsoTime": "bigint", f"{_TIME}Year": "int", f"{_DATA}Bits": "binary",
    f"{_DATA}Enum": "string", f"{_DATA}EnumSet": "string", f"{_DATA}Json": "string",
    f"{_DATA}FloatVector": "array<float>", f"{_DATA}geometry.Geometry": "struct<.*>",
    f"{_DATA}geometry.Point": "struct<.*>",
}  # fmt: skip
"""The Spark types of the types in records, from ``docs/spark.md``."""


def is_wrong_type(spark_type: str, records: Collection[str]) -> bool:
    """Return whether the types of a column in the records rule out its type in the table.

    Several types have a common one.
    """
    if len(records) != 1:
        return False
    (record,) = records
    expected = _TYPES.get(record)
    return expected is not None and re.fullmatch(expected, spark_type) is None
