"""The lists of captured tables in offsets: stored and read again, short, and without the tables that were read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import ReadTables, with_read
from rowtide.schema_history.model import TableId
from rowtide.topics.filters import Patterns, Selection, TableFilter
from rowtide.topics.online_schema_change import WELL_KNOWN_HELPERS, parse_helper_names

A, B = TableId("d", "a"), TableId("d", "b")
LISTS = TableFilter(
    databases=Selection(exclude=Patterns.parse("old,older")),
    tables=Selection(include=Patterns.parse(r"d\.a,d\.[b-c]{1\,2}")),
    ignore_builtin=False,
    always=frozenset({("d", "sig")}),
    helpers=parse_helper_names(("well-known", "_(.+)_x")),
)


@pytest.mark.parametrize(
    "read",
    [
        ReadTables(LISTS, (A, B)),
        ReadTables(TableFilter()),
        ReadTables(TableFilter(tables=Selection(include=Patterns.parse("")))),
        ReadTables(TableFilter(tables=Selection(exclude=Patterns.parse("d.é")), helpers=WELL_KNOWN_HELPERS)),
        ReadTables(TableFilter(tables=Selection(include=Patterns.of(f"d.t{number}" for number in range(5000))))),
    ],
)
def test_lists_are_stored_with_an_offset(read: ReadTables) -> None:
    offset = SourceOffset("b.000001", 4, carried=read.carried({"rowtide_signal_x": 1}))
    text = offset.to_json()
    restored = SourceOffset.from_json(text)
    assert ReadTables.from_carried(restored.carried) == read
    assert restored.carried is not None
    assert restored.carried["rowtide_signal_x"] == 1
    assert len(text) < 20_000


def test_the_restored_lists_capture_the_same_tables() -> None:
    restored = ReadTables.from_carried(ReadTables(LISTS).carried(None))
    assert restored is not None
    names = restored.names(lambda _database, table: table == "a")
    captured = [table for table in ("a", "bc", "d", "sig", "_a_new", "_a_x") if names.captures("d", table)]
    assert captured == ["a", "bc", "sig"]
    assert not names.captures("old", "a")


def test_lists_that_are_too_long_are_not_stored(caplog: pytest.LogCaptureFixture) -> None:
    import random

    chance = random.Random(1)
    long = Patterns.of(f"d.{chance.getrandbits(2560):x}" for _ in range(1000))
    assert ReadTables(TableFilter(tables=Selection(include=long))).carried(None) == {}
    assert "too long to be stored" in caplog.text


@pytest.mark.parametrize("text", ["{", "[]", "AAAA", "é", '{"tables":{"include":["("]}}', 7, '{"unread":[["d"]]}'])
def test_damaged_lists_count_as_none(text: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert ReadTables.from_carried({"rowtide_snapshot_lists": text}) is None
    assert "cannot be read" in caplog.text


def test_a_table_that_was_read_is_no_longer_unread() -> None:
    read = ReadTables(LISTS, (A, B))
    carried = with_read(read.carried({"other": 1}), [A])
    assert carried is not None
    assert ReadTables.from_carried(carried) == replace(read, unread=(B,))
    assert carried["other"] == 1
    assert with_read(carried, [A, None]) is carried
    assert with_read({"other": 1}, [A]) == {"other": 1}
    assert with_read(None, [A]) is None
