"""Finds topics that were deleted, created again or repartitioned since they were first seen.

Kafka gives every topic an id when it is created, so a topic that was deleted and created again has another one. Pure.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

LOOKS_UNTIL_DELETED = 2
"""A topic that is missing at this many consecutive checks is deleted: a starting broker may not list it yet."""


NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id in answers of brokers without ids. During an upgrade, some brokers answer with it and others do not."""


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """The identity of a topic, which distinguishes it from a later one with the same name.

    Attributes:
        topic_id: the id that Kafka gave it when it was created; ``NO_ID`` from brokers before Kafka 2.8.
        partitions: number of partitions.
    """

    topic_id: str
    partitions: int


class TopicChangeKind(enum.Enum):
    """The kind of change of a topic; the value completes a sentence."""

    DELETED = "was deleted"
    RECREATED = "was deleted and created again"
    REPARTITIONED = "has more partitions"


class TopicChange(NamedTuple):
    """A change of a topic.

    Attributes:
        topic: its name.
        kind: the kind of change.
        before: the number of partitions before.
        now: the number of partitions now; 0 if the topic is deleted.
    """

    topic: str
    kind: TopicChangeKind
    before: int
    now: int


class TopicWatch:
    """Compares topics with their identities at the last check.

    Args:
        identify: looks up topics; omits those that do not exist.
    """

    def __init__(self, identify: Callable[[Sequence[str]], Mapping[str, TopicIdentity]]) -> None:
        self._identify = identify
        self._seen: dict[str, TopicIdentity] = {}
        self._missing: dict[str, int] = {}

    @property
    def missing(self) -> bool:
        """Whether a topic was missing at its last check, and may be deleted."""
        return bool(self._missing)

    def changes(self, topics: Sequence[str]) -> list[TopicChange]:
        """Check topics, and return the changes of those that existed at an earlier check.

        Raises:
            TopicError: Kafka is not reachable.
        """
        found = self._identify(topics)
        changes = []
        for topic in topics:
            before, now = self._seen.get(topic), found.get(topic)
            if before is not None and now is None:
                self._missing[topic] = self._missing.get(topic, 0) + 1
                if self._missing[topic] < LOOKS_UNTIL_DELETED:
                    continue
                del self._seen[topic]
            if now is not None:
                if before is not None and now.topic_id == NO_ID:
                    now = replace(now, topic_id=before.topic_id)
                self._seen[topic] = now
            self._missing.pop(topic, None)
            if before is not None and now != before and not _got_id(before, now):
                changes.append(_change(topic, before, now))
        return changes


def _got_id(before: TopicIdentity, now: TopicIdentity | None) -> bool:
    """Return whether only the id is new, which the topic did not have before."""
    return now is not None and before.topic_id == NO_ID and now.partitions == before.partitions


def _change(topic: str, before: TopicIdentity, now: TopicIdentity | None) -> TopicChange:
    if now is None:
        return TopicChange(topic, TopicChangeKind.DELETED, before.partitions, 0)
    recreated = before.topic_id not in {NO_ID, now.topic_id} or now.partitions < before.partitions
    kind = TopicChangeKind.RECREATED if recreated else TopicChangeKind.REPARTITIONED
    return TopicChange(topic, kind, before.partitions, now.partitions)
