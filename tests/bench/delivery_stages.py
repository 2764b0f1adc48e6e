"""Where the time of the delivery goes: from batches to acknowledged records, with librdkafka's mock broker.

The mock broker runs in this process, in a thread that is not counted. It neither checks nor stores records, so that
librdkafka never waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, TransactionalSink
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore, OffsetRecord
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset

__all__ = ["delivery_seconds", "store_and_release"]

_CLIENT = {
    "bootstrap.servers": "replaced",
    "compression.type": "lz4",
    "batch.size": "524288",
}
_MOCK = {"test.mock.num.brokers": 1, "allow.auto.create.topics": True}
_TRANSACTION = 10_000
"""Messages in a transaction: about those of ``transaction.boundary=poll``, which commits every 200 ms."""


def store_and_release(batches: Sequence[Batch]) -> None:
    """Put batches into the event store one by one, as the reader does, take them in groups, and release them."""
    store = EventStore()
    for batch in batches:
        if not store.put([batch], timeout=0):
            store.ack(store.get(2048, 0).sequence)
            store.put([batch])


def delivery_seconds(
    batches: Sequence[Batch], *, exactly_once: bool, servers: Mapping[str, Any] = MappingProxyType(_MOCK)
) -> dict[str, float]:
    """Deliver batches, and measure the processor time of each part in seconds.

    Args:
        batches: the batches.
        exactly_once: in transactions.
        servers: librdkafka's settings of the broker; by default, those of the mock broker.
    """
    reports = _Meter()
    settings = transactional_settings(_CLIENT, "bench") if exactly_once else idempotent_settings(_CLIENT)
    producer = RecordProducer({**settings, **servers}, quiet=reports.measured)
    offsets: Any = _Offsets()
    sink = TransactionalSink(producer, offsets) if exactly_once else IdempotentSink(producer, offsets)
    sink.open()
    sent, committed = _Meter(), _Meter()
    before, messages = _librdkafka_seconds({}), 0
    for batch in batches:
        with sent.measured():
            sink.send([batch])
        messages += len(batch.messages)
        if exactly_once and messages >= _TRANSACTION:
            messages = 0
            with committed.measured():
                sink.commit(batch.offset)
    with committed.measured():
        sink.commit(batches[-1].offset)
    client = sum(_librdkafka_seconds(before).values())
    sink.close()
    return {
        "produce() and commits": sent.seconds + committed.seconds - reports.seconds,
        "delivery reports": reports.seconds,
        "librdkafka's threads": client,
    }


class _Offsets(InMemoryOffsetStore):
    """Offsets as records, as those of the offsets topic."""

    def record(self, offset: SourceOffset | None) -> OffsetRecord:  # type: ignore[override]
        return OffsetRecord("offsets", b"bench", b"" if offset is None else offset.to_json().encode())


class _Meter:
    """The processor time of the calling thread in some parts of its work."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        begin = time.thread_time()
        yield
        self.seconds += time.thread_time() - begin


def _librdkafka_seconds(before: Mapping[str, float]) -> dict[str, float]:
    """The processor time of each of librdkafka's threads since ``before``, without those of mock brokers."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the threads of a closed client end meanwhile
            name = (task / "comm").read_text().strip()
            seconds = int((task / "schedstat").read_text().split()[0]) / 1e9
            if name.startswith("rdk:") and name != "rdk:mock":
                found[task.name] = seconds - before.get(task.name, 0.0)
    return found
