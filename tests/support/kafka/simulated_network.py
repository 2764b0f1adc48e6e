"""The way between a `Sender` and a `SimulatedKafka`, and what must hold on it at every moment.

Requests and answers stay under way until a test lets them go on, or loses them. A lost request may still arrive later.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field

from rowtide.connector.kafka_producer.machine.messages import (
    Answer,
    Outgoing,
    Produce,
    Request,
    TopicPartition,
)
from rowtide.connector.kafka_producer.machine.sender import Sender
from rowtide.connector.kafka_producer.machine.transactions import State
from tests.support.kafka.simulated_kafka import SimulatedKafka
from tests.support.kafka.simulated_log import Log, Records

MOST_ROUNDS = 2000
"""So many rounds without faults are enough to deliver everything."""


@dataclass
class SimulatedNetwork:
    """Connects a sender and a cluster.

    Attributes:
        now: the time, in seconds.
        requests: what was sent and is not at the broker yet, by number.
        answers: what is on the way back, with its request.
        late: lost requests that are still on the way.
        added: the records given to the sender, by partition.
        acknowledged: the records that it has reported as acknowledged.
    """

    sender: Sender
    kafka: SimulatedKafka
    now: float = 1000.0
    requests: dict[int, Outgoing] = field(default_factory=dict)
    answers: dict[int, tuple[Outgoing, Answer]] = field(default_factory=dict)
    late: list[Outgoing] = field(default_factory=list)
    added: dict[TopicPartition, list[int]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: dict[TopicPartition, list[int]] = field(default_factory=lambda: defaultdict(list))
    _bytes: dict[tuple[object, ...], list[int]] = field(default_factory=dict)
    _next: int = 0

    def add(self, partition: TopicPartition, count: int) -> list[int]:
        """Give a batch to the sender; returns its records."""
        records = list(range(self._next, self._next + count))
        self._next += count
        self.sender.add(Records(*partition, tuple(records)), self.now)
        self.added[partition] += records
        return records

    def collect(self) -> None:
        """Take the requests that are due, and the batches that are acknowledged."""
        for outgoing in self.sender.requests(self.now):
            self._check(outgoing)
            self.requests[outgoing.number] = outgoing
        for batch in self.sender.acknowledged():
            assert isinstance(batch, Records)
            partition = TopicPartition(batch.topic, batch.partition)
            self.acknowledged[partition] += batch.records
            done = self.acknowledged[partition]
            assert any(set(done) <= set(log.stored()) for log in self.logs(partition)), "acknowledged, and not stored"

    def under_way(self) -> list[int]:
        """The numbers of the requests that are not answered."""
        return sorted({*self.requests, *self.answers})

    def deliver(self, number: int) -> None:
        """Let a request arrive at its broker, which may be down."""
        outgoing = self.requests.pop(number)
        broker = self._broker(outgoing)
        if broker is None:
            self.sender.lost(number, "connection refused", self.now)
        else:
            self.answers[number] = outgoing, self._process(outgoing, broker)
        self.collect()

    def answer(self, number: int) -> None:
        """Let an answer arrive at the sender."""
        _, answer = self.answers.pop(number)
        self.sender.answered(number, answer, self.now)
        self.collect()

    def lose(self, number: int, *, later: bool) -> None:
        """Lose a request or its answer; a request may still arrive later."""
        outgoing = self.requests.pop(number, None)
        if outgoing is None:
            self.answers.pop(number)
        elif later:
            self.late.append(outgoing)
        self.sender.lost(number, "the connection was closed", self.now)
        self.collect()

    def arrive_late(self, at: int) -> Request:
        """Let a lost request arrive; returns it. Nobody gets the answer."""
        outgoing = self.late.pop(at)
        broker = self._broker(outgoing)
        if broker is not None:
            self._process(outgoing, broker)
        return outgoing.request

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.collect()

    def go_on(self) -> None:
        """Let the oldest answer or request arrive, or time pass if there is none."""
        if self.answers:
            self.answer(min(self.answers))
        elif self.requests:
            self.deliver(min(self.requests))
        else:
            self.wait(0.3)

    def settle(self) -> None:
        """Deliver everything at once, and let time pass when nothing is under way."""
        for _ in range(MOST_ROUNDS):
            self.collect()
            if self.answers:
                self.answer(min(self.answers))
            elif self.requests:
                self.deliver(min(self.requests))
            else:
                wake_up = self.sender.wake_up(self.now)
                if wake_up is None or self.is_done:
                    return
                self.now = wake_up
        raise AssertionError("the sender does not come to an end")

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do for the sender."""
        if self.sender.failure is not None:
            return True
        return self.sender.state in (State.READY, State.OPEN) and not self.sender.waiting and not self.under_way()

    def logs(self, partition: TopicPartition) -> list[Log]:
        """All that a partition has ever been."""
        log = self.kafka.log(partition)
        gone = [topic.logs[partition.partition] for name, topic in self.kafka.deleted if name == partition.topic]
        return gone if log is None else [*gone, log]

    def check(self) -> None:
        """Without transactions: nothing is lost, stored twice or out of order, or acknowledged before it is stored."""
        for partition, added in self.added.items():
            for log in self.logs(partition):
                stored = [record for entry in log.entries for record in entry.records]
                assert stored == added[: len(stored)]
            done = self.acknowledged[partition]
            assert done == added[: len(done)]
        if self.sender.failure is None:
            waiting = sum(map(len, self.added.values())) - sum(map(len, self.acknowledged.values()))
            assert self.sender.waiting == waiting

    def _broker(self, outgoing: Outgoing) -> int | None:
        if outgoing.broker is None:
            return next((broker for broker in range(self.kafka.brokers) if broker not in self.kafka.down), None)
        return None if outgoing.broker in self.kafka.down else outgoing.broker

    def _process(self, outgoing: Outgoing, broker: int) -> Answer:
        return self.kafka.process(broker, outgoing.request)

    def _check(self, outgoing: Outgoing) -> None:
        """One request to a broker and one batch of a partition is in flight, and retries repeat the same bytes."""
        others = [*self.requests.values(), *(outgoing for outgoing, _ in self.answers.values())]
        assert outgoing.broker not in {other.broker for other in others}
        if not isinstance(outgoing.request, Produce):
            return
        sent = [
            (batch.topic, batch.partition)
            for other in others
            if isinstance(other.request, Produce)
            for batch in other.request.batches
        ]
        assert outgoing.request.batches
        for batch in outgoing.request.batches:
            assert (batch.topic, batch.partition) not in sent
            sent.append((batch.topic, batch.partition))
            producer_id, epoch, sequence, transactional, records = json.loads(bytes(batch.data))
            assert transactional is bool(outgoing.request.transactional_id)
            place = batch.topic, batch.partition, producer_id, epoch, sequence
            before = self._bytes.setdefault(place, records)
            assert records == before[: len(records)], "other records with the sequence number of an earlier batch"
