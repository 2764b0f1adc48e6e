"""Transactions that stay open: they are named, with a command that ends them."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from rowtide_stack.programs import catalogue

from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import transactional_settings
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import TransactionalSink
from rowtide.connector.engine.topic_guard import HangingTransactions
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import TopicReader, TopicReadError
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.settings import TopicSettings
from rowtide.topics.stable_offsets import Ends
from tests.support.kafka.topic_tools import Topics

if TYPE_CHECKING:
    from rowtide_stack import Kafka

pytestmark = pytest.mark.servers

_COMMAND = re.compile(r"kafka-transactions\.sh (--bootstrap-server \S+ abort .*? --start-offset \d+)")


def carry_out(text: str) -> None:
    """Run the command that a text names."""
    found = _COMMAND.search(text)
    assert found is not None, text
    tool = "org.apache.kafka.tools.TransactionsCommand"
    command = catalogue.java_command(catalogue.kafka(), "256m", tool, *shlex.split(found[1]))
    subprocess.run(command, check=True, capture_output=True, timeout=300)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    topics = Topics(kafka.bootstrap)
    name = topics.name()
    topics.admin.ensure(name, TopicSettings(2, 1))
    return name


@pytest.fixture(params=[ProducerKind.NATIVE, ProducerKind.LIBRDKAFKA])
def opened(kafka: Kafka, topic: str, request: pytest.FixtureRequest) -> Iterator[TransactionalSink]:
    """A sink with an open transaction in partition 1, after one record."""
    client: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap}
    settings = transactional_settings(client, f"{topic}-id")
    producer = new_producer(request.param, settings, quiet=nullcontext)
    store = KafkaOffsetStore(topic, "c", "p", producer=client, consumer=client, admin=client)
    sink = TransactionalSink(producer, store)
    sink.open()
    for text in (b"committed", b"open"):
        producer.begin_transaction()
        producer.send([Batch(topic, 1, [(b"k", text, ())], SourceOffset("b.1", 4), 2, 1)])
        assert producer.drain(60)
        if text == b"committed":
            producer.commit_transaction()
    yield sink
    sink.close()


def test_it_is_named_while_the_connector_runs(
    kafka: Kafka, topic: str, opened: TransactionalSink, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = iter((0.0, 89.0, 91.0, 120.0))
    admin = TopicAdmin({"bootstrap.servers": kafka.bootstrap})
    watch = HangingTransactions(admin.ends, opened, kafka.bootstrap, lambda: next(seconds))
    before = admin.ends([topic, "no-such-topic"])
    assert before == {(topic, 0): Ends(0, 0), (topic, 1): Ends(2, 3)}
    for _ in range(2):
        watch.look([topic])
    assert caplog.text == ""
    for _ in range(2):
        watch.look([topic])
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert f"hangs in partition 1 of topic {topic}: it has been open at offset 2 for 91 s" in line
    assert "transaction.timeout.ms=60000" in line
    assert (f"this connector's is {opened.producer_id}" in line) == (opened.producer_id is not None)
    carry_out(line)
    assert admin.ends([topic])[topic, 1] == Ends(4, 4)


def test_it_is_named_if_a_position_cannot_be_read(kafka: Kafka, topic: str, opened: TransactionalSink) -> None:
    client = {"bootstrap.servers": kafka.bootstrap}
    reader = TopicReader(client, client, timeout=1.0)
    extents = reader.extents(topic)
    assert extents is not None
    with pytest.raises(TopicReadError, match="transaction is open since offset 2") as caught:
        list(reader.read(topic, extents))
    assert caught.value.retriable
    carry_out(str(caught.value))
    extents = reader.extents(topic)
    assert extents is not None
    assert [record.value for record in reader.read(topic, extents)] == [b"committed"]
