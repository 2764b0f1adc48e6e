"""``org.apache.kafka.connect.json.JsonConverter``: JSON with or without its schema, and the text around rows."""

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
        """Return the text before and after the JSON, unless the settings change the JSON itself."""
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


BETWEEN_ROWS = ',"after":'
SOURCE = ',"source":'
"""The text after the row after the change."""
NO_TRANSACTION = '"transaction":null'


class EnvelopeText:
    """The parts of the envelopes of one table, in order: ``opening``, a row, ``BETWEEN_ROWS``, a row, ``SOURCE``, tail.

    Args:
        schema: the schema of the envelope.
        settings: the settings of the JSON.

    Attributes:
        opening: the text before the row before the change.
    """

    __slots__ = ("_closing", "opening")

    def __init__(self, schema: Schema | None, settings: JsonSettings) -> None:
        opening, closing = wrapping(schema, settings)
        self.opening, self._closing = opening + b'{"before":', closing.decode()

    def tail(self, op: str, source: str, times: str, transaction: str = NO_TRANSACTION) -> str:
        """Return the text after ``SOURCE``, or after the row number in it.

        Args:
            op: the operation.
            source: the ``source`` block, or the rest of it.
            times: of the processing, from `processing_times`.
            transaction: the ``transaction`` field.
        """
        return f'{source},{transaction},"op":"{op}",{times}}}{self._closing}'

    def around(self, op: str, source: str, times: str) -> tuple[bytes, bytes]:
        """Return the text around the only row of each change: the row before a delete, the row after all others."""
        tail = f"{SOURCE}{self.tail(op, source, times)}".encode()
        if op == "d":
            return self.opening, f"{BETWEEN_ROWS}null".encode() + tail
        return self.opening + f"null{BETWEEN_ROWS}".encode(), tail


def processing_times(now: int) -> str:
    """Return the fields of the time of processing, in ns since the epoch."""
    micros = now // 1000
    return f'"ts_ms":{micros // 1000},"ts_us":{micros},"ts_ns":{now}'
