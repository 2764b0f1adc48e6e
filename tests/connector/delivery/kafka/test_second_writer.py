"""A second writer of a connector's offsets, found by its records in a real offsets topic."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
from confluent_kafka import Producer

from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.second_writer import SecondWriterWatch, still_writing
from rowtide.connector.delivery.kafka.writer import HEADER, THIS_PROCESS, Writer
from rowtide.connector.delivery.offset_store import offset_key
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.internal import offsets_settings
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import eventually

OFFSET = SourceOffset("binlog.000003", 484)
OLDER = dataclasses.replace(THIS_PROCESS, started_ms=THIS_PROCESS.started_ms - 1, id="older")
NEWER = dataclasses.replace(THIS_PROCESS, started_ms=THIS_PROCESS.started_ms + 1, id="newer")


def store(topics: Topics, topic: str, writer: Writer = THIS_PROCESS, name: str = "shop") -> KafkaOffsetStore:
    client = topics.client
    return KafkaOffsetStore(
        topic, name, "p", producer=client, consumer=client, admin=client, timeout=20.0, writer=writer
    )


def save_as_kafka_connect(topics: Topics, topic: str, pos: int = 4, at_ms: int = 0) -> None:
    producer = Producer(topics.client)
    value = SourceOffset("binlog.000003", pos).to_json().encode()
    producer.produce(topic, value, offset_key("shop", "p"), timestamp=at_ms)
    assert producer.flush(20) == 0


def test_of_two_writers_exactly_one_is_newer() -> None:
    same_time = dataclasses.replace(THIS_PROCESS, id="other")
    for other in (OLDER, NEWER, same_time):
        assert THIS_PROCESS.newer_than(other) != other.newer_than(THIS_PROCESS)
    assert not THIS_PROCESS.newer_than(THIS_PROCESS)


def test_a_process_of_this_machine_that_has_ended_is_known() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert THIS_PROCESS.may_run
    assert not dataclasses.replace(THIS_PROCESS, pid=ended.pid).may_run
    assert dataclasses.replace(THIS_PROCESS, pid=ended.pid, host="elsewhere").may_run
    assert dataclasses.replace(THIS_PROCESS, pid=1 << 80).may_run


WITHOUT_TIME = b'{"id": "", "host": "", "pid": 1, "started_ms": %s}'


@pytest.mark.parametrize(
    "text",
    [
        *(None, b"", b"x", b"null", b"[]", b'{"id": 1}', b"[" * 100_000, b"\xff"),
        *(WITHOUT_TIME % value for value in (b"Infinity", b"NaN", b"1e300", b"9" * 20, b"-" + b"9" * 17)),
    ],
)
def test_a_header_that_names_no_writer(text: bytes | None) -> None:
    assert Writer.parse([(HEADER, text)]) is None
    assert Writer.parse([]) is None
    assert Writer.parse([THIS_PROCESS.header()]) == THIS_PROCESS


@pytest.mark.servers
def test_records_of_other_writers_are_seen(topics: Topics) -> None:
    topic, newer = topics.name(), []
    topics.admin.ensure(topic, offsets_settings(2, 1))
    own = store(topics, topic)
    save_as_kafka_connect(topics, topic)  # before the watch begins
    with closing(SecondWriterWatch(own, newer.append)) as watch:
        watch.start()

        def seen(expected: str, writer: KafkaOffsetStore) -> None:
            def found() -> bool:
                own.save(OFFSET)  # its own records are not counted
                store(topics, topic, OLDER, "another connector").save(OFFSET)
                writer.save(OFFSET)
                return watch.seen is not None and expected in watch.seen.name

            eventually(found, expected)

        seen(str(OLDER), store(topics, topic, OLDER))

        def kafka_connect() -> bool:
            save_as_kafka_connect(topics, topic)
            return watch.seen is not None and "Kafka Connect" in watch.seen.name

        eventually(kafka_connect, "Kafka Connect")
        assert newer == []  # the newest goes on
        seen(str(NEWER), store(topics, topic, NEWER))
        eventually(lambda: newer, "the newer one")
        assert newer == [NEWER]


@pytest.mark.servers
def test_a_start_beside_kafka_connect(topics: Topics) -> None:
    topic = topics.name()
    topics.admin.ensure(topic, offsets_settings(2, 1))
    own, waits = store(topics, topic), []
    assert still_writing(own, 60, waits.append) is None  # nothing is stored
    save_as_kafka_connect(topics, topic, at_ms=int(time.time() * 1000) - 120_000)
    assert still_writing(own, 60, waits.append) is None  # it stopped long ago
    assert waits == []

    save_as_kafka_connect(topics, topic, 5)
    assert still_writing(own, 12, waits.append) is None  # it stopped just now
    assert sum(waits) == pytest.approx(13, abs=13)
    assert waits

    def moved(_seconds: float) -> None:
        save_as_kafka_connect(topics, topic, 6)

    found = still_writing(own, 60, moved)
    assert found is not None
    assert found.writer is None

    stop = threading.Event()
    stop.set()
    assert still_writing(own, 60, stop.wait) is None  # a stop ends the search
    own.save(OFFSET)
    assert still_writing(own, 60, moved) is None  # the last one to write was rowtide
