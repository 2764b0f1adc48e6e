"""One reader of the offsets topic for all connectors of a process, with a real Kafka."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import OFFSET_END, Message, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from rowtide.connector.delivery.errors import OffsetStoreError, OffsetStoreUnavailable
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.offset_store import offset_key
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.admin_clients import admin_client
from rowtide.topics.internal import offsets_settings
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import eventually

pytestmark = pytest.mark.servers

Follow = Callable[[KafkaOffsetStore], list[int]]


@pytest.fixture
def topic(topics: Topics) -> str:
    name = topics.name()
    topics.admin.ensure(name, offsets_settings(2, 1))
    return name


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Follow with a store; returns the positions of its records, as they arrive."""
    with ExitStack() as stack:

        def following(store: KafkaOffsetStore) -> list[int]:
            found = list[int]()

            def take(message: Message) -> None:
                found.append(SourceOffset.from_json(message.value() or b"").pos)  # raises for a tombstone

            store.follow(take)
            stack.callback(store.leave)
            return found

        yield following


def store(topics: Topics, topic: str, name: str, timeout: float = 20.0) -> KafkaOffsetStore:
    client = topics.client
    return KafkaOffsetStore(topic, name, "p", producer=client, consumer=client, admin=client, timeout=timeout)


def at(pos: int) -> SourceOffset:
    return SourceOffset("binlog.000001", pos)


def readers(topic: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"offsets/{topic}"]


def test_connectors_share_a_reader_that_ends_with_the_last_of_them(topics: Topics, topic: str, follow: Follow) -> None:
    shop, crm = store(topics, topic, "shop"), store(topics, topic, "crm")
    shop.save(at(4))
    follow(shop)
    follow(crm)
    assert len(readers(topic)) == 1
    assert (shop.load(), crm.load()) == (at(4), None)
    crm.save(at(5))
    shop.save(at(6))
    assert (shop.load(), crm.load()) == (at(6), at(5))
    shop.save(None)
    assert shop.load() is None
    shop.leave()
    assert crm.load() == at(5)
    crm.leave()
    eventually(lambda: not readers(topic), "the end of the reader")
    crm.save(at(7))
    assert crm.load() == at(7)


def test_a_connector_gets_its_own_records_from_now_on(topics: Topics, topic: str, follow: Follow) -> None:
    shop, crm = store(topics, topic, "shop"), store(topics, topic, "crm")
    shop.save(at(4))
    crm.save(at(5))  # those of the worker that had it before
    of_shop = follow(shop)
    of_crm = follow(crm)
    shop.save(at(6))
    crm.save(at(7))
    eventually(lambda: of_shop and of_crm, "the records")
    shop.leave()
    shop.save(at(8))
    crm.save(at(9))
    eventually(lambda: of_crm == [7, 9], "the next record")
    assert of_shop == [6]


def test_open_transactions_are_awaited(topics: Topics, topic: str, follow: Follow) -> None:
    shop = store(topics, topic, "shop")
    follow(shop)
    other = Producer({**topics.client, "transactional.id": topic})
    other.init_transactions(20)
    for end, expected in ((other.abort_transaction, None), (other.commit_transaction, at(4))):
        other.begin_transaction()
        other.produce(topic, at(4).to_json().encode(), offset_key("shop", "p"))
        other.flush(20)
        later = threading.Timer(0.5, end, [20])
        later.start()
        assert shop.load() == expected
        later.join()


def test_a_transaction_that_never_ends_is_an_error(topics: Topics, topic: str, follow: Follow) -> None:
    shop = store(topics, topic, "shop", timeout=1.0)
    follow(shop)
    other = Producer({**topics.client, "transactional.id": topic})
    other.init_transactions(20)
    other.begin_transaction()
    other.produce(topic, b"", b"another", 1)
    other.flush(20)
    with pytest.raises(OffsetStoreUnavailable, match=f"'{topic}' to its end: partition 1 is stuck at offset 0 of 1"):
        shop.load()
    other.abort_transaction(20)
    assert shop.load() is None


def test_deleted_records_and_new_partitions(topics: Topics, follow: Follow) -> None:
    topic = topics.new(2)  # Kafka deletes no records of a compacted topic
    shop, admin = store(topics, topic, "shop"), admin_client(topics.client)
    shop.save(at(4))
    follow(shop)
    assert shop.load() == at(4)
    key = offset_key("shop", "p")
    for deleted in admin.delete_records([TopicPartition(topic, one, OFFSET_END) for one in (0, 1)]).values():
        deleted.result(20)
    assert shop.load() is None
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(20)
    eventually(lambda: topics.partitions(topic) == 3, "the new partition")
    producer = Producer(topics.client)
    producer.produce(topic, at(5).to_json().encode(), key, 2)
    assert producer.flush(20) == 0
    assert shop.load() == at(5)


def test_a_topic_that_was_created_again_is_read_anew(topics: Topics, topic: str, follow: Follow) -> None:
    shop, crm, admin = store(topics, topic, "shop"), store(topics, topic, "crm"), admin_client(topics.client)
    shop.save(at(4))
    follow(shop)
    assert shop.load() == at(4)
    admin.delete_topics([topic])[topic].result(20)
    eventually(lambda: topics.partitions(topic) is None, "the end of the topic")
    topics.admin.ensure(topic, offsets_settings(2, 1))
    follow(crm)
    assert crm.load() is None
    crm.save(at(5))
    assert crm.load() == at(5)


def test_a_reader_that_fails_is_an_error_and_the_next_start_has_another(
    topics: Topics, topic: str, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = store(topics, topic, "shop")
    shop.save(at(4))
    with monkeypatch.context() as broken:
        broken.setattr("rowtide.connector.delivery.kafka.offsets_log.Consumer", lambda _settings: 1 // 0)
        follow(shop)
        with pytest.raises(OffsetStoreError, match=f"cannot read topic '{topic}' from .*: .*division"):
            shop.load()
    shop.leave()
    follow(shop)
    assert shop.load() == at(4)
