"""Tables that a rename gives a captured name: the stream lacks the rows that they have."""

from __future__ import annotations

import pytest

from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.topics.filters import Patterns, Selection, TableFilter
from rowtide.topics.naming import StandardNaming
from rowtide.topics.online_schema_change import WELL_KNOWN_HELPERS

LISTS = TableFilter(
    tables=Selection(include=Patterns.parse("d.t,d.u")), always=frozenset({("d", "sig")}), helpers=WELL_KNOWN_HELPERS
)


def entered(*statements: str) -> list[str]:
    settings, tables = PipelineSettings("mysql", "p", StandardNaming("p"), tables=LISTS), Tables(Server(Flavor.MYSQL))
    captured, found = CapturedTables(settings, tables, lambda: 0), []
    captured.on_entered = lambda table: found.append(str(table))
    for table in ("d.t", "d.other", "far.t", "d._t_gho", "d._t_new"):
        database, name = table.split(".")
        tables.apply(QueryEvent(f"CREATE TABLE `{name}` (id INT PRIMARY KEY)", database))
    for statement in statements:
        for former, now in tables.apply(QueryEvent(statement, "d")).renamed():
            captured.renamed(former, now)
    return found


@pytest.mark.parametrize(
    ("statements", "names"),
    [
        (["RENAME TABLE other TO u"], ["d.u"]),
        (["ALTER TABLE other RENAME TO u, ADD COLUMN c INT"], ["d.u"]),
        (["RENAME TABLE far.t TO d.u"], ["d.u"]),
        (["RENAME TABLE t TO old, other TO t"], ["d.t"]),
        (["RENAME TABLE other TO swap, t TO other, swap TO t"], ["d.t"]),
        (["RENAME TABLE unknown TO u"], ["d.u"]),
        (["RENAME TABLE t TO out_of_it", "RENAME TABLE out_of_it TO t"], ["d.t"]),
        (["RENAME TABLE t TO u"], []),
        (["RENAME TABLE t TO old"], []),
        (["RENAME TABLE other TO other2"], []),
        (["RENAME TABLE other TO sig"], []),
        (["RENAME TABLE t TO _t_del, _t_gho TO t"], []),
        (["RENAME TABLE t TO _t_old", "RENAME TABLE _t_gho TO t"], []),
        (["RENAME TABLE t TO _t_old, _t_new TO t"], []),
        (["CREATE TABLE u (id INT PRIMARY KEY)"], []),
    ],
)
def test_which_renames_bring_rows_that_the_stream_lacks(statements: list[str], names: list[str]) -> None:
    assert entered(*statements) == names


def test_without_a_listener_nothing_happens() -> None:
    settings = PipelineSettings("mysql", "p", StandardNaming("p"), tables=LISTS)
    CapturedTables(settings, Tables(Server(Flavor.MYSQL)), lambda: 0).renamed(TableId("d", "x"), TableId("d", "u"))
