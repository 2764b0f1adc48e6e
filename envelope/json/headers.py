"""Record headers as Kafka Connect's ``SimpleHeaderConverter`` writes them: similar to JSON.

A string has no quotes unless it is in a struct, array or map, where only quotes and backslashes are escaped. Connect's
dates and times are ISO 8601 without quotes. Source: ``org.apache.kafka.connect.data.Values``, Connect 4.3.
"""

from binascii import b2a_base64
from datetime import date, timedelta
from typing import Any

from rowtide.envelope.json.java_numbers import decimal_number_text, double_text, float_text
from rowtide.envelope.json.text import decimal_scale
from rowtide.envelope.schema import Schema

_EPOCH = date(1970, 1, 1)
_DAY = 86_400_000
_DAYS_OF_400_YEARS = 146_097
_CONNECT_DATE = "org.apache.kafka.connect.data.Date"
_CONNECT_TIMES = ("org.apache.kafka.connect.data.Time", "org.apache.kafka.connect.data.Timestamp")


def header_text(schema: Schema, value: Any, *, replace_null_with_default: bool = True) -> str | None:
    """Return the text of a header, ``None`` for a null header. As in Java, lone surrogates become question marks.

    Args:
        schema: the schema of the value.
        value: the value.
        replace_null_with_default: write a null in a struct as the default of its field, if there is one, as in Connect.
    """
    if value is None:
        return None
    text = _text(schema, value, replaces=replace_null_with_default, embedded=False)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _text(schema: Schema, value: Any, *, replaces: bool, embedded: bool = True) -> str:
    if value is None:
        return "null"
    match schema.type:
        case "struct":
            return _struct_text(schema, value, replaces=replaces)
        case "array" if schema.items:
            items = schema.items
            return "[" + ",".join(_text(items, item, replaces=replaces) for item in value) + "]"
        case "map" if schema.keys and schema.items:
            keys, items = schema.keys, schema.items
            pairs = (
                f"{_text(keys, k, replaces=replaces)}:{_text(items, v, replaces=replaces)}" for k, v in value.items()
            )
            return "{" + ",".join(pairs) + "}"
        case "string":
            return _quoted(value) if embedded else str(value)
        case "bytes" if not schema.is_decimal:
            text = b2a_base64(value, newline=False).decode()
            return f'"{text}"' if embedded else text
        case "int32" | "int64":
            return _integer_text(schema, value)
        case _:
            return number_text(schema, value)


def number_text(schema: Schema, value: Any) -> str:
    """Return a number or a boolean as Java's ``toString`` does."""
    match schema.type:
        case "bytes":
            return decimal_number_text(value, decimal_scale(schema))
        case "boolean":
            return "true" if value else "false"
        case "float":
            return float_text(value).strip('"')
        case "double":
            return double_text(value).strip('"')
        case _:
            return str(value)


def _struct_text(schema: Schema, value: Any, *, replaces: bool) -> str:
    members = []
    for field in schema.fields:
        member = value.get(field.name)
        if member is None and (replaces or not field.schema.optional):
            member = field.schema.default
        members.append(f"{_quoted(field.name)}:{_text(field.schema, member, replaces=replaces)}")
    return "{" + ",".join(members) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _integer_text(schema: Schema, value: int) -> str:
    if schema.name == _CONNECT_DATE:
        value *= _DAY
    elif schema.name not in _CONNECT_TIMES:
        return str(value)
    # Connect formats a java.util.Date by its size: 1970-01-01 becomes a time of day.
    days, millis = divmod(value, _DAY)
    seconds = millis // 1000
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis % 1000:03d}Z"
    if value < _DAY:
        return time
    cycles, rest = divmod(days, _DAYS_OF_400_YEARS)  # Python's dates end with the year 9999
    day = _EPOCH + timedelta(days=rest)
    return f"{day.year + 400 * cycles}{day:-%m-%d}" + (f"T{time}" if millis else "")
