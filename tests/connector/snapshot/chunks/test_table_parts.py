"""The parts of tables: each row is in one part, whatever the key, and small tables stay whole."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rowtide.connector.snapshot.chunks.table_parts import TablePart, TableParts, TableToRead, key_ranges
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.connector.source.server_queries import ListedTable
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


def table(columns: str, rows: int | None = None) -> TableToRead:
    tables = Tables(Server(Flavor.MYSQL, "8.4.3"))
    tables.apply(QueryEvent(f"CREATE TABLE t ({columns})", "d"))
    structure = tables.table("d", "t")
    assert structure is not None
    listed = ListedTable(TableId("d", "t"), rows=rows)
    return TableToRead(listed, cast("SnapshotTable", None), "SELECT *", key_ranges(listed, structure, 3))


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ("id INT PRIMARY KEY", 3),
        ("id INT PRIMARY KEY", 0),
        ("id INT", 100),
        ("id INT UNIQUE", 100),
        ("j GEOMETRY NOT NULL, UNIQUE (j(10))", 100),
    ],
)
def test_tables_that_are_not_cut(columns: str, rows: int) -> None:
    assert table(columns, rows).ranges is None


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 9])
def test_the_parts_of_two_tables(count: int) -> None:
    keys = list(range(count))
    bounds: list[tuple[Any, ...]] = [(str(key),) for key in keys[2::3]]
    asked: list[str] = []

    def query(statement: str) -> list[tuple[Any, ...]]:
        asked.append(statement)
        return [bounds.pop(0)] if bounds else []

    cut, whole = table("id INT PRIMARY KEY", None), table("id INT")
    parts = TableParts([cut, whole], 3)
    taken: list[TablePart] = []
    while (part := parts.take(query)) is not None:
        taken.append(part)
    assert parts.current is None
    assert taken[-1].query == "SELECT *"
    found = [key for part in taken[:-1] for key in keys if eval(_python(part.query), {"id": key})]
    assert found == keys
    assert len(taken) - 1 == len(asked) == count // 3 + 1
    assert [parts.completed(part) for part in reversed(taken)] == [True, *[False] * (len(taken) - 2), True]


def _python(query: str) -> str:
    where = query.removeprefix("SELECT * WHERE ").replace("`", "").replace("AND", "and")
    return "True" if where == "TRUE" else where


def test_a_table_is_complete_only_when_all_its_parts_are_taken_and_read() -> None:
    parts = TableParts([table("id INT PRIMARY KEY")], 3)
    first = parts.take(lambda _: [("5",)])
    assert first is not None
    assert not parts.completed(first)
    last = parts.take(lambda _: [])
    assert last is not None
    assert parts.completed(last)
