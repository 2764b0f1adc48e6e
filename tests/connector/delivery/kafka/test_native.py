"""The native producer below the sinks: transactions with offsets, and errors of delivery."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import settings

from rowtide.connector.delivery.errors import (
    AccessDenied,
    BrokerUnavailable,
    DeliveryError,
    DeliveryInterrupted,
    ProducerFailed,
    ProducerFenced,
    RecordRejected,
    TopicMissing,
    TopicReplaced,
    TransactionAborted,
)
from rowtide.connector.delivery.kafka import sink as sink_module
from rowtide.connector.delivery.kafka.native import NativeProducer, delivery_error
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore, OffsetRecord
from rowtide.connector.kafka_producer import errors
from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed
from rowtide.connector.kafka_producer.machine.messages import (
    AddPartitionsToTxn,
    EndTxn,
    GetMetadata,
    InitProducerId,
    Produce,
)
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset
from tests.support.kafka.simulated_brokers import (
    PATIENCE,
    Fate,
    SimulatedBrokers,
    cluster,
    committed,
    holding,
    in_thread,
    made_producer,
    sent,
    stored,
    until,
)
from tests.support.kafka.simulated_kafka import SimulatedKafka

EXAMPLES = int(os.environ.get("ROWTIDE_CAMPAIGN", "1")) * 25
OFFSET = SourceOffset("binlog.000001", 4)
Make = Callable[..., tuple[NativeProducer, SimulatedBrokers]]


def native_producer(kafka: SimulatedKafka, **more: Any) -> tuple[NativeProducer, SimulatedBrokers]:
    producer, brokers = made_producer(kafka, **more)
    return NativeProducer(producer), brokers


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes producers, and closes them."""
    made: list[NativeProducer] = []

    def new(kafka: SimulatedKafka | None = None, **more: Any) -> tuple[NativeProducer, SimulatedBrokers]:
        producer, brokers = native_producer(kafka or cluster(), **more)
        made.append(producer)
        return producer, brokers

    yield new
    for producer in made:
        producer.close()


def batch(*values: int, topic: str = "orders", partition: int = -1, key: bytes | None = b"k") -> Batch:
    messages: list[Message] = [(key, b"%d" % value, ()) for value in values]
    return Batch(topic, partition, messages, OFFSET, 10, 0)


# ---- errors

ERRORS: list[tuple[errors.KafkaProducerError, type[DeliveryError], str]] = [
    (
        errors.RecordRejected("t", b'{"payload":{"id":1}}', 9, errors.Rejection.TOO_LARGE, "too large"),
        RecordRejected,
        r"'t', with a key .*, 9 bytes: too large\. Allow larger messages",
    ),
    (errors.TopicMissing("t"), TopicMissing, "topic 't' does not exist. The topic was deleted, or"),
    (errors.TopicRejected("no name"), RecordRejected, "no name"),
    (errors.TopicReplaced("t", "was deleted"), TopicReplaced, "topic 't' was deleted while the connector ran"),
    (errors.AccessDenied("denied"), AccessDenied, "denied. Check the credentials.*transactional id 'shop'"),
    (errors.ProducerFenced("fenced"), ProducerFenced, "fenced. Another instance .* transactional.id 'shop'"),
    (errors.BrokerNotSupported("too old"), DeliveryError, "too old. Set rowtide.producer=librdkafka"),
    (errors.ProducerFailed("failed"), ProducerFailed, "failed. The producer can no longer be used"),
    (errors.BrokerUnavailable("away"), BrokerUnavailable, "away"),
    (errors.TransactionAborted("aborted"), TransactionAborted, "aborted"),
    (errors.ProducerInterrupted("stopped"), DeliveryInterrupted, "stopped"),
]


@pytest.mark.parametrize(("error", "kind", "text"), ERRORS, ids=lambda value: type(value).__name__)
def test_errors_of_the_producer_become_errors_of_delivery(
    error: errors.KafkaProducerError, kind: type[DeliveryError], text: str
) -> None:
    found = delivery_error(error, "shop", show_key=False)
    assert type(found) is kind
    with pytest.raises(kind, match=text):
        raise found


def test_every_error_of_the_producer_is_translated() -> None:
    assert {type(error) for error, _, _ in ERRORS} == set(errors.KafkaProducerError.__subclasses__())


def test_the_key_of_a_rejected_message_is_shown_on_request() -> None:
    error = errors.RecordRejected("t", b'{"payload":{"id":1}}', 9, errors.Rejection.INVALID, "invalid")
    assert '{"id": 1}' not in str(delivery_error(error, "", show_key=False))
    assert '{"id": 1}' in str(delivery_error(error, "", show_key=True))


def test_an_offset_record_is_sent_as_it_is(make: Make) -> None:
    kafka = cluster(offsets=1)
    producer, brokers = make(kafka)
    producer.put(OffsetRecord("offsets", b"key", b"7", (("h", b"1"),)))
    assert producer.drain(PATIENCE)
    (data,) = (batch.data for batch in brokers.produced())
    (record,) = DefaultRecordBatch(bytearray(data))
    assert (record.key, record.value, list(record.headers)) == (b"key", b"7", [("h", b"1")])


def test_a_lost_connection_is_logged_once_in_a_while(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    producer, brokers = make()
    text = "broker of-this-test:9092: the connection was lost"
    brokers.results[GetMetadata] = [ConnectionFailed(text), ConnectionFailed(text)]
    producer.send([batch(0)])
    assert producer.drain(PATIENCE)
    assert [(record.levelname, record.message) for record in caplog.records] == [("WARNING", text)]


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
    producer, _ = native_producer(kafka, fates=fates, batch_size=size, queue_buffering_max_messages=most, linger_ms=1)
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
    assert producer.waiting == producer._producer._held == 0


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
    producer, _ = native_producer(kafka, fates=fates, transactional_id="rowtide-0", linger_ms=1)
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
        producer, _ = native_producer(kafka, transactional_id="rowtide-0")
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
