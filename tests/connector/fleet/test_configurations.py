"""The records of Kafka Connect's configuration topic."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.fleet.configurations import (
    BrokenRecord,
    Configurations,
    Connector,
    ConnectorPlace,
    Restart,
    Target,
    connector_record,
    place_record,
    restart_record,
    target_record,
)

NAMES = st.text(min_size=1, max_size=8)
PROPERTIES = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)


def applied(*records: tuple[bytes, bytes | None]) -> Configurations:
    found = Configurations()
    for offset, (key, value) in enumerate(records):
        found.apply(key, value, offset)
    return found


def test_records_are_those_of_kafka_connect() -> None:
    """As Kafka Connect 4.3 writes them: ``KafkaConfigBackingStore``, with ``state`` for versions before 3.5."""
    assert connector_record("shop", {"name": "shop"}) == (b"connector-shop", b'{"properties":{"name":"shop"}}')
    assert connector_record("shop", None) == (b"connector-shop", None)
    assert target_record("shop", Target.PAUSED) == (b"target-state-shop", b'{"state":"PAUSED","state.v2":"PAUSED"}')
    assert target_record("shop", Target.STOPPED) == (b"target-state-shop", b'{"state":"PAUSED","state.v2":"STOPPED"}')
    assert restart_record("shop", only_failed=True) == (
        b"restart-connector-shop",
        b'{"include-tasks":true,"only-failed":true}',
    )


@given(NAMES, PROPERTIES, st.sampled_from(Target))
def test_what_is_written_is_read(name: str, properties: dict[str, str], target: Target) -> None:
    for records in (
        [connector_record(name, properties), target_record(name, target)],
        [target_record(name, target), connector_record(name, properties)],  # the initial state comes first
    ):
        found = applied(*records)
        revision = records.index(connector_record(name, properties))
        assert found.connectors == {name: Connector(name, properties, target, revision)}
        found.apply(*connector_record(name, None), 2)
        found.apply(*target_record(name, None), 3)
        assert not found.connectors


def test_a_place_stays_with_its_connector() -> None:
    record = place_record("a", ConnectorPlace(7, 1_790_000_000_000))
    assert record == (b"rowtide-partition-a", b'{"partition":7,"moved_ms":1790000000000}')
    for records in ([connector_record("a", {}), record], [record, connector_record("a", {})]):
        found = applied(*records)
        assert found.connectors["a"].place == ConnectorPlace(7, 1_790_000_000_000)
        found.apply(*target_record("a", Target.PAUSED), 2)
        found.apply(*connector_record("a", {"b": "c"}), 3)
        assert found.connectors["a"].place is not None
        found.apply(*place_record("a", None), 4)
        assert found.connectors["a"].place is None


@pytest.mark.parametrize("value", [b"[]", b'{"partition":"7","moved_ms":1}', b'{"partition":-1,"moved_ms":1}', b"{}"])
def test_a_place_that_is_none(value: bytes) -> None:
    found = applied(connector_record("a", {}), place_record("a", ConnectorPlace(7, 1)))
    with pytest.raises(BrokenRecord):
        found.apply(b"rowtide-partition-a", value, 2)
    assert found.connectors["a"].place == ConnectorPlace(7, 1)


def test_states_of_older_workers_are_read() -> None:
    found = applied(connector_record("a", {}), (b"target-state-a", b'{"state":"PAUSED"}'))
    assert found.connectors["a"].target is Target.PAUSED


def test_a_connector_without_a_state_shall_run() -> None:
    found = applied(target_record("a", Target.STOPPED), connector_record("a", {}), target_record("a", None))
    assert found.connectors["a"].target is Target.STARTED


def test_nulls_in_a_configuration_are_absent() -> None:
    assert applied((b"connector-a", b'{"properties":{"x":null,"y":"1"}}')).connectors["a"].properties == {"y": "1"}


def test_a_restart_is_a_request() -> None:
    found = Configurations()
    assert found.apply(*restart_record("a", only_failed=True), 7) == Restart("a", only_failed=True, offset=7)
    assert found.apply(b"restart-connector-a", None, 8) is None


@pytest.mark.parametrize(
    "key", [b"task-a-0", b"commit-a", b"session-key", b"tasks-fencing-a", b"logger-cluster-x", None]
)
def test_other_records_are_skipped(key: bytes | None) -> None:
    assert Configurations().apply(key, b"{}", 0) is None


@pytest.mark.parametrize(
    "value",
    [b"", b"{", b"[]", b"null", b'{"properties":1}', b'{"properties":{"x":1}}', b"{}", b"\xff", b"[" * 100_000],
)
def test_a_broken_configuration_changes_nothing(value: bytes) -> None:
    found = applied(connector_record("a", {"x": "1"}))
    with pytest.raises(BrokenRecord):
        found.apply(b"connector-a", value, 1)
    assert found.connectors["a"].properties == {"x": "1"}


@pytest.mark.parametrize("value", [{"state": "RUNNING"}, {}, {"state": 1}, {"state.v2": ["STOPPED"]}])
def test_a_broken_state_changes_nothing(value: object) -> None:
    found = applied(connector_record("a", {}), target_record("a", Target.PAUSED))
    with pytest.raises(BrokenRecord):
        found.apply(b"target-state-a", json.dumps(value).encode(), 2)
    assert found.connectors["a"].target is Target.PAUSED
