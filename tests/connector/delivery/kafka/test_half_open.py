"""A broker that vanishes without a word: its connections stay open, and nothing comes through them any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import pytest
from proxied_kafka import ProxiedKafka, proxied_kafka
from topic_tools import Topics

from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import Producer
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import TopicReader
from rowtide.schema_history.store.topic_writer import TopicWriter
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.errors import KafkaUnreachable
from rowtide.topics.settings import TopicSettings

pytestmark = pytest.mark.servers

LIMITS = {"socket.timeout.ms": "1500", "request.timeout.ms": "1000"}
KINDS = [ProducerKind.NATIVE, ProducerKind.LIBRDKAFKA]


@pytest.fixture(scope="module")
def vanishing() -> Iterator[ProxiedKafka]:
    """A broker whose connections a test may let vanish."""
    with proxied_kafka() as made:
        yield made


@pytest.fixture
def topic(vanishing: ProxiedKafka) -> str:
    """A topic with one partition."""
    topics = Topics(vanishing.kafka.bootstrap)
    name = topics.name()
    topics.admin.ensure(name, TopicSettings(1, 1))
    return name


def batch(topic: str, text: str) -> list[Batch]:
    return [Batch(topic, 0, [(b"k", text.encode(), ())], SourceOffset("b.1", 4), 2, 1)]


@contextmanager
def producer(kind: ProducerKind, settings: dict[str, Any]) -> Iterator[Producer]:
    made = new_producer(kind, settings, quiet=nullcontext)
    yield made
    made.close()


def values(vanishing: ProxiedKafka, topic: str) -> list[bytes | None]:
    return [record.value for record in Topics(vanishing.kafka.bootstrap).read(topic)]


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_sent_on_a_new_connection(vanishing: ProxiedKafka, topic: str, kind: ProducerKind) -> None:
    settings = idempotent_settings({"bootstrap.servers": vanishing.bootstrap, **LIMITS})
    with producer(kind, settings) as sending:
        sending.send(batch(topic, "before"))
        assert sending.drain(60)
        vanishing.proxy.vanish()
        sending.send(batch(topic, "after"))
        assert sending.drain(60)
    assert values(vanishing, topic) == [b"before", b"after"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", ["first record", "commit"])
def test_a_transaction_outlives_it(vanishing: ProxiedKafka, topic: str, kind: ProducerKind, at: str) -> None:
    settings = transactional_settings({"bootstrap.servers": vanishing.bootstrap, **LIMITS}, f"{topic}-id")
    with producer(kind, settings) as sending:
        sending.init_transactions(60)
        for number, vanishes in enumerate((False, True, False)):
            sending.begin_transaction()
            if vanishes and at == "first record":
                vanishing.proxy.vanish()
            sending.send(batch(topic, str(number)))
            assert sending.drain(60)
            if vanishes and at == "commit":
                vanishing.proxy.vanish()
            sending.commit_transaction()
    assert values(vanishing, topic) == [b"0", b"1", b"2"]


def test_topics_are_read_written_and_looked_up_again(vanishing: ProxiedKafka, topic: str) -> None:
    client = {"bootstrap.servers": vanishing.bootstrap, **LIMITS}
    del client["request.timeout.ms"]
    admin, writer, reader = TopicAdmin(client, timeout=20), TopicWriter(client, 60), TopicReader(client, client)
    assert set(admin.identify([topic])) == {topic}
    assert reader.topic_id(topic)
    writer.send(topic, b"before", b"k")
    writer.wait()
    vanishing.proxy.vanish()
    writer.send(topic, b"after", b"k")
    writer.wait()
    extents = reader.extents(topic)
    assert extents is not None
    assert [record.value for record in reader.read(topic, extents)] == [b"before", b"after"]
    assert reader.topic_id(topic)
    vanishing.proxy.vanish()
    with suppress(KafkaUnreachable):  # which the caller tries again
        admin.identify([topic])
    assert set(admin.identify([topic])) == {topic}
