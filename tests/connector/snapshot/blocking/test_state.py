"""Which blocking snapshots are to be taken, and how offsets store that."""

import pytest

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import snapshot_request, stop_request
from rowtide.connector.snapshot.blocking.state import BlockingRequest, BlockingState
from rowtide.schema_history.model import TableId

TABLES = [TableId("d", name) for name in ("a", "b", "c")]


def with_request(*collections: str, state: BlockingState | None = None, **data: object) -> BlockingState:
    given = {"type": "blocking", "data-collections": list(collections), **data}
    return (state or BlockingState()).added(snapshot_request(Signal("s", "execute-snapshot", given, "file")))


def stopped(state: BlockingState, *collections: str) -> BlockingState:
    data = {"type": "blocking", "data-collections": list(collections)}
    return state.stopped(stop_request(Signal("x", "stop-snapshot", data, "file")))


def test_what_is_stored_is_restored() -> None:
    conditions = [{"data-collection": r"d\.a", "filter": "SELECT * FROM d.a WHERE é = 1"}]
    state = stopped(with_request(r"d\..*", "e.x", **{"additional-conditions": conditions}), r"d\.b")
    fields = state.carried({"rowtide_signal_kafka": 7, "incremental_snapshot_primary_key": "x"})
    assert fields is not None
    assert BlockingState.from_carried(fields) == state
    assert {name: fields[name] for name in fields if name != "rowtide_snapshot_blocking"} == {
        "rowtide_signal_kafka": 7,
        "incremental_snapshot_primary_key": "x",
    }
    assert BlockingState.from_carried(None) == BlockingState()
    assert BlockingState().carried(fields) == {
        "rowtide_signal_kafka": 7,
        "incremental_snapshot_primary_key": "x",
    }


def test_a_damaged_state_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert BlockingState.from_carried({"rowtide_snapshot_blocking": '{"requests": 1}'}) == BlockingState()
    assert "send its execute-snapshot signal again" in caplog.text


def test_the_tables_and_queries_of_a_request() -> None:
    conditions = [{"data-collection": "D.A", "filter": "first"}, {"data-collection": r"d\..*", "filter": "second"}]
    (request,) = with_request("d.c", r"d\.[ab]", **{"additional-conditions": conditions}).requests
    assert request.select(TABLES) == [TABLES[2], TABLES[0], TABLES[1]]
    assert request.queries(TABLES) == {("d", "a"): "first", ("d", "b"): "second", ("d", "c"): "second"}


def test_stopping() -> None:
    state = with_request("d.b", state=with_request(r"d\..*"))
    without = stopped(state, "d.b")
    assert [one.select(TABLES) for one in without.requests] == [[TABLES[0], TABLES[2]]]
    assert stopped(state) == BlockingState()
    assert stopped(with_request("d.a", state=BlockingState(paused=True)), "d.a") == BlockingState()


def test_an_offset_has_no_room_for_everything() -> None:
    with pytest.raises(SignalError, match="at most 200000 are allowed"):
        with_request(*(f"d.table{number:0200}" for number in range(1000)))


def test_the_requests_are_taken_in_order() -> None:
    state = with_request("d.b", state=with_request("d.a"))
    assert state.requests[0] == BlockingRequest("s", ("d.a",))
    assert [one.collections for one in state.without_first().requests] == [("d.b",)]
