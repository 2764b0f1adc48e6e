"""Avro's bytes of Connect values: fastavro encodes them after a conversion to Avro's values."""

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro

from rowtide.envelope.avro.names import scrubbed
from rowtide.envelope.avro.schemas import DEFAULT_FORMAT, AvroFormat, avro_schema_text
from rowtide.envelope.json.text import decimal_bytes
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
