"""What a connector wrote, without what may differ: its own name, clocks, versions."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer
from golden import Written, difference, normalised
from topic_tools import Seen, Topics

__all__ = ["Answer", "problems"]

_VERSION = re.compile(r'("source":\{)"version":"[^"]*"')
_SNAPSHOT_TIME = re.compile(r'"ts_ms":\d+(,"snapshot":"(?!false)\w+".*?)"ts_us":\d+,"ts_ns":\d+')
_SHOWN = 3


class Answer:
    """The records and the history of one connector.

    Args:
        prefix: ``topic.prefix``.
        topics: the broker's.
        history: the file of the history; ``None`` if it is a topic.
    """

    def __init__(self, prefix: str, topics: Topics, history: Path | None) -> None:
        self._prefix = prefix
        self._topics = topics
        self._file = history

    def names(self) -> list[str]:
        """The topics of its records, without the prefix."""
        consumer = Consumer({**self._topics.client, "group.id": "interop"})
        try:
            found = consumer.list_topics(timeout=20).topics
        finally:
            consumer.close()
        ours = (name for name in found if name == self._prefix or name.startswith(f"{self._prefix}."))
        return sorted(name.removeprefix(self._prefix) for name in ours)

    def records(self) -> dict[str, list[Written]]:
        """All records by topic."""
        return {
            name: [self._written(name, seen) for seen in self._topics.read(self._prefix + name)]
            for name in self.names()
        }

    def _read(self, name: str) -> list[Seen]:
        return self._topics.read(self._prefix + name)

    def _written(self, name: str, seen: Seen) -> Written:
        key, value = (None if raw is None else self._neutral(raw.decode()) for raw in (seen.key, seen.value))
        headers = tuple((header, self._neutral(text.decode())) for header, text in seen.headers)
        return normalised(Written(name, key, value, headers))

    def _neutral(self, text: str) -> str:
        text = text.replace(self._prefix, "PREFIX")
        return _SNAPSHOT_TIME.sub(r'"ts_ms":0\1"ts_us":0,"ts_ns":0', _VERSION.sub(r'\1"version":""', text))

    def history(self) -> list[str]:
        """The records of the schema history, each as JSON."""
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


def problems(wanted: Answer, found: Answer) -> Iterator[str]:
    """Every difference, a line each; nothing if the answers are equal."""
    left, right = wanted.records(), found.records()
    for name in sorted(left.keys() | right.keys()):
        yield from _topic(name or "schema changes", left.get(name, []), right.get(name, []))
    yield from _history(wanted.history(), found.history())


def _topic(name: str, wanted: list[Written], found: list[Written]) -> Iterator[str]:
    lost, more = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    pairs = [(w, f) for w, f in itertools.zip_longest(wanted, found) if w != f]
    if not pairs:
        return
    lost_n, more_n = sum(lost.values()), sum(more.values())
    yield f"{name}: {len(found)} records instead of {len(wanted)}; {lost_n} missing, {more_n} too many"
    for want, have in pairs[:_SHOWN]:
        if want is None or have is None:
            yield f"{name}: {'missing' if have is None else 'too many'}: {_short(want or have)}"
        else:
            yield f"{name}: {difference(want, have)}"


def _short(message: Written | None) -> str:
    return "" if message is None else f"{(message.key or '')[-100:]} {(message.value or '')[-300:]}"


def _history(wanted: list[str], found: list[str]) -> Iterable[str]:
    pairs = [(number, w, f) for number, (w, f) in enumerate(itertools.zip_longest(wanted, found)) if w != f]
    if pairs:
        yield f"history: {len(found)} records instead of {len(wanted)}, {len(pairs)} differ"
    for number, want, have in pairs[:_SHOWN]:
        ddl = json.loads(want or have or "{}").get("ddl")
        text = difference(Written("", None, want, ()), Written("", None, have, ()))
        yield f"history record {number}, {ddl!r}: {text}"
