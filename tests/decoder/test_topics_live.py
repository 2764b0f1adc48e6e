"""Topics that a worker writes, read as changes by each of the consumers."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient

import rowtide
from rowtide.decoder.errors import DecodeError
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, Registry

    from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers


@pytest.fixture(params=["json", "avro"])
def written(
    request: pytest.FixtureRequest, tmp_path: Path, mysql_db: Database, kafka: Kafka, topics: Topics, registry: Registry
) -> tuple[str, str]:
    """A topic with a snapshot of one row, its update, another row, and a deletion; and its registry."""
    more: dict[str, str] = {"database.include.list": mysql_db.name}
    if request.param == "avro":
        for side in ("key", "value"):
            more[f"{side}.converter"] = "io.confluent.connect.avro.AvroConverter"
            more[f"{side}.converter.schema.registry.url"] = registry.url
        more["schema.name.adjustment.mode"] = "avro"
    else:
        more |= {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")}
    mysql_db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, price DECIMAL(8,2), made DATETIME, doc JSON)",
        "INSERT INTO t VALUES (1, 1.50, '2024-02-03 04:05:06', '[1]')",
    )
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, more)
    topic = config.topic(f"{mysql_db.name}.t")
    with Worker(config) as worker:
        worker.streaming()
        mysql_db.execute("UPDATE t SET price = 2 WHERE id = 1", "INSERT INTO t VALUES (2, NULL, NULL, NULL)")
        mysql_db.execute("DELETE FROM t WHERE id = 1")
        eventually(lambda: len(topics.read(topic)) == 5, "all records are in Kafka")
        worker.stop()
    return topic, registry.url


def read(kafka: Kafka, written: tuple[str, str], **more: Any) -> list[rowtide.Change]:
    topic, url = written
    with rowtide.read_topics(kafka.bootstrap, topic, registry=url, follow=False, **more) as reader:
        return list(reader)


def test_a_topic_is_read_like_an_engine(kafka: Kafka, written: tuple[str, str]) -> None:
    found = read(kafka, written)
    assert [change.op for change in found] == ["r", "u", "c", "d"]
    assert found[0].after == {
        "id": 1, "price": Decimal("1.50"), "made": dt.datetime(2024, 2, 3, 4, 5, 6), "doc": [1],  # noqa: DTZ001
    }  # fmt: skip
    assert found[1].before == found[0].after
    assert [dict(change.key or {}) for change in found] == [{"id": 1}, {"id": 1}, {"id": 2}, {"id": 1}]
    seen = found[1].gtid
    assert seen is not None
    assert [change.op for change in read(kafka, written, start=seen)] == ["r", "c", "d"]
    assert read(kafka, written, start="end") == []
    long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert len(read(kafka, written, start=long_ago)) == 4
    with pytest.raises(DecodeError, match="there is no topic no-such-topic"):
        rowtide.read_topics(kafka.bootstrap, "no-such-topic")
    with pytest.raises(DecodeError, match="neither committed, beginning, end nor a GTID set"):
        rowtide.read_topics(kafka.bootstrap, written[0], start="yesterday")


def test_a_group_continues_after_what_it_has_committed(kafka: Kafka, written: tuple[str, str]) -> None:
    topic, url = written
    group = f"{topic}-readers"
    with rowtide.read_topics(kafka.bootstrap, topic, group=group, registry=url) as reader:
        for change in reader:
            if change.op == "u":
                reader.commit()
                break
    assert [change.op for change in read(kafka, written, group=group)] == ["c", "d"]


class Restarting:
    """A registry that fails once."""

    def __init__(self, url: str) -> None:
        self.client = SchemaRegistryClient({"url": url})
        self.failures = 1

    def get_schema(self, number: int) -> Any:
        self.failures -= 1
        if self.failures >= 0:
            raise ConnectionError("restarts")
        return self.client.get_schema(number)


def test_a_record_is_read_again_after_the_registry_failed(kafka: Kafka, written: tuple[str, str]) -> None:
    topic, url = written
    registry, found = Restarting(url), []
    with (
        registry.client,
        rowtide.read_topics(kafka.bootstrap, topic, group=f"{topic}-again", registry=registry, follow=False) as reader,
    ):
        for _ in range(2):
            with contextlib.suppress(rowtide.RegistryUnavailable):
                found += [change.op for change in reader]
        reader.commit()
    assert found == ["r", "u", "c", "d"]
    assert read(kafka, written, group=f"{topic}-again") == []


def test_a_reader_forgets_partitions_that_another_one_gets(kafka: Kafka, topics: Topics) -> None:
    topic = topics.new(partitions=2)
    places = [TopicPartition(topic, partition) for partition in range(2)]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for place in places:
        producer.produce(
            topic, b'{"before":null,"after":{"id":1},"source":{"db":"d"},"op":"c"}', partition=place.partition
        )
    producer.flush()
    group = f"{topic}-group"

    def another() -> list[rowtide.Change]:
        with rowtide.read_topics(kafka.bootstrap, topic, group=group, follow=False) as second:
            return list(second)

    with rowtide.read_topics(kafka.bootstrap, topic, group=group) as first, ThreadPoolExecutor(1) as pool:
        changes = iter(first)
        assert [next(changes).op, next(changes).op] == ["c", "c"]
        others = pool.submit(another)
        assert next(changes).op == "c", "the partition that it keeps, from the beginning: nothing is committed"
        first.commit()
        assert len(others.result(60)) == 1
    with closing(Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})) as consumer:
        committed = [place.offset for place in consumer.committed(places, 30)]
    assert sorted(committed) == [OFFSET_INVALID, 1]


def test_a_reader_without_a_partition_ends(kafka: Kafka, topics: Topics) -> None:
    topic = topics.new()
    group = f"{topic}-group"
    record = b'{"before":null,"after":{"id":1},"source":{"db":"d"},"op":"c"}'
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(topic, record)
    producer.flush()
    with rowtide.read_topics(kafka.bootstrap, [topic, topic], group=group) as first, ThreadPoolExecutor(1) as pool:
        changes = iter(first)
        next(changes)
        with rowtide.read_topics(kafka.bootstrap, topic, group=group, follow=False) as second:
            others = pool.submit(list, second)
            while not others.done():
                first._consumer.poll(0.1)  # takes part in the rebalance
            assert len(others.result()) in (0, 1), "the group gives the partition to one of them"
        assert list(rowtide.read_topics(kafka.bootstrap, [], follow=False)) == []


def test_peek_prints_records_whatever_their_format(kafka: Kafka, written: tuple[str, str]) -> None:
    topic, url = written
    command = [sys.executable, "-m", "rowtide", "peek", topic, "--bootstrap-servers", kafka.bootstrap]
    done = subprocess.run([*command, "--registry", url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for text in ("read ", "update ", "create ", "delete ", "tombstone", "price=1.50, made=2024-02-03 04:05:06"):
        assert text in done.stdout
    without = subprocess.run(command, capture_output=True, text=True, check=False)
    assert without.returncode == 0 or "need a schema registry: --registry URL" in without.stderr


def test_a_deserializing_consumer_has_changes_as_values(kafka: Kafka, written: tuple[str, str]) -> None:
    from confluent_kafka import DeserializingConsumer

    topic, url = written
    with rowtide.Decoder(url) as decoder:
        consumer = DeserializingConsumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": f"{topic}-deserializing",
                "auto.offset.reset": "earliest",
                "value.deserializer": decoder.deserialize,
            }
        )
        consumer.subscribe([topic])
        found: list[Any] = []
        while len(found) < 5:
            message = consumer.poll(60)
            assert message is not None
            found.append(message.value())
        consumer.close()
    assert [change and change.op for change in found] == ["r", "u", "c", "d", None]
    assert found[0].key is None


def test_aiokafkas_records_are_decoded(kafka: Kafka, written: tuple[str, str]) -> None:
    from aiokafka import AIOKafkaConsumer

    topic, url = written

    async def consumed() -> list[str]:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        try:
            found: list[str] = []
            while len(found) < 4:
                change = decoder.decode_record(await asyncio.wait_for(consumer.getone(), 60))
                found += [] if change is None else [change.op]
            return found
        finally:
            await consumer.stop()

    with rowtide.Decoder(url) as decoder:
        assert asyncio.run(consumed()) == ["r", "u", "c", "d"]


def test_a_faust_agent_receives_changes(kafka: Kafka, written: tuple[str, str], tmp_path: Path) -> None:
    topic, url = written
    received, program = tmp_path / "received", tmp_path / "agent.py"
    program.write_text(f"""
import os
import faust, rowtide
from rowtide.decoder.faust import changes

app = faust.App({topic + "-agent"!r}, broker="kafka://{kafka.bootstrap}", datadir={str(tmp_path)!r}, topic_partitions=1,
                topic_replication_factor=1, web_enabled=False)
orders = changes(app, {topic!r}, decoder=rowtide.Decoder({url!r}))

@app.agent(orders)
async def agent(stream):
    count = 0
    async for change in stream:
        with open({str(received)!r}, "a") as file:
            print(None if change is None else (change.op, dict(change.key)), file=file)
        count += 1
        if count == 5:
            os._exit(0)

app.main()
""")
    done = subprocess.run(
        [sys.executable, str(program), "worker", "-l", "error", "--without-web"],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert received.exists(), done.stderr[-3000:]
    assert received.read_text().splitlines() == [
        "('r', {'id': 1})", "('u', {'id': 1})", "('c', {'id': 2})", "('d', {'id': 1})", "None",
    ]  # fmt: skip
