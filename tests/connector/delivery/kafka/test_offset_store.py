"""Offsets in a real offsets topic, as Kafka Connect writes and reads it."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Producer

from rowtide.connector.delivery.errors import OffsetStoreError
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.writer import THIS_PROCESS
from rowtide.connector.delivery.offset_store import offset_key
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord, TopicReader
from rowtide.topics.internal import offsets_settings
from tests.support.kafka.topic_tools import Topics, partition_for
from tests.support.recordings.golden import GOLDEN

pytestmark = pytest.mark.servers

OFFSET = SourceOffset("binlog.000003", 484, gtids="24bc7850-0000-0000-0000-000000000001:1-5", event=2, row=1)


@pytest.fixture
def topic(topics: Topics) -> str:
    name = topics.name()
    topics.admin.ensure(name, offsets_settings(25, 1))
    return name


def offsets(
    topics: Topics, topic: str, name: str = "shop", prefix: str = "p", timeout: float = 20.0
) -> KafkaOffsetStore:
    client = topics.client
    return KafkaOffsetStore(topic, name, prefix, producer=client, consumer=client, admin=client, timeout=timeout)


def produce(topics: Topics, topic: str, *records: tuple[int, bytes, bytes | None, int]) -> None:
    producer = Producer(topics.client)
    for partition, key, value, timestamp in records:
        producer.produce(topic, value, key, partition, timestamp=timestamp)
    assert producer.flush(20) == 0


def test_the_last_saved_offset_is_loaded(topics: Topics, topic: str) -> None:
    store = offsets(topics, topic)
    assert store.load() is None
    store.save(SourceOffset("binlog.000001", 4))
    store.save(OFFSET)
    assert offsets(topics, topic).load() == OFFSET
    assert offsets(topics, topic, "other").load() is None
    store.save(None)
    assert offsets(topics, topic).load() is None


def test_the_topic_is_read_again_only_if_something_was_written(
    topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, reads = TopicReader.read, list[str]()

    def counted(reader: TopicReader, name: str, extents: Mapping[int, Extent]) -> Iterator[StoredRecord]:
        reads.append(name)
        return read(reader, name, extents)

    monkeypatch.setattr(TopicReader, "read", counted)
    store, other = offsets(topics, topic), offsets(topics, topic)
    other.save(OFFSET)
    assert (store.load(), store.load()) == (OFFSET, OFFSET)
    assert store.last_write() is not None
    assert len(reads) == 1
    other.save(None)
    assert store.load() is None
    assert len(reads) == 2


@pytest.mark.parametrize("name", ["shop", "a", "inventory-connector", "Größe", "x" * 97])
def test_the_record_is_in_the_partition_that_javas_producer_chooses(topics: Topics, topic: str, name: str) -> None:
    offsets(topics, topic, name).save(OFFSET)
    (record,) = topics.read(topic)
    assert record.key == offset_key(name, "p")
    assert record.value == OFFSET.to_json().encode()
    assert record.headers == (THIS_PROCESS.header(),)  # Kafka Connect reads no headers
    assert record.partition == partition_for(record.key, 25)


def test_a_topic_that_does_not_exist_has_no_offset(topics: Topics) -> None:
    assert offsets(topics, topics.name()).load() is None


def test_recorded_offsets_of_debezium_are_resumed(topics: Topics, topic: str) -> None:
    """All connectors of a cluster share one topic, as in the recording."""
    last: dict[str, str] = {}
    for name in ("transactions", "gtid-off", "restart-between-stages", "keys"):
        with gzip.open(GOLDEN / name / "golden" / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                if record["topic"] == "connect-offsets":
                    key = record["key"].encode()
                    produce(topics, topic, (partition_for(key, 25), key, record["value"].encode(), 1))
                    last[name] = record["value"]
    assert last
    for name, value in last.items():
        found = offsets(topics, topic, name, name).load()
        assert found is not None
        assert found.to_json() == value


def test_a_key_in_another_json_format_applies_if_it_is_newer(topics: Topics, topic: str) -> None:
    ours, spaced = offset_key("shop", "p"), b'[ "shop", {"server": "p"} ]'
    produce(topics, topic, (3, ours, b'{"file":"a","pos":1}', 1000), (7, spaced, b'{"file":"a","pos":2}', 2000))
    assert offsets(topics, topic).load() == SourceOffset("a", 2)
    produce(topics, topic, (3, ours, b'{"file":"a","pos":3}', 3000))
    assert offsets(topics, topic).load() == SourceOffset("a", 3)
    produce(topics, topic, (7, spaced, None, 4000))
    assert offsets(topics, topic).load() is None


def test_foreign_keys_are_skipped_and_damage_is_reported_with_its_location(topics: Topics, topic: str) -> None:
    produce(topics, topic, (0, b"\xff", b"?", 1), (0, b'{"session":1}', b"?", 1), (0, b"[]", None, 1))
    assert offsets(topics, topic).load() is None
    produce(topics, topic, (4, offset_key("shop", "p"), b'{"pos":17}', 1))
    with pytest.raises(OffsetStoreError, match=f"'{topic}' partition 4 offset 0 .*'file'"):
        offsets(topics, topic).load()


def test_uncommitted_offsets_are_ignored_and_open_transactions_are_awaited(topics: Topics) -> None:
    """The committed record is after an open transaction of another connector; it must not be missed."""
    topic = topics.name()
    topics.admin.ensure(topic, offsets_settings(1, 1))
    other = Producer({**topics.client, "transactional.id": topic})
    other.init_transactions(20)
    other.begin_transaction()
    other.produce(topic, b'{"file":"other","pos":1}', offset_key("shop", "p"))
    other.flush(20)
    offsets(topics, topic).save(OFFSET)
    end = threading.Timer(1.0, lambda: other.abort_transaction(20))
    end.start()
    assert offsets(topics, topic).load() == OFFSET
    end.join()


def test_a_transaction_that_never_ends_is_an_error(topics: Topics) -> None:
    topic = topics.name()
    topics.admin.ensure(topic, offsets_settings(1, 1))
    other = Producer({**topics.client, "transactional.id": topic})
    other.init_transactions(20)
    other.begin_transaction()
    other.produce(topic, b"{}", b"k")
    other.flush(20)
    with pytest.raises(OffsetStoreError, match=r"partition 0 is stuck at offset 0 of 1 .*transaction"):
        offsets(topics, topic, timeout=2.0).load()
    other.abort_transaction(20)


def test_saving_to_a_missing_topic_fails_within_the_timeout(topics: Topics) -> None:
    with pytest.raises(OffsetStoreError, match="cannot write the source offset"):
        offsets(topics, topics.name(), timeout=2.0).save(OFFSET)


def test_an_unreachable_broker_is_an_error() -> None:
    with pytest.raises(OffsetStoreError, match="cannot be read"):
        offsets(Topics("127.0.0.1:1"), "x", timeout=1.0).load()
