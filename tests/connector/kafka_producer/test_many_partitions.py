"""The native producer with many topics and partitions: its memory, its look-ups and the size of its batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from rowtide.connector.kafka_producer.brokers import Brokers, Result
from rowtide.connector.kafka_producer.errors import ProducerInterrupted
from rowtide.connector.kafka_producer.machine.messages import (
    Answer,
    GetMetadata,
    InitProducerId,
    InitProducerIdAnswer,
    Metadata,
    Outgoing,
    PartitionMetadata,
    Produce,
    ProduceAnswer,
    ProducedBatch,
    ProducerIdentity,
    Request,
    TopicMetadata,
)
from rowtide.connector.kafka_producer.producer import Producer as KafkaProducer
from rowtide.connector.kafka_producer.records import Records
from rowtide.connector.kafka_producer.settings import producer_settings

PARTITIONS = 50


class OneBroker(Brokers):
    """Answers when the producer looks at the clock, in the same thread. ``stalled``: it answers no more."""

    def __init__(self, **settings: object) -> None:
        self.stalled = False
        self.requests: list[Request] = []
        self._unanswered: list[Outgoing] = []
        self._offsets: Counter[tuple[str, int]] = Counter()
        self.producer = KafkaProducer(producer_settings(settings), self._connected, self.clock)

    def _connected(self, on_result: Callable[[Outgoing, Result], None]) -> Brokers:
        self._on_result = on_result
        return self

    def send(self, outgoing: Outgoing) -> None:
        self.requests.append(outgoing.request)
        self._unanswered.append(outgoing)

    def close(self) -> None:
        pass

    def clock(self) -> float:
        if not self.stalled:
            unanswered, self._unanswered = self._unanswered, []
            for outgoing in unanswered:
                self._on_result(outgoing, self._answer(outgoing.request))
        return 1.0

    def _answer(self, request: Request) -> Answer:
        match request:
            case Produce():
                stored = []
                for batch in request.batches:
                    self._offsets[batch.topic, batch.partition] += 1
                    offset = self._offsets[batch.topic, batch.partition]
                    stored.append(ProducedBatch(batch.topic, batch.partition, 0, offset))
                return ProduceAnswer(stored)
            case GetMetadata():
                leaders = {number: PartitionMetadata(0, 1, 1) for number in range(PARTITIONS)}
                return Metadata({topic: TopicMetadata(0, topic.encode(), leaders) for topic in request.topics})
            case InitProducerId():
                return InitProducerIdAnswer(0, ProducerIdentity(7, 0))
        raise AssertionError(request)

    @property
    def batches(self) -> int:
        """How many batches the producer has sent."""
        return sum(len(request.batches) for request in self.requests if isinstance(request, Produce))


def message(partition: int, size: int = 10, topic: str = "t") -> Records:
    return Records(topic, partition, [(b"k", bytes(size), ())])


@pytest.fixture
def broker() -> OneBroker:
    """A broker that has answered a first message."""
    return ready(OneBroker())


def ready(broker: OneBroker) -> OneBroker:
    broker.producer.send([message(0)])
    assert broker.producer.drain()
    broker.requests.clear()
    return broker


def test_incomplete_batches_count_as_memory() -> None:
    broker = ready(OneBroker(**{"queue.buffering.max.kbytes": 100}))
    broker.stalled = True
    broker.producer.interrupt()  # a call that has to wait raises
    for number in range(80):
        broker.producer.send([message(number % PARTITIONS, 1000)])
    more = [message(number % PARTITIONS, 1000) for number in range(10_000)]
    with pytest.raises(ProducerInterrupted, match="there was no space for more messages"):
        broker.producer.send(more)
    assert broker.producer.waiting <= 102


def test_one_message_larger_than_the_memory_is_sent() -> None:
    broker = ready(OneBroker(**{"queue.buffering.max.kbytes": 1}))
    for _ in range(3):
        broker.producer.send([message(0, 5000), message(1, 5000)])
    assert broker.producer.drain()
    assert broker.batches == 6


def test_batches_of_other_partitions_stay_open_while_room_is_awaited() -> None:
    broker = ready(OneBroker(**{"queue.buffering.max.messages": 100}))
    broker.stalled = True
    for _ in range(70):
        broker.producer.send([message(0)])
    broker.producer.serve(idle=True)
    broker.producer.send([message(number) for number in range(1, 31)])
    assert broker.batches == 1
    broker.stalled = False
    broker.producer.send([message(number) for number in range(1, 31)])  # waits until the first batch is stored
    assert broker.batches == 1
    assert broker.producer.drain()
    assert broker.batches == 31


def test_incomplete_batches_are_sent_when_they_take_the_room() -> None:
    broker = ready(OneBroker(**{"queue.buffering.max.messages": 100}))
    for number in range(1000):
        broker.producer.send([message(number % PARTITIONS)])
    assert broker.producer.drain()
    assert broker.producer.waiting == 0
    assert broker.batches == 1000 // 100 * PARTITIONS


def test_topics_are_looked_up_together(broker: OneBroker) -> None:
    broker.producer.send([message(-1, topic=f"topic{number}") for number in range(200)])
    assert broker.producer.drain()
    look_ups = [request for request in broker.requests if isinstance(request, GetMetadata)]
    assert [len(request.topics) for request in look_ups] == [200]
