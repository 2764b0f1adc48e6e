"""Statements that bring rows into a captured table, or remove some, without row events are reported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.statements import StatementContext, Statements
from rowtide.connector.protocol.events.query_status import QueryStatus
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.settings import ValueSettings
from rowtide.envelope.table import RecordRules
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.topics.filters import Patterns, Selection, TableFilter
from rowtide.topics.naming import StandardNaming

AT = SourceOffset("b.000001", 4)


def handled(statement: str, *, exact: bool = False) -> list[Output]:
    lists = TableFilter(tables=Selection(include=Patterns.parse("d.a,d.new")))
    settings = PipelineSettings(
        "mariadb",
        "p",
        StandardNaming("p"),
        rules=RecordRules(ValueSettings(exact=exact)),
        tables=lists,
        skipped_operations=frozenset(),
    )
    tables = Tables(Server(Flavor.MARIADB))
    for name in ("a", "b"):
        parts = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN MAXVALUE)"
        tables.apply(QueryEvent(f"CREATE TABLE {name} (id INT PRIMARY KEY) {parts}", "d"))
    progress = Progress(AT)
    event = SimpleNamespace(
        statement=statement.encode(), text=statement, database="d", status=QueryStatus(), thread_id=1,
        error_code=0, header=SimpleNamespace(flags=0),
    )  # fmt: skip
    context = StatementContext(progress, 0, 0, lambda: AT, lambda _: None)
    statements = Statements(settings, tables, CapturedTables(settings, tables, lambda: 0))
    assert tables.table("d", "a") is not None
    outputs = statements.handle(cast("Any", event), context)
    assert TableId("d", "a") in tables.names()
    return outputs


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE a EXCHANGE  PARTITION p0 WITH TABLE b", "d.a: EXCHANGE PARTITION at b.000001:4 has moved rows"),
        ("alter table a import tablespace", "d.a: IMPORT TABLESPACE at"),
        ("ALTER TABLE b CONVERT PARTITION p0 TO TABLE new", "d.new: CONVERT PARTITION at"),
        ("ALTER TABLE b EXCHANGE PARTITION p0 WITH TABLE a", "d.a: EXCHANGE PARTITION at"),
        ("ALTER TABLE b IMPORT TABLESPACE", None),
        ("ALTER TABLE a CONVERT TO CHARACTER SET utf8mb4", None),
        ("ALTER TABLE a DROP PARTITION p0", "d.a: DROP PARTITION at b.000001:4 has removed rows"),
        ("alter table a truncate partition all", "d.a: TRUNCATE PARTITION at b.000001:4 has removed rows"),
        ("ALTER IGNORE TABLE a ADD UNIQUE (id)", "d.a: ALTER IGNORE TABLE at"),
        ("ALTER TABLE a DISCARD PARTITION p0 TABLESPACE", "d.a: DISCARD PARTITION P0 TABLESPACE at"),
        ("ALTER TABLE b DROP PARTITION p0", None),
        ("ALTER TABLE a COMMENT 'x'", None),
    ],
)
def test_which_statements_are_reported(statement: str, message: str | None, caplog: pytest.LogCaptureFixture) -> None:
    handled(statement)
    if message is None:
        assert not caplog.records
    else:
        (record,) = caplog.records
        assert message in record.getMessage()


@pytest.mark.parametrize("statement", ["CREATE OR REPLACE TABLE a (id INT)", "CREATE OR REPLACE SEQUENCE a"])
def test_a_table_that_is_replaced_is_emptied_with_exact_values(statement: str) -> None:
    (record,) = [
        value
        for output in handled(statement, exact=True)
        for _, value, _ in getattr(output, "messages", ())
        if b'"op":"t"' in value
    ]
    assert b'"table":"a"' in record
