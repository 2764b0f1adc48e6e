"""Sequence numbers of the batches of one partition."""

from __future__ import annotations

import json

from rowtide.connector.kafka_producer.machine.backoff import Backoff
from rowtide.connector.kafka_producer.machine.messages import ProducerIdentity, TopicPartition
from rowtide.connector.kafka_producer.machine.partition_queue import PartitionQueue
from tests.support.kafka.simulated_log import Records

PRODUCER = ProducerIdentity(7, 0)


class Large(Records):
    """A batch that counts as a thousand million records."""

    @property
    def count(self) -> int:
        return 1_000_000_000


def sequence(queue: PartitionQueue, producer: ProducerIdentity = PRODUCER) -> int:
    """Send and acknowledge the first batch; returns its sequence number."""
    number = json.loads(bytes(queue.send(producer, transactional=False)))[2]
    assert queue.acknowledge(-1) is not None
    return int(number)


def test_sequence_numbers_wrap_around_after_the_largest_number_of_four_bytes() -> None:
    queue = PartitionQueue(TopicPartition("a", 0), Backoff())
    for _ in range(4):
        queue.add(Large("a", 0, (1,)), 0.0)
    assert [sequence(queue) for _ in range(4)] == [0, 1_000_000_000, 2_000_000_000, 3_000_000_000 - 2**31]


def test_sequence_numbers_start_at_0_with_every_epoch() -> None:
    queue = PartitionQueue(TopicPartition("a", 0), Backoff())
    for _ in range(4):
        queue.add(Records("a", 0, (1, 2)), 0.0)
    epochs = [ProducerIdentity(7, 0), ProducerIdentity(7, 0), ProducerIdentity(7, 1), ProducerIdentity(8, 1)]
    assert [sequence(queue, producer) for producer in epochs] == [0, 2, 0, 0]


def test_a_batch_follows_acknowledged_records_unless_it_may_be_stored_with_a_larger_one() -> None:
    queue = PartitionQueue(TopicPartition("a", 0), Backoff())
    for _ in range(2):
        queue.add(Records("a", 0, (1, 2)), 0.0)
    queue.send(PRODUCER, transactional=False)
    assert not queue.follows
    assert queue.acknowledge(-1) is not None
    queue.send(PRODUCER, transactional=False)
    assert queue.follows
    queue.postpone(0.0)
    queue.send(PRODUCER, transactional=False)
    assert queue.follows
    assert queue.split()
    queue.send(PRODUCER, transactional=False)
    assert not queue.follows


def test_a_part_of_a_batch_that_was_refused_at_once_follows_acknowledged_records() -> None:
    queue = PartitionQueue(TopicPartition("a", 0), Backoff())
    for _ in range(2):
        queue.add(Records("a", 0, (1, 2)), 0.0)
    assert sequence(queue) == 0
    queue.send(PRODUCER, transactional=False)
    assert queue.split()
    assert sequence(queue) == 2
    queue.send(PRODUCER, transactional=False)
    assert queue.follows
