"""Markers of schema change messages: the last message is marked as such if no row follows."""

from __future__ import annotations

import json

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.structure.plan import StructureStatement
from rowtide.connector.snapshot.structure.writer import StructureWriter
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.configurations import PROPERTIES

RUNNING, DONE = SourceOffset("b", 1, snapshot="INITIAL"), SourceOffset("b", 1)
STATEMENTS = [
    StructureStatement("CREATE DATABASE `d` CHARSET utf8mb4 COLLATE utf8mb4_bin", "d"),
    StructureStatement("CREATE TABLE `t` (a INT)", "d", TableId("d", "t"), creates=True),
    StructureStatement("CREATE TABLE `u` (a INT)", "d", TableId("d", "u"), creates=True),
]


def written(*, rows: bool, **more: str) -> tuple[list[str], list[SourceOffset]]:
    properties = {**PROPERTIES, **{name.replace("_", "."): value for name, value in more.items()}}
    settings = pipeline_settings(from_properties(properties), "run")
    writer = StructureWriter(settings, Tables(Server(Flavor.MYSQL)), RUNNING, lambda: 1)
    outputs = [*writer.write(STATEMENTS), *(writer.before_rows() if rows else writer.finish(DONE))]
    batches = [output for output in outputs if isinstance(output, Batch)]
    values = [json.loads(value or b"") for batch in batches for _, value, _ in batch.messages]
    return [value["payload"]["source"]["snapshot"] for value in values], [batch.offset for batch in batches]


def test_the_last_message_is_marked_if_all_tables_are_empty() -> None:
    assert written(rows=False) == (["true", "true", "last"], [RUNNING, RUNNING, DONE])


def test_no_message_is_the_last_if_rows_follow() -> None:
    assert written(rows=True) == (["true"] * 3, [RUNNING] * 3)


def test_without_messages_the_offset_is_stored_alone() -> None:
    assert written(rows=False, include_schema_changes="false") == ([], [DONE])


def test_the_last_message_is_that_of_a_captured_table() -> None:
    property_name = "schema_history_internal_store_only_captured_tables_ddl"
    found = written(rows=False, table_include_list="d.t", **{property_name: "true"})
    assert found == (["true", "last"], [RUNNING, DONE])
