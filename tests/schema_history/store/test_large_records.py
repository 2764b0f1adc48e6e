"""Large history records: written where the topic allows them, refused with a remedy where it does not."""

from __future__ import annotations

import json
import random

import pytest

from rowtide.schema_history.store.history_store import UnusableHistory
from rowtide.schema_history.store.kafka import KafkaSchemaHistory
from rowtide.topics.internal import HISTORY_CONFIG
from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers

MB = 1_000_000


def history(topics: Topics, topic: str, **producer: str) -> KafkaSchemaHistory:
    settings = {**topics.client, **{name.replace("_", "."): value for name, value in producer.items()}}
    return KafkaSchemaHistory(topic, settings, topics.client, topics.client, timeout=20.0)


def statement(columns: int) -> str:
    """A record as of a table with so many columns."""
    names = [f"column_{number} VARCHAR({number % 200 + 1}) NOT NULL" for number in range(columns)]
    return json.dumps({"ddl": f"CREATE TABLE t ({', '.join(names)})"})


def noise(size: int) -> str:
    """A record that hardly shrinks when it is compressed."""
    return json.dumps({"ddl": random.Random(size).randbytes(size // 2).hex()})


def test_a_record_of_thousands_of_columns_fits_into_a_topic_with_default_limits(topics: Topics) -> None:
    topic = topics.new(1, HISTORY_CONFIG)
    store = history(topics, topic)
    texts = [statement(100), statement(40_000), statement(10)]
    assert len(texts[1]) > 1.4 * MB
    for text in texts:
        store.append(text)
    with store.buffered():
        for text in texts:
            store.append(text)
    assert list(history(topics, topic).replay(str)) == texts * 2


def test_a_record_that_the_topic_does_not_allow_is_refused_for_good(topics: Topics) -> None:
    topic = topics.new(1, HISTORY_CONFIG)
    with pytest.raises(UnusableHistory) as caught:
        history(topics, topic).append(noise(4 * MB))
    for part in (repr(topic), f"{len(noise(4 * MB))} bytes", "max.message.bytes"):
        assert part in str(caught.value)
    buffering = history(topics, topic)
    with pytest.raises(UnusableHistory), buffering.buffered():
        buffering.append(noise(4 * MB))
    assert not history(topics, topic).exists()


def test_a_record_of_ten_megabytes_is_written_where_the_topic_allows_it(topics: Topics) -> None:
    topic = topics.new(1, {**HISTORY_CONFIG, "max.message.bytes": str(20 * MB)})
    history(topics, topic).append(noise(10 * MB))
    assert list(history(topics, topic).replay(str)) == [noise(10 * MB)]


def test_a_record_larger_than_the_users_limit_names_the_property(topics: Topics) -> None:
    topic = topics.new(1, HISTORY_CONFIG)
    for limits in ({"message_max_bytes": "2000"}, {"queue_buffering_max_kbytes": "2"}):
        store = history(topics, topic, **limits)
        store.append(noise(200))
        with pytest.raises(UnusableHistory, match=r"schema\.history\.internal\.producer\.max\.request\.size"):
            store.append(noise(4000))


def test_buffered_records_wait_for_room_in_a_small_buffer(topics: Topics) -> None:
    topic = topics.new(1, HISTORY_CONFIG)
    store = history(topics, topic, queue_buffering_max_kbytes="2")
    texts = [noise(700 + number) for number in range(50)]
    with store.buffered():
        for text in texts:
            store.append(text)
    assert list(history(topics, topic).replay(str)) == texts


def test_small_records_fit_together_into_a_topic_with_a_low_limit(topics: Topics) -> None:
    topic = topics.new(1, {**HISTORY_CONFIG, "max.message.bytes": "100000"})
    store = history(topics, topic)
    texts = [noise(50_000 + number) for number in range(30)]
    with store.buffered():
        for text in texts:
            store.append(text)
    assert list(history(topics, topic).replay(str)) == texts
