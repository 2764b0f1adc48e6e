"""Converters without schemas: ``StringConverter``, ``ByteArrayConverter``, and Debezium's ``BinaryDataConverter``.

``SimpleHeaderConverter`` is for headers only.
"""

import abc
from typing import Any

from rowtide.envelope.converters.converter import Added, Converter, Transcoding
from rowtide.envelope.json.headers import header_text, number_text
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import ConnectRecord, Side


class _WithoutSchemas(abc.ABC):
    """Writes keys and values as headers are written."""

    replaces_null = False
    tells_null = True

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes of a key or value."""
        return self.header(record.schema_of(side), record.content(side))

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return ``None``: few records are texts or bytes."""
        return None

    @abc.abstractmethod
    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a header; ``None`` for null."""


class StringConverter(_WithoutSchemas):
    """``org.apache.kafka.connect.storage.StringConverter``: the text of a value, as returned by Java's ``toString``."""

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the text in UTF-8."""
        if schema is None or value is None:
            return None
        return _string(schema, value).encode("utf-8", "replace")


class ByteArrayConverter(_WithoutSchemas):
    """``org.apache.kafka.connect.converters.ByteArrayConverter``: raw bytes, and nothing else."""

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes."""
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


class SimpleHeaderConverter:
    """``org.apache.kafka.connect.storage.SimpleHeaderConverter``: text that is similar to JSON.

    Args:
        replace_null_with_default: write a null in a struct as the default of its field, if there is one, as in Connect.
    """

    def __init__(self, *, replace_null_with_default: bool = True) -> None:
        self._replaces = replace_null_with_default

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the text in UTF-8."""
        if schema is None:
            return None
        text = header_text(schema, value, replace_null_with_default=self._replaces)
        return None if text is None else text.encode()


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
        case "bytes" if not schema.is_decimal:
            raise ValueError("StringConverter has no text for bytes: Java writes the name of a class")
        case _:
            return number_text(schema, value)
