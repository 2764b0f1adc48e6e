"""Parses the bytes of keys and values with their Connect schemas: JSON, Avro and Protobuf."""

import json as python_json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import orjson

from rowtide.decoder.errors import DecodeError, RegistryUnavailable
from rowtide.envelope.converters.registry import SCHEMA_ID_HEADERS, SchemaKind
from rowtide.envelope.json.reader import NotConnectJsonError, schema_from_json
from rowtide.envelope.protobuf.reader import ProtobufReader, message_indexes
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import Side

Headers = Sequence[tuple[str, bytes | None]]

_SCHEMA, _PAYLOAD = b'{"schema":', b',"payload":'
_OPENS_SCHEMA = b'{"schema":{'
_NOT_FOUND = 404
_REGISTRY_S = 10
_MOST_SCHEMAS = 1000
_MOST_RECENT = 8
"""Schemas of a topic that are tried first: a topic may have the records of several tables."""


class Parsed(NamedTuple):
    """A key or value.

    Attributes:
        schema: its schema; ``None`` for JSON without schemas. The same object for records with the same schema.
        value: the value.
        json: whether values of columns are those of JSON.
    """

    schema: Schema | None
    value: Any
    json: bool


class SchemaSource(Protocol):
    """A client of a schema registry, such as confluent-kafka's ``SchemaRegistryClient``."""

    def get_schema(self, schema_id: int) -> Any:
        """Return a schema, with its text in ``schema_str`` and its language in ``schema_type``."""
        ...

    def get_schema_by_guid(self, guid: str) -> Any:
        """Return the schema that a header names."""
        ...


class JsonReader:
    """Reads the keys or the values of records in JSON: with schemas, each of which is parsed once, or without."""

    def __init__(self) -> None:
        self._known: dict[bytes, Schema] = {}
        self._recent: dict[str, list[tuple[bytes, Schema]]] = {}

    def parsed(self, subject: str, data: bytes) -> Parsed:
        """Parse a key or value.

        Args:
            subject: the topic, most of whose records have the same schema.
            data: the bytes.

        Raises:
            ValueError: it is not JSON, or its schema is not one of Connect.
        """
        recent = self._recent.setdefault(subject, [])
        for opening, schema in recent:
            if data.startswith(opening):
                return Parsed(schema, _loads(data[len(opening) : -1]), True)
        opened = self._opening(data) if data.startswith(_OPENS_SCHEMA) else None
        if opened is None:
            return Parsed(*self.unwrapped(_loads(data)), True)
        opening, schema = opened
        recent.insert(0, (opening, schema))
        del recent[_MOST_RECENT:]
        return Parsed(schema, _loads(data[len(opening) : -1]), True)

    def _opening(self, data: bytes) -> tuple[bytes, Schema] | None:
        """Return the bytes up to the payload, and the schema in them.

        ``None`` if they do not have the form that a converter writes.
        """
        text = data.decode("utf-8", "surrogatepass")
        document, end = _DECODER.raw_decode(text, len(_SCHEMA))
        opening = text[:end].encode("utf-8", "surrogatepass") + _PAYLOAD
        return (opening, self._schema(document)) if data.startswith(opening) else None

    def unwrapped(self, document: Any) -> tuple[Schema | None, Any]:
        """Return the schema and the value of a document, whose members may be in any order; it may lack a schema.

        Raises:
            ValueError: its schema is not one of Connect.
        """
        if not isinstance(document, dict) or document.keys() != {"schema", "payload"}:
            return None, document
        schema = document["schema"]
        return None if schema is None else self._schema(schema), document["payload"]

    def _schema(self, document: Any) -> Schema:
        """Return a schema, the same object for the same text.

        Objects derived from schemas are cached by the schemas' identity.
        """
        text = _dumps(document)
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= _MOST_SCHEMAS:
                self._known.clear()
            known = self._known[text] = schema_from_json(document)
        return known


_DECODER = python_json.JSONDecoder()


def _loads(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError:
        return python_json.loads(data)  # integers of more than 64 bits, lone surrogates


def _dumps(document: Any) -> bytes:
    try:
        return orjson.dumps(document)
    except TypeError:
        return python_json.dumps(document).encode()  # as above


def in_registry(side: Side, data: bytes, headers: Headers) -> bool:
    """Tell whether a key or value names its schema in a registry."""
    return data[:1] == b"\0" or any(name == SCHEMA_ID_HEADERS[side] for name, _ in headers)


def schema_id(side: Side, data: bytes, headers: Headers) -> tuple[int | bytes, bytes, bytes]:
    """Return the id of a schema or its global id, the part after the global id, and the bytes after a prefix."""
    in_header = next((value for name, value in headers if name == SCHEMA_ID_HEADERS[side] and value), None)
    if in_header is not None:
        return in_header[1:17], in_header[17:], data
    return int.from_bytes(data[1:5], "big"), b"", data[5:]


class RegistryReader:
    """Values in Avro and Protobuf, with the id of their schema in front or in a header.

    Args:
        source: the registry.
    """

    def __init__(self, source: SchemaSource) -> None:
        self._source = source
        self._readers: dict[int | bytes, _Reader] = {}

    def parsed(self, side: Side, data: bytes, headers: Headers) -> Parsed:
        """Decode a key or value.

        Raises:
            DecodeError: the registry does not have the schema, the schema is of another kind, or the bytes do not match
                it.
            RegistryUnavailable: the registry does not answer.
        """
        number, indexes, data = schema_id(side, data, headers)
        read = self._readers.get(number)
        if read is None:
            read = self._readers[number] = self._reader(number)
        try:
            return Parsed(*read(data, indexes), False)
        except Exception as error:  # fastavro raises many
            raise DecodeError(
                f"the {side} does not fit schema {_name(number)}: {type(error).__name__}: {error}"
            ) from error

    def _reader(self, number: int | bytes) -> "_Reader":
        kind, text = registered_schema(self._source, number)
        try:
            if kind == "PROTOBUF":
                return _protobuf(text)
            from rowtide.envelope.avro.reader import avro_reader  # noqa: PLC0415 - needs the extra avro

            schema, decode = avro_reader(text)
        except ValueError as error:
            raise DecodeError(f"schema {_name(number)} cannot be read: {error}") from error
        return lambda data, _indexes: (schema, decode(data))


_Reader = Callable[[bytes, bytes], tuple[Schema, Any]]
"""From the bytes of a value, and those after the global id in a header, to its schema and the value."""


def _protobuf(text: str) -> _Reader:
    reader = ProtobufReader(text)

    def read(data: bytes, in_header: bytes) -> tuple[Schema, Any]:
        indexes, start = message_indexes(in_header or data)
        schema, decode = reader.message(indexes)
        return schema, decode(data if in_header else data[start:])

    return read


def _name(number: int | bytes) -> str:
    return str(uuid.UUID(bytes=number)) if isinstance(number, bytes) else str(number)


def registered_schema(source: SchemaSource, number: int | bytes) -> tuple[SchemaKind, str]:
    """Return the kind and the text of a schema.

    Args:
        source: the registry.
        number: its id, or the bytes of its global id.

    Raises:
        DecodeError: the registry does not have it, or it is neither Avro nor Protobuf.
        RegistryUnavailable: the registry does not answer.
    """
    name = _name(number)
    try:
        found = source.get_schema(number) if isinstance(number, int) else source.get_schema_by_guid(name)
    except Exception as error:  # the client's, of its HTTP library, or of another client
        if getattr(error, "http_status_code", None) == _NOT_FOUND:
            raise DecodeError(f"the schema registry does not have schema {name}: {error}. Check its URL") from error
        raise RegistryUnavailable(
            f"the schema registry did not return schema {name}: {type(error).__name__}: {error}"
        ) from error
    kind: SchemaKind = found.schema_type or "AVRO"
    if kind not in ("AVRO", "PROTOBUF"):
        raise DecodeError(f"schema {name} is {kind}: records can be decoded in Avro and Protobuf")
    return kind, found.schema_str


def registry_client(url: str) -> Any:
    """Return a client of the schema registry at a URL, without log-in."""
    from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415 - needs the extra avro

    return SchemaRegistryClient({"url": url, "timeout": _REGISTRY_S})


def of_cloud_event(event: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the data of a CloudEvent in JSON, and its ``op``, ``source`` and transaction as in an envelope."""
    prefix = "iodebezium"
    names = {
        "version": "version", "connector": "connector", "name": "name", "ts_ms": "tsms", "snapshot": "snapshot",
        "db": "db", "ts_us": "tsus", "ts_ns": "tsns", "table": "table", "server_id": "serverid", "gtid": "gtid",
        "file": "file", "pos": "pos", "row": "row", "thread": "thread", "query": "query",
    }  # fmt: skip
    source = {name: numbered(name, event.get(prefix + short)) for name, short in names.items()}
    transaction = {
        name: event.get(f"{prefix}tx{name.replace('_', '')}") for name in ("id", "total_order", "data_collection_order")
    }
    given = {"op": event.get(f"{prefix}op"), "source": source}
    return event["data"], {**given, "transaction": transaction if transaction["id"] else None}


_NUMBERS = frozenset({"ts_ms", "ts_us", "ts_ns", "server_id", "pos", "row", "thread"})


def numbered(name: str, value: Any) -> Any:
    """Return a member of ``source`` that was written as text: a name of digits is not a number."""
    return int(value) if name in _NUMBERS and isinstance(value, str) and value.isdigit() else value


__all__ = [
    "Headers",
    "JsonReader",
    "NotConnectJsonError",
    "Parsed",
    "RegistryReader",
    "SchemaSource",
    "in_registry",
    "numbered",
    "of_cloud_event",
    "registered_schema",
    "registry_client",
]
