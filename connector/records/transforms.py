"""Applies post-processors, transforms and converters to the batches of the pipeline, a snapshot or a heartbeat.

With post-processors, transforms, or a converter other than ``JsonConverter``, messages are first written in a lossless
format (``settings.LOSSLESS``) and come with their schemas. Here they become Connect records, pass the chain, and are
written by the configured converters. Otherwise this module is not used.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch, Headers, Message, Output, joined
from rowtide.connector.records.codecs.debezium_messages import NEW_KEY, OLD_KEY
from rowtide.connector.records.dead_letters import Reason, Stage
from rowtide.connector.records.native.implementation import native
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import LOSSLESS, Transforms
from rowtide.connector.rows.messages import message_bytes
from rowtide.envelope.converters.converter import Added, Converter
from rowtide.envelope.converters.plain import SimpleHeaderConverter
from rowtide.envelope.json.reader import schema_from_json, value_from_json
from rowtide.envelope.json.text import schema_text
from rowtide.envelope.post_processors import first_failures
from rowtide.envelope.schema import STRING, Schema
from rowtide.envelope.transforms import ConnectRecord, Header, TransformError
from rowtide.envelope.transforms.record import SchemaCache, Side, described

log = logging.getLogger(__name__)


class TransformFailed(ConnectorError):
    """A transform cannot process a record."""

    stage: Stage = "TRANSFORMATION"


class ConversionFailed(ConnectorError):
    """A converter cannot write a record.

    Args:
        message: the error.
        stage: the converter.
    """

    def __init__(self, message: str, stage: Stage = "VALUE_CONVERTER") -> None:
        super().__init__(message)
        self.stage = stage


class Transcoder:
    """Writes batches by compiled code, without transforms.

    Args:
        keys: the converter of keys.
        values: the converter of values.
        headers: the converter of headers.
    """

    def __init__(self, keys: Converter, values: Converter, headers: SimpleHeaderConverter) -> None:
        self._headers = headers
        self._converters: Mapping[Side, Converter] = {"key": keys, "value": values}
        self._functions: SchemaCache[_Written] = SchemaCache()

    def batch(self, batch: Batch) -> Batch | None:
        """Return the batch with the converters' messages; ``None`` if the Python code must make them.

        Raises:
            ConversionFailed: a converter cannot write a schema.
            RegistryError: the schema registry of a converter cannot be reached, or refuses a schema.
        """
        key_schema, value_schema = batch.schemas or (None, None)
        keys, values = self._side(batch.topic, "key", key_schema), self._side(batch.topic, "value", value_schema)
        if keys is _IN_PYTHON or values is _IN_PYTHON:
            return None
        assert native is not None
        found = native.transcoded(batch.messages, keys, values)
        if found is None:
            return None
        messages, size, same_headers = found
        if not same_headers or self._written(messages[0][2], key_schema) is not messages[0][2]:
            messages = [(key, value, self._written(headers, key_schema)) for key, value, headers in messages]
        return batch._replace(messages=messages, size=size, schemas=None)

    def _written(self, headers: Headers, key_schema: Schema | None) -> Headers:
        """Return headers in the form that is sent: only the other key of a changed key is not text yet."""
        if not any(name in (NEW_KEY, OLD_KEY) for name, _ in headers):
            return headers
        found = (_header(name, text, key_schema) for name, text in headers)
        return [(name, self._headers.header(schema, value)) for name, schema, value in found]

    def _side(self, topic: str, side: Side, schema: Schema | None) -> "_Written | None":
        """Return the conversion of keys or values; ``None`` if there are none."""
        if schema is None:
            return None

        def made(of: Schema) -> _Written:
            try:
                transcoding = self._converters[side].transcoding(topic, side, of)
            except ValueError as error:
                raise _failed(topic, side, error) from error
            if transcoding is None:
                return _IN_PYTHON
            assert native is not None
            opening, program, closing = transcoding
            return (None if program is None else native.Transcoder(program)), opening, closing

        return self._functions.get(made, schema, topic=f"{side} {topic}")


_Written = tuple[Any, bytes, bytes]
"""A transcoder, or ``None`` if the text stays, and the bytes before and after it."""
_IN_PYTHON: _Written = None, b"", b""
"""Stands for keys or values that Python has to write."""


def _failed(topic: str, side: Side, error: ValueError) -> ConversionFailed:
    stage: Stage = "KEY_CONVERTER" if side == "key" else "VALUE_CONVERTER"
    text = f"{side}.converter: the {side} of a record of topic {topic} cannot be written: {error}"
    return ConversionFailed(text, stage)


class Transformer:
    """Applies transforms and converters to batches on their way to the event store."""

    def __init__(self, transforms: Transforms) -> None:
        self._processors = transforms.processors
        self._chain = transforms.chain
        self._keys = transforms.keys
        self._values = transforms.values
        self._headers = transforms.headers
        self._tolerant = transforms.tolerant
        self._dead_letters = transforms.dead_letters
        self._show_values = transforms.show_values
        self._transcoder = None
        if native is not None and not (transforms.processors or transforms.chain.steps):
            headers = transforms.headers
            if isinstance(headers, SimpleHeaderConverter):
                self._transcoder = Transcoder(transforms.keys, transforms.values, headers)

    def outputs(self, outputs: Iterable[Output]) -> Iterator[Output]:
        """Yield the transformed output for each output, in order.

        Raises:
            TransformFailed: a transform cannot process a record.
            ConversionFailed: a converter cannot write a record.
            RegistryError: the schema registry of a converter cannot be reached, or refuses a schema.
        """
        for output in outputs:
            yield self.batch(output) if isinstance(output, Batch) and output.messages else output

    def batch(self, batch: Batch) -> Batch:
        """Return the transformed batch, without messages if the transforms drop all of them.

        Raises:
            TransformFailed: a transform cannot process a record.
            ConversionFailed: a converter cannot write a record.
            RegistryError: the schema registry of a converter cannot be reached, or refuses a schema.
        """
        pieces = [piece for original in batch.destinations() for piece in self._converted(original)]
        if not pieces:
            return Batch("", -1, (), batch.offset, 0, batch.ts_ms)
        return joined(pieces)._replace(offset=batch.offset)

    def _converted(self, batch: Batch) -> list[Batch]:
        if self._dead_letters is not None and batch.topic == self._dead_letters.topic:  # of an event
            return [batch]
        transcoded = None
        if self._transcoder is not None and batch.messages:
            try:
                transcoded = self._transcoder.batch(batch)
            except ConversionFailed:
                if not self._tolerant:
                    raise
        return self._pieces(batch) if transcoded is None else [transcoded]

    def _pieces(self, batch: Batch) -> list[Batch]:
        """Return a batch for each run of messages with the same topic, partition and timestamp."""
        pieces: list[Batch] = []
        destination: tuple[str, int | None, int | None] | None = None
        messages: list[Message] = []
        for given, processed in zip(batch.messages, self._records(batch), strict=True):
            try:
                made = [(record, self._message(record)) for record in self._transformed(processed)]
            except (TransformFailed, ConversionFailed) as error:
                pieces += self._rejected(batch, given, error)
                destination = None
                continue
            for record, message in made:
                if (record.topic, record.partition, record.timestamp) != destination:
                    destination = record.topic, record.partition, record.timestamp
                    messages = []
                    partition, timestamp = -1 if record.partition is None else record.partition, record.timestamp or 0
                    pieces.append(
                        Batch(record.topic, partition, messages, batch.offset, 0, batch.ts_ms, None, timestamp)
                    )
                messages.append(message)
        return [piece._replace(size=message_bytes(piece.messages)) for piece in pieces]

    def _rejected(self, batch: Batch, message: Message, error: TransformFailed | ConversionFailed) -> list[Batch]:
        """Return the dead letter of a record that a transform or a converter rejects.

        Raises:
            TransformFailed, ConversionFailed: the error, without ``errors.tolerance=all``.
        """
        if not self._tolerant:
            raise error
        if self._dead_letters is not None:
            kind = f"{type(error).__module__}.{type(error).__name__}"
            return [self._dead_letters.letter(batch, _enveloped(batch, message), Reason(error.stage, kind, str(error)))]
        place = f"before {batch.offset.file}:{batch.offset.pos}"
        log.warning("a record of topic %s %s is skipped (errors.tolerance=all): %s", batch.topic, place, error)
        return []

    def _records(self, batch: Batch) -> Iterable[ConnectRecord | TransformError]:
        """Return the records after the post-processors, or the reasons why they cannot be processed."""
        records = (connect_record(batch, message) for message in batch.messages)
        if not self._processors:
            return records
        found = list(records)
        failures = first_failures(self._processors, found)
        return [failures.get(place, record) for place, record in enumerate(found)]

    def _transformed(self, processed: ConnectRecord | TransformError) -> list[ConnectRecord]:
        try:
            if isinstance(processed, TransformError):
                raise processed
            return self._chain.records(processed)
        except TransformError as error:
            raise TransformFailed(described(error, show_values=self._show_values)) from error

    def _message(self, record: ConnectRecord) -> Message:
        headers = self._headers_of(record)
        return (
            self._data(self._keys, record, "key", headers),
            self._data(self._values, record, "value", headers),
            headers,
        )

    def _headers_of(self, record: ConnectRecord) -> Added:
        found: Added = []
        for name, schema, value in record.headers:
            try:
                found.append((name, self._headers.header(schema, value)))
            except ValueError as error:
                raise ConversionFailed(
                    f"header.converter: header {name} of a record of topic {record.topic} cannot be written: {error}",
                    "HEADER_CONVERTER",
                ) from error
        return found

    def _data(self, converter: Converter, record: ConnectRecord, side: Side, headers: Added) -> bytes | None:
        try:
            return converter.data(record, side, headers)
        except ValueError as error:
            raise _failed(record.topic, side, error) from error


def _enveloped(batch: Batch, message: Message) -> Message:
    """Return a message before the transforms, with the schemas of key and value."""
    key_schema, value_schema = batch.schemas or (None, None)
    key, value, headers = message
    return _with_schema(key_schema, key), _with_schema(value_schema, value), headers


_OPENING, _MIDDLE = '{"schema":', ',"payload":'


def _with_schema(schema: Schema | None, data: bytes | None) -> bytes | None:
    if data is None:
        return None
    text = "null" if schema is None else schema_text(schema, json_format=LOSSLESS.json_format)
    return f"{_OPENING}{text}{_MIDDLE}".encode() + data + b"}"


def untransformed(topic: str, partition: int, message: Message, offset: SourceOffset) -> Batch:
    """Return the record of a dead letter that a transform or a converter rejected, in its state before the transforms.

    Args:
        topic: of the record.
        partition: of the record, or -1.
        message: the record as the dead letter has it.
        offset: takes the place of the record's offset.

    Raises:
        ValueError: the key or the value is damaged.
    """
    key, value, headers = message
    (key_schema, key_data), (value_schema, value_data) = _without_schema(key), _without_schema(value)
    return Batch(topic, partition, [(key_data, value_data, headers)], offset, 0, 0, (key_schema, value_schema))


def _without_schema(data: bytes | None) -> tuple[Schema | None, bytes | None]:
    if data is None:
        return None, None
    text = data.decode()
    document, end = _DECODER.raw_decode(text, len(_OPENING))
    if not (text.startswith(_OPENING) and text.startswith(_MIDDLE, end) and text.endswith("}")):
        raise ValueError("it is not a record before its transforms")
    return None if document is None else schema_from_json(document), text[end + len(_MIDDLE) : -1].encode()


_DECODER = json.JSONDecoder(parse_float=Decimal)


def connect_record(batch: Batch, message: Message) -> ConnectRecord:
    """Return a message as a Connect record, of a batch in the format :data:`LOSSLESS` with its schemas."""
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
        tuple(_header(name, text, key_schema) for name, text in headers),
    )


def _header(name: str, text: bytes | None, key_schema: Schema | None) -> Header:
    """Return a header in its form before it was text: the other key of a changed key is a struct."""
    if text is not None and name in (NEW_KEY, OLD_KEY):
        return Header(name, key_schema, _value(key_schema, text))
    return Header(name, None if text is None else STRING, text and text.decode())


def _value(schema: Schema | None, data: bytes | None) -> object:
    if schema is None or data is None:
        return None
    return value_from_json(schema, json.loads(data, parse_float=Decimal))
