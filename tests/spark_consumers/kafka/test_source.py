"""Ranges of a real Kafka's records, with the session that tables are read in and with one of Spark's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

pytestmark = [pytest.mark.servers, pytest.mark.spark]


def write(bootstrap: str, topic: str, texts: range, *, commits: bool, tombstones: bool = False) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "test-source"})
    producer.init_transactions()
    producer.begin_transaction()
    for number in texts:
        producer.produce(topic, None if tombstones else f"value {number}", f"key {number}", 0)
    producer.flush()  # an abort would drop what is not sent
    (producer.commit_transaction if commits else producer.abort_transaction)()


@pytest.fixture
def readers(spark, kafka):
    """Return functions that read a range of partition 0: with the session of tables, and with Spark's defaults."""
    from rowtide.spark_consumers.jvm.session import own_session
    from rowtide.spark_consumers.kafka.source import KafkaSource

    source = KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap})

    def reader(session):
        def read(topic: str, given: tuple[int, int]) -> dict[int, tuple[bytes, bytes | None]]:
            rows = source.read(session, topic, {0: given}).collect()
            records = {row.offset: (bytes(row.key), row.value and bytes(row.value)) for row in rows}
            assert len(records) == len(rows)
            return records

        return read

    return [reader(own_session(spark)), reader(spark)]


def create(bootstrap: str, topic: str, partitions: int) -> AdminClient:
    """Create a topic, and write transactions to its first partition."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    write(bootstrap, topic, range(5), commits=True)  # offsets 0 to 4, and a marker
    write(bootstrap, topic, range(5, 10), commits=False)  # 6 to 10, and a marker
    write(bootstrap, topic, range(10, 12), commits=True, tombstones=True)  # 12 and 13, and a marker
    write(bootstrap, topic, range(12, 15), commits=False)  # 15 to 17, and a marker: the end is a gap
    return admin


def test_only_committed_records_of_the_range_are_read(kafka, readers) -> None:
    from confluent_kafka import TopicPartition
    from py4j.protocol import Py4JJavaError

    topic = "test-source"
    admin = create(kafka.bootstrap, topic, 1)
    first = {number: (f"key {number}".encode(), f"value {number}".encode()) for number in range(5)}
    last = {offset: (f"key {offset - 2}".encode(), None) for offset in (12, 13)}
    for given, expected in [
        ((0, 19), {**first, **last}),
        ((0, 5), first),
        ((3, 13), {3: first[3], 4: first[4], 12: last[12]}),
        ((5, 12), {}),
        ((14, 19), {}),
        ((7, 7), {}),
    ]:
        assert [read(topic, given) for read in readers] == [expected] * 2

    write(kafka.bootstrap, topic, range(40_000), commits=True)  # which several tasks share
    found = [read(topic, (19, 40_019)) for read in readers]
    assert found[0] == found[1]
    assert len(found[0]) == 40_000

    admin.delete_records([TopicPartition(topic, 0, 3)])[TopicPartition(topic, 0)].result()
    for read in readers:
        with pytest.raises(Py4JJavaError, match="Some data may have been lost"):
            read(topic, (0, 5))


def test_a_sample_has_the_first_committed_records_of_each_range(kafka, spark) -> None:
    from rowtide.spark_consumers.errors import KafkaUnreachableError
    from rowtide.spark_consumers.kafka.source import KafkaSource

    topic = "test-sample"
    create(kafka.bootstrap, topic, 2)
    source = KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap})
    first = [(f"key {number}".encode(), f"value {number}".encode()) for number in range(5)]
    last = [(f"key {number}".encode(), None) for number in (10, 11)]
    for parts, expected in [
        ([{0: (0, 3)}, {0: (11, 14)}], first[:3] + last),  # never more than the range
        ([{0: (2, 5), 1: (0, 0)}], first[2:]),
        ([{0: (5, 12)}], []),
        ([{0: (14, 19)}], []),
        ([], []),
    ]:
        assert [(bytes(key), value and bytes(value)) for key, value in source.sample(topic, parts)] == expected
    with pytest.raises(KafkaUnreachableError, match="not answer"):
        KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap, "auto.offset.reset": "none"}).sample(
            topic, [{0: (30, 40)}]
        )


def test_the_last_record_of_a_range_is_the_last_committed_one(kafka, spark, monkeypatch) -> None:
    from rowtide.spark_consumers.kafka import source

    topic = "test-last"
    create(kafka.bootstrap, topic, 2)
    last = source.KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap}).last_records
    found = last(topic, {0: (0, 19), 1: (0, 0)})
    assert list(found) == [0]
    assert (found[0].offset, found[0].timestamp > 0) == (13, True)
    assert last(topic, {0: (13, 14)}) == found
    assert last(topic, {0: (0, 12)})[0].offset == 4
    assert last(topic, {0: (5, 12)}) == last(topic, {}) == {}
    monkeypatch.setattr(source, "_SEARCHED", (1, 2))  # a range that ends in more markers than are searched
    assert last(topic, {0: (0, 19)}) == {}


def test_a_sample_leaves_the_offsets_of_its_group(kafka, spark) -> None:
    from confluent_kafka import Consumer, TopicPartition

    from rowtide.spark_consumers.kafka.source import KafkaSource

    topic = "test-sample-group"
    create(kafka.bootstrap, topic, 1)
    group = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "program"})
    group.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    source = KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap, "group.id": "program"})
    assert len(source.sample(topic, [{0: (0, 5)}])) == 5
    [committed] = group.committed([TopicPartition(topic, 0)])
    assert committed.offset == 2
    group.close()


def test_ranges_that_kafka_does_not_answer_share_the_time_of_a_sample(kafka, spark, monkeypatch) -> None:
    from rowtide.spark_consumers.kafka import source

    topic = "test-sample-silence"
    create(kafka.bootstrap, topic, 1)
    polled: list[str] = []

    class Consumer(source._Consumer):
        def call(self, method: str, *arguments: object) -> object:
            polled.extend([method] if method == "poll" else ())
            return super().call(method, *arguments)

    monkeypatch.setattr(source, "_Consumer", Consumer)
    monkeypatch.setattr(source, "ANSWER_TIMEOUT_MS", 500)
    behind = [{0: (19, 30)}, {0: (20, 30)}, {0: (21, 30)}]  # the topic ends at 19
    found = source.KafkaSource(spark, {"bootstrap.servers": kafka.bootstrap, "default.api.timeout.ms": "20000"})
    assert found.sample(topic, behind[:1]) == []
    assert len(polled) == 5
    assert found.sample(topic, behind) == []
    assert len(polled) == 10
