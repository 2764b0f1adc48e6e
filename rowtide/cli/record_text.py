"""A record of a topic as readable text: values decoded by their Connect schemas, changed columns highlighted."""

import base64
import datetime as dt
import json
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

import click

__all__ = ["lacks_schema", "record_lines"]

_OPERATIONS = {"r": "read", "c": "create", "u": "update", "d": "delete", "t": "truncate", "m": "message"}
_COLOURS = {"create": "green", "update": "yellow", "delete": "red", "truncate": "red", "tombstone": "red"}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the types without a zone have none
_DEBEZIUM, _CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
_DAYS = {f"{_DEBEZIUM}Date", f"{_CONNECT}Date"}
_DATETIMES = {
    f"{_DEBEZIUM}Timestamp": 1_000,
    f"{_DEBEZIUM}MicroTimestamp": 1_000_000,
    f"{_DEBEZIUM}NanoTimestamp": 1_000_000_000,
    f"{_CONNECT}Timestamp": 1_000,
}
_TIMES = {
    f"{_DEBEZIUM}Time": 1_000,
    f"{_DEBEZIUM}MicroTime": 1_000_000,
    f"{_DEBEZIUM}NanoTime": 1_000_000_000,
    f"{_CONNECT}Time": 1_000,
}
"""Units a second of the types of date and time."""

Schema = Mapping[str, Any]


def record_lines(key: bytes | None, value: bytes | None) -> Iterator[str]:
    """Yield the lines of a record: operation and source position of a change event, then its key and its values.

    A schema change has its statement instead, and other records have only their key and value. A message that is not
    JSON is shown as text or in hexadecimal.
    """
    if value is None:
        yield f"  {_operation('tombstone')}"
        yield f"  key     {_text(*_parsed(key))}"
        return
    payload, schema = _parsed(value)
    if isinstance(payload, dict) and isinstance(payload.get("source"), dict) and payload.get("op") in _OPERATIONS:
        yield f"  {_operation(_OPERATIONS[payload['op']])}  {_source(payload['source'])}".rstrip()
        if key is not None:
            yield f"  key     {_text(*_parsed(key))}"
        yield from _images(payload, schema)
        return
    if isinstance(payload, dict) and isinstance(payload.get("source"), dict) and "ddl" in payload:
        yield f"  {_operation('ddl')}  {_source(payload['source'])}".rstrip()
        yield from (f"          {line}" for line in str(payload["ddl"]).splitlines())
        return
    if key is not None:
        yield f"  key     {_text(*_parsed(key))}"
    yield f"  value   {_text(payload, schema)}"


def lacks_schema(value: bytes | None) -> bool:
    """Return whether a message is a change event without a Connect schema, which decoding its values needs."""
    payload, schema = _parsed(value)
    return isinstance(payload, dict) and payload.get("op") in _OPERATIONS and "source" in payload and not schema


def _operation(name: str) -> str:
    return click.style(f"{name:<7}", fg=_COLOURS.get(name, "blue"), bold=True)


def _source(source: Mapping[str, Any]) -> str:
    """Return the source of a change: position, GTID, time of the commit."""
    position = f"{source['file']}:{source['pos']}" if source.get("file") else ""
    time = ""
    if isinstance(source.get("ts_ms"), int):
        time = f"{_datetime(source['ts_ms'], 1_000)} UTC"
    return "  ".join(text for text in (position, source.get("gtid") or "", time) if text)


def _images(payload: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    before, after = payload.get("before"), payload.get("after")
    changed: set[str] = set()
    if isinstance(before, dict) and isinstance(after, dict):
        changed = {name for name in after if name not in before or after[name] != before[name]}
    for name, image in (("before", before), ("after", after)):
        if image is not None:
            yield f"  {name:<7} {_text(image, _field(schema, name), changed)}"


def _parsed(data: bytes | None) -> tuple[Any, Schema]:
    """Return the payload of a message and its Connect schema, which is empty if the message has none."""
    if data is None:
        return None, {}
    try:
        message = json.loads(data, parse_float=Decimal)
    except (ValueError, RecursionError):
        return data, {}
    if isinstance(message, dict) and message.keys() == {"schema", "payload"}:
        return message["payload"], message["schema"] or {}
    return message, {}


def _field(schema: Schema, name: str) -> Schema:
    fields = schema.get("fields") or ()
    return next((field for field in fields if field.get("field") == name), {})


def _text(value: Any, schema: Schema, highlighted: Collection[str] = ()) -> str:
    """Return a value; the fields of a struct are separated by commas."""
    if not isinstance(value, dict):
        return _scalar(value, schema)
    texts = {name: f"{name}={_scalar(item, _field(schema, name))}" for name, item in value.items()}
    return ", ".join(click.style(text, bold=True) if name in highlighted else text for name, text in texts.items())


def _scalar(value: Any, schema: Schema) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return repr(value)[1:] if value.isascii() else f"0x{value.hex()}"
    if isinstance(value, dict):
        return f"{{{_text(value, schema)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_scalar(item, schema.get('items') or {}) for item in value)}]"
    try:
        return _decoded(value, schema)
    except (ArithmeticError, TypeError, ValueError):  # the value does not fit its schema, or Python's types
        return json.dumps(value, ensure_ascii=False, default=str)


def _decoded(value: Any, schema: Schema) -> str:
    name = schema.get("name", "")
    if name == f"{_CONNECT}Decimal":
        unscaled = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
        return f"{Decimal(unscaled).scaleb(-int(schema['parameters']['scale'])):f}"
    if name in _DAYS:
        return str((_EPOCH + dt.timedelta(days=value)).date())
    if name in _DATETIMES:
        return _datetime(value, _DATETIMES[name])
    if name in _TIMES:
        return _time(value, _TIMES[name])
    if schema.get("type") == "bytes":
        return f"0x{base64.b64decode(value, validate=True).hex()}"
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _datetime(value: int, per_second: int) -> str:
    seconds, fraction = divmod(value, per_second)
    return f"{_EPOCH + dt.timedelta(seconds=seconds)}{_fraction(fraction, per_second)}"


def _time(value: int, per_second: int) -> str:
    """Return a MySQL TIME, which may be negative and longer than a day."""
    seconds, fraction = divmod(abs(value), per_second)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_fraction(fraction, per_second)}"
    return f"-{text}" if value < 0 else text


def _fraction(fraction: int, per_second: int) -> str:
    return f".{fraction:0{len(str(per_second)) - 1}d}".rstrip("0") if fraction else ""
