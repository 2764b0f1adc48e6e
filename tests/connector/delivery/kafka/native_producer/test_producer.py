"""The native producer with a simulated cluster: what is sent when, memory, interrupts, and every kind of failure."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis import settings
from simulated_brokers import Fate, SimulatedBrokers, made_producer, numbers
from simulated_kafka import SimulatedKafka

from rowtide.connector.delivery.errors import (
    AccessDenied,
    BrokerUnavailable,
    DeliveryError,
    DeliveryInterrupted,
    ProducerFailed,
    RecordRejected,
    TransactionAborted,
)
from rowtide.connector.delivery.kafka import sink as sink_module
from rowtide.connector.delivery.kafka.native_producer.batches.partitions import python_split_by_key
from rowtide.connector.delivery.kafka.native_producer.connection.errors import ConnectionFailed
from rowtide.connector.delivery.kafka.native_producer.machine.messages import (
    AddPartitionsToTxn,
    EndTxn,
    GetMetadata,
    InitProducerId,
    Outgoing,
    Produce,
    ProduceAnswer,
    ProducedBatch,
    TopicPartition,
)
from rowtide.connector.delivery.kafka.native_producer.producer import NativeProducer
from rowtide.connector.delivery.kafka.native_producer.settings import producer_settings
from rowtide.connector.delivery.kafka.native_producer.wire.error_codes import ErrorCode
from rowtide.connector.delivery.kafka.native_producer.wire.errors import (
    AuthenticationFailed,
    MalformedAnswer,
    UnsupportedBroker,
)
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore, OffsetRecord
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset

EXAMPLES = int(os.environ.get("ROWTIDE_CAMPAIGN", "1")) * 25
OFFSET = SourceOffset("binlog.000001", 4)
PATIENCE = 60.0
Make = Callable[..., tuple[NativeProducer, SimulatedBrokers]]


def cluster(**topics: int) -> SimulatedKafka:
    kafka = SimulatedKafka()
    for name, partitions in (topics or {"orders": 1}).items():
        kafka.create(name, partitions)
    return kafka


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes producers, and closes them."""
    made: list[NativeProducer] = []

    def new(kafka: SimulatedKafka | None = None, **more: Any) -> tuple[NativeProducer, SimulatedBrokers]:
        producer, brokers = made_producer(kafka or cluster(), **more)
        made.append(producer)
        return producer, brokers

    yield new
    for producer in made:
        producer.close()


def batch(*values: int, topic: str = "orders", partition: int = -1, key: bytes | None = b"k") -> Batch:
    messages: list[Message] = [(key, b"%d" % value, ()) for value in values]
    return Batch(topic, partition, messages, OFFSET, 10, 0)


def large(size: int, *numbers: int, partition: int = -1) -> Batch:
    """Messages with values of a size."""
    messages: list[Message] = [(b"k", b"%0*d" % (size, number), ()) for number in numbers]
    return Batch("orders", partition, messages, OFFSET, size, 0)


def stored(kafka: SimulatedKafka, topic: str = "orders", partition: int = 0) -> list[int]:
    log = kafka.log(TopicPartition(topic, partition))
    assert log is not None
    return log.stored()


def committed(kafka: SimulatedKafka, topic: str = "orders", partition: int = 0) -> list[int]:
    log = kafka.log(TopicPartition(topic, partition))
    assert log is not None
    return log.committed()


def holding(*requests: type) -> Callable[[Outgoing], Fate]:
    """Holds requests of these types."""
    return lambda outgoing: Fate.HELD if isinstance(outgoing.request, requests) else Fate.ANSWERED


def sent(brokers: SimulatedBrokers, request: type) -> bool:
    """Whether a request of a type was sent."""
    return any(isinstance(outgoing.request, request) for outgoing in brokers.outgoing)


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[BaseException | None]]:
    """Call something in a thread; its error, or ``None``, is in the list at the end."""
    ended: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - for the test
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, ended


def until(reached: Callable[[], object]) -> None:
    waited = threading.Event()
    for _ in range(int(PATIENCE / 0.005)):
        if reached():
            return
        waited.wait(0.005)
    raise AssertionError("not reached")


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
    producer.send([batch(0)._replace(timestamp=99)])
    producer.drain()
    producer.send([batch(1)])
    producer.drain()
    first_timestamps = [int.from_bytes(bytes(sent.data)[27:35], "big") for sent in brokers.produced()]
    assert first_timestamps == [99, 1_234_567]
    producer.close()


def test_an_offset_is_sent_behind_the_messages(make: Make) -> None:
    kafka = cluster(orders=1, offsets=5)
    producer, _ = make(kafka)
    producer.send([batch(0)])
    producer.put(OffsetRecord("offsets", b"key", b"7", (("h", None),)))
    assert producer.drain()
    place = next(iter(python_split_by_key([(b"key", b"7", ())], 5, 0)))
    assert (stored(kafka), stored(kafka, "offsets", place)) == ([0], [7])


# ---- partitions


def test_keys_determine_the_partition_as_in_java(make: Make) -> None:
    kafka = cluster(orders=7)
    producer, _ = make(kafka)
    messages: list[Message] = [(b"k%d" % number, b"%d" % number, ()) for number in range(40)]
    producer.send([Batch("orders", -1, messages, OFFSET, 1, 0)])
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
        messages: list[Message] = [(None, b"%0100d" % number, ())]
        producer.send([Batch("orders", -1, messages, OFFSET, 100, 0)])
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
    with pytest.raises(RecordRejected, match=r"'orders'.*with a key.*, 3001 bytes: .* max.request.size=2000"):
        producer.send([large(3000, 1)])


# ---- interrupts and time-outs


def test_an_interrupt_ends_every_call_that_waits(make: Make) -> None:
    calls: dict[str, tuple[dict[str, Any], Callable[[NativeProducer], object]]] = {
        "send": ({"queue_buffering_max_messages": 1}, lambda it: [it.send([batch(number)]) for number in range(5)]),
        "put": ({}, lambda it: it.put(OffsetRecord("unknown", b"k", b"1"))),
        "drain": ({}, lambda it: (it.send([batch(0)]), it.drain())),
    }
    for name, (limits, call) in calls.items():
        producer, brokers = make(cluster(orders=1), fate=holding(Produce, GetMetadata), **limits)
        thread, ended = in_thread(lambda producer=producer, call=call: call(producer))
        until(lambda brokers=brokers: len(brokers.outgoing) > 1)
        assert not ended, name
        producer.interrupt()
        thread.join(PATIENCE)
        assert isinstance(ended[0], DeliveryInterrupted), name
        assert "pending" in str(ended[0])


@pytest.mark.parametrize("waits_for", [InitProducerId, EndTxn])
def test_an_interrupt_ends_the_calls_of_transactions(make: Make, waits_for: type) -> None:
    for call in ("commit_transaction", "abort_transaction"):
        producer, brokers = make(transactional_id="rowtide-0", fate=holding(waits_for))

        def run(producer: NativeProducer = producer, call: str = call) -> None:
            producer.init_transactions(PATIENCE)
            producer.begin_transaction()
            producer.send([batch(1)])
            producer.drain()
            getattr(producer, call)()

        thread, ended = in_thread(run)
        until(lambda brokers=brokers: sent(brokers, waits_for))
        producer.interrupt()
        thread.join(PATIENCE)
        assert isinstance(ended[0], DeliveryInterrupted)


def test_a_drain_that_takes_too_long_returns_false_and_sending_goes_on(make: Make) -> None:
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
    producer = NativeProducer(producer_settings({}), OneResult(ZeroDivisionError("no")))
    with pytest.raises(ProducerFailed, match="unexpected error in the Kafka producer: ZeroDivisionError"):
        producer.put(("offsets", b"key", b"value", ()))
    producer.close()
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("result", "kind", "text"),
    [
        (AuthenticationFailed("broker b:1: the broker refused the credentials"), AccessDenied, "Check the credentials"),
        (UnsupportedBroker("broker b:1: too old"), DeliveryError, "too old. Set rowtide.producer=librdkafka"),
        (MalformedAnswer("broker b:1: truncated"), ProducerFailed, "truncated"),
        (ZeroDivisionError("a defect"), ProducerFailed, "ZeroDivisionError"),
    ],
    ids=["credentials", "old broker", "malformed", "defect"],
)
def test_a_failure_ends_the_producer_and_nothing_more_is_sent(
    make: Make, result: Exception, kind: type[DeliveryError], text: str
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


def test_a_lost_connection_is_logged_once_in_a_while(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    producer, brokers = make()
    text = "broker of-this-test:9092: the connection was lost"
    brokers.results[GetMetadata] = [ConnectionFailed(text), ConnectionFailed(text)]
    producer.send([batch(0)])
    assert producer.drain(PATIENCE)
    assert [(record.levelname, record.message) for record in caplog.records] == [("WARNING", text)]


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
    with pytest.raises(DeliveryInterrupted):
        producer.drain()


# ---- transactions through the sink


class Offsets(InMemoryOffsetStore):
    def record(self, offset: SourceOffset | None) -> OffsetRecord:  # type: ignore[override]
        return OffsetRecord("offsets", b"key", b"%d" % (0 if offset is None else offset.pos))


@pytest.fixture(params=[1, 2], ids=["transactions v1", "transactions v2"])
def kafka(request: pytest.FixtureRequest) -> SimulatedKafka:
    made = cluster(orders=1, offsets=1)
    made.version = request.param
    return made


def sink_of(producer: NativeProducer) -> TransactionalSink:
    return TransactionalSink(producer, Offsets(), open_timeout=PATIENCE)  # type: ignore[arg-type]


def test_records_and_offset_are_committed_together(make: Make, kafka: SimulatedKafka) -> None:
    producer, _ = make(kafka, transactional_id="rowtide-0")
    sink = sink_of(producer)
    sink.open()
    for number in range(3):
        sink.send([batch(number)])
        assert sink.commit(SourceOffset("b", number))
    sink.close()
    assert (committed(kafka), committed(kafka, "offsets")) == ([0, 1, 2], [0, 1, 2])


def test_a_transaction_can_be_rolled_back_and_sent_again(make: Make, kafka: SimulatedKafka) -> None:
    codes = [0, ErrorCode.TRANSACTION_ABORTABLE]
    kafka.produce_error = lambda _: codes.pop(0) if codes else 0
    producer, _ = make(kafka, transactional_id="rowtide-0")
    sink = sink_of(producer)
    sink.open()
    sink.send([batch(0)])
    assert producer.drain(PATIENCE)
    sink.send([batch(1)])
    with pytest.raises(TransactionAborted):
        sink.commit(SourceOffset("b", 1))
    sink.rollback()
    sink.rollback()
    sink.send([batch(0), batch(1)])
    assert sink.commit(SourceOffset("b", 1))
    assert committed(kafka) == [0, 1]


def test_a_rollback_drops_messages_that_were_not_sent_yet(make: Make, kafka: SimulatedKafka) -> None:
    producer, _ = make(kafka, transactional_id="rowtide-0", linger_ms=3_600_000)
    sink = sink_of(producer)
    sink.open()
    sink.send([batch(0)])
    sink.rollback()
    assert producer.waiting == 0
    sink.send([batch(1)])
    assert sink.commit(SourceOffset("b", 1))
    assert committed(kafka) == [1]


def test_a_sink_that_never_opened_a_transaction_closes_and_rolls_back(make: Make, kafka: SimulatedKafka) -> None:
    producer, _ = make(kafka, transactional_id="rowtide-0")
    sink = sink_of(producer)
    sink.rollback()
    sink.open()
    sink.rollback()
    producer.abort_transaction(PATIENCE)
    sink.close()
    sink.close()


@pytest.mark.parametrize("interrupted_at", [AddPartitionsToTxn, Produce, EndTxn])
@pytest.mark.parametrize("call", ["commit", "rollback"])
def test_a_sink_closes_whatever_was_interrupted(
    make: Make, kafka: SimulatedKafka, call: str, interrupted_at: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome of a commit that was sent is unknown, so that it cannot be aborted."""
    monkeypatch.setattr(sink_module, "_ABORT_S", 0.05)
    if kafka.version == 2 and interrupted_at is AddPartitionsToTxn:
        pytest.skip("brokers add the partitions themselves")
    producer, brokers = make(kafka, transactional_id="rowtide-0")
    sink = sink_of(producer)
    sink.open()
    sink.send([batch(0)])
    if interrupted_at is EndTxn:
        assert producer.drain(PATIENCE)
    brokers.fate = holding(interrupted_at)
    producer.serve(idle=True)
    if interrupted_at is not EndTxn:  # a rollback before it would prevent it
        until(lambda: sent(brokers, interrupted_at))
    thread, ended = in_thread(sink.rollback if call == "rollback" else lambda: sink.commit(OFFSET))
    until(lambda: sent(brokers, interrupted_at))
    sink.interrupt()
    thread.join(PATIENCE)
    assert len(ended) == 1
    assert ended[0] is None or isinstance(ended[0], DeliveryInterrupted)
    for _ in range(2):
        if ended[0] is not None:
            with pytest.raises(DeliveryError):
                sink.rollback()
        sink.close()


def test_the_end_of_a_commit_that_was_sent_is_not_an_abort(make: Make, kafka: SimulatedKafka) -> None:
    producer, brokers = make(kafka, transactional_id="rowtide-0")
    sink = sink_of(producer)
    sink.open()
    sink.send([batch(0)])
    brokers.fate = holding(EndTxn)
    thread, _ = in_thread(lambda: sink.commit(OFFSET))
    until(lambda: sent(brokers, EndTxn))
    sink.interrupt()
    thread.join(PATIENCE)
    with pytest.raises(ProducerFailed, match=r"may have succeeded.*a restart resumes from the stored offset"):
        producer.abort_transaction(0.1)
    assert not any(isinstance(one.request, EndTxn) and not one.request.commit for one in brokers.outgoing)


@pytest.mark.parametrize("call", ["begin_transaction", "commit_transaction"])
def test_a_call_at_the_wrong_time_fails_with_an_error_of_delivery(make: Make, kafka: SimulatedKafka, call: str) -> None:
    producer, _ = make(kafka, transactional_id="rowtide-0", fate=holding(InitProducerId))
    with pytest.raises(ProducerFailed, match="state NEW"):
        getattr(producer, call)()
    with pytest.raises(ProducerFailed, match="state NEW"):
        producer.send([batch(0, partition=0)])


# ---- whatever the brokers do

FATES = st.lists(st.sampled_from([Fate.ANSWERED, Fate.ANSWERED, Fate.LOST, Fate.ANSWER_LOST]), max_size=60)
CODES = st.lists(
    st.sampled_from(
        [
            0,
            0,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
    ),
    max_size=20,
)
SENT = st.lists(
    st.tuples(
        st.sampled_from(["orders", "items"]),
        st.integers(-1, 2),
        st.lists(st.sampled_from([None, b"a", b"b", b"c"]), min_size=1, max_size=12),
        st.sampled_from(["send", "send", "serve", "drain"]),
    ),
    max_size=12,
)


def faulty(version: int, codes: Sequence[int], largest: int) -> SimulatedKafka:
    left = list(codes)
    kafka = cluster(orders=3, items=3, offsets=1)
    kafka.version = version
    kafka.largest = largest
    kafka.produce_error = lambda _: left.pop() if left else 0
    return kafka


@settings(max_examples=EXAMPLES)
@hypothesis.given(
    given=SENT, fates=FATES, codes=CODES, size=st.sampled_from([120, 400, 100_000]), most=st.sampled_from([5, 1000])
)
def test_every_message_is_stored_once_and_in_order(
    given: list[tuple[str, int, list[bytes | None], str]],
    fates: list[Fate],
    codes: list[int],
    size: int,
    most: int,
) -> None:
    kafka = faulty(1, codes, 1000)
    producer, _ = made_producer(kafka, fates=fates, batch_size=size, queue_buffering_max_messages=most, linger_ms=1)
    sink = IdempotentSink(producer, InMemoryOffsetStore())
    expected: dict[tuple[str, int, bytes | None], list[int]] = defaultdict(list)
    count = itertools.count()
    try:
        for topic, partition, keys, then in given:
            made: list[Message] = [(key, b"%d" % next(count), ()) for key in keys]
            sink.send([Batch(topic, partition, made, OFFSET, 1, 0)])
            for key, value, _ in made:
                expected[topic, partition, key].append(int(value or b""))
            if then == "serve":
                sink.poll()
            elif then == "drain":
                assert sink.commit(OFFSET, PATIENCE)
        assert sink.commit(OFFSET, PATIENCE)
    finally:
        sink.close()
    logs = {(topic, number): stored(kafka, topic, number) for topic in ("orders", "items") for number in range(3)}
    assert sorted(record for log in logs.values() for record in log) == list(range(next(count)))
    for (topic, partition, key), records in expected.items():
        if partition >= 0:
            assert set(records) <= set(logs[topic, partition])
        for (name, _), log in logs.items():
            mine = [record for record in log if name == topic and record in records]
            assert mine == sorted(mine)
            assert key is None or partition >= 0 or mine in ([], records), "a key has one partition"
    assert producer.waiting == producer._held == 0


@settings(max_examples=EXAMPLES)
@hypothesis.given(
    version=st.sampled_from([1, 2]),
    counts=st.lists(st.integers(1, 20), min_size=1, max_size=8),
    fates=FATES,
    codes=st.lists(
        st.sampled_from([0, 0, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.TRANSACTION_ABORTABLE]), max_size=12
    ),
    largest=st.sampled_from([3, 1000]),
)
def test_every_message_is_committed_once_and_in_order(
    version: int, counts: list[int], fates: list[Fate], codes: list[int], largest: int
) -> None:
    kafka = faulty(version, codes, 1000)
    kafka.largest = largest
    producer, _ = made_producer(kafka, fates=fates, transactional_id="rowtide-0", linger_ms=1)
    sink = sink_of(producer)
    first = 0
    try:
        sink.open()
        for count in counts:
            while True:
                try:
                    sink.send([batch(*range(first, first + count), partition=0)])
                    assert sink.commit(SourceOffset("b", first + count))
                    break
                except TransactionAborted:
                    sink.rollback()
            first += count
    except ProducerFailed:  # as a connector: it starts again from the stored offset
        sink.close()
        producer, _ = made_producer(kafka, transactional_id="rowtide-0")
        sink = sink_of(producer)
        sink.open()
        done = committed(kafka, "offsets")
        first = done[-1] if done else 0
        assert committed(kafka) == list(range(first))
        if first < sum(counts):
            sink.send([batch(*range(first, sum(counts)), partition=0)])
            assert sink.commit(SourceOffset("b", sum(counts)))
    finally:
        sink.close()
    assert committed(kafka) == list(range(sum(counts)))
    assert committed(kafka, "offsets")[-1] == sum(counts)
