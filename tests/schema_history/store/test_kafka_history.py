"""The schema history in a real Kafka: records are acknowledged and replayed, and every kind of damage is detected."""

from __future__ import annotations

import json
import time

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from rowtide.schema_history.compaction.kafka_summary_store import KafkaSummaries
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.store.history_store import HistoryStoreError, TrimmedHistory, json_object
from rowtide.schema_history.store.kafka import KafkaSchemaHistory
from rowtide.topics.internal import history_settings
from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers


@pytest.fixture
def topic(topics: Topics) -> str:
    name = topics.name()
    topics.admin.ensure(name, history_settings())
    return name


def history(topics: Topics, topic: str, timeout: float = 20.0) -> KafkaSchemaHistory:
    return KafkaSchemaHistory(topic, topics.client, topics.client, topics.client, timeout=timeout, batch=10)


def produce(topics: Topics, topic: str, *values: bytes | None) -> None:
    producer = Producer(topics.client)
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(20) == 0


def delete_before(topics: Topics, topic: str, offset: int) -> None:
    admin = AdminClient(topics.client)
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(20)


def test_records_come_back_in_order(topics: Topics, topic: str) -> None:
    writer = history(topics, topic)
    assert not writer.exists()
    assert list(writer.replay(json_object)) == []
    texts = [json.dumps({"ddl": f"CREATE TABLE `größe{n}` (a int)"}, indent=n % 2 or None) for n in range(5)]
    for number, text in enumerate(texts):
        writer.append(text)
        assert len(topics.read(topic)) == number + 1, "a record is safe when append returns"
    writer.close()
    again = history(topics, topic)
    assert again.exists()
    assert list(again.replay(json_object)) == texts
    assert [record["ddl"] for record in again.replay(json.loads)] == [json.loads(text)["ddl"] for text in texts]
    assert {(record.partition, record.key) for record in topics.read(topic)} == {(0, None)}


def test_buffered_records_are_acknowledged_at_the_end_of_the_block(topics: Topics, topic: str) -> None:
    writer = history(topics, topic)
    with writer.buffered():
        for number in range(35):
            writer.append(json.dumps({"n": number}))
    assert [json.loads(text)["n"] for text in writer.replay(json_object)] == list(range(35))


def test_a_missing_topic_is_not_a_history(topics: Topics) -> None:
    missing = history(topics, topics.name())
    assert not missing.exists()
    assert list(missing.replay(json_object)) == []


def test_appending_to_a_missing_topic_fails_in_time(topics: Topics) -> None:
    writer = history(topics, topics.name(), timeout=2.0)
    with pytest.raises(HistoryStoreError, match="cannot write to the schema history topic"):
        writer.append("{}")


def test_a_trimmed_history_is_detected(topics: Topics, topic: str) -> None:
    writer = history(topics, topic)
    for number in range(4):
        writer.append(json.dumps({"n": number}))
    delete_before(topics, topic, 2)
    with pytest.raises(TrimmedHistory, match=r"first record has offset 2.*snapshot\.mode=recovery"):
        list(writer.replay(json_object))
    assert writer.exists()


def test_a_history_without_remaining_records_is_trimmed_not_missing(topics: Topics, topic: str) -> None:
    writer = history(topics, topic)
    writer.append("{}")
    delete_before(topics, topic, 1)
    assert writer.exists()
    with pytest.raises(TrimmedHistory):
        list(writer.replay(json_object))


@pytest.mark.parametrize("damaged", [b'{"a":', b"\xff\xfe", b"17", None], ids=["cut", "bytes", "number", "null"])
def test_a_damaged_record_is_an_error_with_its_offset(topics: Topics, topic: str, damaged: bytes | None) -> None:
    produce(topics, topic, b'{"n":0}', damaged, b'{"n":2}')
    seen = []
    with pytest.raises(SchemaHistoryError, match=f"'{topic}' partition 0 offset 1"):
        seen.extend(history(topics, topic).replay(json_object))
    assert not any('"n":2' in text for text in seen)


def test_several_partitions_are_an_error(topics: Topics) -> None:
    two = history(topics, topics.new(2))
    with pytest.raises(HistoryStoreError, match="has 2 partitions and must have exactly 1"):
        two.exists()
    with pytest.raises(HistoryStoreError, match="has 2 partitions"):
        list(two.replay(json_object))


def test_records_of_an_aborted_transaction_are_not_history(topics: Topics, topic: str) -> None:
    writer = history(topics, topic)
    writer.append('{"n":0}')
    producer = Producer({**topics.client, "transactional.id": topic})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b'{"n":"aborted"}', partition=0)
    producer.flush(20)
    producer.produce(topic, b'{"n":"aborted too"}', partition=0)
    producer.produce(topic, b'{"n":"aborted too"}', partition=0)
    producer.flush(20)
    producer.abort_transaction(20)
    writer.append('{"n":1}')
    assert list(writer.replay(json_object)) == ['{"n":0}', '{"n":1}']


def test_the_newest_two_summaries_are_kept_and_incomplete_ones_ignored(topics: Topics, topic: str) -> None:
    summaries = KafkaSummaries(topic, topics.client, topics.client, topics.client)
    assert list(summaries.load()) == []
    packed = [bytes([number]) * 1_200_000 for number in range(4)]
    for each in packed:
        summaries.save(each)
    assert list(summaries.load()) == [packed[3], packed[2]]
    assert len(topics.read(topic)) == 6, "what is older is deleted"
    half = Producer(topics.client)
    half.produce(topic, b"x", json.dumps({"summary": "half", "part": 0, "parts": 2}), partition=0)
    half.produce(topic, b"x", b"no key of ours", partition=0)
    assert half.flush(20) == 0
    assert list(summaries.load()) == [packed[3], packed[2]]
    summaries.save(packed[0])
    assert list(summaries.load()) == [packed[0], packed[3]]


def test_an_unreachable_broker_is_an_error_in_time() -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    unreachable = KafkaSchemaHistory("h", nowhere, nowhere, nowhere, timeout=1.0)
    with pytest.raises(HistoryStoreError, match=r"cannot be read: cannot read topic 'h' from 127\.0\.0\.1:1: "):
        unreachable.exists()
    with pytest.raises(HistoryStoreError, match="cannot be read"):
        list(unreachable.replay(json_object))
    with pytest.raises(HistoryStoreError, match="cannot write"):
        unreachable.append("{}")


def test_many_records_are_read_quickly(topics: Topics, topic: str) -> None:
    text = json.dumps({"ddl": "CREATE TABLE t (" + ", ".join(f"column_{n} varchar(100)" for n in range(40)) + ")"})
    writer = history(topics, topic)
    with writer.buffered():
        for _ in range(20_000):
            writer.append(text)
    start = time.monotonic()
    assert sum(1 for _ in writer.replay(str)) == 20_000
    print(f"20 000 records of {len(text)} bytes in {time.monotonic() - start:.1f} s")
