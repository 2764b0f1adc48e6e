"""Delivery to a real Kafka in both modes: no loss and no duplicates with restarts, fencing and rejections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import ProducerFailed, ProducerFenced, RecordRejected
from rowtide.connector.delivery.event_store import EventStore, StoreClosed
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.sink import Sink
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.admin.topic_admin import MissingTopics
from rowtide.topics.internal import offsets_settings
from rowtide.topics.settings import TopicCreation, TopicSettings
from tests.support.kafka.topic_tools import Topics, partition_for

if TYPE_CHECKING:
    from rowtide_stack import Kafka

pytestmark = pytest.mark.servers

HEADERS = (("__debezium.context.connectorName", b"mysql"), ("empty", b""), ("null", None))
PATIENCE = 120.0
EXACTLY_ONCE = ["exactly once", "exactly once, native"]
MODES = ["at least once", "at least once, native", *EXACTLY_ONCE]
KILLED = {("at least once", "kill"), ("exactly once, native", "kill")}
"""The other ways of a restart take too long for every run."""
Run = Callable[..., "Running"]


class Running:
    """A delivery with its own store and topics."""

    def __init__(
        self,
        bootstrap: str,
        mode: str,
        *,
        topic: str,
        offsets: str,
        policy: CommitPolicy | None = None,
        **settings: Any,
    ) -> None:
        self.topics = Topics(bootstrap)
        self.topic = topic
        self.transactional = mode.startswith("exactly once")
        kind = ProducerKind.NATIVE if mode.endswith("native") else ProducerKind.LIBRDKAFKA
        client = {**self.topics.client, **settings}
        self.offsets = KafkaOffsetStore(
            offsets, topic, "p", producer=self.topics.client, consumer=self.topics.client, admin=self.topics.client
        )
        self.store = EventStore(max_events=500)
        if self.transactional:
            made = transactional_settings(client, topic)
            producer = new_producer(kind, made, quiet=self.store.quiet, show_keys=True)
            self.sink: Sink = TransactionalSink(producer, self.offsets)
        else:
            producer = new_producer(kind, idempotent_settings(client), quiet=self.store.quiet, show_keys=True)
            self.sink = IdempotentSink(producer, self.offsets)
        self.sink.open()
        rules = TopicCreation(default=TopicSettings(1, 1))
        self.delivery = Delivery(
            self.store,
            self.sink,
            policy or CommitPolicy(interval_s=0.5),
            ensure_topics=MissingTopics(self.topics.admin, rules),
        )
        self.delivery.start()

    def put(self, first: int, last: int) -> None:
        """Messages with the numbers first to last, and as offset of each the number of the next."""
        for number in range(first, last, 10):
            messages = [(b"k%d" % n, b"%d" % n, HEADERS) for n in range(number, min(number + 10, last))]
            offset = SourceOffset("binlog.000001", number + len(messages))
            self.store.put([Batch(self.topic, -1, messages, offset, 20 * len(messages), number)])

    def seen(self) -> list[int]:
        """The numbers that a consumer sees."""
        return [int(record.value or b"") for record in self.topics.read(self.topic)]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def running(bootstrap: str) -> Iterator[Run]:
    """Starts deliveries, and stops those that the test did not stop."""
    made: list[Running] = []
    topics = Topics(bootstrap)

    def run(mode: str, before: Running | None = None, **settings: Any) -> Running:
        topic = before.topic if before else topics.name()
        offsets = f"{topic}-offsets"
        topics.admin.ensure(offsets, offsets_settings(3, 1))
        made.append(Running(bootstrap, mode, topic=topic, offsets=offsets, **settings))
        return made[-1]

    yield run
    for each in made:
        each.delivery.stop(0)


@pytest.fixture
def run(kafka: Kafka) -> Iterator[Run]:
    with running(kafka.bootstrap) as start:
        yield start


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Kafka]:
    """A separate broker, for tests that kill it."""
    from rowtide_stack import Kafka

    with Kafka() as server:
        yield server


@pytest.fixture
def broker(own_broker: Kafka) -> Kafka:
    """A broker that runs, also after a test that has failed."""
    own_broker.resume()
    return own_broker.start()


def test_messages_arrive_in_order_with_headers_and_then_the_offset(run: Run, mode: str) -> None:
    one = run(mode)
    one.put(0, 2000)
    assert one.delivery.stop(PATIENCE)
    assert one.seen() == list(range(2000))
    record = one.topics.read(one.topic)[7]
    assert (record.key, record.headers) == (b"k7", HEADERS)
    assert one.offsets.load() == SourceOffset("binlog.000001", 2000)
    counters = one.delivery.counters()
    assert (counters.messages, counters.rollbacks) == (2000, 0)
    assert counters.offset == SourceOffset("binlog.000001", 2000)


def test_offsets_are_stored_during_delivery(run: Run, mode: str) -> None:
    one = run(mode)
    one.put(0, 100)
    end = time.monotonic() + PATIENCE
    while one.offsets.load() != SourceOffset("binlog.000001", 100):
        assert time.monotonic() < end
    assert one.seen() == list(range(100))
    assert one.delivery.counters().commits >= 1


def test_keys_determine_the_partition_as_in_java_unless_the_batch_does(run: Run, mode: str) -> None:
    one = run(mode)
    one.topics.admin.ensure(one.topic, TopicSettings(7, 1))
    keys = [b"k%d" % n for n in range(40)]
    offset = SourceOffset("binlog.000001", 4)
    one.store.put([Batch(one.topic, -1, [(key, b"by key", HEADERS) for key in keys], offset, 100, 0)])
    one.store.put([Batch(one.topic, 5, [(key, None, HEADERS) for key in keys], offset, 100, 0)])
    assert one.delivery.stop(PATIENCE)
    for record in one.topics.read(one.topic):
        assert record.key is not None
        assert record.partition == (5 if record.value is None else partition_for(record.key, 7))


def test_a_message_that_is_too_large_stops_delivery_with_a_remedy(run: Run, mode: str) -> None:
    one = run(mode)
    one.topics.admin.ensure(one.topic, TopicSettings(1, 1, {"max.message.bytes": "20000"}))
    one.put(0, 100)
    offset = SourceOffset("binlog.000001", 101)
    one.store.put([Batch(one.topic, -1, [(b'{"id":7}', bytes(50_000), HEADERS)], offset, 50_008, 0)])
    assert one.delivery.stop(PATIENCE) is False
    failure = one.delivery.failure
    assert isinstance(failure, RecordRejected)
    for part in (repr(one.topic), '{"id": 7}', "50008 bytes", "producer.override.max.request.size"):
        assert part in str(failure)
    stored = one.offsets.load()
    assert stored is None or stored.pos <= 100
    if one.transactional:
        assert one.seen() == list(range(stored.pos if stored else 0))


def test_a_message_larger_than_the_client_allows_is_refused_the_same_way(run: Run, mode: str) -> None:
    one = run(mode, **{"message.max.bytes": 2000})
    one.store.put([Batch(one.topic, -1, [(None, bytes(3000), HEADERS)], SourceOffset("b", 1), 3000, 0)])
    assert one.delivery.stop(PATIENCE) is False
    assert isinstance(one.delivery.failure, RecordRejected)
    assert "key none, 3000 bytes" in str(one.delivery.failure)
    assert one.offsets.load() is None


def test_a_topic_that_nobody_creates_is_named(run: Run, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MissingTopics, "__call__", lambda _self, _topics: None)
    one = run(mode, **{"topic.metadata.propagation.max.ms": 500})
    one.put(0, 10)
    assert one.delivery.stop(PATIENCE) is False
    assert isinstance(one.delivery.failure, RecordRejected)
    assert repr(one.topic) in str(one.delivery.failure)
    assert one.offsets.load() is None


@pytest.mark.parametrize("mode", EXACTLY_ONCE)
def test_a_second_instance_fences_the_first(run: Run, mode: str) -> None:
    first = run(mode, policy=CommitPolicy(interval_s=3600, by_poll=False))
    first.put(0, 50)
    end = time.monotonic() + PATIENCE
    while first.delivery.counters().messages < 50:
        assert time.monotonic() < end
    second = run(mode, first)
    assert second.offsets.load() is None, "what the first had open is aborted"
    second.put(0, 30)
    assert second.delivery.stop(PATIENCE)
    with pytest.raises(StoreClosed) as caught:
        put_until_closed(first)
    assert isinstance(caught.value.__cause__, ProducerFenced)
    assert first.delivery.stop(PATIENCE) is False
    assert first.topic in str(first.delivery.failure)
    assert second.seen() == list(range(30))
    assert second.offsets.load() == SourceOffset("binlog.000001", 30)


def put_until_closed(one: Running) -> None:
    end = time.monotonic() + PATIENCE
    number = 50
    while time.monotonic() < end:
        one.put(number, number + 10)
        one.store.close() if one.delivery.failure else None
        number += 10
        time.sleep(0.02)


@pytest.mark.parametrize("by_poll", [True, False], ids=["poll", "interval"])
@pytest.mark.parametrize("mode", EXACTLY_ONCE)
def test_each_transaction_holds_records_and_their_offset(run: Run, by_poll: bool, mode: str) -> None:
    """A consumer of committed records never sees an offset before its records, or records before their offset."""
    one = run(mode, policy=CommitPolicy(interval_s=0.1, by_poll=by_poll))
    fed = 0

    def feed_until_several_commits() -> None:
        nonlocal fed
        while fed < 5000 or (one.delivery.counters().commits <= 5 and one.delivery.failure is None):
            one.put(fed, fed + 50)
            fed += 50
            time.sleep(0.01)

    feeding = threading.Thread(target=feed_until_several_commits)
    feeding.start()
    while feeding.is_alive():
        before = one.offsets.load()
        count = len(one.seen())
        after = one.offsets.load()
        assert (before.pos if before else 0) <= count <= (after.pos if after else 0)
    feeding.join()
    assert one.delivery.stop(PATIENCE)
    assert one.seen() == list(range(fed))
    assert one.delivery.counters().commits > 5


def interrupt_twice(broker: Kafka, how: str) -> None:
    for _ in range(2):
        time.sleep(0.4)
        if how == "pause":
            broker.pause()
            time.sleep(2)
            broker.resume()
        else:
            getattr(broker, how)()
            time.sleep(1)
            broker.start()


def delivered(one: Running, last: int) -> bool:
    """Deliver from the stored offset on; returns false if the Kafka client has ended the producer of transactions."""
    stored = one.offsets.load()
    try:
        for number in range(stored.pos if stored else 0, last, 10):
            one.put(number, number + 10)
            time.sleep(0.001)
    except StoreClosed:
        pass
    if one.delivery.stop(PATIENCE):
        return True
    assert one.transactional, one.delivery.failure
    assert isinstance(one.delivery.failure, ProducerFailed), one.delivery.failure
    return False


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        pytest.param(mode, how, marks=() if (mode, how) in KILLED else pytest.mark.nightly)
        for mode in MODES
        for how in ("kill", "stop", "pause")
    ],
)
def test_nothing_is_lost_when_a_broker_restarts(broker: Kafka, mode: str, how: str) -> None:
    """The client may end a producer whose commit was not answered; a connector then starts again, and so does this."""
    with running(broker.bootstrap) as start:
        one = start(mode)
        interrupting = threading.Thread(target=interrupt_twice, args=(broker, how))
        interrupting.start()
        try:
            complete = delivered(one, 20_000)
        finally:
            interrupting.join()
        if not complete:
            one = start(mode, one)
            assert delivered(one, 20_000), one.delivery.failure
        assert one.seen() == list(range(20_000))
        assert one.offsets.load() == SourceOffset("binlog.000001", 20_000)


def test_memory_is_bounded_and_stopping_works_while_the_broker_is_down(broker: Kafka, mode: str) -> None:
    with running(broker.bootstrap) as start:
        one = start(mode, **{"queue.buffering.max.messages": 1000})
        one.put(0, 100)
        end = time.monotonic() + PATIENCE
        while one.offsets.load() != SourceOffset("binlog.000001", 100):
            assert time.monotonic() < end
        broker.kill()
        accepted = 0
        while accepted < 10_000:
            messages = [(b"k", b"v" * 100, HEADERS)] * 10
            if not one.store.put([Batch(one.topic, -1, messages, SourceOffset("b", 1), 1010, 0)], timeout=1.0):
                break
            accepted += 10
        assert accepted <= 1000 + 2 * 500 + 10
        begin = time.monotonic()
        assert one.delivery.stop(0.5) is False
        assert time.monotonic() - begin < PATIENCE
        broker.start()
        assert one.offsets.load() == SourceOffset("binlog.000001", 100)


def test_after_a_crash_a_new_instance_resumes_without_loss(run: Run, mode: str) -> None:
    """The first instance is abandoned in the middle, as by kill -9; the second one starts at the stored offset."""
    first = run(mode, policy=CommitPolicy(interval_s=0.2))
    feeding = threading.Thread(target=lambda: feed(first), daemon=True)
    feeding.start()
    time.sleep(1.0)
    first.sink.interrupt()
    first.store.close()
    second = run(mode, first)
    first.delivery.stop(0)
    stored = second.offsets.load()
    begin = stored.pos if stored else 0
    second.put(begin, begin + 500)
    assert second.delivery.stop(PATIENCE)
    seen = second.seen()
    assert set(range(begin + 500)) <= set(seen)
    if second.transactional:
        assert seen == list(range(begin + 500))


def feed(one: Running) -> None:
    try:
        for number in range(0, 1_000_000, 10):
            one.put(number, number + 10)
            time.sleep(0.002)
    except StoreClosed:
        pass
