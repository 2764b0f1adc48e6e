"""``org.apache.kafka.connect.json.JsonConverter``: JSON, with or without its schema."""

from typing import Any

from rowtide.envelope.converters.converter import Added, Transcoding
from rowtide.envelope.json.text import schema_text, value_text
from rowtide.envelope.schema import Schema
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.transforms.record import ConnectRecord, SchemaCache, Side


class JsonConverter:
    """JSON, with a cache of the texts before and after the values of each schema."""

    tells_null = True

    def __init__(self, settings: JsonSettings) -> None:
        self.settings = settings
        self._wrappings: SchemaCache[tuple[bytes, bytes]] = SchemaCache()

    @property
    def replaces_null(self) -> bool:
        """Whether null becomes the default of its schema."""
        return self.settings.json_format.replace_null_with_default

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes of a key or value. Without a schema there are none; with one, null is written as JSON."""
        schema = record.schema_of(side)
        if schema is None:
            return None
        return self.header(schema, record.content(side))

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return the text around the same text, unless the settings change it."""
        form = self.settings.json_format
        if form.replace_null_with_default or form.decimal_format != "BASE64":
            return None
        opening, closing = self._wrappings.get(lambda of: wrapping(of, self.settings), schema)
        return Transcoding(opening, None, closing)

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a header."""
        if schema is None:
            return None
        opening, closing = self._wrappings.get(lambda of: wrapping(of, self.settings), schema)
        return opening + value_text(schema, value, self.settings.json_format).encode() + closing


def wrapping(schema: Schema | None, settings: JsonSettings) -> tuple[bytes, bytes]:
    """Return the bytes before and after a payload (``schemas.enable``)."""
    if schema is None or not settings.schemas_enable:
        return b"", b""
    return f'{{"schema":{schema_text(schema, json_format=settings.json_format)},"payload":'.encode(), b"}"


def json_message(schema: Schema, value: object, settings: JsonSettings) -> bytes:
    """Return a complete key or value, for records that are too rare for a compiled writer."""
    opening, closing = wrapping(schema, settings)
    return opening + value_text(schema, value, settings.json_format).encode() + closing
