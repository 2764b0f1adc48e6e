"""The delivery loop with an in-memory sink: offsets are never ahead of messages, and failures lose nothing."""

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import count
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.connector.delivery.counters import Rate
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import (
    DeliveryError,
    DeliveryInterrupted,
    ProducerFenced,
    RecordRejected,
    TransactionAborted,
)
from rowtide.connector.delivery.event_store import EventStore, StoreClosed
from rowtide.connector.records.batch import Batch, joined
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.errors import KafkaUnreachable, TopicError
from tests.support.in_memory_sink import InMemorySink

SOON = 120.0
ALWAYS = CommitPolicy(interval_s=0)
SELDOM = CommitPolicy(interval_s=3600, by_poll=False)


def offset(number: int) -> SourceOffset:
    return SourceOffset("binlog.000001", number)


def batch(number: int, events: int = 1, topic: str = "shop.a") -> Batch:
    messages = [(b"k", b"%d.%d" % (number, event), ()) for event in range(events)]
    return Batch(topic, -1, messages, offset(number), 10 * events, 1000 + number)


def values(sink: InMemorySink) -> list[bytes | None]:
    return [message[1] for _, _, message in sink.records]


def put_for_ever(store: EventStore) -> None:
    for number in count():
        store.put([batch(number)], timeout=SOON)


def expected(batches: Sequence[Batch]) -> list[bytes | None]:
    return [message[1] for each in batches for message in each.messages]


def delivered(
    sink: InMemorySink, batches: Sequence[Batch], policy: CommitPolicy = ALWAYS, store: EventStore | None = None
) -> Delivery:
    """Everything is in the store before delivery starts, so that the test is deterministic."""
    store = store or EventStore()
    store.put(batches)
    store.close()
    delivery = Delivery(store, sink, policy)
    delivery.run()
    return delivery


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("policy", [ALWAYS, SELDOM, CommitPolicy()])
def test_delivers_all_in_order_and_stores_the_last_offset(transactional: bool, policy: CommitPolicy) -> None:
    sink, batches = InMemorySink(transactional), [batch(n, n % 4) for n in range(50)]
    delivery = delivered(sink, batches, policy)
    assert delivery.failure is None
    assert values(sink) == expected(batches)
    assert sink.offsets[-1] == offset(49)
    assert sink.closed


@pytest.mark.parametrize("transactional", [False, True])
def test_an_aborted_transaction_is_sent_again(transactional: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.connector.delivery.delivery_loop._FIRST_RETRY_S", 0.001)
    sink = InMemorySink(transactional, failures=[None, TransactionAborted("broker went away"), None, None, None])
    batches = [batch(n) for n in range(3)]
    delivery = delivered(sink, batches, CommitPolicy(by_poll=True))
    assert delivery.failure is None
    if transactional:
        assert values(sink) == expected(batches)
        assert delivery.counters().rollbacks == 1


@pytest.mark.parametrize("transactional", [False, True])
def test_messages_of_one_event_for_several_topics_are_committed_together(transactional: bool) -> None:
    """However little room there is, and however often offsets are stored."""
    sink, store = InMemorySink(transactional), EventStore(max_events=1, max_bytes=1)
    pieces = [batch(1, 2, "a"), batch(1, 1, "b"), batch(1, 2, "a")]
    delivery = delivered(sink, [joined([*pieces[:1], joined(pieces[1:])])], ALWAYS, store)
    assert delivery.failure is None
    assert [topic for topic, _, _ in sink.records] == ["a", "a", "b", "a", "a"]
    assert values(sink) == expected(pieces)
    assert sink.offsets == [offset(1)]
    assert set(delivery.counters().topics) == {"a", "b"}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 5), max_size=40),
    st.lists(st.booleans(), max_size=12),
    st.booleans(),
    st.integers(1, 20),
)
def test_every_message_is_visible_once_regardless_of_aborts(
    sizes: list[int], aborts: list[bool], by_poll: bool, queue: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rowtide.connector.delivery.delivery_loop._FIRST_RETRY_S", 0.0)
        failures: list[BaseException | None] = [TransactionAborted("again") if abort else None for abort in aborts]
        sink, store = InMemorySink(True, failures=failures), EventStore(max_events=queue)
        batches = [batch(n, size) for n, size in enumerate(sizes)]
        delivery = Delivery(store, sink, CommitPolicy(interval_s=0.001, by_poll=by_poll))
        delivery.start()
        for each in batches:
            store.put([each])
        assert delivery.stop(SOON)
    assert values(sink) == expected(batches)
    assert sink.offsets[-1:] == [offset(n) for n in range(len(sizes))][-1:]
    assert sink.offsets == sorted(sink.offsets, key=lambda each: each.pos)


def test_messages_of_a_transaction_become_visible_at_its_commit() -> None:
    class Watching(InMemorySink):
        def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
            before = len(self.records)
            assert super().commit(offset, timeout)
            assert len(self.records) > before
            return True

    sink = Watching(True)
    delivered(sink, [batch(n) for n in range(20)], store=EventStore(max_events=100))
    assert len(sink.records) == 20


def test_a_batch_without_messages_advances_the_offset_without_a_transaction() -> None:
    sink, store = InMemorySink(True), EventStore()
    delivery = Delivery(store, sink, CommitPolicy(interval_s=3600))
    store.put([batch(n, 0) for n in range(30)])
    delivery._step()
    assert sink.offsets == []
    assert store.use().held_events == 0
    assert not store.get(1, 0).batches
    store.put([batch(30)])
    delivery._step()
    assert sink.offsets == [offset(30)]


@pytest.mark.parametrize(
    ("told", "problem", "half_full", "awaited", "longest"),
    [
        (True, None, False, False, 0.05),
        (False, None, False, False, 0.01),
        (True, "a broker is away", False, False, 0.01),
        (True, None, True, False, 0.01),
        (True, None, False, True, 0.001),
    ],
)
def test_unacknowledged_messages_are_looked_after_seldom_only_if_the_sink_says_when(
    told: bool, problem: str | None, half_full: bool, awaited: bool, longest: float
) -> None:
    class Unacknowledged(InMemorySink):
        calls: ClassVar[list[Callable[[], None]]] = []

        def waiting(self) -> int:
            return 1

        def call_when_due(self, call: Callable[[], None]) -> bool:
            self.calls.append(call)
            return told

    sink, store = Unacknowledged(problem=problem), EventStore(max_bytes=15 if half_full else 1000)
    delivery = Delivery(store, sink, SELDOM, on_delivered=(lambda _sequence: None) if awaited else None)
    store.put([batch(0)])
    delivery._step()
    assert delivery._longest_wait() == longest
    sink.calls.pop()()
    assert not store.get(1).batches  # it does not wait


def test_offsets_alone_are_stored_by_the_interval_and_at_the_end() -> None:
    now = [0.0]
    sink, store = InMemorySink(), EventStore()
    delivery = Delivery(store, sink, CommitPolicy(interval_s=10), clock=lambda: now[0])
    store.put([batch(1, 0)])
    delivery._step()
    now[0] = 9.9
    store.put([batch(2, 0)])
    delivery._step()
    assert sink.offsets == []
    now[0] = 10.0
    delivery._step()
    assert sink.offsets == [offset(2)]
    store.put([batch(3, 0)])
    store.close()
    delivery.run()
    assert sink.offsets[-1] == offset(3)


class Away(InMemorySink):
    """A sink that never acknowledges the last ``unanswered`` messages."""

    unanswered = 0

    def waiting(self) -> int:
        return self.unanswered


def test_without_transactions_the_store_keeps_unacknowledged_batches() -> None:
    now = [0.0]
    sink, store = Away(), EventStore(max_bytes=100)
    delivery = Delivery(store, sink, SELDOM, clock=lambda: now[0])
    sink.unanswered = 7
    store.put([batch(1, 5)])
    delivery._step()
    store.put([batch(2, 4)])
    delivery._step()
    assert len(sink.records) == 9
    assert store.use().held_events == 9
    assert store.use().oldest_ts_ms == 1001
    assert store.put([batch(3, 2)], timeout=0) == 0
    for seconds, unanswered, moved in ((10, 6, True), (50, 6, False), (60, 4, True), (70, 0, True)):
        now[0], sink.unanswered = seconds, unanswered
        assert delivery._acknowledge() is moved
    assert store.use().held_events == 0
    assert sink.offsets == []


@pytest.mark.parametrize("transactional", [False, True])
def test_the_age_of_a_change_ends_when_its_record_is_acknowledged(transactional: bool) -> None:
    now = [2.0]
    acknowledged: list[tuple[int, str, int, float]] = []
    sink, store = Away(transactional), EventStore()
    delivery = Delivery(
        store,
        sink,
        SELDOM,
        wall_clock=lambda: now[0],
        on_acknowledged=lambda sent, at: acknowledged.append((sent.records, *sent.topics, sent.offset.pos, at)),
    )
    sink.unanswered = 3
    store.put([batch(0, 2), batch(1, 3)])  # made at 1 s
    delivery._step()
    assert acknowledged == []
    now[0], sink.unanswered = 4.0, 0
    if transactional:
        delivery._commit(None)
    else:
        delivery._acknowledge()
    assert acknowledged == [(5, "shop.a", 1, 4.0)]
    ages = delivery.counters().ages
    assert (sum(ages.counts), ages.sum_s) == (5, 15.0)


def test_records_of_a_transaction_that_is_sent_again_have_one_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.connector.delivery.delivery_loop._FIRST_RETRY_S", 0.001)
    sink = InMemorySink(True, failures=[None, TransactionAborted("again"), None, None, None])
    delivery = delivered(sink, [batch(n) for n in range(3)], CommitPolicy(by_poll=True))
    assert delivery.failure is None
    assert sum(delivery.counters().ages.counts) == 3


def test_an_unresponsive_kafka_is_detected_without_transactions_too() -> None:
    now = [0.0]

    class Silent(Away):
        def poll(self) -> None:
            now[0] += 40
            delivery._store.close()

        def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
            steps.append(delivery.counters().stuck_s)
            return super().commit(offset, timeout)

    steps: list[float] = []
    sink, store = Silent(problem="the broker is down"), EventStore()
    sink.unanswered = 1
    delivery = Delivery(store, sink, SELDOM, clock=lambda: now[0])
    store.put([batch(1)])
    delivery.run()
    assert steps == [40]
    assert delivery.counters().problem == "the broker is down"


def test_a_transaction_that_is_sent_again_and_again_is_not_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.connector.delivery.delivery_loop._FIRST_RETRY_S", 0.001)
    now = [0.0]
    found: list[tuple[float, bool, str | None]] = []

    class Refused(InMemorySink):
        def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
            counters = delivery.counters()
            found.append((counters.stuck_s, counters.delivered, counters.problem))
            now[0] += 20
            return super().commit(offset, timeout)

    aborted = TransactionAborted("the leader is away")
    sink, store = Refused(True, failures=[None, aborted, None, aborted, None, None]), EventStore()
    delivery = Delivery(store, sink, CommitPolicy(by_poll=True), clock=lambda: now[0])
    store.put([batch(1)])
    store.close()
    delivery.run()
    assert found == [(0, False, None), (20, False, "the leader is away"), (40, False, "the leader is away")]
    counters = delivery.counters()
    assert (counters.delivered, counters.problem, counters.rollbacks) == (True, None, 2)


@pytest.mark.parametrize("transactional", [False, True])
def test_the_offset_after_a_snapshot_is_stored_immediately(transactional: bool) -> None:
    sink, store = InMemorySink(transactional), EventStore()
    delivery = Delivery(store, sink, SELDOM)
    under_way = replace(offset(1), snapshot="INITIAL")
    store.put([Batch("shop.a", -1, [(b"k", b"v", ())], under_way, 2, 1)])
    delivery._step()
    assert sink.offsets == []
    store.put([batch(1)])
    delivery._step()
    assert sink.offsets == [offset(1)]


def test_a_commit_that_exceeds_its_timeout_is_retried_later() -> None:
    answers = [False, True]

    class Slow(InMemorySink):
        def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
            return answers.pop(0) and super().commit(offset, timeout)

    sink, store = Slow(), EventStore()
    delivery = Delivery(store, sink, ALWAYS)
    store.put([batch(1)])
    delivery._step()
    assert sink.offsets == []
    delivery._step()
    assert sink.offsets == [offset(1)]


@pytest.mark.parametrize("failure", [RecordRejected("too large"), ProducerFenced("another"), OSError("disk")])
def test_a_permanent_error_stops_the_reader_too(failure: BaseException) -> None:
    sink, store, heard = InMemorySink(failures=[None, None, failure]), EventStore(), []
    delivery = Delivery(store, sink, ALWAYS, on_failure=heard.append)
    store.put([batch(1)])
    delivery.start()
    with pytest.raises(StoreClosed) as caught:
        put_for_ever(store)
    assert caught.value.__cause__ is failure
    assert delivery.stop(SOON) is False
    with pytest.raises(type(failure)):
        delivery.raise_failure()
    assert heard == [failure]
    assert sink.closed


def test_no_offset_is_stored_behind_a_rejected_message() -> None:
    sink = InMemorySink(failures=[None, None, RecordRejected("too large")])
    store = EventStore(max_events=4)
    delivery = Delivery(store, sink, ALWAYS)
    delivery.start()
    with pytest.raises(StoreClosed):
        put_for_ever(store)
    delivery.stop(SOON)
    assert len(sink.offsets) == 1
    assert sink.offsets[0].pos < len(sink.records)


def test_stopping_with_a_timeout_interrupts_a_sink_that_hangs() -> None:
    class Hanging(InMemorySink):
        def __init__(self) -> None:
            super().__init__()
            self.released = threading.Event()

        def send(self, batches: Sequence[Batch]) -> None:
            self.released.wait(SOON)
            raise DeliveryInterrupted("stopped while there was no room")

        def interrupt(self) -> None:
            self.released.set()

    sink, store = Hanging(), EventStore()
    delivery = Delivery(store, sink, ALWAYS)
    delivery.start()
    store.put([batch(1)])
    assert delivery.stop(0.05) is False
    assert isinstance(delivery.failure, DeliveryInterrupted)
    assert sink.offsets == []


def test_each_topic_is_ensured_once_before_its_first_message() -> None:
    seen: list[str] = []
    sink, store = InMemorySink(), EventStore()
    store.put([batch(1, topic="a"), batch(2, topic="b"), batch(3, 0, topic="empty"), batch(4, topic="a")])
    store.close()
    Delivery(store, sink, ALWAYS, ensure_topics=seen.extend).run()
    assert sorted(seen) == ["a", "b"]


def test_a_topic_that_cannot_be_created_ends_delivery() -> None:
    def refuse(topics: Collection[str]) -> None:
        raise TopicError(f"cannot create topic {min(topics)!r}: not allowed")

    sink, store = InMemorySink(), EventStore()
    store.put([batch(1)])
    store.close()
    delivery = Delivery(store, sink, ALWAYS, ensure_topics=refuse)
    delivery.run()
    assert isinstance(delivery.failure, DeliveryError)
    assert "cannot create topic 'shop.a'" in str(delivery.failure)
    assert sink.records == []


def test_topic_creation_is_retried_while_kafka_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.connector.delivery.delivery_loop._FIRST_RETRY_S", 0.001)
    answers = [KafkaUnreachable("no broker answers"), KafkaUnreachable("no broker answers"), None]

    def ensure(_topics: Collection[str]) -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    sink, store = InMemorySink(), EventStore()
    store.put([batch(1)])
    store.close()
    delivery = Delivery(store, sink, ALWAYS, ensure_topics=ensure)
    delivery.run()
    assert delivery.failure is None
    assert values(sink) == [b"1.0"]


def test_counters_after_delivery() -> None:
    sink = InMemorySink()
    counters = delivered(sink, [batch(1, 2), batch(2, 3), batch(3, 0)]).counters()
    assert (counters.messages, counters.bytes, counters.batches) == (5, 50, 2)
    assert counters.offset == offset(3)
    assert (counters.sent_ts_ms, counters.committed_ts_ms) == (1002, 1003)
    assert counters.commits == len(sink.offsets)


def test_rates_cover_the_last_seconds_only() -> None:
    rate = Rate(0.0)
    for second in range(1, 101):
        rate.add(float(second), second * 10 if second <= 50 else 500 + (second - 50) * 100, 0)
    assert rate.per_second(100.0, 5500, 0)[0] == pytest.approx(100)
    assert rate.per_second(200.0, 5500, 0)[0] == 0


def test_a_rate_before_any_time_has_passed_is_zero() -> None:
    assert Rate(5.0).per_second(5.0, 10, 10) == (0.0, 0.0)
