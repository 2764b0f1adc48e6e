"""Programs for compiled code that turns JSON into Avro (``connector/records/native/transcode.c``)."""

from typing import Any

from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.avro.values import avro_encoder
from rowtide.envelope.json.text import string_text
from rowtide.envelope.schema import Schema

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
        name: of the field that has the schema.
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
