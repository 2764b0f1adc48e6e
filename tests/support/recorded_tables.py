"""Recorded topics as tables: the rows that a reader of the records, one after the other, ends up with.

An independent answer to what the Spark job computes: plain Python over Python's own numbers and dates.
"""

import base64
import datetime as dt
import decimal
import gzip
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"
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
    """All records of a case, topic by topic."""
    with gzip.open(GOLDEN / case / "golden/records.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Recorded(row["topic"], row["partition"], row["offset"], row["key"], row["value"]) for row in rows]


@dataclass
class Folded:
    """The rows of a topic's table, each by its column names in lower case; a key's last row, or every row of a bag."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    bag: list[dict[str, Any]] = field(default_factory=list)

    def all_rows(self) -> list[dict[str, Any]]:
        """Rows in no order."""
        return [*self.rows.values(), *self.bag]


def fold(records: list[Recorded]) -> Folded:
    """Read records one after the other."""
    table = Folded()
    for record in records:
        key = None if record.key is None else json.dumps(json.loads(record.key)["payload"])
        if record.value is None:
            table.rows.pop(str(key), None)
            continue
        content = json.loads(record.value)
        before, after = (_row(content, image) for image in ("before", "after"))
        match content["payload"]["op"], key:
            case "t", _:
                table.rows.clear()
                table.bag.clear()
            case "d", None:
                table.bag.remove(before)
            case "d", _:
                table.rows.pop(str(key), None)
            case "u", None:
                table.bag.remove(before)
                table.bag.append(after)
            case _, None:
                table.bag.append(after)
            case _:
                table.rows[str(key)] = after
    return table


def _row(content: Mapping[str, Any], image: str) -> dict[str, Any]:
    row = content["payload"][image]
    if row is None:
        return {}
    fields = next(f for f in content["schema"]["fields"] if f["field"] == image)["fields"]
    snapshot = content["payload"]["op"] == "r"
    return {f["field"].lower(): value(f, row[f["field"]], snapshot=snapshot) for f in fields}


def value(schema: Mapping[str, Any], found: Any, *, snapshot: bool = False) -> Any:
    """A value of a record as Python has it; timestamps with a zone as microseconds since 1970."""
    if found is None:
        return None
    convert = _NAMED.get(schema.get("name", ""))
    if convert is not None:
        return convert(schema, found, snapshot)
    if schema["type"] == "bytes":
        return base64.b64decode(found)
    if schema["type"] == "float":
        import struct

        return struct.unpack("f", struct.pack("f", found))[0]
    return float(found) if schema["type"] == "double" else found


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
    moment = dt.fromisoformat(found.replace("Z", "+00:00"))
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
    "io.debezium.time.IsoTimestamp": lambda _s, found, _n: dt.fromisoformat(found.removesuffix("Z")),
}


def same_rows(actual: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Compare rows without regard to their order; a column that one side lacks is null."""
    names = sorted({name for row in [*actual, *expected] for name in row})
    shown = [
        Counter(repr([(name, _comparable(row.get(name))) for name in names]) for row in rows)
        for rows in (actual, expected)
    ]
    assert shown[0] == shown[1], f"only in Spark: {shown[0] - shown[1]}\nonly in the records: {shown[1] - shown[0]}"


def _comparable(found: Any) -> Any:
    return f"decimal {found.normalize():f}" if isinstance(found, decimal.Decimal) else found
