"""A row has the same key in a row event and in a result set, for every type that can be a key."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.connector.snapshot.chunks.key_ranges import row_key
from rowtide.connector.snapshot.incremental.keys.row_keys import RowKeys
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import Table, TableId
from tests.support.mysql.key_types import MARIADB_TYPES, TYPES
from tests.support.mysql.live_database import configured, snapshot

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers


class Recorder:
    """Keeps the keys of the row events of a table."""

    def __init__(self, keys: RowKeys, table: TableId) -> None:
        self.watched = table
        self.found: list[Hashable] = []
        self._keys = keys

    def observe(self, event: Rows, structure: TableStructure, table: Table) -> None:
        self.found += self._keys.of_event(event, structure)

    def emitted(self, topic: str) -> None: ...

    def omitted(self, table: TableId | None) -> None: ...

    def changed(self, table: TableId) -> None: ...

    def renamed(self, former: TableId, now: TableId) -> None: ...


def test_both_sources_give_the_same_keys(database: Database) -> None:
    mariadb = database.server.name == "mariadb"
    types = {kind: rows for kind, rows in (TYPES | (MARIADB_TYPES if mariadb else {})).items() if "float" not in kind}
    statements = [f"CREATE TABLE t{place} (k {kind} NOT NULL PRIMARY KEY)" for place, kind in enumerate(types)]
    database.execute("SET SESSION sql_mode = ''", *statements)
    config = configured(database, {"snapshot.mode": "no_data", "column.mask.with.5.chars": r".*\.k"})
    settings = pipeline_settings(config, "run")
    taken = snapshot(config)
    list(taken.outputs())
    inserts = [f"INSERT INTO t{place} (k) VALUES {values}" for place, values in enumerate(types.values())]
    database.execute("SET SESSION sql_mode = '', time_zone = '+00:00'", *inserts, "CREATE TABLE the_end (id INT)")
    for place, kind in enumerate(types):
        table = taken.tables.table(database.name, f"t{place}")
        assert table is not None
        key = row_key(table)
        assert key is not None
        keys = RowKeys(table, key.columns, settings, TopicOwners(settings, taken.tables))
        assert keys.exact
        recorder = Recorder(keys, table.id)
        captured = CapturedTables(settings, taken.tables.copy(), time.time_ns)
        captured.observer = recorder
        pipeline = Pipeline(settings, taken.tables.copy(), taken.offset, time.time_ns, captured)
        stream_all(pipeline, BinlogStream(config.database, taken.offset, mariadb=mariadb))
        with Session(config.database, mariadb=mariadb) as session:
            query = f"SELECT k FROM {database.name}.t{place}"
            rows = [row for block in session.rows(table.id, query, keys.reader) for row in block]
        assert sorted(map(repr, keys.of_rows(rows))) == sorted(map(repr, recorder.found)), kind
        assert len(set(recorder.found)) == len(rows) > 1, kind


def stream_all(pipeline: Pipeline, stream: BinlogStream) -> None:
    """Read until the last table is created."""
    pieces = stream.events()
    for packets in pieces:
        for packet in packets:
            for _ in pipeline.receive(packet):
                pass
            if b"the_end" in packet:
                pieces.close()
                return
