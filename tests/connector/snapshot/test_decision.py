"""What a start does, by snapshot mode, stored position and schema history."""

import pytest

from rowtide.connector.config.choices import SnapshotMode
from rowtide.connector.config.model import SnapshotFlags
from rowtide.connector.errors import HistoryMissing, PositionPurged, SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot import Decision, decide
from rowtide.connector.source.position.rules import PositionCheck

DONE = SourceOffset("binlog.000003", 570, "u:1-9")
INTERRUPTED = SourceOffset("binlog.000003", 570, "u:1-9", snapshot="INITIAL")
GONE = PositionCheck(available=False, reason="it was purged")
READS_ROWS = ("initial", "initial_only", "when_needed", "always")
MODES = (*READS_ROWS, "no_data", "recovery")


def decided(
    mode: str, offset: SourceOffset | None = None, *, history: bool = True, position: PositionCheck | None = None
) -> Decision:
    return decide(SnapshotMode(mode), offset, history_exists=history, position=position)


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


def test_every_mode_is_covered() -> None:
    assert {*MODES, "configuration_based"} == set(SnapshotMode)
