"""Decodes records in Debezium's format into changes."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self, cast, get_args

from rowtide.connector.config.catalogue.values import UNAVAILABLE_PLACEHOLDER, placeholder_bytes
from rowtide.connector.delivery.claim_check_folder import open_folder
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.records.change import Change, Layout, Op, SourcePosition
from rowtide.connector.records.connect_values import row_conversion
from rowtide.decoder.errors import ClaimCheckUnavailable, DecodeError, RegistryUnavailable
from rowtide.decoder.readers import (
    Headers,
    JsonReader,
    Parsed,
    RegistryReader,
    SchemaSource,
    in_registry,
    numbered,
    of_cloud_event,
    registry_client,
)
from rowtide.envelope.claim_check import OPENING, ClaimCheck, InvalidClaimCheck
from rowtide.envelope.converters.registry import SCHEMA_ID_HEADERS
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import Side
from rowtide.schema_history.model import Column, Index, KeyPart, Table, TableId

_ENVELOPE = {"before", "after", "source", "op"}
_TYPE = "__debezium.source.column.type"
_NOWHERE: Mapping[str, Any] = {}
_SCHEMA_IDS = frozenset(SCHEMA_ID_HEADERS.values())
_MOST_PLANS = 10_000
_OPS = get_args(Op)

Message = tuple[str, bytes | None, bytes | None, Headers]
"""Topic, key, value and headers of a record."""


class _Plan(NamedTuple):
    """Converts the records of one pair of schemas to changes."""

    layout: Layout
    key: Callable[[Any], tuple[Any, ...]] | None
    row: Callable[[Any], tuple[Any, ...]]


class _Kept(NamedTuple):
    """A plan, and the schemas by whose identity it is found; the references keep their ids valid."""

    plan: _Plan
    schemas: tuple[Schema | None, Schema | None]


class Decoder:
    """Turns keys and values of records into changes, with values like those of :class:`rowtide.Engine`.

    It reads JSON with and without schemas, Avro and Protobuf by the id of their schemas, and CloudEvents in JSON;
    envelopes, and records that ``ExtractNewRecordState`` has unwrapped, whether rowtide or Debezium wrote them. Without
    schemas in JSON, types are not known, so values are those of JSON. Protobuf does not name Debezium's types, so dates
    and times are numbers, and the labels of an ENUM keep their backslashes.

    Args:
        registry: the schema registry of Avro and Protobuf: its URL, or a client with ``get_schema(id)``.
        placeholder: ``unavailable.value.placeholder`` of the connector. In records of a snapshot, which reads all
            values, its text is a value.
        claim_checks: the folder of the values of claim checks: ``rowtide.large.records.claim.check.url`` of the
            connector, or another path or URL of the same folder. Nothing is read outside of it.

    Raises:
        DeliveryError: the folder does not exist, or fsspec is not installed.
        ValueError: the placeholder has no hexadecimal digits after ``hex:``.
    """

    def __init__(
        self,
        registry: str | SchemaSource | None = None,
        *,
        placeholder: str = UNAVAILABLE_PLACEHOLDER.default,
        claim_checks: str | None = None,
    ) -> None:
        self._claim_checks = None if claim_checks is None else open_folder(claim_checks)
        self._client = registry_client(registry) if isinstance(registry, str) else None
        source = self._client if isinstance(registry, str) else registry
        self._json_keys, self._json_values = JsonReader(), JsonReader()
        self._registry = None if source is None else RegistryReader(source)
        self._placeholder = placeholder_bytes(placeholder)
        self._plans: dict[tuple[Any, ...], _Kept] = {}

    def close(self) -> None:
        """Close the connection to the schema registry, if the decoder has made one."""
        if self._client is not None:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def decode(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers | None = None
    ) -> Change | None:
        """Return the change of a record; ``None`` for a tombstone.

        Args:
            topic: its topic.
            key: its key; without one, the change has none.
            value: its value.
            headers: its headers.

        Raises:
            DecodeError: the record is not a change of a row, or is damaged.
            RegistryUnavailable: the schema registry does not answer.
            ClaimCheckUnavailable: the value that the record points to cannot be read.
        """
        if value is None:
            return None
        value, given = self._claimed(topic, value), headers or ()
        try:
            parsed = self._parsed(topic, "value", value, given)
            key_parsed = None if key is None else self._parsed(topic, "key", key, given)
            return self._change(topic, key_parsed, parsed, given)
        except RegistryUnavailable:
            raise
        except DecodeError as error:
            raise DecodeError(f"a record of topic {topic} cannot be decoded: {error}") from error
        except Exception as error:  # damaged records raise many
            raise DecodeError(
                f"a record of topic {topic} cannot be decoded: {type(error).__name__}: {error}. Its value begins with "
                f"{value[:60]!r}"
            ) from error

    def decode_message(self, message: Any) -> Change | None:
        """Return the change of a message of confluent-kafka; ``None`` for a tombstone.

        Raises:
            DecodeError: as for :meth:`decode`.
        """
        return self.decode(message.topic(), message.key(), message.value(), message.headers())

    def decode_record(self, record: Any) -> Change | None:
        """Return the change of a record of aiokafka or kafka-python; ``None`` for a tombstone.

        Raises:
            DecodeError: as for :meth:`decode`.
        """
        return self.decode(record.topic, record.key, record.value, record.headers)

    def deserialize(self, value: bytes | None, context: Any) -> Change | None:
        """Return the change that a value describes, for use as ``value.deserializer`` of confluent-kafka.

        It has no key.

        Raises:
            DecodeError: as for :meth:`decode`.
        """
        return self.decode(context.topic, None, value, context.headers)

    def _claimed(self, topic: str, value: bytes) -> bytes:
        """Return the value itself, or the one that it points to."""
        if not value.startswith(OPENING):
            return value
        try:
            return self._value_of(ClaimCheck.parse(value))
        except (DeliveryError, InvalidClaimCheck) as error:
            raise ClaimCheckUnavailable(f"a record of topic {topic} cannot be decoded: {error}") from error

    def _value_of(self, check: ClaimCheck) -> bytes:
        if self._claim_checks is None:
            raise InvalidClaimCheck(
                f"its value of {check.size} bytes is in {check.url}. Give claim_checks=, the folder of these values"
            )
        value = self._claim_checks.get(check.name)
        check.verify(value)
        return value

    def _parsed(self, topic: str, side: Side, data: bytes, headers: Headers) -> Parsed:
        if data[:1] == b"\0" or (headers and in_registry(side, data, headers)):
            if self._registry is None:
                raise DecodeError(f"its {side} needs a schema registry: Decoder(registry=URL)")
            return self._registry.parsed(side, data, headers)
        return (self._json_keys if side == "key" else self._json_values).parsed(topic, data)

    def _change(self, topic: str, key: Parsed | None, value: Parsed, headers: Headers) -> Change:
        schema, document = value.schema, value.value
        name = "" if schema is None else schema.name or ""
        is_row = name.endswith(".Value")  # whose columns may have any names
        added: Mapping[str, Any] = _NOWHERE
        if not is_row and isinstance(document, dict) and document.get("specversion") == "1.0" and "data" in document:
            schema, document, added = self._from_cloud_event(document)
        if not isinstance(document, dict):
            raise DecodeError(f"it is not a row change: its value is {document!r:.60}")
        whole = document.keys() >= _ENVELOPE  # a truncation has neither row
        if not is_row and (whole or ("op" in document and isinstance(document.get("source"), dict))):
            document = document if whole else {"before": None, "after": None, **document}
            return self._of_envelope(topic, key, value.json, schema if whole else None, document)
        other = name if name and not name.endswith((".Value", "Envelope")) else _without_schema(schema, document)
        if other:
            raise DecodeError(f"it is not a row change, but {other}")
        return self._of_row(topic, key, value.json, schema, document, headers, added)

    def _from_cloud_event(self, event: Mapping[str, Any]) -> tuple[Schema | None, Any, Mapping[str, Any]]:
        """Return the schema and the data of a CloudEvent: an envelope, or a row with the fields that the event adds."""
        data, more = of_cloud_event(event)
        if not isinstance(data, dict):
            raise DecodeError("the data of its CloudEvent is not JSON")
        schema, data = self._json_values.unwrapped(data)
        if "after" in data:
            return schema, {**data, **more}, _NOWHERE
        added = {f"__source_{name}": value for name, value in more["source"].items() if value is not None}
        return schema, data, {"__op": more["op"], **added}

    def _of_envelope(
        self, topic: str, key: Parsed | None, of_json: bool, schema: Schema | None, document: Mapping[str, Any]
    ) -> Change:
        source = document["source"]
        table = source.get("db") or "", source.get("table") or ""
        if not table[1]:
            table = _table_of_names(source, topic, "" if schema is None else schema.name or "")
        before, after = document["before"], document["after"]
        plan = self._plan(
            topic,
            table,
            key,
            schema,
            before or after or _NOWHERE,
            json=of_json,
            server=source.get("connector"),
            read=document["op"] == "r",
            envelope=True,
        )
        transaction = document.get("transaction")
        return Change(
            _op(document["op"]),
            plan.layout,
            _key_values(plan, key),
            None if before is None else plan.row(before),
            None if after is None else plan.row(after),
            _position(source, document.get("ts_ns") or int(document.get("ts_ms") or 0) * 1_000_000),
            source.get("row") or 0,
            _not_made,
            None if transaction is None else f'"transaction":{json.dumps(transaction)}',
        )

    def _of_row(
        self,
        topic: str,
        key: Parsed | None,
        of_json: bool,
        schema: Schema | None,
        document: Mapping[str, Any],
        headers: Headers,
        given: Mapping[str, Any],
    ) -> Change:
        """Return a change of an unwrapped record, whose fields and headers that begin with ``__`` describe it."""
        added = {**given, **{name: value for name, value in document.items() if name.startswith("__")}}
        for name, text in headers:
            if text and name.startswith("__") and name not in _SCHEMA_IDS:
                added[name] = text.decode()
        source = {
            name: numbered(name, added[f"__{prefix}{name}"])
            for prefix in ("source_", "source.", "")
            for name in (
                "file",
                "pos",
                "gtid",
                "server_id",
                "ts_ms",
                "ts_us",
                "snapshot",
                "row",
                "db",
                "table",
                "thread",
            )
            if f"__{prefix}{name}" in added
        }
        deleted = str(added.get("__deleted", "false")).lower() == "true"
        op = _op(added.get("__op") or ("d" if deleted else "u"))
        names = [part for part in topic.split(".") if part]
        database = source.get("db") or (names[-2] if len(names) > 1 else "")
        table = database, source.get("table") or names[-1]
        plan = self._plan(
            topic,
            table,
            key,
            schema,
            document,
            json=of_json,
            server=added.get("__source_connector") or added.get("__connector"),
            read=op == "r",
        )
        row = plan.row(document)
        before, after = (row, None) if op == "d" else (None, row)
        position = _position(source, int(source.get("ts_ms") or 0) * 1_000_000)
        return Change(
            op, plan.layout, _key_values(plan, key), before, after, position, source.get("row") or 0, _not_made
        )

    def _plan(
        self,
        topic: str,
        table: tuple[str, str],
        key: Parsed | None,
        schema: Schema | None,
        row: Mapping[str, Any],
        *,
        json: bool,
        server: str | None,
        read: bool,
        envelope: bool = False,
    ) -> _Plan:
        key_schema = None if key is None else key.schema
        untyped = key is not None and key_schema is None and isinstance(key.value, dict)
        key_names = tuple(key.value) if key is not None and (untyped or schema is None) and key.value else ()
        shape = (id(schema), id(key_schema), key_names) if schema is not None else (tuple(row), key_names)
        identity = topic, table, server, json, read, shape
        known = self._plans.get(identity)
        if known is not None:
            return known.plan
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        if schema is None:
            plan = self._untyped(topic, TableId(*table), row, key_names)
        else:
            row_schema = _row_schema(schema) if envelope else schema
            if untyped:
                key_schema = Schema("struct", fields=tuple(one for one in row_schema.fields if one.name in key_names))
            plan = self._typed(topic, TableId(*table), row_schema, key_schema, server, json=json, read=read)
        self._plans[identity] = _Kept(plan, (schema, key_schema))
        return plan

    def _untyped(self, topic: str, table: TableId, row: Mapping[str, Any], key: Sequence[str]) -> _Plan:
        columns = [name for name in row if not name.startswith("__")]
        layout = Layout(_table(table, [(name, None) for name in columns], key), topic, columns, key)
        return _Plan(layout, _values_of(key) if key else None, _values_of(columns))

    def _typed(
        self,
        topic: str,
        table: TableId,
        schema: Schema,
        key: Schema | None,
        server: str | None,
        *,
        json: bool,
        read: bool,
    ) -> _Plan:
        fields = [field for field in schema.fields if not field.name.startswith("__")]
        keys = () if key is None else key.fields
        names = [field.name for field in keys]
        described = _table(table, [(field.name, field.schema) for field in fields], names)
        layout = Layout(described, topic, [field.name for field in fields], names)
        made = partial(
            row_conversion,
            encoding="json" if json else "avro",
            placeholder=None if read else self._placeholder,  # a snapshot reads all values: the text is one there
            documents=server != "mariadb",  # where JSON is a synonym of LONGTEXT
        )
        convert = made(key) if keys and key is not None else None
        return _Plan(layout, convert, made(Schema("struct", fields=tuple(fields))))


def _row_schema(envelope: Schema) -> Schema:
    field = envelope.field("after") or envelope.field("before")
    return envelope if field is None else field.schema


def _without_schema(schema: Schema | None, document: Mapping[str, Any]) -> str:
    """Return the kind of a record without a schema, if it is not a row.

    The fields identify records of rowtide and Debezium.
    """
    if schema is not None:
        return ""
    return next((name for name, fields in _OTHERS.items() if document.keys() >= fields), "") or (
        "a heartbeat" if document.keys() == {"ts_ms"} else ""
    )


_OTHERS = {
    "a record of the schema history": {"source", "position", "ddl", "tableChanges"},
    "a schema change": {"source", "ddl", "tableChanges"},
    "transaction metadata": {"status", "id", "event_count", "data_collections"},
}


def _key_values(plan: _Plan, key: Parsed | None) -> tuple[Any, ...]:
    return () if plan.key is None or key is None or not isinstance(key.value, dict) else plan.key(key.value)


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda struct: tuple([struct.get(name) for name in names])


def _op(given: Any) -> Op:
    if given not in _OPS:
        raise DecodeError(f"it is not a row change: its op is {given!r:.20}")
    return cast("Op", given)


def _table_of_names(source: Mapping[str, Any], topic: str, schema: str) -> tuple[str, str]:
    """Return the database and the table that the topic or the schema names.

    Debezium's first releases named them nowhere else.
    """
    prefix = f"{source.get('name')}."
    for name in (topic, schema.removesuffix(".Envelope")):
        database, _, table = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and table:
            return database, table
    return source.get("db") or "", ""


def _position(source: Mapping[str, Any], read_ns: int) -> SourcePosition:
    get = source.get
    micros, snapshot = get("ts_us"), get("snapshot")
    return SourcePosition(
        get("file") or "",
        get("pos") or 0,
        get("gtid"),
        get("server_id") or 0,
        get("thread"),
        get("query"),
        (int(get("ts_ms") or 0) * 1000 or int(get("ts_sec") or 0) * 1_000_000) if micros is None else micros,
        read_ns,
        None if snapshot in (None, "false", False) else str(snapshot).lower(),
    )


def _table(table: TableId, columns: Sequence[tuple[str, Schema | None]], key: Sequence[str]) -> Table:
    """Return the structure as far as a record reveals it.

    Types are those of Connect, unless the connector propagates MySQL's.
    """
    described = []
    for name, schema in columns:
        propagated = "" if schema is None else dict(schema.parameters).get(_TYPE, "").lower()
        kind = propagated or ("" if schema is None else schema.name or schema.type)
        described.append(Column(name, kind, kind.partition(" ")[0], True if schema is None else schema.optional))
    names = {name for name, _ in columns}
    parts = tuple(KeyPart(name) for name in key if name in names)
    indexes = (Index("PRIMARY", parts, "primary"),) if parts and len(parts) == len(key) else ()
    return Table(table, tuple(described), indexes, complete=False)


def _not_made(_change: Change) -> Any:
    raise DecodeError("a decoded change does not keep Debezium's record: use the key and value of the message")
