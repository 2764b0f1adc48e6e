"""The output of a connector without the parts that may differ: its name, timestamps and versions."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from tests.support.kafka.topic_tools import Seen, Topics
from tests.support.recordings.golden import Written, difference, normalised

__all__ = ["ConnectorOutput", "problems"]

_VERSION = re.compile(r'("source":\{)"version":"[^"]*"')
_SNAPSHOT_TIME = re.compile(r'"ts_ms":\d+(,"snapshot":"(?!false)\w+".*?)"ts_us":\d+,"ts_ns":\d+')
_SHOWN = 3


class ConnectorOutput:
    """The records and the schema history of a connector.

    Args:
        prefix: ``topic.prefix``.
        topics: the topics of the broker.
        history: the file of the schema history, or ``None`` if it is a topic.
    """

    def __init__(self, prefix: str, topics: Topics, history: Path | None) -> None:
        self._prefix = prefix
        self._topics = topics
        self._file = history

    def names(self) -> list[str]:
        """The names of the topics with its records, without the prefix."""
        consumer = Consumer({**self._topics.client, "group.id": "interop"})
        try:
            found = consumer.list_topics(timeout=20).topics
        finally:
            consumer.close()
        ours = (name for name in found if name == self._prefix or name.startswith(f"{self._prefix}."))
        return sorted(name.removeprefix(self._prefix) for name in ours)

    def records(self) -> dict[str, list[Written]]:
        """All records, by topic."""
        return {
            name: [self._written(name, seen) for seen in self._topics.read(self._prefix + name)]
            for name in self.names()
        }

    def _written(self, name: str, seen: Seen) -> Written:
        key, value = (None if raw is None else self._neutral(raw.decode()) for raw in (seen.key, seen.value))
        headers = tuple((header, self._neutral(text.decode())) for header, text in seen.headers)
        return normalised(Written(name, key, value, headers))

    def _neutral(self, text: str) -> str:
        text = text.replace(self._prefix, "PREFIX")
        return _SNAPSHOT_TIME.sub(r'"ts_ms":0\1"ts_us":0,"ts_ns":0', _VERSION.sub(r'\1"version":""', text))

    def history(self) -> list[str]:
        """The records of the schema history, as JSON texts."""
        if self._file is not None:
            texts = self._file.read_text().splitlines()
        else:
            texts = [(seen.value or b"").decode() for seen in self._topics.read(f"history.{self._prefix}")]
        return [json.dumps(_timeless(json.loads(text)), ensure_ascii=False) for text in texts]


def _timeless(record: dict[str, Any]) -> dict[str, Any]:
    position = dict(record["position"])
    if position.get("snapshot"):
        position["ts_sec"] = 0
    return {**record, "source": {"server": "PREFIX"}, "ts_ms": 0, "position": position}


def problems(expected: ConnectorOutput, found: ConnectorOutput) -> Iterator[str]:
    """The differences between two outputs, one line each."""
    left, right = expected.records(), found.records()
    for name in sorted(left.keys() | right.keys()):
        yield from _topic(name or "schema changes", left.get(name, []), right.get(name, []))
    yield from _history(expected.history(), found.history())


def _topic(name: str, expected: list[Written], found: list[Written]) -> Iterator[str]:
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    pairs = [(w, f) for w, f in itertools.zip_longest(expected, found) if w != f]
    if not pairs:
        return
    yield (
        f"{name}: {len(found)} records instead of {len(expected)}; {missing.total()} missing, {extra.total()} too many"
    )
    for want, have in pairs[:_SHOWN]:
        if want is None or have is None:
            yield f"{name}: {'missing' if have is None else 'too many'}: {_short(want or have)}"
        else:
            yield f"{name}: {difference(want, have)}"


def _short(message: Written | None) -> str:
    return "" if message is None else f"{(message.key or '')[-100:]} {(message.value or '')[-300:]}"


def _history(expected: list[str], found: list[str]) -> Iterable[str]:
    pairs = [(number, w, f) for number, (w, f) in enumerate(itertools.zip_longest(expected, found)) if w != f]
    if pairs:
        yield f"history: {len(found)} records instead of {len(expected)}, {len(pairs)} differ"
    for number, want, have in pairs[:_SHOWN]:
        ddl = json.loads(want or have or "{}").get("ddl")
        text = difference(Written("", None, want, ()), Written("", None, have, ()))
        yield f"history record {number}, {ddl!r}: {text}"
