"""Recorded topics as tables: the rows that result from applying the records one by one.

An independent reference for the Spark job, in plain Python with Python's numbers and dates.
"""

import base64
import datetime as dt
import decimal
import gzip
import json
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[2] / "golden"
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - times without a zone


@dataclass
class Recorded:
    """A record of a topic."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: str | None


def recorded(case: str) -> list[Recorded]:
    """All records of a case, by topic."""
    with gzip.open(GOLDEN / case / "golden/records.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Recorded(row["topic"], row["partition"], row["offset"], row["key"], row["value"]) for row in rows]


Row = dict[str, Any]
"""A row by its column names in lower case."""


def fold(records: list[Recorded]) -> list[Row]:
    """The rows, in no particular order, that result from the records of a topic."""
    rows: list[Row] = []
    known: set[str] | None = None
    for record in records:
        key = _key(record)
        if record.value is None:
            rows = [row for row in rows if key is None or not _has(row, key)]
            continue
        content = json.loads(record.value)
        fields = {f["field"].lower(): f for f in _fields(content, "after")}
        if known is not None:
            _alter(rows, [f for name, f in fields.items() if name not in known])
        known = set(fields)
        before, after = (_row(content, image) for image in ("before", "after"))
        if content["payload"]["op"] == "t":
            rows = []
        elif key is not None:
            rows = [row for row in rows if not _has(row, key)]
        elif before:
            rows.remove(before)
        rows.extend([after] if after else [])
    return rows


def _key(record: Recorded) -> Row | None:
    if record.key is None:
        return None
    content = json.loads(record.key)
    snapshot = record.value is not None and json.loads(record.value)["payload"]["op"] == "r"
    payload = content["payload"]
    return {f["field"].lower(): value(f, payload[f["field"]], snapshot=snapshot) for f in content["schema"]["fields"]}


def _has(row: Row, key: Row) -> bool:
    return all(row.get(name) == found for name, found in key.items())


def _alter(rows: list[Row], added: list[Mapping[str, Any]]) -> None:
    """Apply an ALTER TABLE to the existing rows."""
    for schema in added:
        default = value(schema, schema.get("default"), snapshot=True)
        if default is None and not schema["optional"]:
            default = {"string": "", "bytes": b""}.get(schema["type"], 0)
        for row in rows:
            row[schema["field"].lower()] = default


def _fields(content: Mapping[str, Any], image: str) -> list[Mapping[str, Any]]:
    fields: list[Mapping[str, Any]] = next(f for f in content["schema"]["fields"] if f["field"] == image)["fields"]
    return fields


def _row(content: Mapping[str, Any], image: str) -> Row:
    row = content["payload"][image]
    if row is None:
        return {}
    snapshot = content["payload"]["op"] == "r"
    return {f["field"].lower(): value(f, row[f["field"]], snapshot=snapshot) for f in _fields(content, image)}


def value(schema: Mapping[str, Any], found: Any, *, snapshot: bool = False) -> Any:
    """The Python value of a record's value. Timestamps with a zone are microseconds since 1970."""
    if found is None:
        return None
    convert = _NAMED.get(schema.get("name", ""))
    if convert is not None:
        return convert(schema, found, snapshot)
    if schema["type"] == "bytes":
        return base64.b64decode(found)
    if schema["type"] == "float":
        return _single(found)
    return float(found) if schema["type"] == "double" else found


def _single(number: float) -> float:
    """The nearest single-precision number."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def _decimal(schema: Mapping[str, Any], found: str, _snapshot: bool) -> Any:
    scale = int(schema["parameters"]["scale"])
    unscaled = int.from_bytes(base64.b64decode(found), "big", signed=True)
    with decimal.localcontext(prec=100):
        number = decimal.Decimal(unscaled).scaleb(-scale)
    long = int(schema["parameters"].get("connect.decimal.precision", 38)) > 38
    return f"{number:f}" if long else number


def _labels(schema: Mapping[str, Any], found: str, snapshot: bool) -> str:
    if snapshot or "\\" not in schema["parameters"]["allowed"]:
        return found
    text, rest = "", iter(found)
    for character in rest:
        text += next(rest) if character == "\\" else character
    return text


def _moment(per_second: int) -> Any:
    def convert(_schema: Any, found: int, _snapshot: bool) -> dt.datetime:
        return _EPOCH + dt.timedelta(microseconds=found * 1_000_000 // per_second)

    return convert


def _zoned(_schema: Any, found: str, _snapshot: bool) -> int:
    moment = dt.datetime.fromisoformat(found)
    return (moment - _EPOCH.replace(tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def _iso_time(_schema: Any, found: str, _snapshot: bool) -> int:
    time = dt.time.fromisoformat(found.removesuffix("Z"))
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond


def _date(_schema: Any, found: int, _snapshot: bool) -> dt.date:
    return dt.date(1970, 1, 1) + dt.timedelta(days=found)


def _geometry(_schema: Any, found: Mapping[str, Any], _snapshot: bool) -> dict[str, Any]:
    shape = {name: found[name] for name in ("x", "y") if name in found}
    return {**shape, "wkb": base64.b64decode(found["wkb"]), "srid": found["srid"]}


_NAMED = {
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "org.apache.kafka.connect.data.Date": _date,
    "org.apache.kafka.connect.data.Time": lambda _s, found, _n: found * 1000,
    "org.apache.kafka.connect.data.Timestamp": _moment(1000),
    "io.debezium.data.Bits": lambda _s, found, _n: base64.b64decode(found)[::-1],
    "io.debezium.data.Enum": _labels,
    "io.debezium.data.EnumSet": _labels,
    "io.debezium.data.FloatVector": lambda _s, found, _n: [_single(number) for number in found],
    "io.debezium.data.geometry.Geometry": _geometry,
    "io.debezium.data.geometry.Point": _geometry,
    "io.debezium.time.Date": _date,
    "io.debezium.time.NanoTime": lambda _s, found, _n: found // 1000,
    "io.debezium.time.Timestamp": _moment(1000),
    "io.debezium.time.MicroTimestamp": _moment(1_000_000),
    "io.debezium.time.NanoTimestamp": _moment(1_000_000_000),
    "io.debezium.time.ZonedTimestamp": _zoned,
    "io.debezium.time.IsoDate": lambda _s, found, _n: dt.date.fromisoformat(found.removesuffix("Z")),
    "io.debezium.time.IsoTime": _iso_time,
    "io.debezium.time.IsoTimestamp": lambda _s, found, _n: dt.datetime.fromisoformat(found.removesuffix("Z")),
}


def same_rows(actual: list[Row], expected: list[Row]) -> None:
    """Compare rows regardless of their order. A column that only one side has is null on the other."""
    names = sorted({name for row in [*actual, *expected] for name in row})
    shown = [
        Counter(repr([(name, _comparable(row.get(name))) for name in names]) for row in rows)
        for rows in (actual, expected)
    ]
    assert shown[0] == shown[1], f"only in Spark: {shown[0] - shown[1]}\nonly in the records: {shown[1] - shown[0]}"


def _comparable(found: Any) -> Any:
    return f"decimal {found.normalize():f}" if isinstance(found, decimal.Decimal) else found
