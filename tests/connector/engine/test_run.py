"""What is written when, while a snapshot is taken."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from rowtide.connector.engine.run import write_snapshot
from rowtide.connector.records.batch import Batch, HistoryEntry
from rowtide.connector.records.offset import SourceOffset

RUNNING, COMPLETE = SourceOffset("b.000001", 4, snapshot="INITIAL"), SourceOffset("b.000001", 4)


class Written:
    """A history and a store, and the order in which things came to them."""

    def __init__(self) -> None:
        self.order: list[str] = []

    @contextmanager
    def buffered(self) -> Iterator[None]:
        yield
        self.order.append("written down")

    def append(self, text: str) -> None:
        self.order.append(text)

    def put(self, batches: list[Batch]) -> None:
        self.order.append(f"{batches[0].topic}, {batches[0].offset.snapshot}")


def batch(topic: str, offset: SourceOffset) -> Batch:
    return Batch(topic, -1, [(None, b"", ())], offset, 0, 0)


def test_the_history_is_written_down_before_the_offset_that_relies_on_it() -> None:
    seen, stop = Written(), threading.Event()
    outputs = [HistoryEntry("one"), batch("p", RUNNING), HistoryEntry("two"), batch("p.d.t", RUNNING)]
    last = [batch("p.d.t", COMPLETE), batch("notes", COMPLETE)]
    assert write_snapshot([*outputs, *last], cast("Any", seen), cast("Any", seen), stop)
    told = ["one", "p, INITIAL", "two", "p.d.t, INITIAL", "written down", "p.d.t, None", "notes, None"]
    assert seen.order == told


def test_a_snapshot_can_be_broken_off_until_its_last_record() -> None:
    for stopped_at, complete in ((0, False), (1, False), (2, True), (3, True)):
        seen, stop = Written(), threading.Event()

        def outputs(at: int = stopped_at, stop: threading.Event = stop) -> Iterator[HistoryEntry | Batch]:
            made = [HistoryEntry("one"), batch("t", RUNNING), batch("t", COMPLETE), batch("notes", COMPLETE)]
            for place, output in enumerate(made):
                if place == at:
                    stop.set()
                yield output

        assert write_snapshot(outputs(), cast("Any", seen), cast("Any", seen), stop) is complete
        assert seen.order[-1] == ("notes, None" if complete else "written down")
