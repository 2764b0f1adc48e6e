"""What a start does, by snapshot mode, stored position and schema history."""

from dataclasses import replace

import pytest

from rowtide.connector.config.choices import SnapshotMode
from rowtide.connector.config.model import SnapshotFlags
from rowtide.connector.errors import HistoryMissing, PositionPurged, SnapshotError
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.snapshot import Decision, decide
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.connector.source.position.rules import PositionCheck
from rowtide.schema_history.model import TableId

DONE = SourceOffset("binlog.000003", 570, "u:1-9")
INTERRUPTED = SourceOffset("binlog.000003", 570, "u:1-9", snapshot="INITIAL")
GONE = PositionCheck(available=False, reason="it was purged")
READS_ROWS = ("initial", "initial_only", "when_needed", "always")
MODES = (*READS_ROWS, "no_data", "recovery")


def decided(
    mode: str,
    offset: SourceOffset | None = None,
    *,
    history: bool = True,
    position: PositionCheck | None = None,
    resumable: bool = False,
) -> Decision:
    return decide(SnapshotMode(mode), offset, history_exists=history, position=position, resumable=resumable)


def state(*left: IncrementalTable) -> SourceOffset:
    """The position of an interrupted snapshot that can continue."""
    return replace(INTERRUPTED, carried=SnapshotState(left).carried(None))


def flags(letters: str) -> SnapshotFlags:
    """Flags of ``configuration_based``: data, schema, stream, on schema error, on data error; upper case means on."""
    data, schema, stream, on_schema, on_data = (letter.isupper() for letter in letters)
    return SnapshotFlags(data=data, schema=schema, stream=stream, on_schema_error=on_schema, on_data_error=on_data)


@pytest.mark.parametrize("mode", [*READS_ROWS, "no_data"])
def test_a_first_start_and_one_after_an_interruption_read_everything(mode: str) -> None:
    for offset in (None, INTERRUPTED):
        found = decided(mode, offset, history=offset is not None)
        assert (found.structure, found.rows, found.position) == (True, mode in READS_ROWS, None)
        assert found.stream == (mode != "initial_only")
        assert bool(found.notes) == (offset is not None or mode == "no_data")


def test_recovery_needs_the_position_of_a_complete_snapshot() -> None:
    with pytest.raises(SnapshotError, match="nothing to recover"):
        decided("recovery")
    with pytest.raises(SnapshotError, match="previously stopped while taking a snapshot"):
        decided("recovery", INTERRUPTED)
    for history in (True, False):
        assert decided("recovery", DONE, history=history).position == DONE
        assert decided("recovery", DONE, history=history).structure
        assert not decided("recovery", DONE, history=history).rows


@pytest.mark.parametrize("mode", ["initial", "when_needed", "no_data"])
def test_later_starts_resume_at_the_stored_position(mode: str) -> None:
    assert decided(mode, DONE) == Decision(structure=False, rows=False, position=DONE, stream=True)


def test_messages_name_the_position_without_what_is_stored_beside_it() -> None:
    stored = replace(DONE, carried={"rowtide_snapshot_lists": "{}", "rowtide_signal_tables": "{}"})
    for history, gone in ((True, GONE), (False, None)):
        with pytest.raises((PositionPurged, HistoryMissing)) as stopped:
            decided("initial", stored, history=history, position=gone)
        assert DONE.to_json() in str(stopped.value)
    assert DONE.to_json() in decided("when_needed", stored, position=GONE).notes[0]


def test_always_reads_everything_without_position_or_history() -> None:
    found = decided("always", DONE, history=False, position=GONE)
    assert (found.structure, found.rows, found.position, found.stream) == (True, True, None, True)


def test_initial_only_has_nothing_to_do_a_second_time() -> None:
    found = decided("initial_only", DONE, history=False, position=GONE)
    assert not found.snapshot
    assert not found.stream


@pytest.mark.parametrize("mode", ["initial", "no_data", "recovery"])
def test_a_purged_position_stops_the_start(mode: str) -> None:
    with pytest.raises(PositionPurged, match=r"it was purged.*snapshot.mode=when_needed"):
        decided(mode, DONE, position=GONE)


def test_a_purged_position_leads_to_a_snapshot_when_needed() -> None:
    found = decided("when_needed", DONE, history=False, position=GONE)
    assert (found.structure, found.rows, found.position) == (True, True, None)


@pytest.mark.parametrize("mode", ["initial", "when_needed", "no_data"])
def test_a_missing_history_stops_the_start(mode: str) -> None:
    with pytest.raises(HistoryMissing, match=r"snapshot.mode=recovery.*internal\.file\.filename"):
        decided(mode, DONE, history=False)


def test_configuration_based_follows_its_flags() -> None:
    mode = SnapshotMode.CONFIGURATION_BASED

    def found(letters: str, offset: SourceOffset | None, *, history: bool, gone: bool = False) -> Decision:
        position = GONE if gone else None
        return decide(mode, offset, history_exists=history, position=position, flags=flags(letters))

    assert found("DSTee", None, history=False).rows
    assert not found("dSTee", None, history=False).rows
    assert found("DStee", DONE, history=True).stream is False
    with pytest.raises(HistoryMissing):
        found("dsTee", None, history=False)
    assert not found("dsTee", None, history=True).snapshot
    assert found("dsTEe", DONE, history=False).structure
    assert found("dsTeE", DONE, history=True, gone=True).rows
    with pytest.raises(PositionPurged):
        found("dsTEe", DONE, history=True, gone=True)
    with pytest.raises(SnapshotError, match="never allow snapshots"):
        found("dsTEE", INTERRUPTED, history=True)


LEFT = IncrementalTable.of_initial_snapshot(TableId("d", "t"), ("7",), "id int None", 8)
RESUMABLE = state(LEFT)


@pytest.mark.parametrize("mode", ["initial", "when_needed", "always"])
def test_an_interrupted_snapshot_continues_from_its_position(mode: str) -> None:
    found = decided(mode, RESUMABLE, resumable=True)
    assert (found.structure, found.rows, found.stream, found.continues) == (False, False, True, True)
    assert found.position == replace(RESUMABLE, snapshot=None)
    assert SnapshotState.from_carried(found.position.carried).tables == (LEFT,)


@pytest.mark.parametrize(
    ("mode", "resumable", "history"),
    [("initial", False, True), ("initial", True, False), ("initial_only", True, True), ("no_data", True, True)],
)
def test_an_interrupted_snapshot_that_cannot_go_on(mode: str, *, resumable: bool, history: bool) -> None:
    found = decided(mode, RESUMABLE, history=history, resumable=resumable)
    assert (found.structure, found.position, found.continues) == (True, None, False)
    assert any("rowtide.snapshot.resumable=true" in note for note in found.notes)


def test_a_snapshot_without_what_is_left_begins_again() -> None:
    for offset in (INTERRUPTED, state(), replace(INTERRUPTED, carried={"rowtide_snapshot_state": "{}"})):
        found = decided("initial", offset, resumable=True)
        assert (found.rows, found.continues) == (True, False)


def test_the_binlog_since_an_interrupted_snapshot_is_gone() -> None:
    with pytest.raises(PositionPurged, match=r"it was purged\. .*resumable=false .*snapshot.mode=when_needed"):
        decided("initial", RESUMABLE, position=GONE, resumable=True)
    found = decided("when_needed", RESUMABLE, position=GONE, resumable=True)
    assert (found.rows, found.position) == (True, None)
    assert "begins again" in found.notes[0]


def test_every_mode_is_covered() -> None:
    assert {*MODES, "configuration_based"} == set(SnapshotMode)


@pytest.mark.parametrize("mode", ["initial", "initial_only"])
def test_a_position_with_a_prepared_xa_transaction_continues_as_any_other(mode: str) -> None:
    """It is stored within the position before the transaction, which alone is marked as one of an initial snapshot."""
    left = IncrementalTable.of_initial_snapshot(TableId("d", "t"), None, "id int None", 0)
    prepared = PreparedXa("X'61',X'',1", "binlog.000003", 500, replace(DONE, pos=500))
    stored = replace(DONE, prepared=(prepared,), carried=SnapshotState((left,)).carried(None))
    found = decided(mode, SourceOffset.from_json(stored.to_json()), resumable=True)
    assert found.continues == (mode == "initial")
    assert found.rows == (mode == "initial_only")
