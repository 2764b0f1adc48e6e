"""Markers of snapshot records: they depend on tables and rows, not on the batches in which rows arrive."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.records import ParallelRecordStream, ReadTime, RecordStream, SnapshotTable

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
    """Messages before the rows, of which one is withheld."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def before_rows(self) -> Iterator[Batch]:
        self.calls.append("rows follow")
        yield from ()

    def finish(self, completed: SourceOffset) -> Iterator[Batch]:
        self.calls.append("no rows")
        yield Batch("", -1, (), completed, 0, 0)


def marked(tables: Sequence[Sequence[int]]) -> tuple[list[tuple[str, str]], list[Batch]]:
    """Rows and markers of tables whose rows arrive in batches of these sizes."""
    fakes = [FakeTable(f"t{place}") for place in range(len(tables))]
    before = FakeStructure()
    stream = RecordStream(cast("Any", fakes[0]) if fakes else None, before)
    batches: list[Batch] = []
    for fake, sizes in zip(fakes, tables, strict=True):
        begin = 0
        for size in sizes:
            rows = [(f"{fake.topic}/{n}", "") for n in range(begin, begin + size)]
            begin += size
            batches += stream.rows(cast("SnapshotTable", fake), READ_TIME, rows)
    batches += stream.finish(DONE)
    assert before.calls == ["rows follow" if any(sum(sizes) for sizes in tables) else "no rows"]
    found = [(str((key or b"").decode()), (value or b"").decode()) for b in batches for key, value, _ in b.messages]
    return found, batches


def expected(counts: Sequence[int]) -> list[tuple[str, str]]:
    """The rules: each table has a first and a last row. ``last`` has precedence, except in the first table."""
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
def test_markers_do_not_depend_on_batches(tables: list[list[int]]) -> None:
    found, batches = marked(tables)
    assert found == expected([sum(sizes) for sizes in tables])
    assert [batch.offset for batch in batches] == [RUNNING] * (len(batches) - 1) + [DONE]


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=4), st.randoms(use_true_random=False))
def test_markers_of_tables_that_are_read_at_once(tables: list[list[int]], order: Random) -> None:
    """One row is the first of all, one the last; each other table has a first and a last row, if it has two."""
    fakes = [FakeTable(f"t{place}") for place in range(len(tables))]
    before = FakeStructure()
    stream = ParallelRecordStream(before)
    left = [[fake, list(sizes)] for fake, sizes in zip(fakes, tables, strict=True)]
    batches: list[Batch] = []
    while left:
        fake, sizes = one = order.choice(left)
        if sizes:
            size = cast("list[int]", sizes).pop()
            rows = [(f"{cast('FakeTable', fake).topic}/{size}", "")] * size
            batches += stream.rows(cast("SnapshotTable", fake), READ_TIME, rows)
        else:
            batches += stream.finished(cast("SnapshotTable", fake))
            left.remove(one)
    batches += stream.finish(DONE)
    counts = {fake.topic: sum(sizes) for fake, sizes in zip(fakes, tables, strict=True)}
    assert before.calls == ["rows follow" if any(counts.values()) else "no rows"]
    found: dict[str, list[str]] = {topic: [] for topic in counts}
    for batch in batches:
        for _, value, _ in batch.messages:
            found.setdefault(batch.topic, []).append((value or b"").decode())
    everything = [(value or b"").decode() for batch in batches for _, value, _ in batch.messages]
    assert {topic: len(rows) for topic, rows in found.items() if topic} == counts
    assert [batch.offset for batch in batches] == [*[RUNNING] * (len(batches) - 1), DONE]
    if everything:
        assert everything[-1] == "last"
        assert everything[0] == ("first" if len(everything) > 1 else "last")
    assert everything.count("first") + everything.count("last") <= 2
    for rows in found.values():
        if len(rows) > 1:
            assert rows[0] in ("first", "first_in_data_collection")
            assert rows[-1] in ("last", "last_in_data_collection")
            assert set(rows[1:-1]) <= {"true"}
