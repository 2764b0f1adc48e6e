"""Which entries reach clients."""

from __future__ import annotations

import pytest

from rowtide.canal.entries.entry import (
    Content,
    Entry,
    EntryHeader,
    EntryStatement,
    EventType,
    RowChange,
    TransactionBegin,
    TransactionEnd,
)
from rowtide.canal.entries.filters import EntryFilter, TablePatterns
from rowtide.canal.entries.sink import EntryKinds, EntrySink
from rowtide.connector.records.offset import SourceOffset

OFFSET = SourceOffset("binlog.000001", 4)
BEGIN, END = TransactionBegin(1), TransactionEnd(1)
INSERT = RowChange(EventType.INSERT, 1, (), ())
DELETE = RowChange(EventType.DELETE, 1, (), ())
ALTER = EntryStatement(EventType.ALTER, "ALTER TABLE t ADD x INT", ddl=True)
DML = EntryStatement(EventType.QUERY, "INSERT INTO t VALUES (1)")
XA = EntryStatement(EventType.XACOMMIT, "XA COMMIT 'a'")


def sink(white: str = "", **kinds: bool) -> EntrySink:
    found = EntrySink(EntryFilter(TablePatterns.parse(white), TablePatterns.parse("")), EntryKinds(**kinds))
    passed(found, BEGIN, END)  # the first empty transaction passes, and sets the time of the next one
    return found


def passed(to: EntrySink, *contents: Content, seconds: int = 100, table: str = "t") -> list[int]:
    """The places of the contents that pass."""
    found = []
    for place, content in enumerate(contents):
        named = isinstance(content, RowChange | EntryStatement)
        header = EntryHeader("f", place, 1, 1, seconds, "shop" if named else "", table if named else "")
        found += [entry.header.offset for entry, _ in to.passed([Entry(header, content)], OFFSET)]
    return found


def test_transactions_with_rows_are_complete() -> None:
    assert passed(sink(), BEGIN, INSERT, DELETE, END) == [0, 1, 2, 3]


def test_empty_transactions_pass_every_five_seconds() -> None:
    found = sink()
    assert passed(found, BEGIN, END, seconds=105) == []
    assert passed(found, BEGIN, END, seconds=106) == [0, 1]
    assert passed(found, BEGIN, END, seconds=107) == []


def test_a_transaction_whose_rows_are_filtered_out_is_empty() -> None:
    assert passed(sink(r"shop\.other"), BEGIN, INSERT, END) == []
    assert passed(sink(r"shop\.t"), BEGIN, INSERT, END) == [0, 1, 2]


def test_an_end_without_a_begin_passes_as_mariadb_has_none() -> None:
    assert passed(sink(), INSERT, END) == [0, 1]


@pytest.mark.parametrize(
    ("kinds", "places"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6]),
        ({"transactions": True}, [1, 2, 3, 4, 5]),
        ({"ddl": True}, [0, 1, 2, 3, 5, 6]),
        ({"statements": True}, [0, 2, 3, 4, 5, 6]),
        ({"rows": True}, [0, 1, 4, 5, 6]),
        ({"inserts": True}, [0, 1, 3, 4, 5, 6]),
        ({"deletes": True}, [0, 1, 2, 4, 5, 6]),
    ],
)
def test_kinds_that_are_omitted(kinds: dict[str, bool], places: list[int]) -> None:
    assert passed(sink(**kinds), BEGIN, DML, INSERT, DELETE, ALTER, XA, END) == places
