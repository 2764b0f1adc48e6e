"""Markers of a snapshot's records: they depend on tables and rows, not on the pieces in which rows come."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.records import ReadTime, RecordStream, SnapshotTable

RUNNING, DONE = SourceOffset("b", 1, snapshot="INITIAL"), SourceOffset("b", 1)
READ_TIME = ReadTime(1_000_000, RUNNING, lambda: 1)


class FakeTable:
    """A table whose messages are the rows with their markers."""

    def __init__(self, name: str) -> None:
        self.table = self
        self.topic = name
        self.schemas = None

    def messages(self, rows: Rows, marker: str, _read_time: ReadTime) -> list[Message]:
        return [(key.encode(), marker.encode(), ()) for key, _ in rows]

    def batch(self, messages: Sequence[Message], ts_ms: int, offset: SourceOffset) -> Batch:
        return Batch(self.topic, -1, messages, offset, 0, ts_ms)


class FakeStructure:
    """What stands before the rows: one message, held back."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def before_rows(self) -> Iterator[Batch]:
        self.told.append("rows follow")
        yield from ()

    def finish(self, completed: SourceOffset) -> Iterator[Batch]:
        self.told.append("no rows")
        yield Batch("", -1, (), completed, 0, 0)


def marked(tables: Sequence[Sequence[int]]) -> tuple[list[tuple[str, str]], list[Batch]]:
    """Rows and markers of tables that come in pieces of so many rows."""
    fakes = [FakeTable(f"t{place}") for place in range(len(tables))]
    before = FakeStructure()
    stream = RecordStream(cast("Any", fakes[0]) if fakes else None, before)
    batches: list[Batch] = []
    for fake, pieces in zip(fakes, tables, strict=True):
        begin = 0
        for size in pieces:
            rows = [(f"{fake.topic}/{n}", "") for n in range(begin, begin + size)]
            begin += size
            batches += stream.rows(cast("SnapshotTable", fake), READ_TIME, rows)
    batches += stream.finish(DONE)
    assert before.told == ["rows follow" if any(sum(pieces) for pieces in tables) else "no rows"]
    found = [(str((key or b"").decode()), (value or b"").decode()) for b in batches for key, value, _ in b.messages]
    return found, batches


def expected(counts: Sequence[int]) -> list[tuple[str, str]]:
    """By the rules: every table has a first and a last row, of which the last wins, but for the first table's."""
    rows = []
    for place, count in enumerate(counts):
        first = "first" if place == 0 else "first_in_data_collection"
        for n in range(count):
            marker = "true"
            if n == 0 and (place == 0 or count > 1):
                marker = first
            elif n == count - 1:
                marker = "last_in_data_collection"
            rows.append((f"t{place}/{n}", marker))
    return [*rows[:-1], (rows[-1][0], "last")] if rows else []


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=5))
def test_markers_do_not_depend_on_pieces(tables: list[list[int]]) -> None:
    found, batches = marked(tables)
    assert found == expected([sum(pieces) for pieces in tables])
    assert [batch.offset for batch in batches] == [RUNNING] * (len(batches) - 1) + [DONE]
