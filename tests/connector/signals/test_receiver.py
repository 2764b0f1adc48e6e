"""The signals of a recorded signal table: carried out once each, in order, and once also after a restart anywhere."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rowtide.connector.config import from_properties
from rowtide.connector.engine.decoding.forms import RecordForm
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import FormPipeline, ReadPrepared, replay_through
from rowtide.connector.errors import SignalError
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.actions import Signals
from rowtide.connector.signals.receiver import SignalReceiver
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import SnapshotRequest, StopRequest
from rowtide.connector.signals.snapshots import Window
from rowtide.schema_history.catalog.tables import Tables
from tests.support.recordings.golden import Case

CASE = Case("signals-all")
OF_SNAPSHOTS = [
    "s-inc", "s-inc2", "s-pause", "s-resume", "s-inc3", "s-stop", "s-inc4", "s-stop2", "s-blk",
]  # fmt: skip


class Recorder:
    """Snapshots on demand that record what they are called with, in the offset, too."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.windows: list[tuple[str, Window]] = []
        self.pipeline: Pipeline | None = None

    def execute(self, request: SnapshotRequest, at: SourceOffset) -> Iterable[Output]:
        return self._called(request.signal, at)

    def stop(self, request: StopRequest, at: SourceOffset) -> Iterable[Output]:
        return self._called(request.signal, at)

    def pause(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        return self._called(signal, at)

    def resume(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        return self._called(signal, at)

    def window(self, window_id: str, kind: Window) -> None:
        self.windows.append((window_id, kind))

    def _called(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        assert self.pipeline is not None
        progress = self.pipeline.progress
        done = (progress.carried or {}).get("rowtide_snapshot_done", "")
        assert (at.carried or {}).get("rowtide_snapshot_done", "") == done or self.ids, "outputs are before the signal"
        progress.carried = {"rowtide_snapshot_done": f"{done} {signal.id}"}
        self.ids.append(signal.id)
        return [Batch("called", 0, [(None, signal.id.encode(), ())], at, 1, 0)]


def settings(case: Case = CASE, **changes: object) -> PipelineSettings:
    own = {name: text for name, text in case.properties().items() if not name.startswith("incremental.")}
    own["notification.enabled.channels"] = "sink"
    wanted = {name: text for name, text in own.items() if not name.startswith(("signal.enabled", "signal.file"))}
    return replace(pipeline_settings(from_properties(wanted), "run"), **changes)  # type: ignore[arg-type]


def replayed(
    snapshots: Recorder, start: SourceOffset | None, case: Case = CASE, *, from_table: bool = True, **changes: object
) -> Iterator[Output]:
    chosen = settings(case, **changes)

    def make(tables: Tables, offset: SourceOffset, _packets: ReadPrepared) -> FormPipeline[Sequence[Output]]:
        captured = CapturedTables(chosen, tables, time.time_ns)
        signals = Signals(chosen, time.time_ns, snapshots, from_table=from_table)
        receiver = SignalReceiver(chosen, signals, tables, captured)
        snapshots.pipeline = Pipeline(chosen, tables, offset, time.time_ns, captured, signals=receiver)
        return FormPipeline(snapshots.pipeline, RecordForm())

    for outputs in replay_through(make, case.binlog, chosen, start):
        yield from outputs


def test_the_signals_of_the_table_are_carried_out_in_order() -> None:
    snapshots = Recorder()
    outputs = list(replayed(snapshots, CASE.start))
    assert snapshots.ids == OF_SNAPSHOTS
    kinds = {kind for _, kind in snapshots.windows}
    assert kinds == {"open", "close"}
    assert len(snapshots.windows) == 34
    records = [output for output in outputs if isinstance(output, Batch) and output.topic == "signals-all.sa.sig"]
    assert sum(len(batch.messages) for batch in records) == 50, "the rows are records, too"


def test_a_restart_anywhere_carries_out_each_signal_once() -> None:
    snapshots = Recorder()
    stored = [output.offset for output in replayed(snapshots, CASE.start) if isinstance(output, Batch)]
    assert len(stored) > 60
    for text in {offset.to_json(): None for offset in stored}:
        offset = SourceOffset.from_json(text)
        again = Recorder()
        last = [output.offset for output in replayed(again, offset) if isinstance(output, Batch)]
        done = (offset.carried or {}).get("rowtide_snapshot_done", "").split()
        assert [*done, *again.ids] == OF_SNAPSHOTS, text
        assert not last or (last[-1].carried or {})["rowtide_snapshot_done"].split() == OF_SNAPSHOTS


def test_wrong_signals_are_answered_by_notifications() -> None:
    outputs = replayed(Recorder(), CASE.start)
    notified = [
        json.loads(value or b"")["payload"]
        for output in outputs
        if isinstance(output, Batch) and output.topic == "signals-all.notifications"
        for _, value, _ in output.messages
    ]
    assert {(one["aggregate_type"], one["type"]) for one in notified} == {("Signal", "FAILED")}
    errors = {one["id"]: one["additional_data"]["error"] for one in notified}
    assert {name: text.split(":")[0].split(" (")[0] for name, text in errors.items()} == {
        "s-bad1": "data is not JSON",
        "s-bad2": "'data-collections' is missing from the data",
        "s-bad3": "'data-collections' is missing from the data",
        "s-bad4": "'type' in the data must be incremental or blocking, not 'unknown'",
        "s-bad5": "there is no action of type 'no-such-type'; the types are execute-snapshot, log, pause-snapshot, "
        "resume-snapshot, rowtide-reread-rows, schema-changes, set-binlog-position, stop-snapshot",
    }
    assert {one["additional_data"]["channel"] for one in notified} == {"source"}


def test_signals_count_if_their_rows_are_not_published() -> None:
    """``skipped.operations`` is about records only, as in Debezium."""
    snapshots = Recorder()
    outputs = list(replayed(snapshots, CASE.start, skipped_operations=frozenset({"c"})))
    assert snapshots.ids == OF_SNAPSHOTS
    assert not [output for output in outputs if isinstance(output, Batch) and output.topic == "signals-all.sa.sig"]


def test_only_windows_count_without_the_source_channel() -> None:
    snapshots = Recorder()
    list(replayed(snapshots, CASE.start, from_table=False))
    assert snapshots.ids == []
    assert len(snapshots.windows) == 34


def test_a_deleted_open_row_closes_a_window_of_insert_delete() -> None:
    snapshots = Recorder()
    case = Case("signal-file-channel")
    list(replayed(snapshots, case.start, case))
    ids = list(dict.fromkeys(window_id for window_id, _ in snapshots.windows))
    assert snapshots.windows == [(name, kind) for name in ids for kind in ("open", "open deleted")]
    assert len(ids) == 5


def test_a_described_structure_takes_the_place_of_the_known_one() -> None:
    snapshots = Recorder()
    outputs = list(replayed(snapshots, CASE.start))
    (entry,) = [json.loads(output.text) for output in outputs if isinstance(output, HistoryEntry)]
    assert (entry["databaseName"], entry["schemaName"]) == ("sa", "sa")
    assert snapshots.pipeline is not None
    table = snapshots.pipeline.tables.table("sa", "other")
    assert table is not None
    assert not table.complete, "it was described, not built from a statement"
    last = [output for output in outputs if isinstance(output, Batch) and output.topic == "signals-all.sa.other"][-1]
    assert '"after":{"u":"end","n":100}' in str(last.messages[0][1]), "its rows are read with that structure"


def test_signals_between_transactions_come_from_any_channel() -> None:
    snapshots = Recorder()
    list(replayed(snapshots, CASE.start))
    pipeline = snapshots.pipeline
    assert pipeline is not None
    assert pipeline.signals is not None
    at = pipeline.offset()
    signal = Signal("k-1", "pause-snapshot", {}, "kafka")
    (called,) = pipeline.signals.message(signal, "kafka", pipeline.progress, at)
    assert isinstance(called, Batch)
    assert called.offset == at
    assert pipeline.offset().carried == {"rowtide_snapshot_done": f" {' '.join(OF_SNAPSHOTS)} k-1"}
    (failed,) = pipeline.signals.message(SignalError("no JSON"), "kafka", pipeline.progress, at)
    assert isinstance(failed, Batch)
    assert '"error":"no JSON"' in str(failed.messages[0][1])
