"""What is still to be read, in the fields of offsets: those of Debezium for it, and rowtide's for every detail."""

import json
from dataclasses import replace

import pytest

from rowtide.connector.errors import SignalError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import stop_request
from rowtide.connector.snapshot.incremental.requests import stopped_tables
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.schema_history.model import TableId

BIG = IncrementalTable(
    "d.big", TableId("d", "big"), "s1", "a > 1", None, begun=True, last=("18446744073709551615",), lower=("7",), rows=7,
    key="id bigint unsigned None",
)  # fmt: skip
TEXT = IncrementalTable("d.t", TableId("d", "t"), "s1", None, "u", begun=True, last=None)
UNKNOWN = IncrementalTable("d.nosuch", None, "s2")
FIELDS = ("id", "additional_condition", "surrogate_key")
STATE = SnapshotState((BIG, TEXT, UNKNOWN), paused=True)


def test_a_stored_offset_has_everything() -> None:
    offset = SourceOffset("b.000001", 4, carried=STATE.carried({"rowtide_signal_x": 1}))
    restored = SourceOffset.from_json(offset.to_json())
    assert SnapshotState.from_carried(restored.carried) == STATE
    assert restored.carried is not None
    assert restored.carried["rowtide_signal_x"] == 1


def test_the_keys_of_requested_rows_are_stored_for_rowtide_only() -> None:
    rows = IncrementalTable("d.t", TableId("d", "t"), "s3", key_names=("a", "b"), keys=(("1", "é"), ("2", "")))
    state = SnapshotState((rows,))
    restored = SourceOffset.from_json(SourceOffset("b.000001", 4, carried=state.carried(None)).to_json())
    assert SnapshotState.from_carried(restored.carried) == state
    assert not any(name.startswith("incremental_snapshot") for name in restored.carried or ())


def test_debezium_finds_the_tables_in_its_own_fields() -> None:
    carried = STATE.carried(None)
    assert carried is not None
    assert carried["incremental_snapshot_correlation_id"] == "s1"
    names = [
        tuple(
            item[f"incremental_snapshot_collections_{name}"] for name in ("id", "additional_condition", "surrogate_key")
        )
        for item in json.loads(carried["incremental_snapshot_collections"])
    ]
    assert names == [("d.big", "(a > 1)", None), ("d.t", None, "u"), ("d.nosuch", None, None)]
    assert "incremental_snapshot_primary_key" not in carried  # a serialised Java object: it begins the table again


def test_an_offset_of_debezium_has_the_tables_from_their_beginning() -> None:
    carried = {
        "incremental_snapshot_correlation_id": "inc-1",
        "incremental_snapshot_maximum_key": "aced0005",
        "incremental_snapshot_collections": (
            '[{"incremental_snapshot_collections_id":"sig.comp",'
            '"incremental_snapshot_collections_additional_condition":"(a % 2 = 0)",'
            '"incremental_snapshot_collections_surrogate_key":null}]'
        ),
    }
    assert SnapshotState.from_carried(carried).tables == (
        IncrementalTable("sig.comp", TableId("sig", "comp"), "inc-1", "(a % 2 = 0)"),
    )


def test_nothing_is_carried_when_all_is_read() -> None:
    assert SnapshotState().carried(STATE.carried(None)) is None
    assert SnapshotState().carried({"rowtide_signal_x": 1}) == {"rowtide_signal_x": 1}
    assert SnapshotState.from_carried(None) == SnapshotState()


def test_more_tables_than_an_offset_can_have_are_refused() -> None:
    tables = tuple(
        IncrementalTable(f"shop.table_{number}", TableId("shop", f"table_{number}"), "s1") for number in range(9999)
    )
    SnapshotState(tables[:1000]).require_room()
    with pytest.raises(SignalError, match=r"9999 tables need .* several signals with fewer tables"):
        SnapshotState(tables).require_room()


def test_a_state_that_cannot_be_read_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    assert SnapshotState.from_carried({"rowtide_snapshot_state": "{}"}) == SnapshotState()
    assert "send its execute-snapshot signal again" in caplog.text


INITIAL = IncrementalTable.of_initial_snapshot(TableId("d", "t"), ("7",), "id int None", 8)


def test_what_is_left_of_an_initial_snapshot_is_stored() -> None:
    state = SnapshotState((INITIAL, replace(INITIAL, begun=True, last=("9",)), BIG))
    restored = SourceOffset.from_json(SourceOffset("b.000001", 4, carried=state.carried(None)).to_json())
    assert SnapshotState.from_carried(restored.carried) == state
    assert state.unfinished
    assert not STATE.unfinished


def test_debezium_takes_an_unfinished_initial_snapshot_again() -> None:
    """In the stored position, but not in the schema history's: that of a statement is after the snapshot."""
    unfinished = SourceOffset("b.000001", 4, carried=SnapshotState((INITIAL, BIG)).carried(None))
    assert json.loads(unfinished.to_json())["snapshot"] == "INITIAL"
    assert SourceOffset.from_json(unfinished.to_json()).snapshot == "INITIAL"
    assert "snapshot" not in unfinished.to_map()
    (listed,) = json.loads((unfinished.carried or {})["incremental_snapshot_collections"])
    assert listed["incremental_snapshot_collections_id"] == "d.big"
    complete = SourceOffset("b.000001", 4, carried=SnapshotState((BIG,)).carried(unfinished.carried))
    assert "snapshot" not in json.loads(complete.to_json())


def test_stop_snapshot_does_not_stop_the_initial_snapshot() -> None:
    state = SnapshotState((INITIAL, BIG))
    for data in ({}, {"data-collections": [r"d\..*"]}, {"data-collections": ["d.t", "d.big"]}):
        request = stop_request(Signal("1", "stop-snapshot", data, "file"))
        assert stopped_tables(request, state) == [BIG]
