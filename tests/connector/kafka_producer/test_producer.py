"""The native producer with a simulated cluster: what is sent when, memory, interrupts, and every kind of failure."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rowtide.connector.kafka_producer.batches.partitions import python_split_by_key
from rowtide.connector.kafka_producer.errors import (
    AccessDenied,
    BrokerNotSupported,
    BrokerUnavailable,
    KafkaProducerError,
    ProducerFailed,
    ProducerInterrupted,
    RecordRejected,
    TransactionAborted,
)
from rowtide.connector.kafka_producer.machine.messages import (
    EndTxn,
    GetMetadata,
    InitProducerId,
    Produce,
    ProduceAnswer,
    ProducedBatch,
    TopicPartition,
)
from rowtide.connector.kafka_producer.producer import Producer
from rowtide.connector.kafka_producer.records import BY_KEY, Record, Records
from rowtide.connector.kafka_producer.settings import producer_settings
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from rowtide.connector.kafka_producer.wire.errors import (
    AuthenticationFailed,
    MalformedAnswer,
    UnsupportedBroker,
)
from tests.support.kafka.simulated_brokers import (
    PATIENCE,
    Fate,
    SimulatedBrokers,
    cluster,
    committed,
    holding,
    in_thread,
    made_producer,
    numbers,
    sent,
    stored,
    until,
)
from tests.support.kafka.simulated_kafka import SimulatedKafka

Make = Callable[..., tuple[Producer, SimulatedBrokers]]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes producers, and closes them."""
    made: list[Producer] = []

    def new(kafka: SimulatedKafka | None = None, **more: Any) -> tuple[Producer, SimulatedBrokers]:
        producer, brokers = made_producer(kafka or cluster(), **more)
        made.append(producer)
        return producer, brokers

    yield new
    for producer in made:
        producer.close()


def batch(*values: int, topic: str = "orders", partition: int = BY_KEY, key: bytes | None = b"k") -> Records:
    return Records(topic, partition, [(key, b"%d" % value, ()) for value in values])


def large(size: int, *numbers: int, partition: int = BY_KEY) -> Records:
    """Records with values of a size."""
    return Records("orders", partition, [(b"k", b"%0*d" % (size, number), ()) for number in numbers])


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# ---- what is sent, and when


def test_messages_are_delivered_in_order(make: Make) -> None:
    kafka = cluster()
    producer, _ = make(kafka)
    producer.send([batch(0, 1), batch(2), batch(3, 4)])
    assert producer.drain()
    assert stored(kafka) == [0, 1, 2, 3, 4]
    assert producer.waiting == 0


def test_messages_that_are_ready_share_a_batch_until_they_have_lingered(make: Make) -> None:
    producer, brokers = make(linger_ms=3_600_000)
    for number in range(5):
        producer.send([batch(number)])
        producer.serve()
    assert (brokers.produced(), producer.waiting) == ([], 5)
    producer.serve(idle=True)
    until(lambda: producer.waiting == 0)
    assert [numbers(sent) for sent in brokers.produced()] == [[0, 1, 2, 3, 4]]


def test_messages_that_have_lingered_are_sent_though_others_are_ready() -> None:
    clock = Clock()
    kafka = cluster()
    producer, brokers = made_producer(kafka, linger_ms=50, clock=clock)
    producer.send([batch(0)])
    clock.now += 0.049
    producer.send([batch(1)])
    assert producer.waiting == 2
    assert not brokers.produced()
    clock.now += 0.01
    producer.serve()
    until(lambda: stored(kafka) == [0, 1])
    producer.close()


def test_the_caller_hears_when_messages_that_waited_for_others_can_be_sent(make: Make) -> None:
    producer, brokers = make(linger_ms=3_600_000, fate=holding(Produce))
    heard = threading.Event()
    assert producer.call_when_due(heard.set)
    producer.send([batch(0)])
    producer.serve(idle=True)
    until(brokers.produced)
    producer.send([batch(1)])
    producer.serve(idle=True)
    assert not heard.is_set()
    brokers.release()
    assert heard.wait(PATIENCE)
    heard.clear()
    producer.serve(idle=True)
    until(lambda: producer.waiting == 0)
    assert [numbers(sent) for sent in brokers.produced()] == [[0], [1]]
    assert not heard.is_set()  # nothing is left


def test_the_caller_hears_of_a_failure(make: Make) -> None:
    producer, brokers = make(linger_ms=3_600_000)
    brokers.results[Produce] = [MalformedAnswer("it has no form")]
    heard = threading.Event()
    producer.call_when_due(heard.set)
    producer.send([batch(0)])
    producer.serve(idle=True)
    assert heard.wait(PATIENCE)
    with pytest.raises(ProducerFailed, match="it has no form"):
        producer.serve()


def test_a_commit_waits_for_the_messages(make: Make) -> None:
    kafka = cluster()
    producer, brokers = make(kafka, transactional_id="shop")
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.send([batch(0)])
    producer.commit_transaction()
    assert committed(kafka) == [0]
    assert [type(outgoing.request) for outgoing in brokers.outgoing][-2:] == [Produce, EndTxn]


def test_a_transaction_whose_message_fails_during_the_commit_is_aborted(make: Make) -> None:
    kafka = cluster()
    producer, brokers = make(kafka, transactional_id="shop")
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.send([batch(0)])
    brokers.results[Produce] = [
        ProduceAnswer([ProducedBatch("orders", 0, ErrorCode.TRANSACTION_ABORTABLE)]),
    ]
    with pytest.raises(TransactionAborted):
        producer.commit_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send([batch(1)])
    producer.commit_transaction()
    assert committed(kafka) == [1]
    assert not producer.waiting


def test_idle_messages_wait_for_those_on_their_way(make: Make) -> None:
    """More may come meanwhile, so that the next batch is larger."""
    producer, brokers = make(linger_ms=3_600_000, fate=holding(Produce))
    producer.send([batch(0)])
    producer.serve(idle=True)
    until(brokers.produced)
    for number in (1, 2):
        producer.send([batch(number)])
        producer.serve(idle=True)
    assert len(brokers.produced()) == 1
    brokers.release()
    until(lambda: producer.waiting == 2)
    producer.serve(idle=True)
    assert producer.drain()
    assert [numbers(sent) for sent in brokers.produced()] == [[0], [1, 2]]


def test_a_full_batch_is_sent_at_once(make: Make) -> None:
    producer, brokers = make(linger_ms=3_600_000, batch_size=1000)
    producer.send([large(300, 0, 1, 2, 3)])
    until(brokers.produced)
    assert numbers(brokers.produced()[0]) == [0, 1, 2]


def test_a_timestamp_is_kept_and_that_of_others_is_the_time_of_sending() -> None:
    producer, brokers = made_producer(cluster(), wall_clock=lambda: 1234.5678)
    producer.send([batch(0)._replace(timestamp_ms=99)])
    producer.drain()
    producer.send([batch(1)])
    producer.drain()
    first_timestamps = [int.from_bytes(bytes(sent.data)[27:35], "big") for sent in brokers.produced()]
    assert first_timestamps == [99, 1_234_567]
    producer.close()


def test_topics_have_their_own_numbers_of_partitions(make: Make) -> None:
    kafka = cluster(orders=1, offsets=5)
    producer, _ = make(kafka)
    producer.send([batch(0)])
    producer.send([Records("offsets", BY_KEY, [(b"key", b"7", (("h", None),))])])
    assert producer.drain()
    place = next(iter(python_split_by_key([(b"key", b"7", ())], 5, 0)))
    assert (stored(kafka), stored(kafka, "offsets", place)) == ([0], [7])


# ---- partitions


def test_keys_determine_the_partition_as_in_java(make: Make) -> None:
    kafka = cluster(orders=7)
    producer, _ = make(kafka)
    messages: list[Record] = [(b"k%d" % number, b"%d" % number, ()) for number in range(40)]
    producer.send([Records("orders", BY_KEY, messages)])
    assert producer.drain()
    for partition, found in python_split_by_key(messages, 7, 0).items():
        assert stored(kafka, partition=partition) == [int(value or b"") for _, value, _ in found]


def test_a_partition_that_the_batch_has_is_used(make: Make) -> None:
    kafka = cluster(orders=7)
    producer, _ = make(kafka)
    producer.send([batch(1, 2, partition=3)])
    assert producer.drain()
    assert stored(kafka, partition=3) == [1, 2]


def test_messages_without_keys_stay_in_a_partition_for_a_batch_and_use_all(make: Make) -> None:
    kafka = cluster(orders=3)
    producer, _ = make(kafka, batch_size=1000, linger_ms=3_600_000)
    for number in range(400):
        messages: list[Record] = [(None, b"%0100d" % number, ())]
        producer.send([Records("orders", BY_KEY, messages)])
    assert producer.drain()
    places = {number: partition for partition in range(3) for number in stored(kafka, partition=partition)}
    assert sorted(places) == list(range(400))
    runs = [len(list(same)) for _, same in itertools.groupby(places[number] for number in range(400))]
    assert set(places.values()) == {0, 1, 2}
    assert min(runs[:-1]) >= 7, "about batch.size bytes at least"
    assert max(runs) < 200, "the partition changes"


def test_messages_without_keys_avoid_partitions_without_a_leader(make: Make) -> None:
    kafka = cluster(orders=3)
    for number in (0, 2):
        log = kafka.log(TopicPartition("orders", number))
        assert log is not None
        log.elect(-1, keep=True)
    producer, _ = make(kafka, batch_size=100)
    for number in range(40):
        producer.send([batch(number, key=None)])
        assert producer.drain(PATIENCE)
    assert stored(kafka, partition=1) == list(range(40))


# ---- memory


@pytest.mark.parametrize("bound", ["messages", "bytes"])
def test_memory_is_bounded_while_no_broker_answers(make: Make, bound: str) -> None:
    limits = {"messages": {"queue_buffering_max_messages": 50}, "bytes": {"queue_buffering_max_kbytes": 10}}[bound]
    producer, brokers = make(fate=holding(Produce), **limits)
    sent: list[int] = []

    def send() -> None:
        for number in range(1000):
            producer.send([large(200, number)])
            sent.append(number)

    thread, ended = in_thread(send)
    until(lambda: len(sent) >= 45)
    thread.join(0.05)
    assert thread.is_alive()
    assert len(sent) <= 60
    brokers.release()
    thread.join(PATIENCE)
    assert ended == [None]
    assert producer.drain()
    assert stored(brokers.kafka) == list(range(1000))


def test_the_open_batches_of_many_partitions_count_as_memory(make: Make) -> None:
    producer, brokers = make(
        cluster(orders=100), fate=holding(Produce), queue_buffering_max_kbytes=100, linger_ms=3_600_000
    )

    def send() -> None:
        for number in range(1000):
            producer.send([large(1000, number, partition=number % 100)])

    thread, ended = in_thread(send)
    until(lambda: producer._held > 90_000)
    thread.join(0.05)
    assert thread.is_alive()
    assert producer.waiting <= 110
    brokers.release()
    thread.join(PATIENCE)
    assert ended == [None]


@pytest.mark.parametrize("limits", [{"queue_buffering_max_messages": 2}, {"queue_buffering_max_kbytes": 1}])
def test_messages_that_come_together_are_sent_though_they_exceed_the_bounds(make: Make, limits: dict[str, int]) -> None:
    kafka = cluster()
    producer, _ = make(kafka, **limits)
    for first in (0, 10):
        producer.send([large(3000, *range(first, first + 10))])
    assert producer.drain()
    assert stored(kafka) == list(range(20))


def test_messages_that_come_together_wait_for_room_batch_by_batch(make: Make) -> None:
    producer, brokers = make(fate=holding(Produce), queue_buffering_max_kbytes=20, batch_size=2000)
    thread, ended = in_thread(lambda: producer.send([large(500, *range(200))]))
    until(brokers.produced)
    thread.join(0.05)
    assert thread.is_alive()
    assert producer._held <= 20 << 10
    brokers.release()
    thread.join(PATIENCE)
    assert ended == [None]
    assert producer.drain()
    assert stored(brokers.kafka) == list(range(200))


def test_memory_is_counted_exactly_when_batches_are_split(make: Make) -> None:
    kafka = cluster()
    kafka.largest = 40
    producer, _ = make(kafka, linger_ms=3_600_000)
    producer.send([batch(*range(1000))])
    held = producer._open.size
    producer.serve(idle=True)
    while producer.waiting:
        producer.poll()
        assert 0 <= producer._held <= held
    assert producer.drain()
    assert stored(kafka) == list(range(1000))
    assert producer._held == 0


def test_a_message_larger_than_the_limit_is_named(make: Make) -> None:
    producer, _ = make(message_max_bytes=2000)
    with pytest.raises(RecordRejected, match=r"'orders', 3001 bytes: .* max.request.size=2000") as caught:
        producer.send([large(3000, 1)])
    assert caught.value.key == b"k"


# ---- interrupts and time-outs


def test_an_interrupt_ends_every_call_that_waits(make: Make) -> None:
    calls: dict[str, tuple[dict[str, Any], Callable[[Producer], object]]] = {
        "send": ({"queue_buffering_max_messages": 1}, lambda it: [it.send([batch(number)]) for number in range(5)]),
        "look-up": ({}, lambda it: it.send([batch(0, topic="unknown")])),
        "drain": ({}, lambda it: (it.send([batch(0)]), it.drain())),
    }
    for name, (limits, call) in calls.items():
        producer, brokers = make(cluster(orders=1), fate=holding(Produce, GetMetadata), **limits)
        thread, ended = in_thread(lambda producer=producer, call=call: call(producer))
        until(lambda brokers=brokers: len(brokers.outgoing) > 1)
        assert not ended, name
        producer.interrupt()
        thread.join(PATIENCE)
        assert isinstance(ended[0], ProducerInterrupted), name
        assert "pending" in str(ended[0])


@pytest.mark.parametrize("waits_for", [InitProducerId, EndTxn])
def test_an_interrupt_ends_the_calls_of_transactions(make: Make, waits_for: type) -> None:
    for call in ("commit_transaction", "abort_transaction"):
        producer, brokers = make(transactional_id="rowtide-0", fate=holding(waits_for))

        def run(producer: Producer = producer, call: str = call) -> None:
            producer.init_transactions(PATIENCE)
            producer.begin_transaction()
            producer.send([batch(1)])
            producer.drain()
            getattr(producer, call)()

        thread, ended = in_thread(run)
        until(lambda brokers=brokers: sent(brokers, waits_for))
        producer.interrupt()
        thread.join(PATIENCE)
        assert isinstance(ended[0], ProducerInterrupted)


def test_a_drain_that_takes_too_long_returns_false_and_sending_continues(make: Make) -> None:
    producer, brokers = make(fate=holding(Produce))
    producer.send([batch(0)])
    assert producer.drain(0.01) is False
    brokers.release()
    assert producer.drain(PATIENCE) is True


def test_transactions_that_cannot_start_in_time_name_the_problem(make: Make) -> None:
    producer, _ = make(transactional_id="rowtide-0", fate=lambda _: Fate.LOST)
    with pytest.raises(
        BrokerUnavailable,
        match=r"within 0 s: broker test:9092: it cannot be reached.*all brokers run",
    ):
        producer.init_transactions(0.05)


def test_a_batch_that_is_not_acknowledged_in_time_fails(make: Make) -> None:
    producer, _ = make(fate=holding(Produce), message_timeout_ms=20)
    producer.send([batch(0)])
    with pytest.raises(BrokerUnavailable, match=r"delivery.timeout.ms=20.*all brokers run"):
        producer.drain(PATIENCE)


# ---- failures


class OneResult:
    """Brokers with the same result for each request."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.done: Any = None

    def __call__(self, done: Any) -> Any:
        self.done = done
        return self

    def send(self, outgoing: Any) -> None:
        self.done(outgoing, self.result)

    def close(self) -> None:
        """Do nothing."""


def test_an_unexpected_error_ends_the_producer(caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer(producer_settings({}), OneResult(ZeroDivisionError("no")))
    with pytest.raises(ProducerFailed, match="unexpected error in the Kafka producer: ZeroDivisionError"):
        producer.send([batch(0)])
    producer.close()
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("result", "kind", "text"),
    [
        (AuthenticationFailed("broker b:1: the broker refused the credentials"), AccessDenied, "the credentials"),
        (UnsupportedBroker("broker b:1: too old"), BrokerNotSupported, "too old"),
        (MalformedAnswer("broker b:1: truncated"), ProducerFailed, "truncated"),
        (ZeroDivisionError("a defect"), ProducerFailed, "ZeroDivisionError"),
    ],
    ids=["credentials", "old broker", "malformed", "defect"],
)
def test_a_failure_ends_the_producer_and_nothing_more_is_sent(
    make: Make, result: Exception, kind: type[KafkaProducerError], text: str
) -> None:
    kafka = cluster()
    producer, brokers = make(kafka)
    producer.send([batch(0)])
    assert producer.drain()
    brokers.results[Produce] = [result]
    producer.send([batch(1)])
    with pytest.raises(kind, match=text):
        producer.drain(PATIENCE)
    count = len(brokers.outgoing)
    threading.Event().wait(0.02)  # longer than the delay before a retry
    for call in (producer.serve, producer.check, lambda: producer.drain(0.05), producer.drain):
        with pytest.raises(kind):
            call()
    assert len(brokers.outgoing) == count
    assert stored(kafka) == [0]


def test_an_answer_that_cannot_be_used_does_not_hang_the_producer(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    producer, _ = make()
    monkeypatch.setattr(producer._sender, "answered", lambda *_: 1 / 0)
    with pytest.raises(ProducerFailed, match="ZeroDivisionError"):
        producer.send([batch(0)])


def test_a_lost_broker_is_a_problem_until_it_is_reset_and_a_warning(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    producer, _ = make(fates=[Fate.LOST, Fate.LOST])
    assert producer.problem is None
    producer.send([batch(0)])
    assert producer.drain(PATIENCE)
    assert producer.problem == "broker test:9092: it cannot be reached"
    producer.problem = None
    assert producer.problem is None


def test_an_error_that_is_retried_is_a_problem(make: Make) -> None:
    kafka = cluster()
    codes = [ErrorCode.NOT_ENOUGH_REPLICAS]
    kafka.produce_error = lambda _: codes.pop() if codes else 0
    producer, _ = make(kafka)
    producer.send([batch(0)])
    assert producer.drain(PATIENCE)
    assert producer.problem is not None
    assert "fewer replicas are in sync than min.insync.replicas requires" in producer.problem


def test_a_batch_that_is_too_large_is_split(make: Make) -> None:
    kafka = cluster()
    kafka.largest = 3
    producer, _ = make(kafka)
    producer.send([batch(*range(20)), batch(20, 21)])
    assert producer.drain(PATIENCE)
    assert stored(kafka) == list(range(22))


def test_closing_drops_messages_and_ends_the_connections(make: Make) -> None:
    producer, brokers = make(fate=holding(Produce))
    producer.send([batch(0)])
    producer.close()
    assert brokers.closed
    with pytest.raises(ProducerInterrupted):
        producer.drain()
