"""A statement that cannot be parsed stops the connector only where rows could be decoded with a wrong structure.

One that stands for rows stops it only where they are those of a captured table.
"""

from __future__ import annotations

import contextlib
import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import ProtocolError, UnparsedDdl
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.statements import StatementContext, Statements
from rowtide.connector.protocol.events.query_status import QueryStatus
from rowtide.connector.records.batch import HistoryEntry
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog import tables as catalog
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import UnparsedStatement
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.topics.filters import Patterns, Selection, TableFilter
from rowtide.topics.naming import StandardNaming
from tests.support.mysql.live_database import Rows, apply, configured
from tests.support.received import received

if TYPE_CHECKING:
    from rowtide_stack import Database

AT = SourceOffset("b.000001", 4)


def handled(statement: str, database: str, *, lookup: bool) -> tuple[list[str], list[str]]:
    """The tables that are still known after a statement, and the statements that the history gets."""
    lists = TableFilter(tables=Selection(include=Patterns.parse("d.a,d.new")))
    settings = PipelineSettings(
        "mysql", "p", StandardNaming("p"), tables=lists, look_up_unparseable_ddl=lookup, schema_changes=False
    )
    tables = Tables(Server(Flavor.MYSQL))
    for name in ("d.a", "d.b", "e.a"):
        tables.apply(QueryEvent(f"CREATE TABLE {name} (id INT PRIMARY KEY)", ""))
    event = SimpleNamespace(
        statement=statement.encode(), text=statement, database=database, status=QueryStatus(), thread_id=1,
        error_code=0, header=SimpleNamespace(flags=0),
    )  # fmt: skip
    context = StatementContext(Progress(AT), 0, 0, lambda: AT, lambda _: None)
    statements = Statements(settings, tables, CapturedTables(settings, tables, lambda: 0))
    outputs = statements.handle(cast("Any", event), context)
    entries = [json.loads(output.text)["ddl"] for output in outputs if isinstance(output, HistoryEntry)]
    assert len(entries) == len(outputs)
    return sorted(map(str, tables.names())), entries


@pytest.mark.parametrize("lookup", [True, False])
@pytest.mark.parametrize(
    ("statement", "database", "forgotten"),
    [
        ("ALTER TABLE b FROM THE FUTURE", "d", "d.b"),
        ("ALTER TABLE a FROM THE FUTURE", "e", "e.a"),
        ("ALTER TABLE e.a FROM THE FUTURE", "", "e.a"),
        ("ALTER TABLE other FROM THE FUTURE", "d", None),
    ],
)
def test_a_statement_that_names_no_captured_table_is_passed_over(
    statement: str, database: str, forgotten: str | None, caplog: pytest.LogCaptureFixture, *, lookup: bool
) -> None:
    known, entries = handled(statement, database, lookup=lookup)
    assert known == [name for name in ("d.a", "d.b", "e.a") if name != forgotten]
    wanted = [] if forgotten is None else [f"DROP TABLE IF EXISTS {'.'.join(f'`{p}`' for p in forgotten.split('.'))}"]
    assert entries == wanted
    assert "skipped: " in caplog.text
    assert "names no captured table" in caplog.text


@pytest.mark.parametrize(
    ("statement", "database"),
    [
        ("ALTER TABLE a FROM THE FUTURE", "d"),
        ("ALTER TABLE `D`.`a` FROM THE FUTURE", "e"),
        ("CREATE TABLE new FROM THE FUTURE", "d"),
        ("ALTER DATABASE d FROM THE FUTURE", "e"),
    ],
)
def test_one_that_may_concern_a_captured_table_stops_only_if_it_is_told_to(statement: str, database: str) -> None:
    known, _ = handled(statement, database, lookup=True)
    assert "d.a" not in known or "new" in statement
    with pytest.raises(UnparsedDdl, match="FROM THE FUTURE"):
        handled(statement, database, lookup=False)


@pytest.mark.parametrize(
    "statement",
    [
        "ANALYZE UPDATE a SET id = 2",
        "CREATE TABLE new SELECT 1 AS id",
        "CREATE OR REPLACE TABLE d.a (x INT) SELECT 1 AS id",
    ],
)
def test_rows_of_a_captured_table_that_are_logged_as_a_statement_stop(statement: str) -> None:
    with pytest.raises(ProtocolError, match=r"changed rows by .* are not in the binlog"):
        handled(statement, "d", lookup=True)


@pytest.mark.parametrize(
    ("statement", "forgotten"),
    [
        ("ANALYZE UPDATE b, a SET b.id = a.id", None),
        ("ANALYZE TABLE a", None),
        ("INSERT INTO b SELECT id FROM a WHERE id <> \\N", None),
        ("CREATE TABLE other SELECT * FROM a", None),
        ("CREATE OR REPLACE TABLE b SELECT * FROM a", "d.b"),
    ],
)
def test_those_of_another_table_are_passed_over(statement: str, forgotten: str | None) -> None:
    known, _ = handled(statement, "d", lookup=True)
    assert known == [name for name in ("d.a", "d.b", "e.a") if name != forgotten]


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql_db", "mariadb_db"])
def test_the_server_shows_the_structure_for_the_next_rows(
    request: pytest.FixtureRequest, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database: Database = request.getfixturevalue(kind)
    parse = catalog.parse

    def does_not_know(sql: str, *arguments: Any) -> Any:
        if "AFTER id" in sql:
            raise UnparsedStatement(sql, "expected something else")
        return parse(sql, *arguments)

    monkeypatch.setattr(catalog, "parse", does_not_know)
    config = configured(database)
    mariadb = config.flavor.value == "mariadb"
    with Session(config.database, mariadb=mariadb) as session:
        server = server_queries.server(session)
        start = server_queries.current_position(session)
        database.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
            "INSERT INTO t VALUES (1, 10)",
            "ALTER TABLE t ADD b INT AFTER id",
            "INSERT INTO t VALUES (2, 20, 200)",
        )
        end = server_queries.current_position(session)
    settings, tables = pipeline_settings(config, "run"), Tables(server)
    current = CurrentStructure(config.database, mariadb=mariadb)
    pipeline = Pipeline(settings, tables, start, time.time_ns, CapturedTables(settings, tables, time.time_ns, current))
    rows: Rows = {}
    with contextlib.closing(BinlogStream(config.database, start, mariadb=mariadb).events()) as pieces:
        for packets in pieces:
            for packet in packets:
                apply(rows, received(pipeline, packet))
            if (pipeline.progress.file, pipeline.progress.end) >= (end.file, end.pos):
                break
    assert list(rows.values()) == [{"id": 1, "a": 10}, {"id": 2, "b": 20, "a": 200}]
    assert f"The structure of {database.name}.t is taken from the next rows or from the server" in caplog.text
