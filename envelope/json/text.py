"""JSON as Kafka Connect's ``JsonConverter`` writes it, byte for byte.

Connect 4.3 uses Jackson 2.21: no whitespace; text outside ASCII unescaped, but a character above U+FFFF as two escaped
surrogates; control characters with upper-case hexadecimal digits; floating-point numbers as Java 17 prints them, NaN as
text. The keys of a schema are in the order of ``JsonConverter.asJsonSchema``.
"""

import re
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring  # compiled where available
from typing import Any, Literal

from rowtide.envelope.json.java_numbers import decimal_number_text, double_text, float_text
from rowtide.envelope.schema import Schema

DecimalFormat = Literal["BASE64", "NUMERIC"]


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Settings of ``JsonConverter`` that affect values.

    Attributes:
        decimal_format: ``decimal.format``: base64 or a number.
        replace_null_with_default: write null as the default of its schema, if there is one.
    """

    decimal_format: DecimalFormat = "BASE64"
    replace_null_with_default: bool = True


DEFAULT_FORMAT = JsonFormat()


def string_text(text: str) -> str:
    """Return a string as a JSON literal with quotes, as Jackson writes it.

    Lone surrogates are escaped, so that the result can always be encoded.
    """
    literal = encode_basestring(text)
    return literal if text.isascii() and "\\" not in literal else normalize_escapes(literal)


def schema_string_text(text: str) -> str:
    """Return a string as a JSON literal in an Avro schema: as Jackson writes it to a string, not to bytes.

    Characters above U+FFFF are not escaped there. As in Java, lone surrogates become question marks.
    """
    literal = encode_basestring(text)
    if "\\u" in literal:
        literal = _ESCAPE.sub(_upper, literal)
    return literal if literal.isascii() else literal.encode("utf-8", "replace").decode()


def normalize_escapes(json: str) -> str:
    """Change the escapes of Python's ``json`` or orjson to those of Jackson. Jackson's JSON stays the same."""
    if "\\u" in json:
        json = _ESCAPE.sub(_upper, json)
    return json if json.isascii() else _SURROGATES.sub(_escaped, json)


# The pattern skips escaped backslashes, which a "u" may follow.
_ESCAPE = re.compile(r"\\u[0-9a-f]{4}|\\.")
_SURROGATES = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")


def _upper(match: re.Match[str]) -> str:
    escape = match.group()
    return escape if len(escape) == 2 else "\\u" + escape[2:].upper()


def _escaped(match: re.Match[str]) -> str:
    point = ord(match.group())
    if point <= 0xFFFF:
        return f"\\u{point:04X}"
    point -= 0x10000
    return f"\\u{0xD800 + (point >> 10):04X}\\u{0xDC00 + (point & 0x3FF):04X}"


def base64_text(value: bytes) -> str:
    """Return bytes as a JSON literal: Base64 with padding."""
    return f'"{b2a_base64(value, newline=False).decode()}"'


def decimal_bytes(unscaled: int) -> bytes:
    """Return the bytes of an unscaled number: big-endian two's complement of minimal length."""
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def value_text(schema: Schema, value: Any, json_format: JsonFormat = DEFAULT_FORMAT) -> str:
    """Return the JSON of a value, without its schema.

    Args:
        schema: the value's schema.
        value: a value as in :mod:`rowtide.envelope.schema`; missing fields of a struct are null.
        json_format: settings of the converter.

    Raises:
        ValueError: the value is null, but the schema is required and has no default.
    """
    if value is None:
        if schema.default is not None and json_format.replace_null_with_default:
            return value_text(schema, schema.default, json_format)
        if not schema.optional:
            raise ValueError(
                f"null for a value of type {schema.name or schema.type}, which is neither optional nor has a default"
            )
        return "null"
    return _WRITERS[schema.type](schema, value, json_format)


_field_text = lru_cache(maxsize=10_000)(string_text)


def _struct_text(schema: Schema, value: Any, json_format: JsonFormat) -> str:
    members = []
    for field in schema.fields:
        try:
            member = value_text(field.schema, value.get(field.name), json_format)
        except ValueError as error:
            raise ValueError(f"field {field.name!r} of {schema.name or 'a struct'}: {error}") from error
        members.append(f"{_field_text(field.name)}:{member}")
    return "{" + ",".join(members) + "}"


def _array_text(schema: Schema, value: Any, json_format: JsonFormat) -> str:
    items = _required(schema.items)
    return "[" + ",".join([value_text(items, item, json_format) for item in value]) + "]"


def _map_text(schema: Schema, value: Any, json_format: JsonFormat) -> str:
    """Return an object if the keys are strings, otherwise an array of pairs."""
    keys, items = _required(schema.keys), _required(schema.items)
    if keys.type == "string":
        return (
            "{"
            + ",".join([f"{string_text(key)}:{value_text(items, item, json_format)}" for key, item in value.items()])
            + "}"
        )
    pairs = [
        f"[{value_text(keys, key, json_format)},{value_text(items, item, json_format)}]" for key, item in value.items()
    ]
    return "[" + ",".join(pairs) + "]"


def _bytes_text(schema: Schema, value: Any, json_format: JsonFormat) -> str:
    if not schema.is_decimal:
        return base64_text(value)
    if json_format.decimal_format == "NUMERIC":
        return decimal_number_text(value, decimal_scale(schema))
    return base64_text(decimal_bytes(value))


def decimal_scale(schema: Schema) -> int:
    """Return the scale of a ``Decimal`` schema.

    Raises:
        ValueError: the schema has no scale.
    """
    for name, text in schema.parameters:
        if name == "scale":
            return int(text)
    raise ValueError(f"the schema {schema.name} has no parameter 'scale'")


def _integer_text(_schema: Schema, value: Any, _format: JsonFormat) -> str:
    return int.__repr__(value)


_WRITERS: dict[str, Callable[[Schema, Any, JsonFormat], str]] = {
    "int8": _integer_text,
    "int16": _integer_text,
    "int32": _integer_text,
    "int64": _integer_text,
    "float": lambda _schema, value, _format: float_text(value),
    "double": lambda _schema, value, _format: double_text(value),
    "boolean": lambda _schema, value, _format: "true" if value else "false",
    "string": lambda _schema, value, _format: string_text(value),
    "bytes": _bytes_text,
    "array": _array_text,
    "map": _map_text,
    "struct": _struct_text,
}


def _required(schema: Schema | None) -> Schema:
    if schema is None:
        raise ValueError("a schema of an array or map has no element schema")
    return schema


def schema_text(schema: Schema, field_name: str | None = None, json_format: JsonFormat = DEFAULT_FORMAT) -> str:
    """Return the JSON of a schema.

    Args:
        schema: the schema.
        field_name: name of the field with this schema, written as the last key.
        json_format: settings of the converter, for the default.
    """
    keys = [f'"type":"{schema.type}"']
    if schema.type == "struct":
        fields = ",".join(schema_text(field.schema, field.name, json_format) for field in schema.fields)
        keys.append(f'"fields":[{fields}]')
    elif schema.type == "array":
        keys.append(f'"items":{schema_text(_required(schema.items), json_format=json_format)}')
    elif schema.type == "map":
        keys.append(f'"keys":{schema_text(_required(schema.keys), json_format=json_format)}')
        keys.append(f'"values":{schema_text(_required(schema.items), json_format=json_format)}')
    keys.append(f'"optional":{"true" if schema.optional else "false"}')
    if schema.name is not None:
        keys.append(f'"name":{string_text(schema.name)}')
    if schema.version is not None:
        keys.append(f'"version":{schema.version}')
    if schema.doc is not None:
        keys.append(f'"doc":{string_text(schema.doc)}')
    if schema.parameters:
        parameters = ",".join(f"{string_text(name)}:{string_text(text)}" for name, text in schema.parameters)
        keys.append(f'"parameters":{{{parameters}}}')
    if schema.default is not None:
        keys.append(f'"default":{value_text(schema, schema.default, json_format)}')
    if field_name is not None:
        keys.append(f'"field":{string_text(field_name)}')
    return "{" + ",".join(keys) + "}"


def enveloped_text(schema: Schema, value: Any, json_format: JsonFormat = DEFAULT_FORMAT) -> str:
    """Return a message with schema and payload, as for ``schemas.enable=true``."""
    payload = value_text(schema, value, json_format)
    return f'{{"schema":{schema_text(schema, json_format=json_format)},"payload":{payload}}}'
