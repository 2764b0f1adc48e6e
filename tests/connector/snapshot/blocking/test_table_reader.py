"""What a blocking snapshot makes of structures that differ from those of the stream."""

from __future__ import annotations

import json
from typing import Any, cast

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.blocking.state import BlockingRequest
from rowtide.connector.snapshot.blocking.table_reader import TableReader
from rowtide.connector.snapshot.structure.plan import table_statements
from rowtide.connector.snapshot.view.consistent_view import View
from rowtide.connector.snapshot.view.opening import OpenSnapshot
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.configurations import PROPERTIES

AT = SourceOffset("b.000001", 400)


def outputs(hidden: set[tuple[str, str]]) -> list[Output]:
    """Those of a snapshot of two tables that the stream lacks, of which no row is read."""
    config = from_properties(PROPERTIES)
    settings, tables = pipeline_settings(config, "run"), Tables(Server(Flavor.MYSQL))
    reader = TableReader(config.database, settings, config.snapshot, tables, lambda: 1, None, semi_sync=False)
    created = {TableId("d", name): f"CREATE TABLE `{name}` (id INT PRIMARY KEY)" for name in ("t", "u")}
    found = reader.outputs(
        OpenSnapshot(View(AT, ()), cast("Any", ()), table_statements(created), []),
        BlockingRequest("s", ("d.*",)),
        AT,
        SourcePosition("b.000001", 300, server_id=1),
        CapturedTables(settings, tables, lambda: 1, None, hidden),
        Notifications(settings, lambda: 1),
    )
    return list(found)


def test_only_the_last_record_completes_it() -> None:
    """The offset of any other one would lose the snapshot in a crash."""
    offsets = [output.offset.snapshot for output in outputs(set()) if isinstance(output, Batch)]
    assert offsets == ["BLOCKING"] * (len(offsets) - 1) + [None]
    assert len(offsets) == 4


def test_the_history_has_positions_of_the_stream() -> None:
    entries = [json.loads(output.text) for output in outputs(set()) if isinstance(output, HistoryEntry)]
    assert len(entries) == 4
    assert [entry["position"] for entry in entries] == [AT.to_map()] * 4


def test_a_hidden_table_is_captured_from_there_on() -> None:
    """Its rows are read at this position, so the stream must have its changes from there on."""
    hidden = {("d", "t"), ("d", "hidden")}
    outputs(hidden)
    assert hidden == {("d", "hidden")}
