"""Applies single message transforms to the batches of the pipeline, a snapshot or a heartbeat.

With transforms, messages are first written in a lossless format (``settings.LOSSLESS``) and come with their schemas.
Here they become Connect records, pass through the chain, and are written in the format of the configured converters.
Without transforms, this module is not used.
"""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal

from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch, Headers, Message, Output, joined
from rowtide.connector.records.codecs.debezium_messages import wrapping
from rowtide.connector.records.settings import Transforms
from rowtide.connector.rows.messages import message_bytes
from rowtide.envelope.json.headers import header_text
from rowtide.envelope.json.reader import value_from_json
from rowtide.envelope.json.text import value_text
from rowtide.envelope.schema import STRING, Schema
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.transforms import ConnectRecord, Header, TransformError
from rowtide.envelope.transforms.record import SchemaCache


class TransformFailed(ConnectorError):
    """A transform cannot process a record."""


class Transformer:
    """Applies transforms to batches on their way to the event store."""

    def __init__(self, transforms: Transforms) -> None:
        self._chain = transforms.chain
        self._keys = _Converter(transforms.keys)
        self._values = _Converter(transforms.values)

    def outputs(self, outputs: Iterable[Output]) -> Iterator[Output]:
        """Yield the transformed output for each output, in order.

        Raises:
            TransformFailed: a transform cannot process a record.
        """
        for output in outputs:
            yield self.batch(output) if isinstance(output, Batch) and output.messages else output

    def batch(self, batch: Batch) -> Batch:
        """The transformed batch; one without messages if the transforms drop them all.

        Raises:
            TransformFailed: a transform cannot process a record.
        """
        pieces = [piece for original in batch.destinations() for piece in self._pieces(original)]
        if not pieces:
            return Batch("", -1, (), batch.offset, 0, batch.ts_ms)
        return joined(pieces)._replace(offset=batch.offset)

    def _pieces(self, batch: Batch) -> list[Batch]:
        """A batch for each run of messages with the same topic, partition and timestamp."""
        pieces: list[Batch] = []
        destination: tuple[str, int | None, int | None] | None = None
        messages: list[Message] = []
        for message in batch.messages:
            record = self._transformed(batch, message)
            if record is None:
                continue
            if (record.topic, record.partition, record.timestamp) != destination:
                destination = record.topic, record.partition, record.timestamp
                messages = []
                partition = -1 if record.partition is None else record.partition
                pieces.append(
                    Batch(record.topic, partition, messages, batch.offset, 0, batch.ts_ms, None, record.timestamp or 0)
                )
            messages.append(self._message(record))
        return [piece._replace(size=message_bytes(piece.messages)) for piece in pieces]

    def _transformed(self, batch: Batch, message: Message) -> ConnectRecord | None:
        try:
            return self._chain.apply(_record(batch, message))
        except TransformError as error:
            raise TransformFailed(str(error)) from error

    def _message(self, record: ConnectRecord) -> Message:
        return (
            self._keys.data(record.key_schema, record.key),
            self._values.data(record.value_schema, record.value),
            _headers(record),
        )


class _Converter:
    """``JsonConverter``, with a cache of the texts before and after the values of each schema."""

    def __init__(self, settings: JsonSettings) -> None:
        self._settings = settings
        self._wrappings: SchemaCache[tuple[bytes, bytes]] = SchemaCache()

    def data(self, schema: Schema | None, value: object) -> bytes | None:
        """A key or value. Without a schema it is ``None``; with one, null is written as JSON."""
        if schema is None:
            return None
        opening, closing = self._wrappings.get(self._wrapping, schema)
        return opening + value_text(schema, value, self._settings.json_format).encode() + closing

    def _wrapping(self, schema: Schema) -> tuple[bytes, bytes]:
        return wrapping(schema, self._settings)


def _record(batch: Batch, message: Message) -> ConnectRecord:
    assert batch.schemas is not None, f"a batch of topic {batch.topic} without its schemas"
    key_schema, value_schema = batch.schemas
    key, value, headers = message
    return ConnectRecord(
        batch.topic,
        None if batch.partition < 0 else batch.partition,
        None if key is None else key_schema,
        _value(key_schema, key),
        None if value is None else value_schema,
        _value(value_schema, value),
        tuple(Header(name, None if text is None else STRING, text and text.decode()) for name, text in headers),
    )


def _value(schema: Schema | None, data: bytes | None) -> object:
    if schema is None or data is None:
        return None
    return value_from_json(schema, json.loads(data, parse_float=Decimal))


def _headers(record: ConnectRecord) -> Headers:
    headers = []
    for name, schema, value in record.headers:
        text = None if schema is None else header_text(schema, value)
        headers.append((name, None if text is None else text.encode()))
    return headers
