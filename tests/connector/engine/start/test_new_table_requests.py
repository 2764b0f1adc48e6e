"""When the incremental snapshot of new tables is requested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from rowtide.connector.engine.start.new_table_requests import NewTableRequests
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.state import TableToRead
from rowtide.schema_history.model import TableId

AT = SourceOffset("b.000001", 4)
PIPELINE = cast("Any", SimpleNamespace(offset=lambda: AT))


class Snapshots:
    """Incremental snapshots that read nothing."""

    def __init__(self) -> None:
        self.tables: tuple[TableToRead, ...] = ()

    def add(self, tables: Sequence[TableToRead], request_id: str, at: SourceOffset) -> Iterable[Any]:
        assert at is AT
        assert {table.signal_id for table in tables} == {request_id}
        self.tables = (*self.tables, *tables)
        return ()


def requests(count: int) -> tuple[NewTableRequests, Snapshots]:
    snapshots = Snapshots()
    names = [TableId("d", f"t{number}") for number in range(count)]
    ids = iter("abcdef")
    return NewTableRequests(names, cast("Any", snapshots), lambda: next(ids)), snapshots


def test_the_first_boundary_is_used_without_new_tables_too() -> None:
    work, snapshots = requests(0)
    assert work.due, "so that the lists are stored"
    assert list(work.run(PIPELINE)) == []
    assert not work.due
    assert snapshots.tables == ()


def test_many_tables_are_requested_one_part_after_the_other() -> None:
    work, snapshots = requests(150)
    work.run(PIPELINE)
    assert [table.name for table in snapshots.tables] == [f"d.t{number}" for number in range(100)]
    assert not work.due, "these are not read yet"
    snapshots.tables = ()
    assert work.due
    work.run(PIPELINE)
    assert [table.name for table in snapshots.tables] == [f"d.t{number}" for number in range(100, 150)]
    snapshots.tables = ()
    assert not work.due
