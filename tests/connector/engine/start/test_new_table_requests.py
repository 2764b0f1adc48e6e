"""When the incremental snapshot of new tables is requested."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.start.later_structures import LaterStructure
from rowtide.connector.engine.start.new_table_requests import NewTableRequests
from rowtide.connector.engine.start.new_tables import plan_new_tables
from rowtide.connector.engine.start.table_lookup import StartTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.batch import HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import ReadTables, with_renamed, with_unread
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.incremental.state import IncrementalTable
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.topics.filters import TableFilter
from rowtide.topics.naming import StandardNaming
from tests.support.configurations import PROPERTIES

AT = SourceOffset("b.000001", 4)
X = TableId("d", "x")
SETTINGS = PipelineSettings("mysql", "shop", StandardNaming("shop"))


class Snapshots:
    """Incremental snapshots that read nothing."""

    def __init__(self) -> None:
        self.tables: tuple[IncrementalTable, ...] = ()
        self.progress: Progress | None = None

    def add(self, tables: Sequence[IncrementalTable], request_id: str, at: SourceOffset) -> Iterable[Any]:
        assert replace(at, carried=None) == AT
        assert {table.signal_id for table in tables} == {request_id}
        self.tables = (*self.tables, *tables)
        return ()


class Run:
    """A stream, and the requests next to it."""

    def __init__(self, count: int = 0, *later: LaterStructure, new_tables: str | None = None) -> None:
        self.snapshots = Snapshots()
        self.tables = Tables(Server(Flavor.MYSQL))
        self.connect()
        names = [TableId("d", f"t{number}") for number in range(count)]
        hidden = frozenset((one.table.database, one.table.table) for one in later)
        found = StartTables(AT, names, later, hidden)
        ids = iter("abcdef")
        snapshots = cast("Any", self.snapshots)
        more = {} if new_tables is None else {"rowtide.snapshot.new.tables": new_tables}
        self.entered: deque[TableId] = deque()
        plan = partial(plan_new_tables, from_properties({**PROPERTIES, **more}))
        self.work = NewTableRequests(SETTINGS, found, self.entered, plan, snapshots, lambda: 0, lambda: next(ids))

    def connect(self) -> None:
        """Begin a new stream."""
        self.pipeline = Pipeline(SETTINGS, self.tables, AT, lambda: 0)
        self.pipeline.decoder.format = cast("Any", SimpleNamespace(header=SimpleNamespace(server_id=7)))
        self.snapshots.progress = self.pipeline.progress

    def enter(self, structure: str | None = "id INT PRIMARY KEY") -> None:
        """A rename gives a table a captured name."""
        if structure is not None:
            self.tables.apply(QueryEvent(f"CREATE TABLE x ({structure})", "d"))
        lists = ReadTables(TableFilter()).carried(None)
        self.pipeline.progress.carried = with_unread(lists, X)
        self.entered.append(X)

    @property
    def unread(self) -> tuple[TableId, ...]:
        """The tables that the next position has as unread."""
        read = ReadTables.from_carried(self.pipeline.progress.carried)
        assert read is not None
        return read.unread

    def run(self) -> list[Output]:
        return list(self.work.run(self.pipeline))

    def requested(self) -> list[str]:
        return [table.name for table in self.snapshots.tables]


def later(pos: int, statement: str = "CREATE TABLE `x` (`id` int NOT NULL, PRIMARY KEY (`id`))") -> LaterStructure:
    return LaterStructure(X, statement, replace(AT, pos=pos, server="7"))


def test_the_first_boundary_is_used_without_new_tables_too() -> None:
    run = Run()
    assert run.work.due, "so that the lists are stored"
    assert run.run() == []
    assert not run.work.due
    assert run.requested() == []


def test_many_tables_are_requested_one_part_after_the_other() -> None:
    run = Run(150)
    run.run()
    assert run.requested() == [f"d.t{number}" for number in range(100)]
    assert not run.work.due, "these are not read yet"
    run.snapshots.tables = ()
    assert run.work.due
    run.run()
    assert run.requested() == [f"d.t{number}" for number in range(100, 150)]
    run.snapshots.tables = ()
    assert not run.work.due


def test_a_hidden_table_is_captured_when_the_stream_has_passed_its_position() -> None:
    run = Run(0, later(100))
    assert run.run() == []
    assert not run.work.due
    assert run.work.hidden == {("d", "x")}
    run.connect()  # after a lost connection
    run.pipeline.progress.end = 100
    assert run.work.due
    entry, message = run.run()
    assert isinstance(entry, HistoryEntry)
    written = json.loads(entry.text)
    assert written["ddl"].startswith("CREATE TABLE `x`")
    assert written["position"] == {"file": "b.000001", "pos": 4}, "that of the next start"
    assert not isinstance(message, HistoryEntry)
    assert message.topic == "shop"
    assert run.tables.exists("d", "x")
    assert run.work.hidden == set()
    assert run.requested() == ["d.x"]
    assert not run.work.due


def test_a_structure_replaces_one_that_the_stream_has() -> None:
    run = Run(0, later(4))
    run.tables.apply(QueryEvent(b"CREATE TABLE IF NOT EXISTS x (other INT)", "d"))
    entries = [output for output in run.run() if isinstance(output, HistoryEntry)]
    assert [json.loads(entry.text)["ddl"][:12] for entry in entries] == ["DROP TABLE I", "CREATE TABLE"]
    table = run.tables.table("d", "x")
    assert table is not None
    assert [column.name for column in table.columns] == ["id"]


def test_a_structure_that_cannot_be_parsed_keeps_the_table_hidden(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(0, later(4, "CREATE TABLE `x` (`id` strange)"))
    assert run.run() == []
    assert run.work.hidden == {("d", "x")}
    assert "d.x is not captured, because its structure cannot be parsed" in caplog.text


def test_positions_of_another_server_keep_the_table_hidden(caplog: pytest.LogCaptureFixture) -> None:
    other = later(4)
    run = Run(0, replace(other, position=replace(other.position, server="8")))
    assert run.run() == []
    assert not run.work.due
    assert run.work.hidden == {("d", "x")}
    assert "d.x: not captured until the next start" in caplog.text


def test_a_table_that_gets_a_captured_name_is_requested() -> None:
    run = Run()
    run.run()
    run.enter()
    assert run.work.due
    run.run()
    assert run.requested() == ["d.x"]
    assert run.unread == (X,), "until it is read"
    assert not run.work.due


def test_a_table_that_is_being_read_is_not_requested_again() -> None:
    run = Run()
    run.snapshots.tables = (IncrementalTable("d.x", X, "s"),)
    run.enter()
    run.run()
    assert run.requested() == ["d.x"]


@pytest.mark.parametrize("taken", [False, True])
def test_a_table_that_is_renamed_while_it_waits_is_requested_by_its_new_name(*, taken: bool) -> None:
    run = Run()
    run.snapshots.tables = (IncrementalTable("d.other", TableId("d", "other"), "s"),)
    run.enter()
    if taken:  # otherwise it is renamed before the next boundary
        run.run()
    run.tables.apply(QueryEvent("RENAME TABLE x TO y", "d"))
    progress, now = run.pipeline.progress, TableId("d", "y")
    progress.carried = with_renamed(progress.carried, X, now, remains=False)
    run.run()
    assert run.requested() == ["d.other"]
    run.snapshots.tables = ()
    assert run.work.due
    run.run()
    assert run.requested() == ["d.y"]
    assert run.unread == (now,)
    assert not run.work.due


@pytest.mark.parametrize(
    ("structure", "new_tables", "message"),
    [
        (
            "id INT",
            None,
            "d.x: new among the captured tables, but its existing rows are not read: it has no primary",
        ),
        ("id INT PRIMARY KEY", "none", "d.x: new among the captured tables, but only their changes are read"),
        (None, None, "d.x now has a captured name, but its structure is not known: the next start reads its rows"),
    ],
)
def test_a_table_with_a_captured_name_that_is_not_read(
    structure: str | None, new_tables: str | None, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(new_tables=new_tables)
    run.enter(structure)
    run.run()
    assert run.requested() == []
    assert run.unread == (X,), "each start names it"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert message in record.getMessage()
