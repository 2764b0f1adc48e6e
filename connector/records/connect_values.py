"""Converts the values of Connect schemas to the Python values in :class:`rowtide.Row`.

The decoder of records needs them, and so do the results of column converters in :class:`rowtide.Engine`, so that both
return the same values. A function is made once for each schema.
"""

import datetime as dt
import re
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any, Literal, cast

from rowtide.connector.records.change import Geometry, JsonText
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.connector.rows.compiled_source import define
from rowtide.envelope.json.java_numbers import float_text, to_float32
from rowtide.envelope.json.text import decimal_scale
from rowtide.envelope.schema import Schema

Convert = Callable[[Any], Any]
Encoding = Literal["json", "avro", "connect"]
"""How values are given: as in JSON (decimals and bytes are Base64), as from Avro or Protobuf (decimals are bytes), or
as in :mod:`rowtide.envelope.schema` (decimals are unscaled numbers)."""

_EXACT = Context(prec=100)
_NAIVE = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a DATETIME has no zone
_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_0 = dt.date(1970, 1, 1).toordinal()
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
"""Debezium escapes commas and backslashes in labels of ENUM."""


def conversion(
    schema: Schema, encoding: Encoding, *, placeholder: bytes | None = None, documents: bool = True
) -> Convert | None:
    """Return the function for the values of a schema; ``None`` if they stay unchanged. Null is not converted.

    Args:
        schema: the schema of a column.
        encoding: the encoding of the values.
        placeholder: the bytes that stand for :data:`~rowtide.UNAVAILABLE`, also as text; ``None`` if there is no
            placeholder.
        documents: whether JSON is parsed when it is read; otherwise it is text.
    """
    json = encoding == "json"
    named = _NAMED.get(schema.name or "")
    if schema.name == f"{_DEBEZIUM_DATA}Json":
        return _text(placeholder, JsonText if documents else str)
    if schema.is_decimal:
        return _decimal(decimal_scale(schema), encoding)
    if named is not None:
        return named(schema, json)
    match schema.type:
        case "bytes":
            return _bytes(placeholder, json=json)
        case "string":
            return _text(placeholder, str)
        case "float" if not json:
            return lambda value: float(float_text(value))
        case "float" | "double":
            return float
    return None


def row_conversion(
    schema: Schema, encoding: Encoding, *, placeholder: bytes | None = None, documents: bool = True
) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function from a struct to the tuple of its columns' values."""
    # Generated code takes half of the time of a loop, and runs for every row.
    names: dict[str, object] = {"wrong": _wrong_type}
    parts = []
    for place, field in enumerate(schema.fields):
        convert = conversion(field.schema, encoding, placeholder=placeholder, documents=documents)
        kind = _JSON_TYPES.get(field.schema.type) if encoding == "json" else None  # other encodings have types
        value, name = "v", repr(field.name)
        if convert is not None:
            names[f"c{place}"] = convert
            value = f"c{place}(v)"
        if kind is not None and (convert is None or field.schema.type == "string"):
            value = f"{value} if v.__class__ is {kind} else wrong({name}, {kind}, v)"
        parts.append(f"struct[{name}], " if value == "v" else f"None if (v := struct[{name}]) is None else {value}, ")
    define(f"def row(struct):\n    return ({''.join(parts)})\n", "<decoder>", names)
    return cast("Callable[[Any], tuple[Any, ...]]", names["row"])


_JSON_TYPES = {**dict.fromkeys(("int8", "int16", "int32", "int64"), "int"), "boolean": "bool", "string": "str"}


def _wrong_type(name: str, kind: type, value: Any) -> None:
    raise ValueError(
        f"column {name} has a value of the type {type(value).__name__}, but its schema says {kind.__name__}"
    )


def _base64(text: str) -> bytes:
    return a2b_base64(text, strict_mode=True)


def _text(placeholder: bytes | None, kind: Callable[[str], str]) -> Convert | None:
    if placeholder is None:
        return None if kind is str else kind
    unavailable = placeholder.decode("utf-8", "replace")
    if kind is str:
        return lambda value: UNAVAILABLE if value == unavailable else value
    return lambda value: UNAVAILABLE if value == unavailable else kind(value)


def _decimal(scale: int, encoding: Encoding) -> Convert:
    def of_number(unscaled: int) -> Decimal:
        return Decimal(unscaled).scaleb(-scale, _EXACT)

    def of_bytes(data: bytes) -> Decimal:
        return of_number(int.from_bytes(data, "big", signed=True))

    def of_json(value: Any) -> Decimal:
        if isinstance(value, str):
            return of_bytes(_base64(value))
        return Decimal(str(value))  # decimal.format=NUMERIC

    functions: Mapping[Encoding, Convert] = {"json": of_json, "avro": of_bytes, "connect": of_number}
    return functions[encoding]


def _bytes(placeholder: bytes | None, *, json: bool) -> Convert | None:
    if placeholder is None:
        return _base64 if json else None

    def of_bytes(value: bytes) -> Any:
        return UNAVAILABLE if value == placeholder else value

    return (lambda value: of_bytes(_base64(value))) if json else of_bytes


def _bits(_schema: Schema, json: bool) -> Convert:
    if json:
        return lambda value: int.from_bytes(_base64(value), "little")
    return lambda value: int.from_bytes(value, "little")


def _geometry(_schema: Schema, json: bool) -> Convert:
    def geometry(value: Mapping[str, Any]) -> Any:
        wkb = _base64(value["wkb"]) if json else value["wkb"]
        return Geometry(wkb, value.get("srid") or 0)

    return geometry


def _days(value: int) -> dt.date:
    return dt.date.fromordinal(value + _DAY_0)


def _moment(epoch: dt.datetime, unit: int) -> Callable[[Schema, bool], Convert]:
    """Return a number of 1/``unit`` seconds since an epoch; digits below a microsecond are zero in MySQL."""

    def make(_schema: Schema, _json: bool) -> Convert:
        return lambda value: epoch + dt.timedelta(microseconds=value * 1_000_000 // unit)

    return make


def _duration(unit: int) -> Callable[[Schema, bool], Convert]:
    def make(_schema: Schema, _json: bool) -> Convert:
        return lambda value: dt.timedelta(microseconds=value * 1_000_000 // unit)

    return make


def _zoned(value: str) -> dt.datetime:
    return dt.datetime.fromisoformat(value).astimezone(dt.UTC)


def _iso_time(value: str) -> dt.timedelta:
    time = dt.time.fromisoformat(value.removesuffix("Z"))
    return dt.timedelta(hours=time.hour, minutes=time.minute, seconds=time.second, microseconds=time.microsecond)


def _plain(convert: Convert) -> Callable[[Schema, bool], Convert]:
    return lambda _schema, _json: convert


def _variable_decimal(_schema: Schema, json: bool) -> Convert:
    def number(value: Mapping[str, Any]) -> Decimal:
        data = _base64(value["value"]) if json else value["value"]
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-value["scale"], _EXACT)

    return number


_DEBEZIUM_TIME = "io.debezium.time."
_DEBEZIUM_DATA = "io.debezium.data."
_CONNECT = "org.apache.kafka.connect.data."

_NAMED: Mapping[str, Callable[[Schema, bool], Convert]] = {
    f"{_DEBEZIUM_TIME}Date": _plain(_days),
    f"{_DEBEZIUM_TIME}Timestamp": _moment(_NAIVE, 1_000),
    f"{_DEBEZIUM_TIME}MicroTimestamp": _moment(_NAIVE, 1_000_000),
    f"{_DEBEZIUM_TIME}NanoTimestamp": _moment(_NAIVE, 1_000_000_000),
    f"{_DEBEZIUM_TIME}ZonedTimestamp": _plain(_zoned),
    f"{_DEBEZIUM_TIME}Time": _duration(1_000),
    f"{_DEBEZIUM_TIME}MicroTime": _duration(1_000_000),
    f"{_DEBEZIUM_TIME}NanoTime": _duration(1_000_000_000),
    f"{_DEBEZIUM_TIME}IsoDate": _plain(lambda value: dt.date.fromisoformat(value.removesuffix("Z"))),
    f"{_DEBEZIUM_TIME}IsoTime": _plain(_iso_time),
    f"{_DEBEZIUM_TIME}IsoTimestamp": _plain(lambda value: dt.datetime.fromisoformat(value.removesuffix("Z"))),
    f"{_DEBEZIUM_TIME}Year": _plain(int),
    f"{_CONNECT}Date": _plain(_days),
    f"{_CONNECT}Time": _duration(1_000),
    f"{_CONNECT}Timestamp": _moment(_NAIVE, 1_000),
    f"{_DEBEZIUM_DATA}Bits": _bits,
    f"{_DEBEZIUM_DATA}Enum": _plain(lambda value: _ESCAPED.sub(r"\1", value) if "\\" in value else value),
    f"{_DEBEZIUM_DATA}FloatVector": _plain(lambda value: [to_float32(one) for one in value]),
    f"{_DEBEZIUM_DATA}VariableScaleDecimal": _variable_decimal,
    f"{_DEBEZIUM_DATA}geometry.Geometry": _geometry,
    f"{_DEBEZIUM_DATA}geometry.Geography": _geometry,
    f"{_DEBEZIUM_DATA}geometry.Point": _geometry,
}
