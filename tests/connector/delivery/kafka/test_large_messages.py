"""Messages larger than the usual limits: sent where the settings allow them, refused with a remedy where not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rowtide.connector.config.choices import LargeRecordsMode as Mode
from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.delivery.claim_check_folder import open_folder
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import RecordRejected
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.large_records import LargeRecords
from rowtide.connector.delivery.stored_dead_letters import letters_of, whole
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.dead_letters import DeadLetters
from rowtide.connector.records.offset import SourceOffset
from rowtide.envelope.claim_check import ClaimCheck
from rowtide.schema_history.store.topic_reader import StoredRecord
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
def delivering(
    topics: Topics, mode: str, settings: dict[str, Any], store: EventStore, large: LargeRecords | None = None
) -> Iterator[Delivery]:
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
    more: Any = {} if large is None else {"ensure_topics": large.look_up, "fitting": large.fitting}
    delivery = Delivery(store, sink, CommitPolicy(interval_s=0.5), **more)
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


def large_records(topics: Topics, mode: Mode, **more: Any) -> LargeRecords:
    return LargeRecords(mode, MIB, lambda names: topics.admin.topic_config("max.message.bytes", names), **more)


def test_a_claim_check_is_sent_when_its_folder_is_back(topics: Topics, mode: str, tmp_path: Path) -> None:
    topic, store = topics.new(1, {"max.message.bytes": "10000"}), EventStore(max_events=2)
    folder = tmp_path / "values"
    folder.mkdir()
    large = large_records(topics, Mode.CLAIM_CHECK, folder=open_folder(str(folder)))
    folder.rmdir()
    with delivering(topics, mode, {}, store, large) as delivery:
        store.put([batch(topic, 10, 1), batch(topic, 20_000, 2)], timeout=PATIENCE)
        while "cannot be stored" not in (delivery.counters().problem or ""):
            assert delivery.failure is None
            time.sleep(0.01)
        assert sizes(topics, topic) == [10], "what was before it is committed"
        folder.mkdir()
        store.put([batch(topic, 30, 3)], timeout=PATIENCE)
        assert delivery.stop(PATIENCE), delivery.failure
    first, pointer, last = topics.read(topic)
    assert (len(first.value or b""), len(last.value or b"")) == (10, 30)
    check = ClaimCheck.parse(pointer.value or b"")
    assert pointer.headers == tuple(check.headers())
    assert (folder / check.name).read_bytes() == bytes(20_000)


def test_a_crash_after_the_value_was_stored_leaves_one_file_and_one_record(topics: Topics, tmp_path: Path) -> None:
    topic = topics.new(1, {"max.message.bytes": "10000"})
    given = batch(topic, 20_000)
    crashed = large_records(topics, Mode.CLAIM_CHECK, folder=open_folder(str(tmp_path)))
    crashed.look_up([topic])
    crashed.fitting([given])  # and its record is never sent
    store, large = EventStore(), large_records(topics, Mode.CLAIM_CHECK, folder=open_folder(str(tmp_path)))
    with delivering(topics, "exactly once", {}, store, large) as delivery:
        store.put([given])
        assert delivery.stop(PATIENCE), delivery.failure
    (pointer,) = topics.read(topic)
    (stored,) = (tmp_path / topic).iterdir()
    assert stored.name == ClaimCheck.parse(pointer.value or b"").sha256


def test_kafka_takes_every_part_of_a_dead_letter(topics: Topics, mode: str) -> None:
    topic, letters = (topics.new(1, {"max.message.bytes": "10000"}) for _ in range(2))
    large = large_records(topics, Mode.DEAD_LETTER, dead_letters=DeadLetters(letters, "n", context=True))
    large.look_up([letters])
    store = EventStore()
    with delivering(topics, mode, {"batch.size": "9000"}, store, large) as delivery:
        store.put([batch(topic, 10, 1), batch(topic, 70_000, 2), batch(topic, 30, 3)])
        assert delivery.stop(PATIENCE), delivery.failure
    assert sizes(topics, topic) == [10, 30]
    seen = topics.read(letters)
    assert len(seen) == 8
    found = [StoredRecord(0, number, -1, one.key, one.value, one.headers) for number, one in enumerate(seen)]
    (letter,) = letters_of(found)
    assert whole(found, letter.id) == (b"k", bytes(70_000), [])
