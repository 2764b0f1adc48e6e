"""From the bytes of keys and values to parsed values with their Connect schemas: JSON, and Avro by schema id."""

import json as python_json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import orjson

from rowtide.decoder.errors import DecodeError
from rowtide.envelope.converters.registry import SCHEMA_ID_HEADERS
from rowtide.envelope.json.reader import NotConnectJsonError, schema_from_json
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import Side

Headers = Sequence[tuple[str, bytes | None]]

_SCHEMA, _PAYLOAD = b'{"schema":', b',"payload":'
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


class JsonReader:
    """The keys or the values of records in JSON with schemas, each parsed once, or without."""

    def __init__(self) -> None:
        self._known: dict[bytes, Schema | None] = {}
        self._recent: dict[str, list[tuple[bytes, Schema | None]]] = {}

    def parsed(self, subject: str, data: bytes) -> Parsed:
        """Parse a key or value.

        Args:
            subject: the topic, whose records mostly have the same schema.
            data: the bytes.

        Raises:
            ValueError: it is not JSON, or its schema is not one of Connect.
        """
        recent = self._recent.setdefault(subject, [])
        for opening, schema in recent:
            if data.startswith(opening):
                return Parsed(schema, _loads(data[len(opening) : -1]), True)
        if not data.startswith(_SCHEMA):
            return self._whole(data)
        opening, schema = self._opening(data)
        recent.insert(0, (opening, schema))
        del recent[_MOST_RECENT:]
        return Parsed(schema, _loads(data[len(opening) : -1]), True)

    def _opening(self, data: bytes) -> tuple[bytes, Schema | None]:
        """The bytes up to the payload, and the schema in them."""
        document, end = _DECODER.raw_decode(data.decode("utf-8", "surrogatepass"), len(_SCHEMA))
        opening = data.decode("utf-8", "surrogatepass")[:end].encode("utf-8", "surrogatepass") + _PAYLOAD
        if not data.startswith(opening):
            raise ValueError('the object has other members than "schema" and "payload"')
        if opening not in self._known:
            if len(self._known) >= _MOST_SCHEMAS:
                self._known.clear()
            self._known[opening] = None if document is None else schema_from_json(document)
        return opening, self._known[opening]

    def _whole(self, data: bytes) -> Parsed:
        """JSON without a schema, or whose members stand in another order or with blanks between them."""
        document = _loads(data)
        if isinstance(document, dict) and document.keys() == {"schema", "payload"} and document["schema"] is not None:
            return Parsed(schema_from_json(document["schema"]), document["payload"], True)
        if isinstance(document, dict) and document.keys() == {"schema", "payload"}:
            document = document["payload"]
        return Parsed(None, document, True)


_DECODER = python_json.JSONDecoder()


def _loads(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError:
        return python_json.loads(data)  # integers of more than 64 bits, lone surrogates


def in_registry(side: Side, data: bytes, headers: Headers) -> bool:
    """Tell whether a key or value names its schema in a registry."""
    return data[:1] == b"\0" or any(name == SCHEMA_ID_HEADERS[side] for name, _ in headers)


class RegistryReader:
    """Values with the id of their schema in front or in a header.

    Args:
        source: the registry.
    """

    def __init__(self, source: SchemaSource) -> None:
        self._source = source
        self._readers: dict[int | bytes, tuple[Schema, Callable[[bytes], Any]]] = {}

    def parsed(self, side: Side, data: bytes, headers: Headers) -> Parsed:
        """Decode a key or value.

        Raises:
            DecodeError: the schema is not Avro.
            ValueError: the bytes do not fit the schema.
        """
        in_header = next((value for name, value in headers if name == SCHEMA_ID_HEADERS[side] and value), None)
        if in_header is None:
            number: int | bytes = int.from_bytes(data[1:5], "big")
            data = data[5:]
        else:
            number = in_header[1:17]
        known = self._readers.get(number)
        if known is None:
            known = self._readers[number] = self._reader(number)
        schema, decode = known
        return Parsed(schema, decode(data), False)

    def _reader(self, number: int | bytes) -> tuple[Schema, Callable[[bytes], Any]]:
        from rowtide.envelope.avro.reader import avro_reader  # noqa: PLC0415 - needs the extra avro

        if isinstance(number, bytes):
            found = self._source.get_schema_by_guid(str(_uuid(number)))  # type: ignore[attr-defined]
        else:
            found = self._source.get_schema(number)
        if (found.schema_type or "AVRO") != "AVRO":
            raise DecodeError(f"the schema {number!r} is {found.schema_type}: only Avro can be decoded")
        return avro_reader(found.schema_str)


def _uuid(data: bytes) -> Any:
    import uuid  # noqa: PLC0415

    return uuid.UUID(bytes=data)


def of_cloud_event(event: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the data of a CloudEvent in JSON, and its ``op``, ``source`` and transaction as in an envelope."""
    prefix = "iodebezium"
    names = {
        "version": "version", "connector": "connector", "name": "name", "ts_ms": "tsms", "snapshot": "snapshot",
        "db": "db", "ts_us": "tsus", "ts_ns": "tsns", "table": "table", "server_id": "serverid", "gtid": "gtid",
        "file": "file", "pos": "pos", "row": "row", "thread": "thread", "query": "query",
    }  # fmt: skip
    source = {name: _number(event.get(prefix + short)) for name, short in names.items()}
    return event["data"], {"op": event.get(f"{prefix}op"), "source": source, "transaction": None}


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value


__all__ = [
    "Headers",
    "JsonReader",
    "NotConnectJsonError",
    "Parsed",
    "RegistryReader",
    "SchemaSource",
    "in_registry",
    "of_cloud_event",
]
