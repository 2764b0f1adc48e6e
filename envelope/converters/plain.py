"""Converters without schemas: ``StringConverter``, ``ByteArrayConverter`` and Debezium's ``BinaryDataConverter``."""

from typing import Any

from rowtide.envelope.converters.converter import Added, Converter, Transcoding
from rowtide.envelope.json.java_numbers import decimal_number_text, double_text, float_text
from rowtide.envelope.json.text import decimal_scale
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import ConnectRecord, Side


class StringConverter:
    """``org.apache.kafka.connect.storage.StringConverter``: the text of a value, as returned by Java's ``toString``."""

    replaces_null = False
    tells_null = True

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the text in UTF-8."""
        return self.header(record.schema_of(side), record.content(side))

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return ``None``: few records are strings."""
        return None

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the text of a header."""
        if schema is None or value is None:
            return None
        return _string(schema, value).encode("utf-8", "replace")


class ByteArrayConverter:
    """``org.apache.kafka.connect.converters.ByteArrayConverter``: raw bytes, and nothing else."""

    replaces_null = False
    tells_null = True

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes."""
        return self.header(record.schema_of(side), record.content(side))

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return ``None``: few records are bytes."""
        return None

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a header."""
        if schema is None or value is None:
            return None
        if schema.type != "bytes" or schema.is_decimal:
            name = f" ({schema.name})" if schema.name else ""
            raise ValueError(
                f"ByteArrayConverter writes bytes only, and this has the type {schema.type}{name}. Set another "
                "converter, or let a transform such as the outbox's EventRouter make it bytes"
            )
        found: bytes = value
        return found


class BinaryDataConverter:
    """``io.debezium.converters.BinaryDataConverter``: raw bytes, and another converter for the rest."""

    tells_null = True

    def __init__(self, delegate: Converter | None) -> None:
        self._delegate = delegate
        self._bytes = ByteArrayConverter()

    @property
    def replaces_null(self) -> bool:
        """Whether null becomes the default of its schema."""
        return self._delegate is not None and self._delegate.replaces_null

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes of a key or value."""
        schema = record.schema_of(side)
        if self._delegate is None or schema is None or (schema.type == "bytes" and not schema.is_decimal):
            return self._bytes.data(record, side, added)
        return self._delegate.data(record, side, added)

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return the transcoding of the other converter, for everything that is not bytes."""
        if self._delegate is None or (schema.type == "bytes" and not schema.is_decimal):
            return None
        return self._delegate.transcoding(topic, side, schema)


def _string(schema: Schema, value: Any) -> str:
    if value is None:
        return "null"
    match schema.type:
        case "string":
            return str(value)
        case "struct":
            members = (
                f"{field.name}={_string(field.schema, member)}"
                for field in schema.fields
                if (member := value.get(field.name)) is not None
            )
            return f"Struct{{{','.join(members)}}}"
        case "array" if schema.items:
            return "[" + ", ".join(_string(schema.items, item) for item in value) + "]"
        case "map" if schema.keys and schema.items:
            keys, items = schema.keys, schema.items
            return "{" + ", ".join(f"{_string(keys, k)}={_string(items, v)}" for k, v in value.items()) + "}"
        case "bytes" if schema.is_decimal:
            return decimal_number_text(value, decimal_scale(schema))
        case "bytes":
            raise ValueError("StringConverter has no text for bytes: Java writes the name of a class")
        case "boolean":
            return "true" if value else "false"
        case "float":
            return float_text(value).strip('"')
        case "double":
            return double_text(value).strip('"')
        case _:
            return str(value)
