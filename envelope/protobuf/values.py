"""Protobuf's bytes of Connect values (https://protobuf.dev/programming-guides/encoding/).

As in proto3, null is not written, nor is zero, an empty text or an empty list, unless the field is marked ``optional``.
Where possible, compiled code turns JSON into the same bytes (``connector/records/native/transcode.c``); a program tells
it how.
"""

import datetime as dt
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rowtide.envelope.json.text import decimal_bytes, decimal_scale, string_text
from rowtide.envelope.protobuf.messages import DEFAULT_FORMAT, FieldType, MessageType, ProtobufFormat
from rowtide.envelope.protobuf.wire import I32, I64, LEN, VARINT, varint
from rowtide.envelope.schema import Schema

Encoder = Callable[[Any], bytes]
"""From a value to the bytes of its message or of its scalar."""

_MILLIS_OF_DAY = 86_400_000


def message_encoder(message: MessageType, settings: ProtobufFormat = DEFAULT_FORMAT) -> Encoder:
    """Return the function that encodes a struct; it raises ``ValueError`` for a null that is not allowed."""
    fields = [(field.field, field_encoder(field, settings)) for field in message.fields]

    def encode(value: Any) -> bytes:
        parts = []
        for name, write in fields:
            try:
                parts.append(write(value.get(name)))
            except ValueError as error:
                raise ValueError(f"field {name!r} of {message.name}: {error}") from error
        return b"".join(parts)

    return encode


def scalar_encoder(scalar: str) -> Encoder:
    """Return the function that encodes a wrapper message of a scalar."""
    return _tagged(1, scalar, written_if_zero=False)


def tag_of(field: FieldType) -> bytes:
    """Return the bytes in front of a field."""
    delimited = field.scalar is None or field.wrapped or field.repeated
    return _tag(field.number, LEN if delimited else _SCALARS[field.scalar or ""][0])


def field_encoder(field: FieldType, settings: ProtobufFormat) -> Encoder:
    """Return the function that encodes a field with its tag; for null it is empty, or raises ``ValueError``."""
    write = _repeated(field, settings) if field.repeated else _single(field, settings)
    schema = field.schema
    default = schema.default if settings.replace_null_with_default or not schema.optional else None
    written_default = b"" if default is None else write(default)

    def encode(value: Any) -> bytes:
        if value is not None:
            return write(value)
        if not schema.optional and default is None:
            raise ValueError(
                f"null for a value of type {schema.name or schema.type}, which is neither optional nor has a default"
            )
        return written_default

    return encode


def _single(field: FieldType, settings: ProtobufFormat) -> Encoder:
    if field.scalar is None:
        return _length_delimited(field.number, _message_of(field, settings))
    if field.wrapped:
        return _length_delimited(field.number, scalar_encoder(field.scalar))
    return _tagged(field.number, field.scalar, written_if_zero=field.explicit)


def _repeated(field: FieldType, settings: ProtobufFormat) -> Encoder:
    scalar = field.scalar
    if field.schema.type == "map":
        entry = _length_delimited(field.number, _message_of(field, settings))
        return lambda value: b"".join(entry({"key": key, "value": one}) for key, one in value.items())
    if scalar is None:
        one = _length_delimited(field.number, _message_of(field, settings))
    elif scalar in {"string", "bytes"}:
        one = _tagged(field.number, scalar, written_if_zero=True)
    else:
        tag, encode = _tag(field.number, LEN), _SCALARS[scalar][1]

        def packed(value: Any) -> bytes:
            if not value:
                return b""
            data = b"".join(map(encode, _elements(value)))
            return tag + varint(len(data)) + data

        return packed
    return lambda value: b"".join(map(one, _elements(value)))


def _elements(value: Any) -> Any:
    if None in value:
        raise ValueError("null is an element of a list, which Protobuf does not have")
    return value


def _message_of(field: FieldType, settings: ProtobufFormat) -> Encoder:
    if field.message is not None:
        return message_encoder(field.message, settings)
    return _WELL_KNOWN[field.type](field.element)


def _tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def _length_delimited(number: int, encode: Encoder) -> Encoder:
    tag = _tag(number, LEN)

    def write(value: Any) -> bytes:
        data = encode(value)
        return tag + varint(len(data)) + data

    return write


def _tagged(number: int, scalar: str, *, written_if_zero: bool) -> Encoder:
    wire, encode, empty = _SCALARS[scalar]
    tag, zero = _tag(number, wire), encode(empty)

    def write(value: Any) -> bytes:
        data = encode(value)
        return b"" if data == zero and not written_if_zero else tag + data

    return write


def _string(value: str) -> bytes:
    return _counted(value.encode("utf-8", "replace"))


def _counted(data: bytes) -> bytes:
    return varint(len(data)) + data


_SCALARS: dict[str, tuple[int, Encoder, Any]] = {
    "int32": (VARINT, varint, 0),
    "int64": (VARINT, varint, 0),
    "bool": (VARINT, lambda value: b"\x01" if value else b"\x00", False),
    "float": (I32, struct.Struct("<f").pack, 0.0),
    "double": (I64, struct.Struct("<d").pack, 0.0),
    "string": (LEN, _string, ""),
    "bytes": (LEN, _counted, b""),
}
"""The wire type of each scalar type, its encoder, and the value that is not written."""


def _numbers(*numbers: int) -> bytes:
    """Return a message of whole numbers, whose fields are numbered from 1."""
    return b"".join(_tag(place, VARINT) + varint(one) for place, one in enumerate(numbers, 1) if one)


def _decimal(schema: Schema) -> Encoder:
    """Return the encoder of a decimal: the number, the number of its digits as its precision, and the scale."""
    scale, value_tag, precision_tag = decimal_scale(schema), _tag(1, LEN), _tag(2, VARINT)
    written_scale = _tag(3, VARINT) + varint(scale) if scale else b""

    def encode(unscaled: int) -> bytes:
        digits = varint(len(str(abs(unscaled))))
        return value_tag + _counted(decimal_bytes(unscaled)) + precision_tag + digits + written_scale

    return encode


def _date(_schema: Schema) -> Encoder:
    def encode(days: int) -> bytes:
        try:
            day = dt.date.fromordinal(days + dt.date(1970, 1, 1).toordinal())
        except (OverflowError, ValueError):
            raise ValueError("a date is not one of the years 1 to 9999, as google.type.Date needs") from None
        return _numbers(day.year, day.month, day.day)

    return encode


def _time(_schema: Schema) -> Encoder:
    def encode(millis: int) -> bytes:
        if not 0 <= millis <= _MILLIS_OF_DAY:  # its documentation allows 24:00:00
            raise ValueError(f"a time of {millis} ms is not within a day, as google.type.TimeOfDay needs")
        seconds, rest = divmod(millis, 1000)
        return _numbers(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1_000_000)

    return encode


def _timestamp(_schema: Schema) -> Encoder:
    def encode(millis: int) -> bytes:
        seconds, rest = divmod(millis, 1000)
        return _numbers(seconds, rest * 1_000_000)

    return encode


_WELL_KNOWN: dict[str, Callable[[Schema], Encoder]] = {
    "confluent.type.Decimal": _decimal,
    "google.type.Date": _date,
    "google.type.TimeOfDay": _time,
    "google.protobuf.Timestamp": _timestamp,
}


Program = tuple[str, bytes, bytes, bytes | None, tuple[Any, ...], bool, bytes]
"""As for Avro, and whether a field is written even if it is zero or empty, and the bytes of a decimal's scale."""

_KINDS = {"int32": "long", "int64": "long", "bool": "boolean"}


def protobuf_program(message: MessageType, settings: ProtobufFormat) -> Program | None:
    """Return the program of a message; ``None`` if only the Python code supports a type of its fields."""
    return _message_program(message, b"", b"", None, settings)


def _message_program(
    message: MessageType, name: bytes, tag: bytes, null: bytes | None, settings: ProtobufFormat
) -> Program | None:
    fields = [_field_program(field, settings) for field in message.fields]
    if None in fields:
        return None
    return "field of message", name, tag, null, tuple(fields), True, b""


def _field_program(field: FieldType, settings: ProtobufFormat) -> Program | None:
    name, null = f"{string_text(field.field)}:".encode(), _null(field, settings)
    tag = tag_of(field)
    if not field.repeated:
        return _single_program(field, name, tag, null, settings)
    if field.schema.type == "map":
        assert field.message is not None
        entry = [_field_program(part, settings) for part in field.message.fields]
        if None in entry:
            return None
        return "field of map", name, tag, null, tuple(entry), True, b""
    element = replace(field, repeated=False, explicit=True, schema=field.element.with_optional(False))
    packed = field.scalar is not None and field.scalar not in {"string", "bytes"}
    one = _single_program(element, b"", b"" if packed else tag, None, settings)
    if one is None:
        return None
    if packed:
        return "field of packed", name, tag, null, (one,), True, b""
    return "field of repeated", name, b"", null, (one,), True, b""


def _single_program(
    field: FieldType, name: bytes, tag: bytes, null: bytes | None, settings: ProtobufFormat
) -> Program | None:
    if field.message is not None:
        return _message_program(field.message, name, tag, null, settings)
    if field.scalar is None:
        if field.type != "confluent.type.Decimal":
            return None
        scale = decimal_scale(field.element)
        written = b"\x18" + varint(scale) if scale else b""
        return "field of decimal", name, tag, null, (), True, written
    kind = f"field of {_KINDS.get(field.scalar, field.scalar)}"
    if field.wrapped:
        value = kind, b"", tag_of(replace(field, number=1, wrapped=False)), None, (), False, b""
        return "field of wrapped", name, tag, null, (value,), True, b""
    return kind, name, tag, null, (), field.explicit, b""


def _null(field: FieldType, settings: ProtobufFormat) -> bytes | None:
    try:
        return field_encoder(field, settings)(None)
    except ValueError:
        return None
