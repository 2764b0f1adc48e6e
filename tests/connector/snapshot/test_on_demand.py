"""What takes snapshots on demand is made when it is first used, and continues with each new stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.offset import UNFINISHED, SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import snapshot_request, stop_request
from rowtide.connector.snapshot.incremental.state import IncrementalTable
from rowtide.connector.snapshot.on_demand import RequestedSnapshots
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.topics.naming import StandardNaming

AT = SourceOffset("b.000001", 4)
SETTINGS = PipelineSettings("mysql", "shop", StandardNaming("shop"))
X, Y = TableId("d", "x"), TableId("d", "y")
INCREMENTAL = {"data-collections": ["d.x"]}
BLOCKING = {"data-collections": ["d.x"], "type": "blocking"}


class Part:
    """The incremental or the blocking snapshots: notes what is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.active = self.due = self.has_view = False
        self.tables: tuple[IncrementalTable, ...] = ()
        self.watched: TableId | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> list[str]:
            self.calls.append((name, *arguments))
            return [f"output of {name}"]

        return call

    @property
    def called(self) -> list[str]:
        return [name for name, *_ in self.calls]


class Stream:
    """A stream with the snapshots next to it."""

    def __init__(self, **carried: Any) -> None:
        self.incremental: Part | None = None
        self.blocking: Part | None = None
        self.snapshots = RequestedSnapshots(lambda: self._made("incremental"), lambda: self._made("blocking"))
        self.tables = Tables(Server(Flavor.MYSQL))
        self.captured = CapturedTables(SETTINGS, self.tables, lambda: 0)
        self.connect(**carried)

    def _made(self, kind: str) -> Any:
        assert getattr(self, kind) is None, "it is made once"
        setattr(self, kind, Part())
        return getattr(self, kind)

    def connect(self, **carried: Any) -> None:
        """Begin a new stream at an offset with these fields."""
        self.pipeline = Pipeline(SETTINGS, self.tables, AT, lambda: 0)
        self.pipeline.progress.carried = carried or None
        self.snapshots.attach(self.pipeline, self.captured)

    def use_both(self) -> tuple[Part, Part]:
        """Signal a snapshot of each kind, and return the parts that were made."""
        for data in (INCREMENTAL, BLOCKING):
            self.snapshots.execute(snapshot_request(signal(**data)), AT)
        assert self.incremental is not None
        assert self.blocking is not None
        return self.incremental, self.blocking

    @property
    def made(self) -> list[str]:
        return [kind for kind in ("incremental", "blocking") if getattr(self, kind) is not None]


def signal(**data: Any) -> Signal:
    return Signal("s", "execute-snapshot", data, "in-process")


def test_nothing_is_made_for_a_stream_without_snapshots() -> None:
    stream = Stream(rowtide_snapshot_lists="{}")
    snapshots = stream.snapshots
    stream.captured.changed(X, exists=True)
    snapshots.window("w-open", "open")
    assert not snapshots.active
    assert not snapshots.due
    assert not snapshots.has_view
    assert snapshots.tables == ()
    assert snapshots.progress is stream.pipeline.progress
    assert list(snapshots.run(stream.pipeline)) == []
    snapshots.close()
    assert stream.made == []


@pytest.mark.parametrize(
    ("field", "made"),
    [
        ("rowtide_snapshot_state", "incremental"),
        ("incremental_snapshot_collections", "incremental"),
        ("incremental_snapshot_correlation_id", "incremental"),
        (UNFINISHED, "incremental"),
        ("rowtide_snapshot_blocking", "blocking"),
    ],
)
def test_a_snapshot_of_the_start_offset_continues(field: str, made: str) -> None:
    stream = Stream(**{field: "anything, also what cannot be read"})
    assert stream.made == [made]
    assert getattr(stream, made).called == ["attach"]


@pytest.mark.parametrize(("data", "made"), [(INCREMENTAL, "incremental"), (BLOCKING, "blocking")])
@pytest.mark.parametrize("action", ["execute", "stop", "pause", "resume"])
def test_a_signal_makes_what_it_concerns(data: dict[str, Any], made: str, action: str) -> None:
    stream = Stream()
    given: Any = signal(**data)
    given = {"execute": snapshot_request, "stop": stop_request}.get(action, lambda one: one)(given)
    assert list(getattr(stream.snapshots, action)(given, AT)) == [f"output of {action}"]
    assert stream.made == [made]
    assert getattr(stream, made).called == ["attach", action]


def test_tables_are_added_to_the_incremental_snapshots() -> None:
    stream = Stream()
    tables = [IncrementalTable("d.x", X, "s")]
    assert list(stream.snapshots.add(tables, "s", AT)) == ["output of add"]
    assert stream.made == ["incremental"]


def test_a_rename_reaches_the_incremental_snapshots() -> None:
    """The position has the names of tables whose rows were not read."""
    stream = Stream()
    stream.captured.renamed(X, Y)
    assert stream.incremental is not None
    assert stream.incremental.calls[1:] == [("renamed", X, Y)]
    assert stream.captured.observer is cast("Any", stream.incremental), "what follows is shown to it"


def test_what_is_made_continues_with_each_new_stream() -> None:
    stream = Stream()
    incremental, blocking = stream.use_both()
    stream.connect()
    assert incremental.calls[-1] == ("attach", stream.pipeline)
    assert blocking.calls[-1] == ("attach", stream.pipeline, stream.captured)
    stream.snapshots.close()
    assert incremental.called[-1] == blocking.called[-1] == "close"


def test_blocking_snapshots_come_first_and_only_what_is_due_is_done() -> None:
    stream = Stream()
    incremental, blocking = stream.use_both()
    incremental.due = True
    assert stream.snapshots.due
    assert list(stream.snapshots.run(stream.pipeline)) == ["output of run"]
    assert blocking.called == ["attach", "execute"]
    blocking.due = blocking.has_view = True
    assert stream.snapshots.has_view
    order: list[str] = []
    incremental.run = lambda _: order.append("incremental") or ()  # type: ignore[method-assign]
    blocking.run = lambda _: order.append("blocking") or ()  # type: ignore[method-assign]
    list(stream.snapshots.run(stream.pipeline))
    assert order == ["blocking", "incremental"]


def test_an_active_snapshot_of_either_kind_is_active() -> None:
    for data in (INCREMENTAL, BLOCKING):
        stream = Stream()
        stream.snapshots.execute(snapshot_request(signal(**data)), AT)
        part = stream.incremental or stream.blocking
        assert part is not None
        assert not stream.snapshots.active
        part.active = True
        assert stream.snapshots.active
