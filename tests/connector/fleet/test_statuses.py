"""The records of Kafka Connect's status topic."""

from __future__ import annotations

import pytest

from rowtide.connector.fleet.statuses import ConnectorStatus, Statuses, status_records

RUNNING = ConnectorStatus("RUNNING", "127.0.0.1:8083", 3)


def test_records_are_those_of_kafka_connect() -> None:
    value = b'{"state":"RUNNING","trace":null,"worker_id":"127.0.0.1:8083","generation":3}'
    assert list(status_records("a", RUNNING)) == [(b"status-connector-a", value), (b"status-task-a-0", value)]


def test_a_stopped_connector_has_no_task() -> None:
    records = dict(status_records("a", ConnectorStatus("STOPPED", "w:1", 1)))
    assert records[b"status-task-a-0"] is None
    assert records[b"status-connector-a"] is not None


def test_what_is_written_is_read() -> None:
    failed = ConnectorStatus("FAILED", "w:1", 2, "why\n\u00fc")
    checked = ConnectorStatus("RUNNING", "w:1", 3, checked="0a1b")
    found = Statuses()
    for name, status in (("a", RUNNING), ("b", failed), ("c", RUNNING), ("c", None), ("d", checked)):
        for record in status_records(name, status):
            found.apply(*record)
    assert found.by_name == {"a": RUNNING, "b": failed, "d": checked}


@pytest.mark.parametrize("value", [b"{", b"[]", b"{}", b'{"state":"SLEEPING","worker_id":"w","generation":1}', b"1"])
def test_what_cannot_be_read_says_nothing(value: bytes) -> None:
    found = Statuses()
    for record in status_records("a", RUNNING):
        found.apply(*record)
    found.apply(b"status-connector-a", value)
    found.apply(b"status-topic-t:connector-a", value)
    found.apply(None, value)
    assert found.by_name == {"a": RUNNING}
