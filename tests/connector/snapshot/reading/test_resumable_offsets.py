"""The offsets of a snapshot's rows: a later start reads every row that is not on the way, and not much more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.chunks.key_ranges import ChunkKey
from rowtide.connector.snapshot.chunks.table_parts import TablePart, TableToRead
from rowtide.connector.snapshot.incremental.state import SnapshotState
from rowtide.connector.snapshot.reading.resumable_offsets import ResumableOffsets
from rowtide.connector.snapshot.records import ParallelRecordStream, ReadTime, RecordStream, SnapshotTable
from rowtide.connector.source.server_queries import ListedTable
from rowtide.schema_history.model import Column, TableId

RUNNING, DONE = SourceOffset("b", 1, snapshot="INITIAL"), SourceOffset("b", 1)
KEY = ChunkKey((Column("id", 1, "int"),), (False,), unique=True)

Parts = Sequence[Sequence[int]]
"""The parts of a table: the sizes of their batches of rows."""


class FakeTable:
    """A table whose messages are its rows."""

    def __init__(self, name: TableId) -> None:
        self.table = self
        self.name = name

    def messages(self, rows: Rows, _marker: str, _read_time: ReadTime) -> list[Message]:
        return [(row[0], None, ()) for row in rows]

    def batch(self, messages: Sequence[Message], ts_ms: int, offset: SourceOffset) -> Batch:
        return Batch("", -1, messages, offset, 0, ts_ms)


class NoStructure:
    """No messages before the rows."""

    def before_rows(self) -> Iterator[Batch]:
        yield from ()

    def finish(self, completed: SourceOffset) -> Iterator[Batch]:
        yield Batch("", -1, (), completed, 0, 0)


class Reading:
    """Connections that read tables, and what becomes of the rows.

    Args:
        tables: the parts of each table.
        keyless: the number of tables at the front that cannot be read on.
        every_rows: how many rows have the same offset.
        parallel: whether the rows are marked as those of several connections.
    """

    def __init__(self, tables: Sequence[Parts], keyless: int, every_rows: int, *, parallel: bool) -> None:
        self.tables = tables
        self.names = [TableId("d", f"t{place}") for place in range(len(tables))]
        fakes = [FakeTable(name) for name in self.names]
        self._reads = [TableToRead(ListedTable(fake.name), cast("SnapshotTable", fake), "") for fake in fakes]
        keys = {name: None if place < keyless else KEY for place, name in enumerate(self.names)}
        self.offsets = ResumableOffsets(RUNNING, RUNNING, keys, every_rows)
        self._stream: Any = ParallelRecordStream(NoStructure())
        if not parallel:
            self._stream = RecordStream(cast("Any", fakes[0]), NoStructure())
        self._left = [len(parts) for parts in tables]
        self.batches: list[Batch] = []

    def steps(self, place: int, number: int) -> Iterator[None]:
        """Read a part: the generator stands before each piece of it, and before its end arrives."""
        read, sizes = self._reads[place], self.tables[place][number]
        for batch, size in enumerate(sizes):
            yield
            self.offsets.add(self.names[place], size)
            rows = [(f"{place} {number} {batch} {row}".encode(),) for row in range(size)]
            self.batches += self._stream.rows(read.captured, ReadTime(0, self.offsets.offset, lambda: 0), rows)
        yield
        self._left[place] -= 1
        complete = not self._left[place]
        last = number == len(self.tables[place]) - 1
        part = TablePart(place, read, "", number, None if last else (str(number),))
        self.offsets.added(part, complete=complete)
        if complete and isinstance(self._stream, ParallelRecordStream):
            self.batches += self._stream.finished(read.captured)

    def read(self, connections: int, chance: Random) -> None:
        """Read all parts, several at the same time."""
        waiting = [(place, number) for place, parts in enumerate(self.tables) for number in range(len(parts))]
        running: list[Iterator[None]] = []
        while waiting or running:
            if waiting and len(running) < connections:
                running.append(self.steps(*waiting.pop(0)))
            step = chance.choice(running)
            if next(step, running) is running:
                running.remove(step)
        self.batches += self._stream.finish(DONE)

    def check(self) -> None:
        """Whichever batch is the last one before a crash: what its offset has not is in the batches up to it."""
        sent: set[bytes | None] = set()
        for batch in self.batches:
            sent.update(key for key, _, _ in batch.messages)
            if batch.offset.snapshot is None:
                break
            state = SnapshotState.from_carried(batch.offset.carried)
            if not state.unfinished:
                assert batch.offset == RUNNING
                continue
            left = {table.table: table for table in state.tables}
            for place, name in enumerate(self.names):
                table = left.get(name)
                parts = len(self.tables[place]) if table is None else 0
                if table is not None and table.lower is not None:
                    parts = int(table.lower[0]) + 1
                done = {row for number in range(parts) for row in self._rows(place, number)}
                assert done <= sent
                assert table is None or table.rows >= len(done)
        assert sent == {
            row for place, parts in enumerate(self.tables) for n in range(len(parts)) for row in self._rows(place, n)
        }

    def _rows(self, place: int, number: int) -> Iterator[bytes]:
        for batch, size in enumerate(self.tables[place][number]):
            for row in range(size):
                yield f"{place} {number} {batch} {row}".encode()


tables = st.lists(st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=4), min_size=1, max_size=4)


@given(tables=tables, keyless=st.integers(0, 2), every=st.integers(0, 4), seed=st.integers(), count=st.integers(1, 3))
def test_no_row_is_omitted(tables: list[Parts], keyless: int, every: int, seed: int, count: int) -> None:
    reading = Reading(tables, keyless, every, parallel=True)
    reading.read(count, Random(seed))
    reading.check()


@given(seed=st.integers())
def test_rows_that_are_withheld_while_other_tables_are_read(seed: int) -> None:
    reading = Reading([[[1], [0, 1], [1]], [[1, 1, 1]], [[1, 1, 1]]], 0, 0, parallel=True)
    reading.read(4, Random(seed))
    reading.check()


@given(tables=tables, keyless=st.integers(0, 2), every=st.integers(0, 4))
def test_no_row_is_omitted_with_one_connection(tables: list[Parts], keyless: int, every: int) -> None:
    reading = Reading(tables, keyless, every, parallel=False)
    reading.read(1, Random(0))
    reading.check()


@pytest.mark.parametrize("parallel", [True, False])
def test_an_interruption_repeats_one_part_at_most(parallel: bool) -> None:
    """The offset of each row has all parts before its own, and all tables."""
    reading = Reading([[[2], [2]], [[2, 2], [2, 2], [2, 2]]], 0, 0, parallel=parallel)
    reading.read(1, Random(0))
    found = [
        (
            key,
            [
                (table.name, table.lower, table.rows)
                for table in SnapshotState.from_carried(batch.offset.carried).tables
            ],
        )
        for batch in reading.batches
        for key, _, _ in batch.messages[:1]
    ]
    assert found == [
        (b"0 0 0 0", [("d.t0", None, 0), ("d.t1", None, 0)]),
        (b"0 1 0 0", [("d.t0", ("0",), 2), ("d.t1", None, 0)]),
        (b"1 0 0 0", [("d.t1", None, 0)]),
        (b"1 0 1 0", [("d.t1", None, 0)]),
        (b"1 1 0 0", [("d.t1", ("0",), 4)]),
        (b"1 1 1 0", [("d.t1", ("0",), 4)]),
        (b"1 2 0 0", [("d.t1", ("1",), 8)]),
        (b"1 2 1 0", []),
    ]


def test_rows_share_an_offset() -> None:
    """It may be long, and each record in the queue has one."""
    reading = Reading([[[2]]] * 6, 0, 4, parallel=False)
    reading.read(1, Random(0))
    assert len({id(batch.offset.carried) for batch in reading.batches[:-1]}) == 3


def test_a_snapshot_that_is_not_resumable_has_one_offset() -> None:
    offsets = ResumableOffsets(RUNNING, None, {TableId("d", "t"): KEY}, 0)
    offsets.add(TableId("d", "t"), 7)
    assert offsets.offset is RUNNING


def test_more_tables_than_an_offset_has_room_for(caplog: pytest.LogCaptureFixture) -> None:
    """Until some are read, an interruption begins the snapshot again."""
    names = [TableId("shop", f"table_{number}") for number in range(9999)]
    offsets = ResumableOffsets(RUNNING, RUNNING, dict.fromkeys(names, KEY), 0)
    offsets.add(names[0], 1)
    offsets.add(names[0], 1)
    assert offsets.offset is RUNNING
    assert caplog.text.count("9999 tables, which are too many for a stored position") == 1
    for place, name in enumerate(names[:9000]):
        read = TableToRead(ListedTable(name), cast("SnapshotTable", None), "")
        offsets.added(TablePart(place, read, ""), complete=True)
    offsets.add(names[-1], 1)
    assert len(SnapshotState.from_carried(offsets.offset.carried).tables) == 999
