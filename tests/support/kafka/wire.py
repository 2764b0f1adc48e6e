"""Messages of Kafka's protocol for tests: those that Kafka's own classes wrote, recorded exchanges, and random ones."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from rowtide.connector.kafka_producer.wire import schema
from rowtide.connector.kafka_producer.wire.apis import APIS, Api
from rowtide.connector.kafka_producer.wire.frames import SentRequest
from rowtide.connector.kafka_producer.wire.primitives import Codec, Writer
from rowtide.connector.kafka_producer.wire.schema import codec

__all__ = [
    "EXCHANGES",
    "GOLDEN",
    "KAFKA_ERRORS",
    "Exchange",
    "KafkaError",
    "WrittenByKafka",
    "answer_bytes",
    "random_messages",
    "written",
    "written_by_kafka",
]

GOLDEN = Path(__file__).parents[2] / "connector/kafka_producer/wire/golden"
_PLAIN = str.maketrans("-_", "+/")
"""Kafka writes bytes in Base64, and topic ids in its form for URLs without padding."""
_OLD = re.compile(r"^v3AndBelow|V3AndBelow$")


class KafkaError(typing.NamedTuple):
    """What Kafka's own client says of an error code.

    Attributes:
        retriable: the same request may succeed later.
        metadata: the leaders have to be looked up before.
    """

    name: str
    retriable: bool
    metadata: bool


KAFKA_ERRORS = {
    int(code): KafkaError(name, bool(retriable), bool(metadata))
    for code, name, retriable, metadata, _refresh in (
        line.split("\t") for line in (GOLDEN / "errors.tsv").read_text().splitlines()
    )
}


@dataclass(frozen=True, slots=True)
class WrittenByKafka:
    """A message as Kafka's own classes write it.

    Attributes:
        message: its values, in the class that rowtide has for it.
    """

    api: Api
    version: int
    is_request: bool
    message: Any
    content: bytes

    @property
    def codec(self) -> Codec:
        """What rowtide reads and writes it with."""
        kind: type = self.api.request if self.is_request else self.api.answer
        return codec(kind, self.version, flexible=self.api.flexible(self.version))

    def __str__(self) -> str:
        return f"{self.api.name}{'Request' if self.is_request else 'Answer'} {self.version}"


def written_by_kafka() -> Iterator[WrittenByKafka]:
    """The messages of ``golden/messages.jsonl.gz``."""
    apis = {api.name: api for api in APIS}
    with gzip.open(GOLDEN / "messages.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            found = json.loads(line)
            api, version = apis[found["api"]], found["version"]
            is_request = found["kind"] == "Request"
            message = _value(api.request if is_request else api.answer, found["message"])
            yield WrittenByKafka(api, version, is_request, message, bytes.fromhex(found["bytes"]))


def _value(kind: Any, given: Any) -> Any:
    """A value of Kafka's JSON form as one of rowtide's."""
    if given is None or kind in (int, bool, str):
        return given
    if dataclasses.is_dataclass(kind):
        types_ = typing.get_type_hints(kind)
        values = {_name(name): value for name, value in given.items()}
        return typing.cast("Any", kind)(**{name: _value(types_[name], value) for name, value in values.items()})
    if typing.get_origin(kind) is tuple:
        return tuple(_value(typing.get_args(kind)[0], value) for value in given)
    options = [option for option in typing.get_args(kind) if option is not types.NoneType]
    if bytes in (kind, *options):
        return base64.b64decode(given.translate(_PLAIN) + "==")
    return _value(options[0], given)


def _name(name: str) -> str:
    """Rowtide's name of a field."""
    plain = _OLD.sub("", name)
    if plain in ("errorCode", "partitionErrorCode"):
        return "error"
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", plain).lower()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that a broker of Kafka 4.3.1 was sent, and its answer.

    Attributes:
        request: with its header and without the length; empty if it was too large to keep.
        answer: the same.
    """

    name: str
    sent: SentRequest
    request: bytes
    answer: bytes


def _exchanges() -> Iterator[Exchange]:
    apis = {api.name: api for api in APIS}
    for line in (GOLDEN / "exchanges.jsonl").read_text().splitlines():
        found = json.loads(line)
        sent = SentRequest(apis[found["api"]], found["version"], found["correlation_id"])
        yield Exchange(found["name"], sent, bytes.fromhex(found["request"]), bytes.fromhex(found["answer"]))


EXCHANGES = tuple(_exchanges())
"""The exchanges of ``golden/exchanges.jsonl``."""


def written(made: Codec, message: Any) -> bytes:
    """The bytes of a message."""
    writer = Writer()
    made.write(writer, message)
    return b"".join(writer.parts())


def answer_bytes(sent: SentRequest, message: Any) -> bytes:
    """An answer as a broker sends it, without its length."""
    flexible = sent.api.flexible(sent.version)
    header = sent.correlation_id.to_bytes(4, "big") + bytes(flexible and not sent.api.plain_answer_header)
    return header + written(codec(sent.api.answer, sent.version, flexible=flexible), message)


_BITS = {schema.int8: 8, schema.int16: 16, schema.int32: 32, schema.int64: 64}
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def random_messages(kind: Any, version: int) -> st.SearchStrategy[Any]:
    """Messages of a class with random values in the fields that a version has."""
    hints = typing.get_type_hints(kind)
    fields = {}
    for field in dataclasses.fields(kind):
        layout = field.metadata["layout"]
        if layout.since <= version <= layout.until:
            values = _random(hints[field.name], _BITS.get(layout.type, 32), version)
            if layout.type is schema.topic_id:
                values = st.binary(min_size=16, max_size=16)
            fields[field.name] = st.none() | values if version >= layout.null_since else values
    return st.builds(kind, **fields)


def _random(kind: Any, bits: int, version: int) -> st.SearchStrategy[Any]:
    if kind is int:
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    if kind is bool:
        return st.booleans()
    if kind is str:
        return _TEXTS
    if kind is bytes:
        return st.binary(max_size=300)
    if dataclasses.is_dataclass(kind):
        return random_messages(kind, version)
    if typing.get_origin(kind) is tuple:
        return st.lists(_random(typing.get_args(kind)[0], bits, version), max_size=4).map(tuple)
    options = [option for option in typing.get_args(kind) if option is not types.NoneType]
    return _random(bytes if bytes in options else options[0], bits, version)
