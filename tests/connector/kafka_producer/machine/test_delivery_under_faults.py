"""The sender against a cluster whose brokers die, lose requests or answers, move leaders and drop topics at random.

At every moment: no record is lost, stored twice or out of order, and none is acknowledged that is not stored. Once the
faults end, everything is delivered.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rowtide.connector.kafka_producer.errors import ProducerFailed, TopicMissing, TopicReplaced
from rowtide.connector.kafka_producer.machine import Sender, SenderSettings
from rowtide.connector.kafka_producer.machine.messages import TopicPartition
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from tests.support.kafka.simulated_kafka import SimulatedKafka
from tests.support.kafka.simulated_network import SimulatedNetwork

EXAMPLES = int(os.environ.get("ROWTIDE_CAMPAIGN", "1")) * 60
PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
PASSING = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
]
PICK = st.integers(0, 5)
PARTITION = st.sampled_from(PARTITIONS)
BROKER = st.integers(0, 2)


def next_ones(count: int, value: int) -> Callable[[object], int]:
    """Returns the value for the next so many calls, then 0."""
    left = [value] * count
    return lambda _: left.pop() if left else 0


class FaultyDelivery(RuleBasedStateMachine):
    """Without transactions."""

    def __init__(self) -> None:
        super().__init__()
        self.kafka = SimulatedKafka()
        self.kafka.create("a", 2)
        self.kafka.create("b", 1)
        self.net = SimulatedNetwork(Sender(SenderSettings(request_bytes=60)), self.kafka)
        self.excuses: tuple[type[Exception], ...] = ()

    @property
    def alive(self) -> bool:
        return self.net.sender.failure is None

    @precondition(lambda self: self.alive)
    @rule(partition=PARTITION, count=st.integers(1, 4))
    def add(self, partition: TopicPartition, count: int) -> None:
        self.net.add(partition, count)
        self.net.collect()

    @precondition(lambda self: self.net.requests)
    @rule(pick=PICK)
    def deliver(self, pick: int) -> None:
        numbers = sorted(self.net.requests)
        self.net.deliver(numbers[pick % len(numbers)])

    @precondition(lambda self: self.net.answers)
    @rule(pick=PICK)
    def answer(self, pick: int) -> None:
        numbers = sorted(self.net.answers)
        self.net.answer(numbers[pick % len(numbers)])

    @precondition(lambda self: self.alive)
    @rule(rounds=st.integers(1, 12))
    def go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            self.net.go_on()

    @precondition(lambda self: self.net.under_way())
    @rule(pick=PICK, later=st.booleans())
    def lose(self, pick: int, later: bool) -> None:
        numbers = self.net.under_way()
        self.net.lose(numbers[pick % len(numbers)], later=later)

    @precondition(lambda self: self.net.late)
    @rule(pick=PICK)
    def arrive_late(self, pick: int) -> None:
        self.net.arrive_late(pick % len(self.net.late))

    @rule(seconds=st.sampled_from([0.01, 0.2, 2.0]))
    def wait(self, seconds: float) -> None:
        self.net.wait(seconds)

    @rule(partition=PARTITION, leader=st.integers(-1, 2), keep=st.booleans())
    def elect(self, partition: TopicPartition, leader: int, keep: bool) -> None:
        log = self.kafka.log(partition)
        if log is not None:
            log.elect(leader, keep=keep)

    @rule(broker=BROKER, dies=st.booleans())
    def kill_or_start(self, broker: int, dies: bool) -> None:
        (self.kafka.down.add if dies else self.kafka.down.discard)(broker)

    @rule(count=st.integers(1, 3), error=st.sampled_from(PASSING))
    def refuse(self, count: int, error: int) -> None:
        self.kafka.produce_error = next_ones(count, error)

    @rule(count=st.integers(1, 3))
    def hold_back(self, count: int) -> None:
        self.kafka.held_back = next_ones(count, True)

    @rule(largest=st.sampled_from([1, 2, 3, 1000]))
    def limit(self, largest: int) -> None:
        if largest < self.kafka.largest and (self.net.under_way() or self.net.late or self.net.sender.waiting):
            # A batch that is stored, and then too large for its retry, is not recognized by the broker.
            self.excuses += (ProducerFailed,)
        self.kafka.largest = largest

    @precondition(lambda self: self.alive)
    @rule(create=st.booleans(), often=st.integers(0, 2))
    def delete(self, create: bool, often: int) -> None:
        if often == 0 and "b" in self.kafka.topics:
            self.kafka.delete("b")
            self.excuses += (TopicMissing, TopicReplaced)
            if create:
                self.kafka.create("b", 1)

    @invariant()
    def holds(self) -> None:
        self.net.check()
        failure = self.net.sender.failure
        assert failure is None or isinstance(failure.error, self.excuses), failure

    def teardown(self) -> None:
        self.kafka.down.clear()
        self.kafka.produce_error = self.kafka.held_back = lambda _: 0
        for topic in self.kafka.topics.values():
            for log in topic.logs:
                if log.leader < 0:
                    log.elect(0, keep=True)
        while self.net.late:
            self.net.arrive_late(0)
        self.net.settle()
        self.holds()
        if self.alive:
            assert self.net.acknowledged == self.net.added or not self.net.sender.waiting
            assert all(self.net.acknowledged[partition] == added for partition, added in self.net.added.items())


FaultyDelivery.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=60)
TestFaultyDelivery = FaultyDelivery.TestCase
