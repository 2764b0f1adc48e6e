"""Ids, partitions and leaders of topics, and when to look them up. Pure.

A topic that was seen with one id is never sent to under another one: its earlier records are lost.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from rowtide.connector.kafka_producer.errors import TopicMissing, TopicReplaced
from rowtide.connector.kafka_producer.machine.backoff import Backoff, Retry
from rowtide.connector.kafka_producer.machine.codes import METADATA, Reaction
from rowtide.connector.kafka_producer.machine.failures import (
    Failure,
    RetriedProblem,
    by_reaction,
    reason,
    topic_rejected,
    unusable,
)
from rowtide.connector.kafka_producer.machine.messages import (
    GetMetadata,
    Metadata,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode


@dataclass(slots=True)
class _Topic:
    """The known facts about a topic.

    Attributes:
        topic_id: its id; ``None`` until an answer has one.
        partitions: the leaders; empty until the topic is found.
        leaderless: partitions whose leader must be looked up.
        stale: whether to look it up as soon as possible.
        looked_up_at: the last answer that had the topic.
        missing_since: when the first of several consecutive answers lacked the topic or a partition.
    """

    topic_id: bytes | None = None
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)
    leaderless: set[int] = field(default_factory=set)
    stale: bool = True
    looked_up_at: float = float("-inf")
    missing_since: float | None = None


class Cluster:
    """The topics to which batches are sent.

    Args:
        backoff: between two look-ups.
        max_age_s: how old an answer may become (``metadata.max.age.ms``).
        missing_after_s: a topic or partition that is missing in all answers for this long does not exist. Brokers that
            have just started, or that lag behind the controller, do not list all topics.
        problem: receives errors that are retried.
    """

    def __init__(self, backoff: Backoff, max_age_s: float, missing_after_s: float, problem: RetriedProblem) -> None:
        self._problem = problem
        self._topics: dict[str, _Topic] = {}
        self._retry = Retry(backoff)
        self._max_age_s = max_age_s
        self._missing_after_s = missing_after_s

    def partitions(self, topic: str) -> int | None:
        """Return the number of partitions of a topic; ``None`` until it is looked up."""
        known = self._topics.get(topic)
        return len(known.partitions) or None if known is not None else None

    def available(self, topic: str) -> list[int]:
        """Return the partitions of a topic that have a leader, as far as it is looked up."""
        known = self._topics[topic]
        return [number for number in known.partitions if number not in known.leaderless]

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of a topic, or ``None``."""
        return self._topics[topic].topic_id

    def leader(self, partition: TopicPartition) -> int | None:
        """Return the broker that leads a partition; ``None`` if it must be looked up."""
        known = self._topics.get(partition.topic)
        if known is None or partition.partition in known.leaderless:
            return None
        found = known.partitions.get(partition.partition)
        return None if found is None else found.leader

    def forget_leader(self, partition: TopicPartition) -> None:
        """Note that the leader has refused a batch: look it up before the next one is sent."""
        known = self._topics[partition.topic]
        known.leaderless.add(partition.partition)
        known.stale = True

    def suspect(self, broker: int) -> None:
        """Note that a broker does not answer. Look up whether its partitions have other leaders; use it until then."""
        for known in self._topics.values():
            if any(found.leader == broker for found in known.partitions.values()):
                known.stale = True

    def look_up(self, needed: Collection[TopicPartition], wanted: Collection[str], now: float) -> GetMetadata | None:
        """Return the look-up to make now.

        Args:
            needed: the partitions that have batches.
            wanted: further topics whose partitions are needed.
            now: the time.
        """
        if now < self._retry.at:
            return None
        due = dict.fromkeys(topic for topic in wanted if self._due(topic, now))
        for partition in needed:
            if self.leader(partition) is None or self._due(partition.topic, now):
                due[partition.topic] = None
        return GetMetadata(tuple(due)) if due else None

    def _due(self, topic: str, now: float) -> bool:
        known = self._topics.get(topic)
        return known is None or known.stale or now >= known.looked_up_at + self._max_age_s

    def next_look_up(self, topics: Collection[str]) -> list[float]:
        """Return the times at which ``look_up`` may have something to do."""
        ages = [self._topics[topic].looked_up_at + self._max_age_s for topic in topics if topic in self._topics]
        return [self._retry.at, *ages]

    def lost(self, now: float) -> None:
        """Note that a look-up was not answered."""
        self._retry.failed(now)

    def update(
        self, request: GetMetadata, answer: Metadata, needed: Collection[TopicPartition], now: float
    ) -> list[Failure]:
        """Process an answer.

        Args:
            request: the look-up.
            answer: its answer.
            needed: the partitions that have batches.
            now: the time.

        Returns:
            The reason why batches cannot be sent.
        """
        failures = []
        by_topic: dict[str, set[int]] = {topic: set() for topic in request.topics}
        for topic, partition in needed:
            if topic in by_topic:
                by_topic[topic].add(partition)
        for topic, partitions in by_topic.items():
            found = answer.topics.get(topic)
            if found is None:
                failures.append(unusable(f"the broker's response to a look-up of topic {topic!r} does not have it"))
                continue
            known = self._topics.setdefault(topic, _Topic())
            failure = self._update_topic(topic, known, found, partitions, now)
            if failure is not None:
                failures.append(failure)
        if any(self._topics[topic].stale for topic in request.topics if topic in self._topics):
            self._retry.failed(now)
        else:
            self._retry.succeeded()
        return failures

    def _update_topic(
        self, topic: str, known: _Topic, found: TopicMetadata, needed: set[int], now: float
    ) -> Failure | None:
        reaction = METADATA.get(found.error, Reaction.FAIL)
        if reaction is Reaction.RETRY:
            known.stale = True
            self._problem.text = f"cannot look up topic {topic!r}: {reason(found.error)}"
            if found.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._missing(known, now):
                return Failure(TopicMissing(topic), abortable=True)
            return None
        if reaction is Reaction.REFUSED:
            return topic_rejected(topic, reason(found.error))
        if reaction is not Reaction.SUCCESS:
            return by_reaction(f"look up topic {topic!r}", found.error, reaction, "")
        if None not in (known.topic_id, found.topic_id) and known.topic_id != found.topic_id:
            return Failure(TopicReplaced(topic, "was deleted and created again"), abortable=True)
        known.topic_id = found.topic_id or known.topic_id
        known.looked_up_at = now
        known.stale = False
        self._update_leaders(topic, known, found)
        if not self._unknown(known, found, needed):
            known.missing_since = None
        elif self._missing(known, now):
            return Failure(TopicReplaced(topic, "was re-created with fewer partitions"), abortable=True)
        known.stale = bool(known.leaderless & needed) or not needed <= found.partitions.keys()
        return None

    def _update_leaders(self, topic: str, known: _Topic, found: TopicMetadata) -> None:
        for number, partition in found.partitions.items():
            if _is_older(partition, known.partitions.get(number)):
                continue
            known.partitions[number] = partition
            if METADATA.get(partition.error) is Reaction.SUCCESS and partition.leader >= 0:
                known.leaderless.discard(number)
            else:
                known.leaderless.add(number)
                self._problem.text = f"partition {number} of topic {topic!r} has no leader"

    def _unknown(self, known: _Topic, found: TopicMetadata, needed: set[int]) -> bool:
        """Return whether the answer lacks a needed partition, or has a leader of an earlier election for it."""
        return any(
            number not in found.partitions
            or (number in known.leaderless and _is_older(found.partitions[number], known.partitions.get(number)))
            for number in needed
        )

    def _missing(self, known: _Topic, now: float) -> bool:
        if known.missing_since is None:
            known.missing_since = now
        return now - known.missing_since >= self._missing_after_s


def _is_older(found: PartitionMetadata, known: PartitionMetadata | None) -> bool:
    """Return whether a leader is of an earlier election, in an answer of a broker that lags behind."""
    return known is not None and -1 < found.leader_epoch < known.leader_epoch
