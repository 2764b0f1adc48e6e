"""What is written when, while a snapshot is taken."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.connector.check import CheckFailedError
from rowtide.connector.check.findings import Finding, Severity
from rowtide.connector.config import from_properties
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import DeliveryInterrupted
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.offset_store import InMemoryOffsetStore
from rowtide.connector.delivery.sinks import Record, RecordSinkDelivery
from rowtide.connector.engine import run_stop
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.run import Checks, ConnectorRun
from rowtide.connector.engine.start.included_tables import IncludedTables
from rowtide.connector.engine.start.written_snapshot import write_snapshot
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.receiver import SignalReceiver
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.signalling import Signalling
from rowtide.schema_history.store.history_store import HistoryStoreError
from tests.support.configurations import PROPERTIES

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


def test_the_history_is_written_down_before_a_snapshot_can_go_on() -> None:
    seen, stop = Written(), threading.Event()
    goes_on = replace(RUNNING, carried={"rowtide_snapshot_initial": True})
    outputs = [HistoryEntry("one"), batch("p", RUNNING), batch("p.d.t", goes_on), batch("p.d.t", goes_on)]
    assert write_snapshot(outputs, cast("Any", seen), cast("Any", seen), stop)
    assert seen.order == ["one", "p, INITIAL", "written down", "p.d.t, INITIAL", "p.d.t, INITIAL"]


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


def test_a_sink_of_the_caller_survives_a_failure_while_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run writes to it again, so it is not closed to interrupt a slow write."""

    class Slow:
        def __init__(self) -> None:
            self.go, self.closed = threading.Event(), threading.Event()
            self.written: list[str] = []

        def write(self, records: Sequence[Record]) -> None:
            while not self.go.wait(0.01):
                if self.closed.is_set():
                    raise DeliveryInterrupted("closed")
            self.written += [record.topic for record in records]

        def flush(self) -> None:
            """Everything is written."""

        def close(self) -> None:
            self.closed.set()

    sink, lost, store = Slow(), HistoryStoreError("away"), EventStore()
    config = from_properties({**PROPERTIES, "task.shutdown.graceful.timeout.ms": "1"})
    run = ConnectorRun(config, cast("Any", None), threading.Event(), None, checks=Checks.NONE, sink=sink)
    offsets = InMemoryOffsetStore()

    def work() -> None:
        run.delivery = Delivery(store, RecordSinkDelivery(sink, offsets, owned=False), CommitPolicy(1, by_poll=False))
        run.delivery.start()
        store.put([batch("p.d.t", COMPLETE)])
        raise lost

    monkeypatch.setattr(run, "_work", work)
    threading.Timer(0.3, sink.go.set).start()
    assert run.run() is lost
    assert sink.written == ["p.d.t"]
    assert not sink.closed.is_set()
    assert offsets.load() == COMPLETE


@pytest.mark.parametrize("delivering", ["nothing", "everything", "too slowly", "in vain"])
def test_a_stop_leaves_a_run_behind_that_waits_for_a_server(monkeypatch: pytest.MonkeyPatch, delivering: str) -> None:
    """Unless something is left to deliver, or was not delivered."""

    class Slow:
        def write(self, _records: Sequence[Record]) -> None:
            if delivering == "in vain":
                raise DeliveryInterrupted("refused")
            if delivering == "too slowly":
                assert answered.wait(60)

        def flush(self) -> None:
            """Everything is written."""

        def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr(run_stop, "_STOP_QUERIES_S", 0.01)
    monkeypatch.setattr(run_stop, "_STOP_READING_S", 0.01)
    answered, waiting, store = threading.Event(), threading.Event(), EventStore()
    run = ConnectorRun(from_properties(PROPERTIES), cast("Any", None), threading.Event(), None, checks=Checks.NONE)

    def work() -> None:
        if delivering != "nothing":
            sink = RecordSinkDelivery(Slow(), InMemoryOffsetStore(), owned=False)
            run.delivery = Delivery(store, sink, CommitPolicy(1, by_poll=False))
            run.delivery.start()
            store.put([batch("p.d.t", COMPLETE)])
        waiting.set()
        assert answered.wait(60)

    monkeypatch.setattr(run, "_work", work)
    thread = threading.Thread(target=run.run)
    thread.start()
    try:
        assert waiting.wait(30)
        assert not run.left_behind, "it is not stopped"
        store.close()
        if run.delivery is not None and delivering != "too slowly":
            run.delivery._thread.join(30)
        run.stop()
        assert run.left_behind == (delivering in {"nothing", "everything"})
    finally:
        answered.set()
        thread.join(30)
    assert not run.left_behind, "it has ended"


@pytest.mark.parametrize("away", [True, False])
@pytest.mark.parametrize("stopped", [True, False])
def test_a_stop_that_interrupts_the_checks_is_not_a_failure(
    monkeypatch: pytest.MonkeyPatch, *, away: bool, stopped: bool
) -> None:
    """Unless they have found what would not pass."""
    failed = CheckFailedError([Finding(Severity.ERROR, "database.hostname", "no", retriable=away)])
    stop = threading.Event()
    config = from_properties(PROPERTIES)
    run = ConnectorRun(config, pipeline_settings(config, "run"), stop, None, checks=Checks.ALL)
    checking = threading.Event()

    def work() -> None:
        checking.set()
        while stopped and not run._stop.connections.interrupted:
            stop.wait(0.01)
        raise failed

    monkeypatch.setattr(run, "_work", work)
    found: list[BaseException | None] = []
    thread = threading.Thread(target=lambda: found.append(run.run()))
    thread.start()
    assert checking.wait(30)
    if stopped:
        run.stop()
    thread.join(30)
    assert found == [None if stopped and away else failed]


def test_signals_after_one_that_changes_the_captured_tables_wait_for_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may be about the new tables, which this run does not capture."""
    config, signalling, carried_out = from_properties(PROPERTIES), Signalling(), list[str]()
    run = ConnectorRun(config, cast("Any", None), threading.Event(), None, checks=Checks.NONE, signalling=signalling)

    def message(_receiver: object, signal: Signal, *_others: object) -> list[Output]:
        carried_out.append(signal.id)
        if signal.id == "list":
            run._include(IncludedTables("list", ("d.t",), None))
        return []

    monkeypatch.setattr(SignalReceiver, "message", message)
    receiver, progress = object.__new__(SignalReceiver), SimpleNamespace(carried=None)
    pipeline = cast("Any", SimpleNamespace(signals=receiver, progress=progress, offset=lambda: COMPLETE))
    for name in ("before", "list", "after"):
        signalling.send({"id": name, "type": "log", "data": {"message": ""}}, "http")
    assert not run._interrupts_snapshots()
    assert list(signalling.inbox.run(pipeline)) == []
    assert not signalling.inbox.due
    assert run._interrupts_snapshots(), "a blocking snapshot, during which the signals came"
    assert carried_out == ["before", "list"]
    signalling.stop()
    signalling.start(config, COMPLETE, lambda: None)
    assert signalling.inbox.due
    assert list(signalling.inbox.run(pipeline)) == []
    assert carried_out == ["before", "list", "after"]
