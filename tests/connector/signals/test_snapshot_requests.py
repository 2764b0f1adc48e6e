"""Requests for snapshots: tables by regular expressions, conditions, and what is wrong with them."""

from typing import Any

import pytest

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import snapshot_request, stop_request
from rowtide.schema_history.model import TableId

TABLES = [TableId("db", "a"), TableId("db", "b"), TableId("DB", "c"), TableId("other", "a")]


def execute(**data: Any) -> Signal:
    return Signal("1", "execute-snapshot", {name.replace("_", "-"): value for name, value in data.items()}, "source")


def test_tables_come_in_the_order_of_the_expressions() -> None:
    request = snapshot_request(execute(data_collections=["db.b", "db\\..*", "nowhere.x"]))
    assert [str(table) for table in request.collections.select(TABLES)] == ["db.b", "db.a", "DB.c"]
    assert request.collections.unmatched(TABLES) == ["nowhere.x"]
    assert (request.type, request.conditions, request.surrogate_key) == ("incremental", (), None)


def test_conditions_and_surrogate_key() -> None:
    conditions = [{"data-collection": "db.a", "filter": "x > 1"}, {"data-collection": "db\\..", "filter": "y"}]
    request = snapshot_request(
        execute(data_collections=["db\\..*"], type="BLOCKING", additional_conditions=conditions, surrogate_key="k")
    )
    assert (request.type, request.surrogate_key) == ("blocking", "k")
    assert [request.filter_of(table) for table in TABLES] == ["x > 1", "y", "y", None]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "'data-collections' is missing"),
        ({"data_collections": []}, "'data-collections' is missing"),
        ({"data_collections": "db.a"}, "must be a list of strings"),
        ({"data_collections": ["db.("]}, "not a regular expression"),
        ({"data_collections": [r"db.(\w+)+!"] * 100}, "too long"),
        (
            {
                "data_collections": ["db.a"],
                "additional_conditions": [{"data-collection": r"db.(\w+)+!", "filter": "x"}] * 100,
            },
            "too long",
        ),
        ({"data_collections": ["db.a"], "type": "unknown"}, "must be incremental or blocking, not 'unknown'"),
        ({"data_collections": ["db.a"], "type": 5}, "'type' in the data must be a string"),
        ({"data_collections": ["db.a"], "surrogate_key": 5}, "'surrogate-key' in the data must be a string"),
        ({"data_collections": ["db.a"], "additional_conditions": {"a": 1}}, "must be a list"),
        ({"data_collections": ["db.a"], "additional_conditions": ["x"]}, "must have a 'data-collection'"),
        ({"data_collections": ["db.a"], "additional_conditions": [{"filter": "x"}]}, "must have a 'data-collection'"),
    ],
)
def test_what_is_wrong_is_named(data: dict[str, Any], message: str) -> None:
    with pytest.raises(SignalError, match=message):
        snapshot_request(execute(**data))


def test_an_expression_that_backtracks_finds_its_tables() -> None:
    found = snapshot_request(execute(data_collections=[r"([\w.]+)+a"])).collections.select(TABLES)
    assert found == [TABLES[0], TABLES[3]]


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_what_a_stop_concerns(kind: str) -> None:
    request = stop_request(Signal("1", "stop-snapshot", {"type": kind}, "source"))
    assert (request.type, bool(request.collections)) == (kind, False)
    with pytest.raises(SignalError, match="must be incremental or blocking, not 'both'"):
        stop_request(Signal("1", "stop-snapshot", {"type": "both"}, "source"))
