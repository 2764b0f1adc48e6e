"""Messages larger than the usual limits: sent where the settings allow them, refused with a remedy where not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import RecordRejected
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.internal import offsets_settings
from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers

PATIENCE = 120.0
MIB = 1 << 20
ALLOWED = 100 * MIB
LIMITS = {"message.max.bytes": str(ALLOWED)}


@pytest.fixture(params=["at least once", "exactly once"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def delivering(topics: Topics, mode: str, settings: dict[str, Any], store: EventStore) -> Iterator[Delivery]:
    offsets = f"{topics.name()}-offsets"
    topics.admin.ensure(offsets, offsets_settings(1, 1))
    client = topics.client
    places = KafkaOffsetStore(offsets, "n", "p", producer=client, consumer=client, admin=client)
    if mode == "exactly once":
        made = transactional_settings({**client, **settings}, offsets)
        sink: Any = TransactionalSink(RecordProducer(made, quiet=store.quiet), places)
    else:
        sink = IdempotentSink(RecordProducer(idempotent_settings({**client, **settings}), quiet=store.quiet), places)
    sink.open()
    delivery = Delivery(store, sink, CommitPolicy(interval_s=0.5))
    delivery.start()
    try:
        yield delivery
    finally:
        delivery.stop(0)


def batch(topic: str, size: int, number: int = 1, gtids: str | None = None) -> Batch:
    return Batch(topic, -1, [(b"k", bytes(size), ())], SourceOffset("b.000001", number, gtids=gtids), size, 0)


def sizes(topics: Topics, topic: str) -> list[int]:
    return [len(record.value or b"") for record in topics.read(topic)]


def test_a_message_larger_than_the_default_buffer_is_sent(topics: Topics, mode: str) -> None:
    topic, store = topics.new(1, {"max.message.bytes": str(ALLOWED)}), EventStore()
    with delivering(topics, mode, LIMITS, store) as delivery:
        store.put([batch(topic, 70 * MIB, 1), batch(topic, 10, 2), batch(topic, 66 * MIB, 3)])
        assert delivery.stop(PATIENCE), delivery.failure
    assert sizes(topics, topic) == [70 * MIB, 10, 66 * MIB]


def test_a_row_larger_than_the_event_store_passes(topics: Topics, mode: str) -> None:
    topic, store = topics.new(1, {"max.message.bytes": str(ALLOWED)}), EventStore(max_events=10, max_bytes=1000)
    expected = [100, 5 * MIB, 100, 900, 6 * MIB, 7 * MIB, 1]
    with delivering(topics, mode, LIMITS, store) as delivery:
        for number, size in enumerate(expected, 1):
            assert store.put([batch(topic, size, number)], timeout=PATIENCE) == 1
        assert delivery.stop(PATIENCE), delivery.failure
    assert sizes(topics, topic) == expected


def test_a_message_larger_than_the_users_buffer_is_refused(topics: Topics, mode: str) -> None:
    topic, store = topics.new(1, {"max.message.bytes": str(ALLOWED)}), EventStore()
    with delivering(topics, mode, {**LIMITS, "queue.buffering.max.kbytes": "1024"}, store) as delivery:
        store.put([batch(topic, 100, 1), batch(topic, 2 * MIB, 2)])
        assert not delivery.stop(PATIENCE)
    assert isinstance(delivery.failure, RecordRejected)
    for part in (repr(topic), f"{2 * MIB + 1} bytes", "producer.override.buffer.memory"):
        assert part in str(delivery.failure)


def test_an_offset_larger_than_its_topic_allows_is_refused(topics: Topics, mode: str) -> None:
    topic, store = topics.new(), EventStore()
    with delivering(topics, mode, {}, store) as delivery:
        store.put([batch(topic, 100, gtids="x" * 2 * MIB)])
        assert not delivery.stop(PATIENCE)
    assert isinstance(delivery.failure, RecordRejected)
    assert "-offsets'" in str(delivery.failure)
    assert "max.message.bytes" in str(delivery.failure)
