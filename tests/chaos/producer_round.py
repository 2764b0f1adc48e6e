"""One round for the Kafka producer: numbered messages to three brokers that fail at random, and their account."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.delivery.delivery_loop import CommitPolicy
from rowtide.topics.internal import offsets_settings
from rowtide.topics.settings import TopicSettings
from tests.chaos.faults import Fault, link_faults
from tests.chaos.network import Direction
from tests.chaos.numbered import Place, Stream, account
from tests.support.kafka.topic_tools import Topics

if TYPE_CHECKING:
    from tests.chaos.kafka_cluster import KafkaCluster

__all__ = ["ProducerOutcome", "ProducerRound"]

_RECOVERY_S = 90
"""A time in which everything is delivered after the last fault, even on a machine that is busy with other work."""
_SECOND_FAULT = 0.4
_SHORT_TIMES: dict[str, Any] = {
    "request.timeout.ms": 2000,
    "socket.timeout.ms": 2000,
    "socket.connection.setup.timeout.ms": 2000,
    "reconnect.backoff.max.ms": 1000,
}
_PLACES = 3
_TWO_REPLICAS = {"min.insync.replicas": "2"}  # Kafka 4.1 and later ignore that of the brokers


@dataclass
class ProducerOutcome:
    """What has happened.

    Attributes:
        faults: the number of times each fault happened.
        messages: the number of messages.
        repeated: the number of repeated records.
        starts: the number of producers.
        recovery_s: seconds between the end of the last fault and the last acknowledgement.
        ends: why producers have ended.
        problems: descriptions of lost, repeated and disordered records, and of what did not continue.
    """

    faults: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    repeated: int = 0
    starts: int = 0
    recovery_s: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class ProducerRound:
    """A round: one stream of messages at least once and one exactly once, through the same faults.

    Args:
        cluster: the brokers; all of them run afterwards.
        seed: determines the settings and the faults.
        faults: the number of faults.
        kind: the producer.
    """

    def __init__(self, cluster: KafkaCluster, seed: int, faults: int, kind: ProducerKind = ProducerKind.NATIVE) -> None:
        self._cluster = cluster
        self._decide = random.Random(seed)
        self._count = faults
        self._topics = Topics(cluster.direct)
        self._admin = AdminClient({"bootstrap.servers": cluster.direct, "log_level": 0})
        self._base = self._topics.name()
        self._partitions = _PLACES
        self._streams = [self._stream(name, kind) for name in ("", f"{self._base}-id")]

    def _stream(self, transactional_id: str, kind: ProducerKind) -> Stream:
        decide = self._decide
        base = f"{self._base}-{'exactly' if transactional_id else 'at-least'}"
        places: list[Place] = [(f"{base}-{topic}", number) for topic in range(3) for number in range(_PLACES)]
        settings = {
            **_SHORT_TIMES,
            "linger.ms": decide.choice((0, 5, 50)),
            "batch.size": decide.choice((500, 16_000, 500_000)),
            "compression.type": decide.choice(("none", "gzip", "zstd", "lz4")),
        }
        if transactional_id:
            settings["transaction.timeout.ms"] = decide.choice((3000, 30_000))
        policy = CommitPolicy(interval_s=decide.choice((0.3, 1.5)), by_poll=decide.random() < 0.5, timeout_s=2.0)
        keys: Place = (f"{base}-keys", -1)
        return Stream(
            self._cluster.bootstrap, [*places, keys], f"{base}-offsets", transactional_id, settings, kind, policy
        )

    def __str__(self) -> str:
        return "; ".join(f"{stream.settings}, {stream.policy}" for stream in self._streams)

    def run(self) -> ProducerOutcome:
        """Run it; a problem is reported in the outcome."""
        outcome = ProducerOutcome()
        for stream in self._streams:
            for topic in dict.fromkeys(topic for topic, _ in stream.places):
                self._topics.admin.ensure(topic, TopicSettings(_PLACES, 3, _TWO_REPLICAS))
            self._topics.admin.ensure(stream.offsets, offsets_settings(2, 3))
            stream.start()
        try:
            self._disturb(outcome)
        finally:
            self._cluster.heal()
        began = time.monotonic()
        for stream in self._streams:
            count = stream.finish(_RECOVERY_S)
            outcome.recovery_s = time.monotonic() - began
            exactly_once = bool(stream.transactional_id)
            problems, repeated = account(
                self._topics.read, stream.places, count, stream.starts, exactly_once=exactly_once
            )
            outcome.messages += count
            outcome.repeated += repeated
            outcome.starts += stream.starts
            outcome.ends += stream.ends
            outcome.problems += stream.problems + problems
        return outcome

    def _disturb(self, outcome: ProducerOutcome) -> None:
        decide = self._decide
        faults = list(self._faults())
        kinds = sorted({fault.name.partition(":")[0] for fault in faults})
        for _ in range(self._count):
            time.sleep(decide.uniform(0, 2))
            chosen = [self._one(faults, decide.choice(kinds))]
            if decide.random() < _SECOND_FAULT:
                chosen.append(self._one(faults, decide.choice(kinds)))
            for fault in chosen:
                outcome.faults[fault.name] += 1
                with contextlib.suppress(KafkaException):
                    fault.begin()
                time.sleep(decide.uniform(0, fault.longest_s))
            for fault in chosen:
                with contextlib.suppress(KafkaException):
                    fault.end()
            if decide.random() < 0.7:
                self._cluster.heal()

    def _one(self, faults: list[Fault], kind: str) -> Fault:
        return self._decide.choice([fault for fault in faults if fault.name.partition(":")[0] == kind])

    def _faults(self) -> Iterator[Fault]:
        cluster = self._cluster
        for number, broker in cluster.brokers.items():
            yield Fault(f"broker: {number} killed", broker.kill, broker.start)
            yield Fault(f"broker: {number} stopped", broker.stop, broker.start)
            yield Fault(f"broker: {number} suspended", broker.pause, broker.resume, 6)
            yield from link_faults(f"link: {number}", cluster.links[number], self._decide)
        yield Fault("two brokers: killed", self._kill_two, cluster.heal)
        yield Fault("coordinator: killed", self._on_coordinator("kill"), cluster.heal)
        yield Fault("coordinator: suspended", self._on_coordinator("pause"), cluster.heal, 8)
        yield Fault("coordinator: stopped", self._on_coordinator("stop"), cluster.heal)
        yield Fault("all links: frozen", self._freeze, cluster.heal, 8)
        for each in sorted({topic for stream in self._streams for topic, _ in stream.places}):
            yield Fault(
                "topic: max.message.bytes lowered",
                lambda each=each: self._configure(each, "max.message.bytes", "2200"),  # type: ignore[misc]
                lambda each=each: self._configure(each, "max.message.bytes", "1048588"),  # type: ignore[misc]
                6,
            )
            yield Fault(
                "topic: min.insync.replicas raised",
                lambda each=each: self._configure(each, "min.insync.replicas", "3"),  # type: ignore[misc]
                lambda each=each: self._configure(each, "min.insync.replicas", "2"),  # type: ignore[misc]
                6,
            )
        yield Fault("topic: partition added", self._add_partition)

    def _on_coordinator(self, action: str) -> Callable[[], None]:
        def act() -> None:
            broker = self._cluster.coordinator(self._streams[1].transactional_id)
            if broker in self._cluster.brokers:
                getattr(self._cluster.brokers[broker], action)()

        return act

    def _kill_two(self) -> None:
        for number in self._decide.sample(sorted(self._cluster.brokers), 2):
            self._cluster.brokers[number].kill()

    def _freeze(self) -> None:
        for link in self._cluster.links.values():
            link.freeze(*Direction)

    def _configure(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for _ in range(3):
            with contextlib.suppress(KafkaException):
                self._admin.incremental_alter_configs([resource], request_timeout=5)[resource].result()
                return

    def _add_partition(self) -> None:
        self._partitions += 1
        topics = [topic for stream in self._streams for topic, partition in stream.places if partition < 0]
        more = [NewPartitions(topic, self._partitions) for topic in topics]
        for done in self._admin.create_partitions(more, request_timeout=5).values():
            done.result()
