"""The two Kafka sinks with a scripted client: order of calls, waiting, all kinds of failures."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from rowtide.connector.delivery.errors import (
    BrokerUnavailable,
    DeliveryError,
    DeliveryInterrupted,
    ProducerFailed,
    ProducerFenced,
    RecordRejected,
    TransactionAborted,
    TransactionExpired,
)
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore, OffsetRecord
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset

K = KafkaError
OFFSET = SourceOffset("binlog.000001", 4)
HEADERS = (("h", b"1"),)


def kafka_error(code: int, *, fatal: bool = False, retriable: bool = False, abort: bool = False) -> KafkaError:
    return KafkaError(code, "broker says so", fatal, retriable, abort)


class Client:
    """A fake ``confluent_kafka.Producer``; by default it acknowledges messages at the second poll.

    With ``lingering``, batches are incomplete: only ``flush`` sends them.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.calls: list[str] = []
        self.queue: deque[tuple[Any, ...]] = deque()
        self.acknowledged: list[tuple[Any, ...]] = []
        self.room = 1000
        self.answering = True
        self.refuse: dict[bytes, KafkaError] = {}
        self.failures: dict[str, list[KafkaError]] = {}
        self.purged = False
        self.flushes = 0
        self.lingering = False

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.failures.get(name):
            raise KafkaException(self.failures[name].pop(0))

    def produce(self, *args: Any) -> None:
        if len(self.queue) >= self.room:
            raise BufferError("Local: Queue full")
        if self.failures.get("produce"):
            raise KafkaException(self.failures["produce"].pop(0))
        self.queue.append(args)

    def poll(self, timeout: float) -> int:
        assert timeout == 0, "waiting in poll would take the global lock for every report"
        return 0 if self.lingering else self._serve()

    def _serve(self) -> int:
        if self.failures.get("poll"):
            raise KafkaException(self.failures["poll"].pop(0))
        if not self.answering:
            return 0
        served = len(self.queue)
        while self.queue:
            message = self.queue.popleft()
            refused = self.refuse.get(message[1] or b"")
            if refused is None:
                self.acknowledged.append(message)
            else:
                message[4](refused, Report(*message[:3]))
        return served

    def flush(self, timeout: float) -> int:
        assert timeout <= 0.001, "flush serves reports while it waits"
        self.flushes += 1
        self._serve()
        return len(self.queue)

    def purge(self) -> None:
        self.purged = True
        self.queue.clear()

    def init_transactions(self, timeout: float) -> None:
        self._call("init")

    def begin_transaction(self) -> None:
        self._call("begin")

    def commit_transaction(self, timeout: float) -> None:
        assert not self.queue, "everything is acknowledged before a commit"
        self._call("commit")

    def abort_transaction(self, timeout: float) -> None:
        self.queue.clear()
        self._call("abort")

    def __len__(self) -> int:
        return len(self.queue)


class Report:
    def __init__(self, topic: str, value: bytes | None, key: bytes | None) -> None:
        self._fields = topic, value, key

    def topic(self) -> str:
        return self._fields[0]

    def value(self) -> bytes | None:
        return self._fields[1]

    def key(self) -> bytes | None:
        return self._fields[2]


class TopicOffsets(InMemoryOffsetStore):
    def record(self, offset: SourceOffset | None) -> OffsetRecord:  # type: ignore[override]
        return OffsetRecord("offsets", b"key", None if offset is None else offset.to_json().encode())


def producer(**settings: Any) -> tuple[RecordProducer, Client]:
    made = RecordProducer(settings, new_client=Client)
    assert isinstance(made.client, Client)
    return made, made.client


def batch(*values: bytes, partition: int = -1) -> Batch:
    messages: list[Message] = [(b"k", value, HEADERS) for value in values]
    return Batch("shop.t", partition, messages, OFFSET, 10, 0)


def all_of(steps: Iterable[Callable[[], object]]) -> None:
    for step in steps:
        step()


def transactional(**settings: Any) -> tuple[TransactionalSink, Client]:
    made, client = producer(**{"transactional.id": "rowtide-shop-0", **settings})
    return TransactionalSink(made, TopicOffsets()), client


def values(client: Client) -> list[bytes | None]:
    return [message[1] for message in client.acknowledged]


def test_messages_arrive_unchanged() -> None:
    made, client = producer()
    made.send([batch(b"1", b"2", partition=3)])
    topic, value, key, partition, _report, _none, timestamp, headers = client.queue[0]
    assert (topic, value, key, partition, timestamp) == ("shop.t", b"1", b"k", 3, 0)
    assert headers == [("h", b"1")]
    assert client.queue[1][7] is headers


def test_only_failures_are_reported() -> None:
    _, client = producer(**{"batch.size": 7})
    assert client.settings["delivery.report.only.error"] is True
    assert client.settings["batch.size"] == 7


def test_incomplete_batches_are_sent_when_nothing_follows() -> None:
    now = 1000.0
    made = RecordProducer({"linger.ms": 60_000}, new_client=Client, clock=lambda: now)
    client = made.client
    assert isinstance(client, Client)
    sink = IdempotentSink(made, InMemoryOffsetStore())
    client.answering = False
    sink.send([batch(b"1")])
    sink.poll()
    assert client.flushes == 0, "the first ten milliseconds"
    now += 0.011
    sink.poll()
    assert client.flushes == 1
    sink.poll()
    assert client.flushes == 1, "requests are not sent more often"
    assert made.drain(0) is False
    assert client.flushes == 2, "a commit does not wait"


def test_messages_whose_partition_enters_the_transaction_after_the_first_flush_are_sent_at_once() -> None:
    class Registering(Client):
        def _serve(self) -> int:
            return super()._serve() if self.flushes > 2 else 0

    times = iter(range(1_000_000, 2_000_000))  # milliseconds
    made = RecordProducer({}, new_client=Registering, clock=lambda: next(times) / 1000)
    assert isinstance(made.client, Registering)
    made.client.lingering = True
    made.send([batch(b"1")])
    begin = next(times)
    assert made.drain()
    assert next(times) - begin < 20, "the next regular flush comes 10 ms behind the first one, and the third 20"


def test_many_messages_in_flight_are_not_flushed_as_often() -> None:
    now = 1000.0
    made = RecordProducer({"linger.ms": 50}, new_client=Client, clock=lambda: now)
    assert isinstance(made.client, Client)
    made.client.answering = False
    made.send([batch(*[b"1"] * 1000)])
    now += 0.04
    made.serve(idle=True)
    assert made.client.flushes == 0
    now += 0.02
    made.serve(idle=True)
    assert made.client.flushes == 1


def test_without_messages_nothing_is_flushed() -> None:
    made, client = producer(**{"linger.ms": 0})
    made.serve(idle=True)
    made.drain()
    assert client.flushes == 0


def test_incomplete_batches_are_sent_regularly_while_others_follow() -> None:
    made, client = producer(**{"linger.ms": 0})
    client.lingering = True
    made.send([batch(b"1")])
    assert values(client) == [b"1"]
    made.send([batch(b"2")])
    assert values(client) == [b"1", b"2"]


def test_while_the_queue_is_full_incomplete_batches_are_sent() -> None:
    made, client = producer(**{"linger.ms": 0})
    client.room, client.lingering = 1, True
    made.send([batch(b"1", b"2")])
    assert values(client) == [b"1", b"2"]


def test_sending_waits_while_the_queue_is_full() -> None:
    made, client = producer()
    client.room = 2
    made.send([batch(*(b"%d" % n for n in range(10)))])
    made.drain()
    assert values(client) == [b"%d" % n for n in range(10)]


def test_a_message_for_which_an_empty_queue_has_no_room_is_refused() -> None:
    made, client = producer()
    client.room = 2
    made.send([batch(b"1", b"2", b"3")])
    client.room = 0
    with pytest.raises(RecordRejected, match=r"producer\.override\.buffer\.memory"):
        made.send([batch(b"4")])


def test_waiting_for_room_can_be_interrupted() -> None:
    made, client = producer()
    client.room, client.answering = 2, False
    threading.Timer(0.02, made.interrupt).start()
    with pytest.raises(DeliveryInterrupted, match="no space"):
        made.send([batch(b"1", b"2", b"3")])
    assert len(client.queue) == 2


def test_draining_stops_at_its_timeout_and_can_be_repeated() -> None:
    made, client = producer()
    client.answering = False
    made.send([batch(b"1")])
    assert made.drain(0.01) is False
    client.answering = True
    assert made.drain(0.01) is True


def test_reports_are_processed_while_the_reader_is_paused() -> None:
    held: list[str] = []

    @contextmanager
    def quiet() -> Iterator[None]:
        held.append("in")
        yield
        held.append("out")

    made = RecordProducer({"linger.ms": 0}, quiet=quiet, new_client=Client)
    made.serve()
    assert held == ["in", "out"]
    assert isinstance(made.client, Client)
    made.client.lingering = True
    made.send([batch(b"1")])
    assert values(made.client) == [b"1"]
    assert held == ["in", "out"] * 3, "the first for poll, the second for flush"


def test_a_rejected_message_is_raised_with_its_size() -> None:
    made, client = producer()
    client.refuse[b"large"] = kafka_error(K.MSG_SIZE_TOO_LARGE)
    made.send([batch(b"small", b"large", b"small")])
    with pytest.raises(RecordRejected, match=r"topic 'shop\.t'.* 6 bytes"):
        made.drain()


def test_of_a_rejected_batch_the_largest_message_is_named() -> None:
    made, client = producer()
    for value in (b"1", b"55555", b"333"):
        client.refuse[value] = kafka_error(K.MSG_SIZE_TOO_LARGE)
    made.send([batch(b"1", b"55555", b"333")])
    with pytest.raises(RecordRejected, match="6 bytes"):
        made.drain()


def test_a_message_rejected_immediately_is_raised_too() -> None:
    made, client = producer()
    client.failures["produce"] = [kafka_error(K.MSG_SIZE_TOO_LARGE)]
    with pytest.raises(RecordRejected, match=r"max\.request\.size"):
        made.send([batch(b"x")])


def test_unknown_client_settings_are_an_error() -> None:
    with pytest.raises(DeliveryError, match=r"no\.such\.setting"):
        RecordProducer({"no.such.setting": "1", "bootstrap.servers": "127.0.0.1:1"})


def test_a_fatal_error_without_a_message_is_raised_too() -> None:
    made, client = producer()
    client.settings["error_cb"](kafka_error(K._TRANSPORT))
    made.check()
    client.settings["error_cb"](kafka_error(K._FATAL, fatal=True))
    with pytest.raises(ProducerFailed):
        made.serve()


def test_a_fatal_error_raised_by_poll_is_translated() -> None:
    """confluent_kafka raises once after a fatal error of librdkafka."""
    made, client = producer(**{"transactional.id": "rowtide-shop-0"})
    client.failures["poll"] = [kafka_error(K._FENCED, fatal=True)]
    with pytest.raises(ProducerFenced, match="rowtide-shop-0"):
        made.serve()
    with pytest.raises(ProducerFenced):
        made.serve()
    made.close()


def test_at_least_once_the_offset_follows_the_last_acknowledgement() -> None:
    made, client = producer()
    sink = IdempotentSink(made, TopicOffsets())
    client.answering = False
    sink.send([batch(b"1")])
    assert sink.commit(OFFSET, 0.01) is False
    assert [message[0] for message in client.queue] == ["shop.t"]
    client.answering = True
    assert sink.commit(OFFSET, 1.0) is True
    assert [message[0] for message in client.acknowledged] == ["shop.t", "offsets"]
    assert client.acknowledged[1][1:4] == (OFFSET.to_json().encode(), b"key", -1)


def test_at_least_once_an_offset_may_be_stored_elsewhere() -> None:
    made, client = producer()
    offsets = InMemoryOffsetStore()
    sink = IdempotentSink(made, offsets)
    sink.send([batch(b"1")])
    assert sink.commit(OFFSET) is True
    assert offsets.load() == OFFSET
    assert values(client) == [b"1"]


def test_at_least_once_no_offset_is_stored_behind_a_rejected_message() -> None:
    made, client = producer()
    offsets = InMemoryOffsetStore()
    client.refuse[b"1"] = kafka_error(K.TOPIC_AUTHORIZATION_FAILED)
    sink = IdempotentSink(made, offsets)
    sink.send([batch(b"1")])
    with pytest.raises(RecordRejected):
        sink.commit(OFFSET)
    assert offsets.load() is None


def test_exactly_once_records_and_offset_are_one_transaction() -> None:
    sink, client = transactional()
    sink.open()
    sink.send([batch(b"1")])
    sink.send([batch(b"2")])
    assert sink.commit(OFFSET)
    sink.send([batch(b"3")])
    assert sink.commit(OFFSET)
    assert client.calls == ["init", "begin", "commit", "begin", "commit"]
    assert values(client) == [b"1", b"2", OFFSET.to_json().encode(), b"3", OFFSET.to_json().encode()]


def test_exactly_once_an_offset_alone_is_a_transaction_too() -> None:
    sink, client = transactional()
    assert sink.commit(OFFSET)
    assert client.calls == ["begin", "commit"]


def test_exactly_once_a_commit_is_retried_while_it_may_succeed() -> None:
    sink, client = transactional()
    client.failures["commit"] = [
        kafka_error(K._TIMED_OUT, retriable=True),
        kafka_error(K.NOT_COORDINATOR, retriable=True),
    ]
    assert sink.commit(OFFSET)
    assert client.calls == ["begin", "commit", "commit", "commit"]


def test_exactly_once_an_aborted_transaction_can_be_sent_again() -> None:
    sink, client = transactional()
    client.failures["commit"] = [kafka_error(K._MSG_TIMED_OUT, abort=True)]
    client.failures["abort"] = [kafka_error(K._TIMED_OUT, retriable=True)]
    sink.send([batch(b"1")])
    with pytest.raises(TransactionAborted):
        sink.commit(OFFSET)
    sink.rollback()
    sink.send([batch(b"1")])
    assert sink.commit(OFFSET)
    assert client.calls == ["begin", "commit", "abort", "abort", "begin", "commit"]


def test_exactly_once_an_expired_message_aborts_once() -> None:
    sink, client = transactional()
    client.refuse[b"1"] = kafka_error(K._MSG_TIMED_OUT)
    sink.send([batch(b"1")])
    with pytest.raises(TransactionAborted):
        sink.commit(OFFSET)
    client.refuse.clear()
    sink.rollback()
    sink.send([batch(b"1")])
    assert sink.commit(OFFSET)


@pytest.mark.parametrize("where", ["commit", "abort", "poll"])
@pytest.mark.parametrize(("slept", "kind"), [(9.0, ProducerFenced), (11.0, TransactionExpired)])
def test_exactly_once_a_process_that_slept_too_long_is_not_a_second_instance(
    where: str, slept: float, kind: type[DeliveryError]
) -> None:
    """Kafka fences the producer of a transaction that is open for longer than ``transaction.timeout.ms``."""
    now = 1000.0
    made, client = producer(**{"transactional.id": "rowtide-shop-0", "transaction.timeout.ms": 10_000})
    sink = TransactionalSink(made, TopicOffsets(), clock=lambda: now)
    sink.open()
    sink.send([batch(b"1")])
    now += slept
    client.failures[where] = [kafka_error(K._FENCED, fatal=True)]
    with pytest.raises(DeliveryError) as caught:
        sink.rollback() if where == "abort" else sink.commit(OFFSET)
    assert type(caught.value) is kind
    assert caught.value.restartable is (kind is TransactionExpired)


@pytest.mark.parametrize("where", ["init", "begin", "commit", "abort"])
def test_exactly_once_a_fenced_instance_stops(where: str) -> None:
    sink, client = transactional()
    client.failures[where] = [kafka_error(K._FENCED, fatal=True)]
    steps: list[Callable[[], object]] = [sink.open, lambda: sink.send([batch(b"1")])]
    steps.append(sink.rollback if where == "abort" else lambda: sink.commit(OFFSET))
    with pytest.raises(ProducerFenced, match="rowtide-shop-0"):
        all_of(steps)


def test_exactly_once_opening_waits_for_the_coordinator_up_to_a_timeout() -> None:
    sink, client = transactional()
    client.failures["init"] = [kafka_error(K._TIMED_OUT, retriable=True)]
    sink.open()
    assert client.calls == ["init", "init"]
    made, client = producer(**{"transactional.id": "x"})
    client.failures["init"] = [kafka_error(K._TRANSPORT, retriable=True)] * 3
    with pytest.raises(BrokerUnavailable, match=r"bootstrap\.servers"):
        TransactionalSink(made, TopicOffsets(), open_timeout=0.0).open()


def test_exactly_once_rolling_back_nothing_is_allowed() -> None:
    sink, client = transactional()
    sink.rollback()
    assert client.calls == []


def test_exactly_once_closing_aborts_the_open_transaction() -> None:
    sink, client = transactional()
    sink.send([batch(b"1")])
    sink.close()
    assert client.calls == ["begin", "abort"]
    assert client.purged


def test_exactly_once_closing_never_fails() -> None:
    sink, client = transactional()
    client.failures["abort"] = [kafka_error(K._FENCED, fatal=True)]
    sink.send([batch(b"1")])
    sink.close()
    assert client.purged


@pytest.mark.parametrize("exactly_once", [False, True])
def test_the_clients_error_is_a_problem_until_the_next_commit(exactly_once: bool) -> None:
    sink: TransactionalSink | IdempotentSink
    if exactly_once:
        sink, client = transactional()
    else:
        made, client = producer()
        sink = IdempotentSink(made, TopicOffsets())
    sink.open()
    assert sink.problem is None
    client.settings["error_cb"](kafka_error(K._TRANSPORT))
    sink.send([batch(b"1")])
    assert sink.problem == "broker says so"
    assert sink.commit(OFFSET)
    assert sink.problem is None


def test_a_call_that_is_repeated_says_why() -> None:
    sink, client = transactional()
    seen: list[str | None] = []

    def init(_timeout: float) -> None:
        if not seen:
            seen.append(sink.problem)
            raise KafkaException(kafka_error(K._TIMED_OUT, retriable=True))
        seen.append(sink.problem)

    client.init_transactions = init  # type: ignore[method-assign]
    sink.open()
    assert seen == [None, "cannot start transactions: broker says so"]


def test_the_error_of_one_broker_says_more_than_that_all_are_down() -> None:
    made, client = producer()
    client.settings["error_cb"](KafkaError(K._ALL_BROKERS_DOWN, "1/1 brokers are down", False, True, False))
    assert made.problem == "1/1 brokers are down"
    client.settings["error_cb"](KafkaError(K._TRANSPORT, "kafka:9092: Connection refused", False, True, False))
    client.settings["error_cb"](KafkaError(K._ALL_BROKERS_DOWN, "1/1 brokers are down", False, True, False))
    assert made.problem == "kafka:9092: Connection refused"
