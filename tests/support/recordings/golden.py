"""The recorded cases with Debezium's output, and how rowtide's is compared with it (see ``tests/golden/README.md``)."""

import gzip
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.offset import SourceOffset
from tests.support.connector_properties import CONNECTORS

GOLDEN = Path(__file__).parents[2] / "golden"

_PROCESSED = re.compile(r'("op":"[crudtm]",)"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+(\}+)$')
_SCHEMA_CHANGE = re.compile(r'"ts_ms":\d+,("databaseName":)')
_ID = re.compile(r'("payload":\{)"id":"[^"]*"')
_NOTIFIED = re.compile(r'"timestamp":\d+')
_DATA = re.compile(r'(?<="additional_data":)\{[^{}]*\}')
_RUN = "__debezium.context.runId"
_UNMARKED = {("transform-outbox", "out.order.events"): 1, ("cloudevents-json", "cloudevents-json"): 8}
"""The number of snapshot records that cannot be recognised as such."""


@dataclass(frozen=True)
class Written:
    """A message of a topic."""

    topic: str
    key: str | None
    value: str | None
    headers: tuple[tuple[str, str | None], ...]

    @property
    def streamed(self) -> bool:
        """Whether it came from the binlog, as tombstones do. Without an envelope, a retained field of it decides."""
        text = (self.value or "") + "".join(value or "" for name, value in self.headers if name == "source")
        if self.value is None or '"snapshot":"false"' in text:
            return True
        return not any(mark in text for mark in ('"snapshot":"', 'op":"r"', '"aggregate_type":"'))


def normalised(message: Written) -> Written:
    """The message without the fields that may differ: processing times, run ids and those of notifications.

    The order of ``additional_data`` differs between two runs of Debezium: that of Java's ``Map.of`` is random.
    """
    key, value = message.key, message.value
    if value is not None and '"aggregate_type":"Initial Snapshot"' in value:
        value = _DATA.sub(lambda data: json.dumps(json.loads(data[0]), sort_keys=True), value)
        key, value = _ID.sub(r'\1"id":""', key or ""), _NOTIFIED.sub('"timestamp":0', _ID.sub(r'\1"id":""', value))
    if value is not None:
        value = _PROCESSED.sub(r'\1"ts_ms":0,"ts_us":0,"ts_ns":0\2', value)
        value = _SCHEMA_CHANGE.sub(r'"ts_ms":0,\1', value)
    headers = tuple((name, "" if name == _RUN else text) for name, text in message.headers)
    return Written(message.topic, key, value, headers)


@dataclass(frozen=True)
class Case:
    """A recorded case."""

    name: str

    @property
    def folder(self) -> Path:
        """Its folder."""
        return GOLDEN / self.name

    @cached_property
    def description(self) -> dict[str, Any]:
        """``case.json``."""
        return json.loads((self.folder / "case.json").read_text())  # type: ignore[no-any-return]

    @cached_property
    def server(self) -> dict[str, Any]:
        """``server.json``."""
        return json.loads((self.folder / "golden" / "server.json").read_text())  # type: ignore[no-any-return]

    @property
    def binlog(self) -> Path:
        """The folder of the binlog files."""
        return self.folder / "golden" / "binlog"

    @property
    def prefix(self) -> str:
        """``topic.prefix``."""
        return str(self.description.get("config", {}).get("topic.prefix", self.name))

    def properties(self) -> dict[str, str]:
        """The complete configuration with which the case was recorded."""
        server = self.description.get("server", "mysql")
        config = self.description.get("config", {}).items()
        own = {name: str(value).replace("$KAFKA", "127.0.0.1:1") for name, value in config}
        return {
            "name": self.name,
            "connector.class": CONNECTORS[server],
            "topic.prefix": self.name,
            "database.hostname": "127.0.0.1",
            "database.user": "dbz",
            "database.password": "dbz",
            "database.server.id": "184054",
            "bootstrap.servers": "127.0.0.1:1",
            "schema.history.internal.kafka.bootstrap.servers": "127.0.0.1:1",
            "schema.history.internal.kafka.topic": f"history-{self.name}",
            **own,
        }

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """All recorded messages."""
        with gzip.open(self.folder / "golden" / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    @property
    def start(self) -> SourceOffset | None:
        """The start position of the stream: that of the snapshot, whose end may not have been flushed."""
        for record in self.records:
            if record["topic"] == "connect-offsets" and record["value"]:
                return replace(SourceOffset.from_json(record["value"]), snapshot=None)
        return None

    def streamed(self) -> dict[str, list[Written]]:
        """The messages of the stream, by topic; without those of snapshots that signals have started."""
        topics: dict[str, list[Written]] = {}
        signals = "signal.data.collection" in self.description.get("config", {})
        for record in self.records:
            topic = record["topic"]
            if topic in {"history", "connect-offsets"} or topic.startswith("__debezium-heartbeat"):
                continue
            message = Written(topic, record["key"], record["value"], tuple((k, v) for k, v in record["headers"]))
            if record["offset"] < _UNMARKED.get((self.name, topic), 0):
                continue
            if message.streamed or (topic in topics and not signals):
                topics.setdefault(topic, []).append(normalised(message))
        return topics


def cases() -> list[str]:
    """The names of all cases."""
    return sorted(path.name for path in GOLDEN.iterdir() if (path / "case.json").exists())


def written(outputs: Iterable[Output]) -> Iterator[Written]:
    """The messages of batches."""
    for output in outputs:
        for batch in output.destinations() if isinstance(output, Batch) else ():
            for key, value, headers in batch.messages:
                yield Written(
                    batch.topic,
                    None if key is None else key.decode(),
                    None if value is None else value.decode(),
                    tuple((name, None if text is None else text.decode()) for name, text in headers),
                )


def by_topic(messages: Iterable[Written]) -> dict[str, list[Written]]:
    """Messages by topic, normalised."""
    topics: dict[str, list[Written]] = {}
    for message in messages:
        topics.setdefault(message.topic, []).append(normalised(message))
    return topics


def difference(expected: Written, found: Written) -> str:
    """The first difference between two messages, with its context."""
    for part in ("topic", "key", "value", "headers"):
        want, have = str(getattr(expected, part)), str(getattr(found, part))
        if want != have:
            at = next((i for i, (a, b) in enumerate(zip(want, have, strict=False)) if a != b), -1)
            near = slice(max(0, at - 120), at + 120)
            return f"{part} at {at}:\n  recorded …{want[near]}\n  found    …{have[near]}"
    return "equal"


def check_messages(expected: dict[str, list[Written]], found: dict[str, list[Written]], *, more: bool) -> None:
    """Assert that all topics have the expected messages; ``more`` messages may follow."""
    for topic in sorted(expected.keys() | found.keys()):
        for place, (want, have) in enumerate(itertools.zip_longest(expected.get(topic, []), found.get(topic, []))):
            if want is None and more:
                break
            assert want is not None, f"{topic} {place}: more than was recorded: {have}"
            assert have is not None, f"{topic} {place}: missing: {want}"
            assert have == want, f"{topic} {place}: {difference(want, have)}"
