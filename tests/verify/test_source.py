"""How a server is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.reading.table_view import TableView
from rowtide.verify.source import TableSource


@pytest.mark.parametrize(("transactional", "end"), [(True, 20), (False, 40)])
def test_rows_of_an_engine_without_views_are_as_of_the_moment_of_reading(transactional: bool, end: int) -> None:
    """A row that changed between the view and the query was taken for one that the topic lacks."""
    views = [TableView(SourceOffset("f", pos), SourceOffset("f", pos + 10)) for pos in (10, 30)]

    @contextmanager
    def view(_table: object) -> Iterator[TableView]:
        yield views.pop(0)

    source: Any = SimpleNamespace(view=view)
    table: Any = SimpleNamespace(transactional=transactional)
    with view(table) as opened:
        pass
    found = TableSource.after_reading(source, table, opened)
    assert (found.seen.pos, found.end.pos) == (10, end)
