"""Avro's bytes of Connect values.

fastavro encodes them after a conversion to Avro's values. Where possible, compiled code turns JSON into the same bytes
(``connector/records/native/transcode.c``); a program tells it how.
"""

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro

from rowtide.envelope.avro.names import scrubbed
from rowtide.envelope.avro.schemas import DEFAULT_FORMAT, AvroFormat, avro_schema_text
from rowtide.envelope.json.text import decimal_bytes, string_text
from rowtide.envelope.schema import Schema

Encoder = Callable[[Any], bytes]
"""From a value of a Connect schema to Avro's binary encoding."""

_Convert = Callable[[Any], Any]


def avro_encoder(schema: Schema, settings: AvroFormat = DEFAULT_FORMAT, written: str | None = None) -> Encoder:
    """Return the function that encodes the values of a schema.

    It raises ``ValueError`` with the name of the field for a null that is neither optional nor has a default.

    Args:
        schema: the Connect schema.
        settings: how its Avro schema is made.
        written: the Avro schema to write, if it is not the one made of ``schema``.

    Raises:
        ValueError: the schema has no Avro schema (see :func:`~rowtide.envelope.avro.schemas.avro_schema_text`).
    """
    parsed = fastavro.parse_schema(json.loads(avro_schema_text(schema, settings) if written is None else written))
    convert = _conversion(schema, settings)

    def encode(value: Any) -> bytes:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, convert(value))
        return buffer.getvalue()

    return encode


def avro_name(field: str, settings: AvroFormat) -> str:
    """Return the name of a field in Avro."""
    return scrubbed(field) if settings.scrub_invalid_names else field


def _conversion(schema: Schema, settings: AvroFormat) -> _Convert:
    """Return the function from a value to the one that fastavro writes."""
    convert = _CONVERSIONS[schema.type](schema, settings)
    if schema.default is not None and (settings.replace_null_with_default or not schema.optional):
        default = convert(schema.default)
        return lambda value: default if value is None else convert(value)
    if schema.optional:
        return lambda value: None if value is None else convert(value)

    def required(value: Any) -> Any:
        if value is None:
            raise ValueError(
                f"null for a value of type {schema.name or schema.type}, which is neither optional nor has a default"
            )
        return convert(value)

    return required


def _struct(schema: Schema, settings: AvroFormat) -> _Convert:
    fields = [
        (field.name, avro_name(field.name, settings), _conversion(field.schema, settings)) for field in schema.fields
    ]

    def struct(value: Any) -> dict[str, Any]:
        made = {}
        for field, name, convert in fields:
            try:
                made[name] = convert(value.get(field))
            except ValueError as error:
                raise ValueError(f"field {field!r} of {schema.name or 'a struct'}: {error}") from error
        return made

    return struct


def _array(schema: Schema, settings: AvroFormat) -> _Convert:
    assert schema.items is not None
    convert = _conversion(schema.items, settings)
    return lambda value: [convert(item) for item in value]


def _map(schema: Schema, settings: AvroFormat) -> _Convert:
    assert schema.items is not None
    convert = _conversion(schema.items, settings)
    return lambda value: {_text(key): convert(item) for key, item in value.items()}


def _text(value: str) -> str:
    """Return a string as Java encodes it: lone surrogates become question marks."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _same(value: Any) -> Any:
    return value


def _plain(_schema: Schema, _settings: AvroFormat) -> _Convert:
    return _same


_CONVERSIONS: dict[str, Callable[[Schema, AvroFormat], _Convert]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "float", "double", "boolean"), _plain),
    "string": lambda _schema, _settings: _text,
    "bytes": lambda schema, _settings: decimal_bytes if schema.is_decimal else _same,
    "array": _array,
    "map": _map,
    "struct": _struct,
}


Program = tuple[str, bytes, bytes, bytes | None, tuple[Any, ...]]
"""The kind of a value, the text of its field's name, the bytes before a value and those of null, and its parts."""

_KINDS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "long"),
    **{kind: kind for kind in ("boolean", "float", "double", "string", "bytes", "struct", "array", "map")},
}


def avro_program(schema: Schema, settings: AvroFormat, name: str | None = None) -> Program:
    """Return the program of a schema, for text without replaced nulls and with decimals in Base64.

    Args:
        schema: the schema.
        settings: how its values become Avro.
        name: the name of the field that has the schema.
    """
    children: tuple[Program, ...] = ()
    if schema.type == "struct":
        children = tuple(avro_program(field.schema, settings, field.name) for field in schema.fields)
    elif schema.items is not None:
        children = (avro_program(schema.items, settings),)
    before = b"" if not schema.optional else b"\x02" if schema.default is None else b"\x00"  # the place in the union
    text = b"" if name is None else f"{string_text(name)}:".encode()
    return _KINDS[schema.type], text, before, _null(schema, settings), children


def _null(schema: Schema, settings: AvroFormat) -> bytes | None:
    """Return the bytes of null; ``None`` if it is not allowed."""
    if schema.optional and (schema.default is None or not settings.replace_null_with_default):
        return b"\x00" if schema.default is None else b"\x02"
    return None if schema.default is None else avro_encoder(schema, settings)(schema.default)
