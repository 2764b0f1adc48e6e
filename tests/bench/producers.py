"""What a message costs in the delivery as the work grows, with both producers and a real broker.

    python -m tests.bench.producers [--only NAME] [--rounds N]

Made messages go through the sink of at-least-once delivery, to partitions chosen by the key. Each measurement is a
process of its own, in turns with the other producer; the least of the rounds counts. The processor time is that of the
process after a first batch, with all threads; the broker's is not counted. Memory is what its peak grows meanwhile.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import resource
import secrets
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka  # noqa: E402 - after the path

from rowtide.connector.config.choices import ProducerKind  # noqa: E402
from rowtide.connector.config.kafka.producer_settings import idempotent_settings  # noqa: E402
from rowtide.connector.delivery.event_store import EventStore  # noqa: E402
from rowtide.connector.delivery.kafka.producers import new_producer  # noqa: E402
from rowtide.connector.delivery.kafka.sink import IdempotentSink  # noqa: E402
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore  # noqa: E402
from rowtide.connector.records.batch import Batch  # noqa: E402
from rowtide.connector.records.offset import SourceOffset  # noqa: E402
from tests.chaos.kafka_cluster import KafkaCluster  # noqa: E402

_HEADERS = tuple((f"__debezium.context.{name}", b"0123456789") for name in ("taskId", "connectorName", "runId", "x"))
_GROUP = 100
"""Batches that the delivery loop takes at once."""
_LARGEST = 32 << 20
_CREATED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Work:
    """Messages to send.

    Attributes:
        count: the number of messages.
        size: bytes of each value.
        event: messages of a batch.
        topics: the topics that batches are for, in turn.
        partitions: of each topic.
        unique: whether the values cannot be compressed by more than a half, and do not repeat.
        brokers: one, or three of which each partition has one.
    """

    count: int = 50_000
    size: int = 600
    event: int = 20
    topics: int = 1
    partitions: int = 1
    unique: bool = False
    brokers: int = 1

    def batches(self, topic: str) -> list[Batch]:
        """The messages in batches, for topics with this prefix."""
        made = []
        for number in range(0, self.count, self.event):
            messages = [(b'{"id":%d}' % (number + at), self._value(), _HEADERS) for at in range(self.event)]
            offset = SourceOffset("binlog.000001", number)
            name = f"{topic}-{number // self.event % self.topics}"
            made.append(Batch(name, -1, messages, offset, self.size * self.event, 0))
        return made

    def _value(self) -> bytes:
        piece = secrets.token_hex((self.size + 1) // 2 if self.unique else 8).encode()
        return (piece * (self.size // len(piece) + 1))[: self.size]


def growing() -> dict[str, list[tuple[str, Work]]]:
    """The works by what grows in them, each with its size."""
    sizes = (("10 B", 10), ("1 KB", 1000), ("10 KB", 10_000), ("100 KB", 100_000), ("1 MB", 1_000_000))
    return {
        "partitions": [(str(count), Work(partitions=count)) for count in (1, 10, 100)],
        "partitions, three brokers": [(str(count), Work(partitions=count, brokers=3)) for count in (1, 10, 100)],
        "topics": [(str(count), Work(topics=count, event=2)) for count in (1, 100, 1000)],
        "bytes of a message": [
            *((name, Work(count=max(100, min(200_000, 40_000_000 // size)), size=size)) for name, size in sizes),
            ("20 MB", Work(count=10, size=20_000_000, event=1)),
        ],
        "bytes of a message, unique values": [
            *(
                (name, Work(count=max(100, min(200_000, 40_000_000 // size)), size=size, unique=True))
                for name, size in sizes
            ),
            ("20 MB", Work(count=10, size=20_000_000, event=1, unique=True)),
        ],
    }


def delivered(work: Work, kind: ProducerKind, bootstrap: str, topic: str) -> tuple[float, float]:
    """Deliver the messages in this process: processor time in seconds, and growth of the peak memory in bytes."""
    logging.disable(logging.WARNING)
    batches = work.batches(topic)
    client = {"bootstrap.servers": bootstrap, "compression.type": "lz4", "batch.size": "524288"}
    settings = idempotent_settings({**client, "message.max.bytes": str(_LARGEST)})
    producer = new_producer(kind, settings, quiet=EventStore().quiet, show_keys=True)
    sink = IdempotentSink(producer, InMemoryOffsetStore())
    sink.send(batches[:1])
    sink.commit(batches[0].offset)  # connects
    memory, begin = _peak_bytes(), time.process_time()
    for at in range(0, len(batches), _GROUP):
        sink.send(batches[at : at + _GROUP])
    sink.commit(batches[-1].offset)
    seconds = time.process_time() - begin
    sink.close()
    return seconds, _peak_bytes() - memory


def _peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def created(bootstrap: str, work: Work, topic: str) -> None:
    """Create the topics."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    options = {"max.message.bytes": str(_LARGEST)}
    for first in range(0, work.topics, _CREATED_AT_ONCE):
        numbers = range(first, min(work.topics, first + _CREATED_AT_ONCE))
        topics = [NewTopic(f"{topic}-{number}", work.partitions, 1, config=options) for number in numbers]
        for done in admin.create_topics(topics).values():
            done.result()


def measured(work: Work, bootstrap: str, topic: str, rounds: int) -> dict[ProducerKind, tuple[float, float]]:
    """The least processor time and memory of each producer."""
    least: dict[ProducerKind, tuple[float, float]] = {}
    for _ in range(rounds):
        for kind in (ProducerKind.NATIVE, ProducerKind.LIBRDKAFKA):
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                found = process.submit(delivered, work, kind, bootstrap, topic).result()
            least[kind] = min(least.get(kind, found), found)
    return least


def main() -> None:
    """Measure, and print a table."""
    works = growing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(works), help="what grows")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    print("| what grows | size | native µs | librdkafka µs | native MB | librdkafka MB |")
    print("| --- | --: | --: | --: | --: | --: |")
    with ExitStack() as stack:
        servers: dict[int, str] = {}
        for name, sizes in works.items():
            for at, (size, work) in enumerate(sizes) if options.only in {None, name} else ():
                if work.brokers not in servers:
                    servers[work.brokers] = (
                        stack.enter_context(Kafka({"message.max.bytes": str(_LARGEST)})).bootstrap
                        if work.brokers == 1
                        else stack.enter_context(KafkaCluster()).direct
                    )
                bootstrap, topic = servers[work.brokers], f"{''.join(filter(str.isalpha, name))}{at}"
                created(bootstrap, work, topic)
                measured(replace(work, count=work.event * work.topics), bootstrap, topic, 1)  # opens the topics' files
                found = measured(work, bootstrap, topic, options.rounds).values()
                micros = " | ".join(f"{seconds / work.count * 1e6:.2f}" for seconds, _memory in found)
                memory = " | ".join(f"{peak / 1e6:.0f}" for _seconds, peak in found)
                print(f"| {name} | {size} | {micros} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
