"""Thousands of tables: what is cached for them is bounded, outlives a connection, and no statement goes through all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline import captured_tables
from rowtide.connector.pipeline.captured_tables import CapturedTable, CapturedTables
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.connector.records.codecs.builder import Codecs
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.by_table import ByTable
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.recovery.session_settings import required_sessions
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.configurations import PROPERTIES

TABLES = 2000
START = SourceOffset("binlog.000001", 4)


class Connector:
    """The structures of many tables, and what a stream caches for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **properties: str) -> None:
        self.built: list[str] = []
        build = Codecs.codec

        def counted(codecs: Codecs, structure: TableStructure, table: Table) -> captured_tables.Codec:
            self.built.append(structure.table)
            return build(codecs, structure, table)

        monkeypatch.setattr(Codecs, "codec", counted)
        self.tables = Tables(Server(Flavor.MYSQL, "8.4.3"))
        self.apply("CREATE DATABASE d", *(f"CREATE TABLE t{n} (id INT PRIMARY KEY, a INT)" for n in range(TABLES)))
        self.captured = CapturedTables(settings(**properties), self.tables, lambda: 0)

    def apply(self, *statements: str) -> None:
        for statement in statements:
            self.tables.apply(QueryEvent(statement, "d"))

    def find(self, name: str, columns: int = 2) -> CapturedTable | None:
        """Find a table for a new TABLE_MAP, as after a reconnect."""
        column = MappedColumn(BinlogType.LONG, 0, nullable=False)
        nullable = MappedColumn(BinlogType.LONG, 0, nullable=True)
        structure = TableStructure("d", name, (column, *[nullable] * (columns - 1)))
        return self.captured.find(structure, Progress(START), lambda: START).table


def settings(**properties: str) -> PipelineSettings:
    return pipeline_settings(from_properties(PROPERTIES | properties), "run")


@pytest.fixture
def connector(monkeypatch: pytest.MonkeyPatch) -> Connector:
    monkeypatch.setattr(captured_tables, "MAX_COLUMNS", 200)
    return Connector(monkeypatch)


def test_the_columns_of_all_codecs_are_bounded(connector: Connector) -> None:
    for number in range(TABLES):
        assert connector.find(f"t{number}") is not None
    assert len(connector.captured) == 100
    assert len(connector.built) == TABLES
    connector.find(f"t{TABLES - 1}")
    connector.find(f"t{TABLES - 100}")
    assert len(connector.built) == TABLES
    connector.find("t0")
    assert connector.built[TABLES:] == ["t0"]


def test_a_codec_outlives_its_table_map(connector: Connector) -> None:
    first = connector.find("t1")
    second = connector.find("t1")
    assert first is not None
    assert second is not None
    assert first.codec is second.codec
    assert first.structure is not second.structure  # comparing the former one again would take long


def test_statements_drop_the_codec(connector: Connector) -> None:
    for name in ("t1", "t2", "t3"):
        connector.find(name)
    connector.apply("DROP TABLE t1", "RENAME TABLE t2 TO moved", "ALTER TABLE t3 ADD b INT")
    for name, exists in (("t1", False), ("t2", False), ("moved", True), ("t3", True)):
        connector.captured.changed(TableId("d", name), exists=exists)
    assert len(connector.captured) == 0
    found = connector.find("t3", 3)
    assert found is not None
    assert len(found.codec.records.columns) == 3


def test_a_changed_structure_has_a_codec_of_its_own(connector: Connector) -> None:
    before = connector.find("t1")
    connector.apply("ALTER TABLE t1 ADD b INT")
    after = connector.find("t1", 3)
    assert before is not None
    assert after is not None
    assert after.table is not before.table
    assert after.codec is not before.codec
    assert len(connector.captured) == 1


def test_tables_that_are_not_captured_need_no_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    connector = Connector(monkeypatch, **{"table.include.list": "d\\.t1"})
    assert [connector.find(name) is not None for name in ("t0", "t1", "t2", "t0")] == [False, True, False, False]
    assert connector.built == ["t1"]


class NotIterated(ByTable[Table]):
    """Many tables."""

    def __iter__(self) -> Iterator[TableId]:
        raise AssertionError("a statement goes through all tables")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE made (id INT)",
        "CREATE TABLE made LIKE t1",
        "ALTER TABLE t1 ADD b INT",
        "RENAME TABLE t1 TO moved, t2 TO t1",
        "TRUNCATE TABLE t1",
        "DROP TABLE t1, t2",
        "CREATE INDEX i ON t1 (a)",
        "CREATE DATABASE another",
        "DROP DATABASE other",
    ],
)
@pytest.mark.parametrize("recorded", [None, lambda table: table.table != "t5"])
def test_no_statement_goes_through_all_tables(statement: str, recorded: object) -> None:
    tables = Tables(Server(Flavor.MYSQL, "8.4.3"))
    for sql in (
        "CREATE DATABASE d",
        "CREATE DATABASE IF NOT EXISTS other",
        *(f"CREATE TABLE t{n} (id INT PRIMARY KEY, a INT)" for n in range(9)),
    ):
        tables.apply(QueryEvent(sql, "d"))
    tables._tables, known = NotIterated(), tables._tables
    for table_id, table in known.items():
        tables._tables[table_id] = table
    event = QueryEvent(statement, "d")
    result = tables.apply(event)
    assert not any(required_sessions(tables, event, result, recorded))  # type: ignore[arg-type]


def test_a_table_is_captured_until_it_becomes_a_helper_table(
    connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    def alter(statement: str) -> None:
        result = connector.tables.apply(QueryEvent(statement, "d"))
        for table, now in result.altered:
            connector.captured.changed(table, exists=now is not None)

    alter("CREATE TABLE _x_new (id INT PRIMARY KEY, a INT)")
    assert connector.find("_x_new") is not None
    alter("CREATE TABLE x (id INT PRIMARY KEY, a INT)")
    assert connector.find("_x_new") is None
    assert connector.find("_x_new") is None
    assert caplog.messages == [
        (
            "the rows of d._x_new are skipped: it is a helper table of an online schema change of d.x "
            "(rowtide.online.schema.change.tables)"
        )
    ]
    alter("RENAME TABLE x TO _x_old, _x_new TO x")
    assert connector.find("x") is not None
    assert connector.find("_x_old") is None
    alter("DROP TABLE x")
    assert connector.find("_x_old") is not None
