"""Compares the messages of two connectors as texts, and those that differ field by field."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Difference", "Message", "compare", "fields", "normalised"]

_PROCESSED = re.compile(r'("op":"[crudtm]",)"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+((?:,"static":"here")?\}+)$')
_SCHEMA_CHANGE = re.compile(r'"ts_ms":\d+,("databaseName":)')
_SNAPSHOT = re.compile(
    r'"ts_ms":\d+,("snapshot":"[a-eg-z][a-z_]*","db":"(?:[^"\\]|\\.)*","sequence":null),"ts_us":\d+,"ts_ns":\d+'
)
_SNAPSHOT_FIRST = re.compile(
    r'"ts_ms":\d+,("snapshot":"first[a-z_]*","db":"(?:[^"\\]|\\.)*","sequence":null),"ts_us":\d+,"ts_ns":\d+'
)
_HISTORY = re.compile(r'"(ts_sec|ts_ms)" : \d+')
_RUN = "__debezium.context.runId"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a topic, as text."""

    topic: str
    key: str | None
    value: str | None
    headers: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A field with different values, or a message that only one connector wrote.

    Attributes:
        topic: the topic.
        place: the index of the message in its topic.
        path: the path of the field: ``value``, ``payload``, ``after``, ``a``.
        want: Debezium's value, or `MISSING`.
        have: rowtide's value, or `MISSING`.
        message: Debezium's message, or rowtide's if Debezium has none.
    """

    topic: str
    place: int
    path: tuple[str, ...]
    want: str
    have: str
    message: Message


MISSING = "(nothing)"


def normalised(message: Message) -> Message:
    """The message without values that depend on the time of processing."""
    value = message.value
    if value is not None:
        value = _PROCESSED.sub(r'\1"ts_ms":0,"ts_us":0,"ts_ns":0\2', value)
        value = _SCHEMA_CHANGE.sub(r'"ts_ms":0,\1', value)
        for pattern in (_SNAPSHOT, _SNAPSHOT_FIRST):
            value = pattern.sub(r'"ts_ms":0,\1,"ts_us":0,"ts_ns":0', value)
        if message.topic.endswith("-history"):
            value = _HISTORY.sub(r'"\1" : 0', value)
    headers = tuple((name, "" if name == _RUN else text) for name, text in message.headers)
    return Message(message.topic, message.key, value, headers)


def compare(
    expected: Mapping[str, Sequence[Message]], found: Mapping[str, Sequence[Message]], *, more: bool = False
) -> Iterator[Difference]:
    """All differences in all topics.

    Args:
        expected: Debezium's messages by topic.
        found: rowtide's messages by topic.
        more: whether rowtide may have more messages, because Debezium stopped.
    """
    for topic in sorted(expected.keys() | found.keys()):
        pairs = itertools.zip_longest(expected.get(topic, ()), found.get(topic, ()))
        for place, (want, have) in enumerate(pairs):
            if want is None and more:
                break
            if want is None or have is None:
                one = want or have
                texts = [MISSING if side is None else f"{side.key} {side.value}" for side in (want, have)]
                yield Difference(topic, place, ("message",), *texts, one)
                break
            left, right = normalised(want), normalised(have)
            if left != right:
                yield from _of_messages(topic, place, left, right)


def _of_messages(topic: str, place: int, want: Message, have: Message) -> Iterator[Difference]:
    for part in ("key", "value"):
        texts = getattr(want, part), getattr(have, part)
        if texts[0] != texts[1]:
            for path, left, right in fields(*texts):
                yield Difference(topic, place, (part, *path), left, right, want)
    if want.headers != have.headers:
        names = [name for name, _ in want.headers], [name for name, _ in have.headers]
        if names[0] != names[1]:
            yield Difference(topic, place, ("headers",), str(names[0]), str(names[1]), want)
            return
        for (name, left), (_, right) in zip(want.headers, have.headers, strict=True):
            if left != right:
                for path, one, other in fields(left, right):
                    yield Difference(topic, place, ("headers", name, *path), one, other, want)


def fields(want: str | None, have: str | None) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The fields that differ between two JSON texts, with their paths. Numbers are compared as text."""
    if want is None or have is None:
        yield (), str(want), str(have)
        return
    try:
        left, right = _parsed(want), _parsed(have)
    except ValueError:
        yield (), want, have
        return
    found = list(_walk((), left, right))
    yield from found
    if not found:
        at = next((i for i, (a, b) in enumerate(zip(want, have, strict=False)) if a != b), min(len(want), len(have)))
        yield ("(spelling)",), want[max(0, at - 60) : at + 60], have[max(0, at - 60) : at + 60]


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=_Number, parse_int=_Number)


class _Number(str):
    """A number in its original notation."""

    __slots__ = ()


def _walk(path: tuple[str, ...], want: Any, have: Any) -> Iterator[tuple[tuple[str, ...], str, str]]:
    if isinstance(want, dict) and isinstance(have, dict):
        if list(want) != list(have) and want.keys() == have.keys():
            yield (*path, "(order)"), str(list(want)), str(list(have))
        for name in [*want, *(name for name in have if name not in want)]:
            if name not in want or name not in have:
                yield (*path, name), _told(want.get(name, MISSING)), _told(have.get(name, MISSING))
            else:
                yield from _walk((*path, name), want[name], have[name])
    elif isinstance(want, list) and isinstance(have, list) and len(want) == len(have):
        for number, (left, right) in enumerate(zip(want, have, strict=True)):
            yield from _walk((*path, _place(number, left)), left, right)
    elif want != have or type(want) is not type(have):
        yield path, _told(want), _told(have)


def _place(number: int, one: Any) -> str:
    named = one.get("field") or one.get("name") if isinstance(one, dict) else None
    return f"{number}:{named}" if isinstance(named, str) and not isinstance(named, _Number) else str(number)


def _told(one: Any) -> str:
    if isinstance(one, _Number):
        return str(one)
    return one if one is MISSING else json.dumps(one, ensure_ascii=False)
