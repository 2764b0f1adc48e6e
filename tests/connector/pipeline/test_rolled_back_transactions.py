"""Rows that a rollback undoes are in no record, and all others are, whatever a server writes into its binlog."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from rowtide_stack import Database, MariaDB, MySQL, SqlServer

from rowtide.canal.entries.entry import RowChange
from rowtide.canal.entries.pipeline import EntryBatch, EntryPipeline
from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support import configurations
from tests.support.connector_properties import CONNECTORS
from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.mysql.recorded_server import FILE, recorded_stream
from tests.support.mysql.rollback_forms import FORMS, TABLES, run
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

Rows = dict[str, list[tuple[int, str]]]

KEPT: Rows = {
    "t": [(1, "a"), (2, "b"), (3, "c"), *((id_, "") for id_ in range(10, 26))],
    "u": [(1, "last"), (2, "b")],
    "m": [
        (1, "both"), (2, "both"), (3, "both"), (4, ""), (5, ""), (6, ""), (18, "trigger"), (19, "trigger"),
        (20, "trigger"), (21, "trigger"), (22, "trigger"), (50, ""), (51, ""),
    ],
    "h": [(1, "")],
    "w": [],
}  # fmt: skip
"""The tables of both servers after all forms."""


def changed(outputs: Iterable[Output]) -> Rows:
    """The tables to which records lead. A row that was undone is in none of them."""
    rows: dict[str, dict[int, str]] = {table: {} for table in TABLES}
    for message in written(outputs):
        value = json.loads(message.value or "{}")
        value = value.get("payload", value)
        if "op" not in value:
            continue
        table = rows[value["source"]["table"]]
        before, after = value["before"], value["after"]
        assert all(row is None or row["id"] < 1000 for row in (before, after)), value
        if value["op"] in "ud":
            assert table.pop(before["id"]) == before["v"]
        if after is not None:
            assert after["id"] not in table
            table[after["id"]] = after["v"]
    return {name: sorted(found.items()) for name, found in rows.items()}


def ends(outputs: Iterable[Output]) -> Iterator[tuple[int, int]]:
    """The number of records that the END of each transaction states, and that there are."""
    records: Counter[str] = Counter()
    for message in written(outputs):
        value = json.loads(message.value or "{}").get("payload", {})
        if value.get("transaction"):
            records[value["transaction"]["id"]] += 1
        if value.get("status") == "END":
            yield value["event_count"], records[value["id"]]


@pytest.mark.parametrize("name", ["mariadb-rollbacks", "mysql-rollbacks"])
def test_records_lead_to_the_tables(name: str) -> None:
    server = recorded_stream(name)
    properties = {"connector.class": CONNECTORS[server.connector], "provide.transaction.metadata": "true"}
    settings = pipeline_settings(from_properties({**configurations.PROPERTIES, **properties}), "run")
    tables = Tables(Server(Flavor(server.connector), str(server.decoder().format.server_version)))  # type: ignore[union-attr]
    pipeline = Pipeline(settings, tables, server.start(), lambda: 0)
    pipeline.enter_file(FILE, server.decoder())
    outputs = [
        output for packet in server.stream(server.start()) for made in pipeline.receive(packet) for output in made
    ]
    assert changed(outputs) == KEPT
    counted = list(ends(outputs))
    assert len(counted) > len(FORMS) / 2
    assert all(stated == found for stated, found in counted)


@pytest.mark.parametrize("name", ["mariadb-rollbacks", "mysql-rollbacks"])
def test_entries_lead_to_the_tables(name: str) -> None:
    server = recorded_stream(name)
    properties = {**configurations.PROPERTIES, "connector.class": CONNECTORS[server.connector]}
    settings = pipeline_settings(from_properties(properties), "run")
    tables = Tables(Server(Flavor(server.connector), str(server.decoder().format.server_version)))  # type: ignore[union-attr]
    pipeline = EntryPipeline(settings, tables, server.start(), lambda: 0)
    pipeline.enter_file(FILE, server.decoder())
    rows: dict[str, dict[str, str]] = {table: {} for table in TABLES}
    for packet in server.stream(server.start()):
        for outputs in pipeline.receive(packet):
            for entry in (entry for batch in outputs if isinstance(batch, EntryBatch) for entry in batch.entries):
                if isinstance(entry.content, RowChange):
                    apply_entry(rows[str(entry.header.table)], entry.content)
    del rows["t"][PREPARED]
    assert {name: sorted((int(id_), v) for id_, v in found.items()) for name, found in rows.items()} == KEPT


PREPARED = "1027"
"""The row of a prepared XA transaction: Canal writes it when it is prepared, and the rollback as an entry."""


def apply_entry(table: dict[str, str], change: RowChange) -> None:
    names = [column.name for column in change.columns]
    for images in change.rows:
        before, after = ({} if image is None else dict(zip(names, map(str, image), strict=True)) for image in images)
        assert all(not row or int(row["id"]) < 1000 or row["id"] == PREPARED for row in (before, after))
        if before:
            table.pop(before["id"])
        if after:
            table[after["id"]] = after["v"]


KINDS: dict[str, tuple[type[SqlServer], dict[str, str]]] = {
    "MySQL": (MySQL, {}),
    "MySQL, without GTIDs, compressed": (
        MySQL,
        {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF", "binlog_transaction_compression": "ON"},
    ),
    "MariaDB": (MariaDB, {}),
    "MariaDB, compressed, small events": (
        MariaDB,
        {"log_bin_compress": "ON", "log_bin_compress_min_len": "10", "binlog_row_event_max_size": "256"},
    ),
}


@pytest.mark.servers
@pytest.mark.parametrize(
    "kind",
    ["MySQL", "MariaDB, compressed, small events"]
    + [pytest.param(kind, marks=pytest.mark.nightly) for kind in ("MySQL, without GTIDs, compressed", "MariaDB")],
)
def test_a_live_stream_leads_to_the_tables_wherever_it_is_cut(kind: str) -> None:
    made, settings = KINDS[kind]
    with made(settings) as server, server.database() as name:
        check_live(server, name)


def check_live(server: SqlServer, database: Database) -> None:
    config = configured(database, {"provide.transaction.metadata": "true"})
    taken = snapshot(config)
    list(taken.outputs())
    run(server, database.name)
    end = binlog_end(server)
    tables: Any = taken.tables.copy()
    steps = list(streamed(config, tables, taken.offset, end))
    outputs = [output for step in steps for output in step.outputs]
    assert changed(outputs) == {
        table: sorted((int(id_), str(v)) for id_, v in database.query(f"SELECT id, v FROM {table}")) for table in TABLES
    }
    batches = [output for output in outputs if isinstance(output, Batch)]
    for place in range(len(batches) // 3, len(batches), 9):
        start = SourceOffset.from_json(batches[place].offset.to_json())
        rest = [output for step in streamed(config, tables.copy(), start, end) for output in step.outputs]
        assert keys(rest) == keys(batches[place + 1 :]), start


def keys(outputs: Iterable[Output]) -> list[tuple[str, str | None]]:
    return [(message.topic, message.key) for message in written(outputs)]
