"""Programs for compiled code that turns JSON into Protobuf (``connector/records/native/transcode.c``)."""

from dataclasses import replace
from typing import Any

from rowtide.envelope.json.text import decimal_scale, string_text
from rowtide.envelope.protobuf.messages import FieldType, MessageType, ProtobufFormat
from rowtide.envelope.protobuf.values import field_encoder, tag_of, varint

Program = tuple[str, bytes, bytes, bytes | None, tuple[Any, ...], bool, bytes]
"""As for Avro, and whether a field is written even if it is zero or empty, and the bytes of a decimal's scale."""

_KINDS = {"int32": "long", "int64": "long", "bool": "boolean"}


def protobuf_program(message: MessageType, settings: ProtobufFormat) -> Program | None:
    """Return the program of a message; ``None`` if only the Python code supports a type of its fields."""
    return _message(message, b"", b"", None, settings)


def _message(
    message: MessageType, name: bytes, tag: bytes, null: bytes | None, settings: ProtobufFormat
) -> Program | None:
    fields = [_field(field, settings) for field in message.fields]
    if None in fields:
        return None
    return "field of message", name, tag, null, tuple(fields), True, b""


def _field(field: FieldType, settings: ProtobufFormat) -> Program | None:
    name, null = f"{string_text(field.field)}:".encode(), _null(field, settings)
    tag = tag_of(field)
    if not field.repeated:
        return _single(field, name, tag, null, settings)
    if field.schema.type == "map":
        assert field.message is not None
        entry = [_field(part, settings) for part in field.message.fields]
        if None in entry:
            return None
        return "field of map", name, tag, null, tuple(entry), True, b""
    element = replace(field, repeated=False, explicit=True, schema=field.element.with_optional(False))
    packed = field.scalar is not None and field.scalar not in {"string", "bytes"}
    one = _single(element, b"", b"" if packed else tag, None, settings)
    if one is None:
        return None
    if packed:
        return "field of packed", name, tag, null, (one,), True, b""
    return "field of repeated", name, b"", null, (one,), True, b""


def _single(field: FieldType, name: bytes, tag: bytes, null: bytes | None, settings: ProtobufFormat) -> Program | None:
    if field.message is not None:
        return _message(field.message, name, tag, null, settings)
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
