"""A broker that vanishes without a word: its connections stay open, and nothing comes through them any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import pytest

from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.delivery.errors import ProducerFailed
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import SinkProducer
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import TopicReader
from rowtide.schema_history.store.topic_writer import TopicWriter
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.errors import KafkaUnreachable
from rowtide.topics.settings import TopicSettings
from tests.support.kafka.proxied_broker import ProxiedKafka, proxied_kafka
from tests.support.kafka.topic_tools import Topics

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
def producer(kind: ProducerKind, settings: dict[str, Any]) -> Iterator[SinkProducer]:
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
    with ExitStack() as producers:
        sending = producers.enter_context(producer(kind, settings))
        sending.init_transactions(60)
        for number, vanishes in enumerate((False, True, False)):
            try:
                sending.begin_transaction()
            except ProducerFailed:  # librdkafka, after a commit that it may have sent twice: a new one goes on
                sending = producers.enter_context(producer(kind, settings))
                sending.init_transactions(60)
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


_END_TXN = b"\x00\x1a"


def is_end_of_transaction(data: bytes) -> bool:
    return data[4:6] == _END_TXN


@pytest.mark.parametrize("kind", KINDS)
def test_a_late_end_of_a_transaction_does_not_end_the_next_one(topic: str, kind: ProducerKind) -> None:
    """Librdkafka itself cannot tell; the records of an open transaction would become visible."""
    with proxied_kafka() as vanishing:
        Topics(vanishing.kafka.bootstrap).admin.ensure(topic, TopicSettings(1, 1))
        settings = transactional_settings({"bootstrap.servers": vanishing.bootstrap, **LIMITS}, f"{topic}-id")
        proxy = vanishing.proxy
        with producer(kind, settings) as first:
            first.init_transactions(60)
            first.begin_transaction()
            first.send(batch(topic, "first"))
            assert first.drain(60)
            proxy.hold = is_end_of_transaction
            first.commit_transaction()
            assert proxy.held.is_set(), "the first request to commit is on its way"
            using = first
            if kind is ProducerKind.LIBRDKAFKA:
                with pytest.raises(ProducerFailed, match="may have been sent twice"):
                    first.begin_transaction()
                using = new_producer(kind, settings, quiet=nullcontext)
                using.init_transactions(60)
            using.begin_transaction()
            using.send(batch(topic, "open"))
            assert using.drain(60)
            proxy.held.clear()
            assert proxy.answered.wait(60)
            assert values(vanishing, topic) == [b"first"], "the second transaction is open"
            using.commit_transaction()
            assert values(vanishing, topic) == [b"first", b"open"]
            using.close()
