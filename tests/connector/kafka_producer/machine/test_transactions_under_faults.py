"""The sender's transactions against a cluster that loses requests and answers, and moves leaders and the coordinator.

At every moment, consumers that read committed records see each committed transaction in full, once and in order, and
nothing of any other. Once the faults end, the open transaction can be committed or aborted.
"""

from __future__ import annotations

import os
from collections import defaultdict

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rowtide.connector.kafka_producer.errors import ProducerFailed, ProducerFenced, TransactionAborted
from rowtide.connector.kafka_producer.machine import Sender, SenderSettings
from rowtide.connector.kafka_producer.machine.messages import (
    AddPartitionsToTxn,
    InitProducerId,
    Request,
    TopicPartition,
)
from rowtide.connector.kafka_producer.machine.transactions import State, TransactionStateError
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from tests.support.kafka.simulated_kafka import SimulatedKafka
from tests.support.kafka.simulated_network import SimulatedNetwork

EXAMPLES = int(os.environ.get("ROWTIDE_CAMPAIGN", "1")) * 80
PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("offsets", 0)]
PARTITION = st.sampled_from(PARTITIONS)
PICK = st.integers(0, 5)
OF_BATCHES = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.TRANSACTION_ABORTABLE,
]
OF_COORDINATOR = [
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
]


class FaultyTransactions(RuleBasedStateMachine):
    """A producer with a transactional id."""

    def __init__(self) -> None:
        super().__init__()
        self.kafka = SimulatedKafka()
        self.kafka.create("a", 2)
        self.kafka.create("offsets", 1)
        self.sender = Sender(SenderSettings(transactional_id="rowtide-shop-0", request_bytes=60))
        self.net = SimulatedNetwork(self.sender, self.kafka)
        self.committed: dict[TopicPartition, list[int]] = defaultdict(list)
        self.open: dict[TopicPartition, list[int]] = defaultdict(list)
        self.committing = False
        self.excuses: tuple[type[Exception], ...] = ()

    @initialize(version=st.sampled_from([1, 2]))
    def choose(self, version: int) -> None:
        self.kafka.version = version

    @property
    def usable(self) -> bool:
        return self.sender.failure is None

    def after(self) -> None:
        """Account for a transaction that has ended."""
        self.net.collect()
        if self.sender.state in (State.READY, State.RENEWING):
            if self.committing:
                for partition, records in self.open.items():
                    self.committed[partition] += records
            self.committing = False
            self.open.clear()

    @precondition(lambda self: self.usable and self.sender.state is State.READY)
    @rule()
    def begin(self) -> None:
        self.sender.begin()

    @precondition(lambda self: self.usable and self.sender.state is State.OPEN)
    @rule(partition=PARTITION, count=st.integers(1, 4))
    def add(self, partition: TopicPartition, count: int) -> None:
        self.open[partition] += self.net.add(partition, count)
        self.after()

    @precondition(lambda self: self.usable and self.sender.state is State.OPEN)
    @rule()
    def commit(self) -> None:
        self.sender.commit()
        self.committing = True
        self.after()

    @precondition(lambda self: self.sender.state in (State.OPEN, State.COMMITTING))
    @rule()
    def abort(self) -> None:
        try:
            self.sender.abort()
        except TransactionStateError:
            assert self.sender.state is State.COMMITTING
        except (ProducerFenced, ProducerFailed):
            assert not self.usable
        else:
            self.committing = False
        self.after()

    @precondition(lambda self: self.usable and self.sender.state is State.READY)
    @rule(
        batches=st.lists(st.tuples(PARTITION, st.integers(1, 4)), max_size=4),
        rounds=st.integers(1, 9),
        aborts=st.booleans(),
        more=st.integers(1, 9),
    )
    def transaction(self, batches: list[tuple[TopicPartition, int]], rounds: int, aborts: bool, more: int) -> None:
        """A whole transaction, as far as it comes."""
        self.begin()
        for partition, count in batches:
            self.add(partition, count)
        self.go_on(rounds)
        if aborts:
            self.abort()
        elif self.usable:
            self.commit()
        self.go_on(more)

    @rule(rounds=st.integers(1, 12))
    def go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            self.net.go_on()
            self.after()

    @precondition(lambda self: self.net.requests)
    @rule(pick=PICK)
    def deliver(self, pick: int) -> None:
        numbers = sorted(self.net.requests)
        self.net.deliver(numbers[pick % len(numbers)])
        self.after()

    @precondition(lambda self: self.net.under_way())
    @rule(pick=PICK, later=st.booleans())
    def lose(self, pick: int, later: bool) -> None:
        numbers = self.net.under_way()
        self.net.lose(numbers[pick % len(numbers)], later=later)
        self.after()

    @precondition(lambda self: self.net.late)
    @rule(pick=PICK)
    def arrive_late(self, pick: int) -> None:
        self.excuse(self.net.arrive_late(pick % len(self.net.late)))

    def excuse(self, late: Request) -> None:
        """Kafka takes these requests for those of another instance."""
        if isinstance(late, InitProducerId | AddPartitionsToTxn):
            self.excuses += (ProducerFenced,)

    @rule(seconds=st.sampled_from([0.01, 0.2, 2.0]))
    def wait(self, seconds: float) -> None:
        self.net.wait(seconds)
        self.after()

    @rule(partition=PARTITION, leader=st.integers(-1, 2), keep=st.booleans())
    def elect(self, partition: TopicPartition, leader: int, keep: bool) -> None:
        log = self.kafka.log(partition)
        assert log is not None
        log.elect(leader, keep=keep)

    @rule(broker=st.integers(-1, 2))
    def move_coordinator(self, broker: int) -> None:
        self.kafka.coordinator = broker

    @rule(count=st.integers(1, 2), error=st.sampled_from(OF_BATCHES))
    def refuse(self, count: int, error: int) -> None:
        left = [error] * count
        self.kafka.produce_error = lambda _: left.pop() if left else 0
        if error == ErrorCode.TRANSACTION_ABORTABLE:
            self.excuses += (TransactionAborted,)

    @rule(count=st.integers(1, 2))
    def hold_back(self, count: int) -> None:
        left = [True] * count
        self.kafka.held_back = lambda _: bool(left and left.pop())

    @rule(count=st.integers(1, 2), error=st.sampled_from(OF_COORDINATOR))
    def refuse_coordination(self, count: int, error: int) -> None:
        left = [error] * count
        self.kafka.coordination_error = lambda _: left.pop() if left else 0

    @precondition(lambda self: self.kafka.entry is not None and self.kafka.entry.ongoing)
    @rule(often=st.integers(0, 9))
    def expire(self, often: int) -> None:
        if often == 0:
            self.kafka.expire()
            self.excuses += (ProducerFenced,)

    @precondition(lambda self: self.kafka.entry is not None and not self.kafka.entry.ongoing)
    @rule(often=st.integers(0, 9))
    def forget(self, often: int) -> None:
        """The next transaction is repeated; what of the last one is not known yet cannot be found out any more."""
        if often == 0:
            self.kafka.forget()
            self.excuses += (TransactionAborted, ProducerFailed)

    @invariant()
    def holds(self) -> None:
        failure = self.sender.failure
        assert failure is None or isinstance(failure.error, self.excuses), failure
        without = all(self.seen(partition) == self.committed[partition] for partition in PARTITIONS)
        both = all(
            self.seen(partition) == self.committed[partition] + self.open.get(partition, []) for partition in PARTITIONS
        )
        assert without or (self.committing and both)

    def seen(self, partition: TopicPartition) -> list[int]:
        """What consumers see that read committed records."""
        log = self.kafka.log(partition)
        assert log is not None
        return log.committed()

    def teardown(self) -> None:
        self.kafka.coordinator = max(self.kafka.coordinator, 0)
        self.kafka.produce_error = self.kafka.coordination_error = self.kafka.held_back = lambda _: 0
        for topic in self.kafka.topics.values():
            for log in topic.logs:
                if log.leader < 0:
                    log.elect(0, keep=True)
        while self.net.late:
            self.excuse(self.net.arrive_late(0))
        if self.sender.failure is not None and self.sender.failure.abortable:
            self.abort()
        self.end()
        self.holds()
        if self.usable:
            assert self.sender.state is not State.COMMITTING
            assert self.sender.state is not State.ABORTING
            self.deliver_one_more()

    def end(self) -> None:
        """Without faults, every transaction ends."""
        for _ in range(200):
            if self.sender.failure is not None or self.sender.state in (State.OPEN, State.READY):
                break
            self.go_on(5)
        if self.usable and self.sender.state is State.OPEN:
            self.commit()
            self.end()

    def deliver_one_more(self) -> None:
        """The producer can still be used."""
        self.begin()
        for partition in PARTITIONS:
            self.add(partition, 2)
        self.end()
        self.holds()
        if self.usable:
            assert all(self.seen(partition)[-2:] == self.committed[partition][-2:] for partition in PARTITIONS)
            assert not self.open


FaultyTransactions.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=60)
TestFaultyTransactions = FaultyTransactions.TestCase
