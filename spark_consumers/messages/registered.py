"""Messages in Avro and Protobuf, which name their schemas in a registry, as the JSON of ``JsonConverter``.

All later steps see only JSON. Spark itself decodes Avro, whose schemas show all types. Protobuf's do not:
it becomes JSON without schemas, so its types come from the schema history, and functions of Python decode it.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.envelope.avro.reader import bare_schema, connect_schema, connect_value
from rowtide.envelope.converters.registry import SCHEMA_ID_HEADERS
from rowtide.envelope.json.text import JsonFormat, schema_text, value_text
from rowtide.envelope.protobuf.reader import ProtobufReader, message_indexes
from rowtide.envelope.transforms.record import Side
from rowtide.spark_consumers.columns.spark_types import literal
from rowtide.spark_consumers.errors import RegistryError, SchemaMissingError, UndecodableError
from rowtide.spark_consumers.kafka.offsets import LastRecord, Ranges
from rowtide.spark_consumers.kafka.source import Message, RecordSource
from rowtide.spark_consumers.settings import SchemaOf

_SIDES: tuple[Side, Side] = ("key", "value")
_ID_BYTES, _GUID_BYTES = 4, 16
_MARK = "rowtide: not decodable:"
_FOUND = re.compile(rf"{_MARK} (key|value) with schema (\S+) at (\d+):(\d+)")
_IN_AVRO = "payload"
_KEEPING = JsonFormat(replace_null_with_default=False)


class _Registered(NamedTuple):
    """A schema: its id as in messages, its name in errors, its kind and its text."""

    id: bytes
    name: str
    kind: Literal["AVRO", "PROTOBUF"]
    text: str


class RegisteredSource:
    """Topics with schemas in a registry, or without, as messages in JSON.

    Args:
        source: the topics, with the headers of records.
        schema_of: the registry. It raises :class:`RegistryError`.
        schemas: Connect schemas of topics, which show where NULL is allowed: ``{topic: {"key": ..., "value": ...}}``.
    """

    def __init__(
        self, source: RecordSource, schema_of: SchemaOf, schemas: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self._source, self._schema_of = source, schema_of
        self._schemas = {} if schemas is None else schemas  # a schema history is read when it is first needed
        self._known: dict[bytes, _Registered] = {}

    def topics(self, pattern: str) -> list[str]:
        """Return the topics that match."""
        return self._source.topics(pattern)

    def bounds(self, topics: Collection[str]) -> Mapping[str, Ranges]:
        """Return first and end offsets."""
        return self._source.bounds(topics)

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics."""
        return self._source.topic_ids(topics)

    def last_records(self, topic: str, ranges: Ranges) -> Mapping[int, LastRecord]:
        """Return the last record of each range, as it is in the topic."""
        return self._source.last_records(topic, ranges)

    def read(self, spark: SparkSession, topic: str, ranges: Ranges) -> DataFrame:
        """Return the records of the ranges. The schemas that they name are looked up before.

        Raises:
            RegistryError: the registry does not answer, or lacks a schema.
            UndecodableError: a message names no schema, or one that cannot be read.
            SchemaMissingError: NULL cannot be distinguished from zero.
        """
        raw = self._source.read(spark, topic, ranges)
        named = raw.selectExpr("*", *(f"{sql} AS {name}" for side in _SIDES for name, sql in _parts(side, raw.columns)))
        decoded, texts = named, {}
        for side in _SIDES:
            found = self._found(named, topic, side)
            texts[side] = {one.id: _avro(one, side) for one in found if one.kind == "AVRO"}
            plain = {one.id: one for one in found if one.kind == "PROTOBUF"}
            if plain:
                decode = _protobuf_decoder({number: one.text for number, one in plain.items()})
                known = f"{side}_id IN ({', '.join(_bytes(number) for number in plain)})"
                decoded = decoded.withColumn(
                    f"{side}_decoded",
                    decode(F.expr(f"IF({known}, {side}_id, NULL)"), F.col(f"{side}_rest"), F.col(f"{side}_data")),
                )
                texts[side] |= dict.fromkeys(plain, f"{side}_decoded")
        # A separate column, so that each message is decoded once.
        decoded = decoded.selectExpr("*", *(f"{_cases(texts[side], side)} AS {side}_text" for side in _SIDES))
        messages = (f"{self._message(side, texts[side])} AS {side}" for side in _SIDES)
        return decoded.selectExpr("partition", "offset", *messages)

    def sample(self, topic: str, parts: Iterable[Ranges]) -> list[Message]:
        """Return the beginnings of messages: with the schema of an Avro message, but without its row."""
        return [
            (self._beginning("key", key), self._beginning("value", value))
            for key, value in self._source.sample(topic, parts)
        ]

    def _beginning(self, side: Side, data: bytes | None) -> bytes | None:
        if data is None or data[:1] != b"\0" or len(data) <= _ID_BYTES:
            return data
        found = self._registered(data[1 : 1 + _ID_BYTES], "")
        return f'{{"schema":{_schema(found)},"payload":{{}}}}'.encode() if found.kind == "AVRO" else b"{}"

    def _found(self, named: DataFrame, topic: str, side: Side) -> list[_Registered]:
        """Return the schemas of some messages."""
        rows = (
            named.where(f"{side}_id IS NOT NULL")
            .groupBy(f"{side}_id")
            .agg(F.expr("min(struct(partition, offset))").alias("place"))
            .collect()
        )
        found = []
        for row in rows:
            place = f"topic {topic}, partition {row['place']['partition']}, offset {row['place']['offset']}: the {side}"
            number = bytes(row[f"{side}_id"])
            if len(number) not in (_ID_BYTES, _GUID_BYTES):
                raise UndecodableError(f"{place} begins with a zero byte, but does not name a schema")
            one = self._registered(number, place)
            if one.kind == "PROTOBUF":
                self._require_null(topic, side, one)
            found.append(one)
        return found

    def _registered(self, number: bytes, place: str) -> _Registered:
        known = self._known.get(number)
        if known is None:
            key = number if len(number) == _GUID_BYTES else int.from_bytes(number, "big")
            name = number.hex() if isinstance(key, bytes) else str(key)
            try:
                kind, text = self._schema_of(key)
                known = _Registered(number, name, kind, text)  # type: ignore[arg-type]
                ProtobufReader(text) if kind == "PROTOBUF" else connect_schema(text)
            except RegistryError as error:
                raise RegistryError(f"{place} names schema {name}: {error}" if place else str(error)) from error
            except ValueError as error:
                raise UndecodableError(f"{place} names schema {name}, which cannot be read: {error}") from error
            self._known[number] = known
        return known

    def _require_null(self, topic: str, side: Side, one: _Registered) -> None:
        """Check that no column that allows NULL lacks it in Protobuf."""
        supplied = self._schemas.get(topic, {}).get(side)
        written, _ = ProtobufReader(one.text).message((0,))
        if side == "value":
            supplied = next((field for field in (supplied or {}).get("fields", ()) if field["field"] == "after"), None)
            after = written.field("after")
            written = written if after is None else after.schema
        nullable = {field["field"] for field in (supplied or {}).get("fields", ()) if field.get("optional")}
        told = {field.name for field in written.fields if field.schema.optional or field.schema.type == "array"}
        lost = [field.name for field in written.fields if field.name in nullable - told]
        if lost:
            raise SchemaMissingError(
                f"topic {topic}: NULL in column {lost[0]} cannot be distinguished from zero or an empty string, "
                f"because schema {one.name} is Protobuf without optional fields. Set "
                f"{side}.converter.optional.for.nullables=true in the connector, take a new snapshot, and "
                "delete the records before it"
            )

    def _message(self, side: Side, texts: Mapping[bytes, str]) -> str:
        """Return SQL of a message in JSON, from its text."""
        cases = []
        for number in texts:
            one = self._known[number]
            mark = literal(f"{_MARK} {side} with schema {one.name} at ")
            error = f"CAST(raise_error(concat({mark}, partition, ':', offset)) AS binary)"
            if one.kind == "AVRO":
                # The text is {"payload":...}, or {} if the bytes do not fit.
                opening = _bytes(f'{{"schema":{_schema(one)},'.encode())
                text = f"CAST(concat(CAST({opening} AS string), substring({side}_text, 2)) AS binary)"
                made = f"IF({side}_text = '{{}}', {error}, {text})"
            else:
                made = f"coalesce(CAST({side}_text AS binary), {error})"
            cases.append(f"WHEN {side}_id = {_bytes(number)} THEN {made}")
        return f"CASE {' '.join(cases)} ELSE {side} END" if cases else side


def undecodable(text: str, topic: str) -> UndecodableError | None:
    """Return the error of a message that does not match its schema, from the text of Spark's error.

    ``None`` for other errors.
    """
    found = _FOUND.search(text)
    if found is None:
        return None
    side, number, partition, offset = found.groups()
    return UndecodableError(
        f"topic {topic}, partition {partition}, offset {offset}: the {side} does not fit schema {number} of the schema "
        f"registry, so the message is damaged or was written with another registry. Check --registry, or take a new "
        f"snapshot, delete the records before it, and build the table again (--restart)"
    )


def _parts(side: Side, columns: Collection[str]) -> list[tuple[str, str]]:
    """Return names and SQL of a message's parts: the id of its schema, the part after a global id, and the bytes."""
    header = "CAST(NULL AS binary)"
    if "headers" in columns:
        name = SCHEMA_ID_HEADERS[side]
        header = f"get(filter(headers, h -> h.key = '{name}' AND h.value IS NOT NULL), 0).value"
    number = (
        f"CASE WHEN {side} IS NULL THEN NULL WHEN {header} IS NOT NULL THEN substring({header}, 2, {_GUID_BYTES}) "
        f"WHEN startswith({side}, X'00') THEN substring({side}, 2, {_ID_BYTES}) END"
    )
    rest = f"substring({header}, {2 + _GUID_BYTES})"
    data = f"IF({header} IS NULL, substring({side}, {2 + _ID_BYTES}), {side})"
    return [(f"{side}_id", number), (f"{side}_rest", rest), (f"{side}_data", data)]


def _bytes(data: bytes) -> str:
    return f"X'{data.hex()}'"


def _cases(texts: Mapping[bytes, str], side: Side) -> str:
    cases = " ".join(f"WHEN {side}_id = {_bytes(number)} THEN {text}" for number, text in texts.items())
    return f"CASE {cases} END" if cases else "CAST(NULL AS string)"


def _schema(one: _Registered) -> str:
    return schema_text(connect_schema(one.text))


def _avro(one: _Registered, side: Side) -> str:
    """Return SQL of ``{"payload":...}`` for a message in Avro.

    A record whose only field is the value has the bytes of the value. The result is empty if they do not match the
    schema.
    """
    wrapped = {"type": "record", "name": "Message", "fields": [{"name": _IN_AVRO, "type": bare_schema(one.text)}]}
    decoded = f"from_avro({side}_data, {literal(json.dumps(wrapped))}, map('mode', 'PERMISSIVE'))"
    return f"to_json({decoded}, map('ignoreNullFields', 'true'))"


def _protobuf_decoder(texts: Mapping[bytes, str]) -> Callable[..., Any]:
    """Return the function from id, message indexes in a header, and bytes to JSON, which is null if they do not fit."""
    readers: dict[bytes, ProtobufReader] = {}

    def decode(number: bytes | None, rest: bytes | None, data: bytes) -> str | None:
        if number is None:
            return None
        number, data = bytes(number), bytes(data)
        reader = readers.get(number)
        if reader is None:
            reader = readers[number] = ProtobufReader(texts[number])
        try:
            indexes, start = message_indexes(bytes(rest) if rest else data)
            schema, read = reader.message(indexes)
            value = read(data if rest else data[start:])
            return value_text(schema, connect_value(schema, value), _KEEPING)
        except (ArithmeticError, LookupError, ValueError):
            return None

    return F.udf(decode, "string", useArrow=False)  # Arrow is optional, and Spark infers its use from type hints
