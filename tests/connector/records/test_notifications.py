"""Notifications of initial snapshots; the recorded case ``snapshot-several-tables`` compares them byte for byte."""

import json
import logging
from collections.abc import Iterable

import pytest

from rowtide.connector.records.batch import Batch
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.model import TableId
from rowtide.topics.naming import StandardNaming

OFFSET = SourceOffset("binlog.1", 4, snapshot="INITIAL")
TABLES = [TableId("d", "b"), TableId("d", "a")]


def notifications(topic: str | None = "notes", *, to_log: bool = False) -> Notifications:
    settings = PipelineSettings(
        "mysql", "shop", StandardNaming("shop"), notification_topic=topic, log_notifications=to_log
    )
    return Notifications(settings, lambda: 5_000_000, lambda: "an-id")


def payloads(batches: Iterable[Batch]) -> list[dict[str, object]]:
    found = []
    for batch in batches:
        assert (batch.topic, batch.partition, batch.offset) == ("notes", -1, OFFSET)
        ((key, value, headers),) = batch.messages
        assert key is not None
        assert value is not None
        assert json.loads(key)["payload"] == {"id": "an-id"}
        assert headers == ()
        assert batch.size == len(key) + len(value)
        found.append(json.loads(value)["payload"])
    return found


def test_notifications_of_a_complete_snapshot() -> None:
    some = notifications()
    some.begin()
    some.reading(TABLES, TABLES)
    found = payloads(
        [
            *some.started(OFFSET),
            *some.in_progress(TABLES[0], OFFSET),
            *some.table_completed(TABLES[0], 7, OFFSET),
            *some.ended("COMPLETED", OFFSET),
        ]
    )
    assert [one["type"] for one in found] == ["STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED"]
    assert {(one["aggregate_type"], one["timestamp"], one["id"]) for one in found} == {("Initial Snapshot", 5, "an-id")}
    assert [one["additional_data"] for one in found] == [
        {"connector_name": "shop"},
        {"current_collection_in_progress": "d.b", "connector_name": "shop", "data_collections": "d.a,d.b"},
        {
            "scanned_collection": "d.b",
            "connector_name": "shop",
            "total_rows_scanned": "7",
            "data_collections": "d.a,d.b",
            "status": "SUCCEEDED",
        },
        {"connector_name": "shop"},
    ]


def test_notifications_of_the_parts_of_a_table() -> None:
    """Their fields and order are those of Debezium 3.6 with ``snapshot.max.threads=2``."""
    some = notifications()
    some.reading(TABLES, TABLES)
    begun, read = payloads(
        [*some.part_in_progress(TABLES[0], 1, 4, 24, OFFSET), *some.part_completed(TABLES[0], 1, 4, OFFSET)]
    )
    assert (begun["type"], read["type"]) == ("TABLE_CHUNK_IN_PROGRESS", "TABLE_CHUNK_COMPLETED")
    assert json.dumps(begun["additional_data"]) == json.dumps(
        {
            "current_collection_in_progress": "d.b",
            "chunk_index": "1",
            "connector_name": "shop",
            "total_chunks": "4",
            "total_rows_scanned": "24",
        }
    )
    assert json.dumps(read["additional_data"]) == json.dumps(
        {
            "scanned_collection": "d.b",
            "chunk_index": "1",
            "connector_name": "shop",
            "total_chunks": "4",
            "data_collections": "d.a,d.b",
            "status": "SUCCEEDED",
        }
    )


def test_notifications_of_a_failed_snapshot() -> None:
    some = notifications()
    some.reading(TABLES, TABLES)
    table, end = payloads([*some.table_failed(TABLES[0], OFFSET), *some.ended("ABORTED", OFFSET)])
    assert (table["type"], end["type"]) == ("TABLE_SCAN_COMPLETED", "ABORTED")
    assert table["additional_data"] == {
        "scanned_collection": "d.b",
        "connector_name": "shop",
        "status": "SQL_EXCEPTION",
    }
    assert end["additional_data"] == {"connector_name": "shop"}


def test_every_notification_has_its_own_id() -> None:
    some = Notifications(
        PipelineSettings("mysql", "shop", StandardNaming("shop"), notification_topic="notes"), lambda: 1
    )
    keys = {next(some.ended("SKIPPED", OFFSET)).messages[0][0] for _ in range(3)}
    assert len(keys) == 3


@pytest.mark.parametrize("to_log", [True, False])
def test_the_log_channel(to_log: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert list(notifications(None, to_log=to_log).ended("COMPLETED", OFFSET)) == []
    assert ("COMPLETED" in caplog.text) == to_log


def test_the_names_of_very_many_tables_are_shortened() -> None:
    some = notifications()
    tables = [TableId("d", f"table{number:06}") for number in range(100_000)]
    some.reading(tables, tables)
    for batch in (*some.in_progress(TABLES[0], OFFSET), *some.table_completed(TABLES[0], 7, OFFSET)):
        (found,) = payloads([batch])
        assert batch.size < 1_000_000
        names, _, more = found["additional_data"]["data_collections"].partition(",... (")  # type: ignore[index]
        assert names.count(",") + 1 + int(more.split()[0]) == 100_000
        assert all(len(name) == len("d.table000000") for name in names.split(","))
