"""The delivery loop with a sink that cannot write everything."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress

from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import SinkUnavailable
from rowtide.connector.delivery.event_store import EventStore, StoreClosed
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore
from rowtide.connector.delivery.sinks import Record, RecordSinkDelivery
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset

SELDOM = CommitPolicy(interval_s=3600)


class FullDisk:
    """Takes records while there is room."""

    def __init__(self) -> None:
        self.room = 0
        self.written: list[bytes | None] = []
        self.broken = False

    def write(self, records: Sequence[Record]) -> None:
        if len(records) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(records)
        self.written += [record.key for record in records]

    def flush(self) -> None:
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")

    def close(self) -> None:
        """Nothing is open."""


def run(sink: FullDisk, offsets: InMemoryOffsetStore) -> BaseException | None:
    """Deliver ten records from the stored offset on, one at a time, and return the failure."""
    stored = offsets.load()
    store = EventStore(max_events=4)
    delivery = Delivery(store, RecordSinkDelivery(sink, offsets, owned=False), SELDOM)
    delivery.start()
    with suppress(StoreClosed):
        for number in range(0 if stored is None else stored.pos, 10):
            message = (b"%d" % number, b"{}", ())
            store.put([Batch("shop.a", -1, [message], SourceOffset("b.000001", number + 1), 10, 1)])
    delivery.stop()
    return delivery.failure


def test_each_start_writes_what_the_one_before_had_no_room_for() -> None:
    sink, offsets = FullDisk(), InMemoryOffsetStore()
    for _ in range(3):
        assert isinstance(run(sink, offsets), SinkUnavailable)
        sink.room = 4
    assert run(sink, offsets) is None
    assert sink.written == [b"%d" % number for number in range(10)]


def test_nothing_is_stored_that_is_not_safe() -> None:
    sink, offsets = FullDisk(), InMemoryOffsetStore()
    sink.room, sink.broken = 4, True
    failure = run(sink, offsets)
    assert "No space left" in str(failure), "the first problem, which is the cause"
    assert offsets.load() is None
