"""When a blocking snapshot is read: exactly at the position of its view, and again after whatever goes wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from rowtide.connector.config.errors import Problem
from rowtide.connector.errors import SnapshotError
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import ReadTables
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import snapshot_request, stop_request
from rowtide.connector.snapshot.blocking import snapshots
from rowtide.connector.snapshot.blocking.snapshots import BlockingSnapshots
from rowtide.connector.snapshot.blocking.state import BlockingState
from rowtide.connector.snapshot.blocking.table_reader import SnapshotRefused
from rowtide.connector.snapshot.view.consistent_view import View
from rowtide.connector.snapshot.view.opening import OpenSnapshot
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.server_queries import ListedTable
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.topics.filters import TableFilter
from rowtide.topics.naming import StandardNaming

UUID = "70506b22-e621-11f1-b9cd-02fc00000001"
GONE = DatabaseUnreachableError(Problem("database.hostname", "gone"), retriable=True)


def at(transactions: int) -> SourceOffset:
    return SourceOffset("b.000001", 100 * transactions, f"{UUID}:1-{transactions}")


def blocking(*tables: str) -> Signal:
    return Signal("s", "execute-snapshot", {"type": "blocking", "data-collections": list(tables)}, "file")


@dataclass
class Reader:
    """A server whose binlog ends at a transaction. What it fails with comes first."""

    end: int = 0
    tables: tuple[str, ...] = ("t",)
    failures: list[Exception] = field(default_factory=list)
    broken: Exception | None = None
    opened: int = 0
    closed: int = 0

    def end_of_binlog(self) -> SourceOffset:
        return at(self.end)

    def position(self, opened: OpenSnapshot) -> SourceOffset:
        return opened.view.position

    @contextlib.contextmanager
    def open(self, _request: object) -> Iterator[OpenSnapshot]:
        if self.failures:
            raise self.failures.pop(0)
        self.opened += 1
        yield OpenSnapshot(View(at(self.end), ()), (), (), [ListedTable(TableId("d", one)) for one in self.tables])
        self.closed += 1

    def interrupted(self, _opened: OpenSnapshot) -> None: ...

    def outputs(self, opened: OpenSnapshot, _request: object, at: SourceOffset, *_others: object) -> Iterator[Output]:
        for place, _table in enumerate(opened.tables, 1):
            last = place == len(opened.tables)
            yield Batch(f"row {place}", -1, (), replace(at, snapshot=None if last else "BLOCKING"), 0, 0)
            if self.broken:
                error, self.broken = self.broken, None
                raise error
        yield Batch("behind", -1, (), at, 0, 0)


class Run:
    """A stream with blocking snapshots."""

    def __init__(self, reader: Reader, start: SourceOffset) -> None:
        self.reader = reader
        self.notified: list[tuple[str, str]] = []
        self.during: Callable[[], None] | None = None
        self.stops = False
        self.settings = PipelineSettings(
            "mysql", "shop", StandardNaming("shop"), notification_topic="notes",
            on_notification=lambda one: self.notified.append((one["aggregate_type"], one["type"])),
        )  # fmt: skip
        self.snapshots = BlockingSnapshots(
            self.settings, cast("Any", reader), lambda: 0, lambda: self.stops, self._signals
        )
        self.attach(start)

    def attach(self, start: SourceOffset) -> None:
        """Begin a stream."""
        tables = Tables(Server(Flavor.MYSQL))
        self.pipeline = Pipeline(self.settings, tables, start, lambda: 0)
        self.snapshots.attach(self.pipeline, CapturedTables(self.settings, tables, lambda: 0))

    def _signals(self, _pipeline: Pipeline) -> list[Output]:
        if self.during is not None:
            self.during()
        return []

    def execute(self, *tables: str) -> None:
        list(self.snapshots.execute(snapshot_request(blocking(*tables))))

    def stop(self, *tables: str) -> None:
        data = {"type": "blocking"} | ({"data-collections": list(tables)} if tables else {})
        request = stop_request(Signal("x", "stop-snapshot", data, "file"))
        list(self.snapshots.stop(request, self.pipeline.offset()))

    def stream_to(self, transaction: int) -> None:
        """Read transactions; the position is between two of them."""
        offset = at(transaction)
        progress = self.pipeline.progress
        for number in range(progress.end // 100 + 1, transaction + 1):
            progress.gtid_started(f"{UUID}:{number}", at(number - 1).gtids, at(number).gtids, None)
            progress.began(None)
            progress.at_event(progress.end, 100 * number, 1, 0)
            progress.committed(100 * number)
        assert progress.end == offset.pos

    def run(self) -> list[Batch]:
        """What is emitted, if something is due."""
        if not self.snapshots.due:
            return []
        return [one for one in self.snapshots.run(self.pipeline) if isinstance(one, Batch) and one.topic != "notes"]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_FIRST_WAIT_S", 0.0)


def test_the_rows_come_where_the_stream_is_at_the_view() -> None:
    reader = Reader(end=7)
    run = Run(reader, at(5))
    run.execute("d.t")
    assert run.run() == []
    assert reader.opened == 0, "the stream comes to the end of the binlog first"
    run.stream_to(6)
    assert run.run() == []
    reader.end = 9
    run.stream_to(7)
    assert not run.snapshots.has_view
    assert run.run() == []
    assert (reader.opened, reader.closed) == (1, 0)
    assert run.snapshots.has_view
    run.stream_to(8)
    assert run.run() == []
    run.stream_to(9)
    batches = run.run()
    assert [one.topic for one in batches] == ["row 1", "behind"]
    assert [one.offset.gtids for one in batches] == [at(9).gtids] * 2
    assert reader.closed == 1
    assert not run.snapshots.has_view
    assert run.run() == []
    assert run.notified == [("Blocking Snapshot", "COMPLETED")]


def test_a_name_that_matches_no_table_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(Reader(end=5), at(5))
    run.execute("d.t", r"d\.nosuch")
    assert [one.topic for one in run.run()] == ["row 1", "behind"]
    assert run.notified == [("Blocking Snapshot", "TABLE_SCAN_COMPLETED"), ("Blocking Snapshot", "COMPLETED")]
    assert r"table d\.nosuch of the blocking snapshot is not captured, or does not exist" in caplog.text


def test_every_offset_before_the_last_record_has_the_snapshot() -> None:
    reader = Reader(end=5, tables=("t", "u"))
    run = Run(reader, at(5))
    run.execute("d.t")
    batches = run.run()
    assert [one.topic for one in batches] == ["row 1", "row 2", "behind"]
    states = [BlockingState.from_carried(one.offset.carried).requests for one in batches]
    assert [len(state) for state in states] == [1, 0, 0]
    again = Run(Reader(end=6), replace(batches[0].offset, snapshot=None))
    again.run()
    again.stream_to(6)
    assert [one.topic for one in again.run()] == ["row 1", "behind"], "after a crash it begins again"


def test_a_stream_that_is_not_at_the_view_does_not_get_it() -> None:
    """The stream can come from another server, with transactions that this one does not have."""
    reader = Reader(end=5)
    run = Run(reader, at(6))
    run.execute("d.t")
    for _ in range(7):
        assert run.run() == []
    assert reader.closed == 7
    run.run()
    assert run.notified == [("Signal", "FAILED"), ("Initial Snapshot", "ABORTED")]
    assert not run.snapshots.active


def test_it_begins_again_after_a_lost_connection() -> None:
    reader = Reader(end=5, tables=("t", "u"), failures=[GONE, SnapshotError("no lock")], broken=GONE)
    run = Run(reader, at(5))
    run.execute("d.t")
    assert [run.run(), run.run()] == [[], []]
    assert [one.topic for one in run.run()] == ["row 1"]
    assert [one.topic for one in run.run()] == ["row 1", "row 2", "behind"]


def test_a_new_stream_begins_again() -> None:
    reader = Reader(end=5)
    run = Run(reader, at(4))
    run.execute("d.t")
    run.run()
    run.stream_to(5)
    reader.end = 6
    assert run.run() == []
    run.attach(run.pipeline.offset())
    assert reader.closed == 1
    run.stream_to(6)
    assert [one.topic for one in run.run()] == ["row 1", "behind"]


def test_a_refused_query_ends_it() -> None:
    reader = Reader(end=5, tables=("t", "u"), broken=SnapshotError("no such column"))
    run = Run(reader, at(5))
    run.execute("d.t")
    run.execute("d.u")
    assert [one.topic for one in run.run()] == ["row 1"]
    assert ("Initial Snapshot", "ABORTED") in run.notified
    assert [one.topic for one in run.run()] == ["row 1", "row 2", "behind"], "the next one is taken"


def test_a_table_that_is_not_captured() -> None:
    run = Run(Reader(end=5, tables=()), at(5))
    run.execute("d.nosuch")
    assert run.run() == []
    assert run.notified == [("Signal", "FAILED"), ("Initial Snapshot", "ABORTED")]


def test_signals_that_come_meanwhile() -> None:
    reader = Reader(end=5, tables=("t", "u"))
    run = Run(reader, at(5))
    run.execute("d.t")
    run.during = lambda: None if run.snapshots._current.paused else list(run.snapshots.pause(run.pipeline.offset()))  # type: ignore[func-returns-value]
    assert [one.topic for one in run.run()] == ["row 1"]
    assert run.run() == []
    list(run.snapshots.resume(run.pipeline.offset()))
    run.during = run.stop
    assert [one.topic for one in run.run()] == ["row 1"]
    assert not run.snapshots.active
    told = [kind for aggregate, kind in run.notified if aggregate == "Initial Snapshot"]
    assert told == ["PAUSED", "RESUMED", "ABORTED"]
    assert ("Blocking Snapshot", "ABORTED") in run.notified, "with the id of the signal"
    assert reader.opened == reader.closed == 2


def test_a_connector_that_stops_takes_it_at_the_next_start() -> None:
    run = Run(Reader(end=5, tables=("t", "u")), at(5))
    run.execute("d.t")
    run.stops = True
    assert [one.topic for one in run.run()] == ["row 1"]
    assert BlockingState.from_carried(run.pipeline.offset().carried).requests


@pytest.mark.parametrize("tables", [(), ("d.t",)])
def test_a_snapshot_that_is_stopped_before_it_is_read_leaves_no_view_open(tables: tuple[str, ...]) -> None:
    """The view may lock its tables, and the next snapshot has others."""
    reader = Reader(end=5, tables=("t",))
    run = Run(reader, at(4))
    run.execute("d.t", "d.x")
    run.run()
    run.stream_to(5)
    reader.end = 6
    assert run.run() == []
    run.stop(*tables)
    assert (reader.opened, reader.closed) == (1, 1)
    run.execute("d.u")
    reader.tables = ("u", "x")
    run.stream_to(6)
    assert [one.topic for one in run.run()] == ["row 1", "row 2", "behind"]
    assert reader.opened == 2


def test_a_snapshot_that_is_paused_before_it_is_read_leaves_no_view_open() -> None:
    reader = Reader(end=5)
    run = Run(reader, at(4))
    run.execute("d.t")
    run.run()
    run.stream_to(5)
    reader.end = 6
    assert run.run() == []
    list(run.snapshots.pause(run.pipeline.offset()))
    assert (reader.opened, reader.closed) == (1, 1)
    reader.end = 7
    run.stream_to(7)
    assert run.run() == []
    list(run.snapshots.resume(run.pipeline.offset()))
    assert [one.topic for one in run.run()] == ["row 1", "behind"]


def test_tables_that_were_read_as_a_whole_are_not_new_at_the_next_start() -> None:
    unread = tuple(TableId("d", name) for name in ("t", "u", "x"))
    carried = ReadTables(TableFilter(), unread).carried(None)
    run = Run(Reader(end=5, tables=("t", "u")), replace(at(5), carried=carried))
    named = ["d.t", "d.u"]
    conditions = [{"data-collection": "d.u", "filter": "SELECT * FROM d.u WHERE id > 7"}]
    data = {"type": "blocking", "data-collections": named, "additional-conditions": conditions}
    list(run.snapshots.execute(snapshot_request(Signal("s", "execute-snapshot", data, "file"))))
    batches = run.run()
    found = [ReadTables.from_carried(one.offset.carried) for one in batches]
    assert [list(map(str, one.unread)) for one in found if one] == [["d.t", "d.u", "d.x"], *[["d.u", "d.x"]] * 2]


def test_a_snapshot_that_is_refused_is_not_tried_again() -> None:
    reader = Reader(failures=[SnapshotRefused("commits wait")])
    run = Run(reader, at(0))
    run.execute("d.t")
    assert run.run() == []
    assert run.notified == [("Signal", "FAILED"), ("Initial Snapshot", "ABORTED")]
    assert not run.snapshots.active
    assert BlockingState.from_carried(run.pipeline.offset().carried).requests == ()
