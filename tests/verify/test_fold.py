"""The folding of a topic and its comparison with the source, without servers."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.records.canonical import UNKNOWN
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.reading.table_view import TableView
from rowtide.verify.comparison import difference, is_same, not_compared, possible_states
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import CountedFold, FoldState, KeyedFold, KeyRange, Record, Row
from rowtide.verify.positions import RecordPlace, ViewOrder

KEYS = st.sampled_from(["i1", "i2", "sA", "sa"])
ROWS = st.fixed_dictionaries({"n": st.sampled_from(["i0", "i1", "-"])}, optional={"t": st.sampled_from(["s", "sx"])})
RECORDS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.just("tombstone"), ROWS)), max_size=30)


def place(offset: int, *, pos: int = 0, snapshot: bool = False) -> RecordPlace:
    return RecordPlace(0, offset, "u", "binlog.000001", pos or offset, None, snapshot)


def added(fold: KeyedFold, records: list[tuple[str, Row | str | None]], first: int = 0) -> dict[str, Row]:
    """Add records, and return the rows that a consumer has after them."""
    rows: dict[str, Row] = {}
    for offset, (key, row) in enumerate(records, first):
        raw = key.encode()
        if isinstance(row, str):
            fold.add(Record(None, raw, None, place(offset)))
        else:
            fold.add(Record((key,), raw, row, place(offset)))
        if row is None or isinstance(row, str):
            rows.pop(key, None)
        else:
            rows[key] = row
    return rows


@given(records=RECORDS, source=st.dictionaries(KEYS, ROWS))
def test_exactly_the_keys_that_differ_are_found(
    records: list[tuple[str, Row | str | None]], source: dict[str, Row]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fold = KeyedFold(Path(folder) / "rows")
        rows = added(fold, records)
        fold.add_source([((key,), row) for key, row in source.items()])
        found = {key: (row, other) for (key,), row, other in fold.unlike()}
        assert fold.counts() == (len(source), len(rows))
        expected = {key for key in {*rows, *source} if source.get(key) != rows.get(key)}
        assert {key for key, sides in found.items() if sides[0] != sides[1]} == expected
        assert all(sides == (source.get(key), rows.get(key)) for key, sides in found.items())
        fold.close()


def test_keys_that_differ_are_summarized_by_ranges(tmp_path: Path) -> None:
    """In the order in which the source was read, which is not that of the texts of the keys."""
    fold = KeyedFold(tmp_path / "rows")
    numbers = range(1, 1001)
    for first in (1, 501):
        fold.add_source([((f"i{number}",), {"n": "i1"}) for number in range(first, first + 500)])
    lost, stale = {*range(90, 111)}, {*range(400, 600), 605, 1000}
    for number in [*numbers, -1, -2]:
        if number not in lost:
            row = {"n": "i2" if number in stale else "i1"}
            fold.add(Record((f"i{number}",), str(number).encode(), row, place(number + 3)))
    unlike = [key for key, _, _ in fold.unlike()]
    assert len(unlike) == len(lost) + len(stale) + 2
    assert fold.ranges(iter(unlike), 3) == [
        KeyRange(("i90",), ("i110",), {"lost": 21}),
        KeyRange(("i400",), ("i605",), {"stale": 201}),
        KeyRange(("i1000",), ("i1000",), {"stale": 1}),
        KeyRange(None, None, {"extra": 2}),
    ]
    fold.close()


def test_some_rows_are_the_first_and_the_last_ones(tmp_path: Path) -> None:
    fold = KeyedFold(tmp_path / "rows")
    assert fold.some_rows(4) == {}
    fold.add_source([((f"i{number}",), {"n": f"s{number}"}) for number in range(9)])
    assert fold.some_rows(4) == {(f"i{number}",): {"n": f"s{number}"} for number in (0, 1, 7, 8)}
    assert len(fold.some_rows(100)) == 9
    fold.close()


def test_a_key_with_records_in_two_partitions_is_not_decided(tmp_path: Path) -> None:
    """Partition 0 is read first, but has the newer record if the key was in partition 1 of two and is in 0 of three."""
    fold = KeyedFold(tmp_path / "rows")
    fold.add(Record(("i1",), b"1", {"n": "i2"}, place(9)))
    fold.add(Record(("i2",), b"2", {"n": "i1"}, replace(place(3), partition=1)))
    with pytest.raises(Undecided, match="in partition 0 at offset 9, and in partition 1 at offset 4"):
        fold.add(Record(("i1",), b"1", {"n": "i1"}, replace(place(4), partition=1)))
    fold.close()


@given(before=RECORDS, after=RECORDS)
def test_a_watched_key_has_all_its_states(
    before: list[tuple[str, Row | str | None]], after: list[tuple[str, Row | str | None]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fold = KeyedFold(Path(folder) / "rows")
        rows = added(fold, before)
        fold.watch([("i1",)])
        assert [state.row for state in fold.states(("i1",))] == [rows.get("i1")]
        known = any(key == "i1" and row != "tombstone" for key, row in before)
        expected: list[Row | None] = [rows.get("i1")]
        for key, row in after:
            known = known or (key == "i1" and row != "tombstone")
            if key == "i1" and known:
                expected.append(None if isinstance(row, str) else row)
        added(fold, after, 100)
        states = fold.states(("i1",))
        assert [state.row for state in states] == expected
        assert all(len(state.places) <= 3 for state in states)
        fold.close()


def test_values_that_the_binlog_omits_are_those_of_the_record_before(tmp_path: Path) -> None:
    fold = KeyedFold(tmp_path / "rows")
    fold.add(Record(("i1",), b"1", {"a": "i1", "b": "sx"}, place(1)))
    fold.add(Record(("i1",), b"1", {"a": "i2", "b": UNKNOWN}, place(2)))
    fold.add(Record(("i2",), b"2", {"a": "i2", "b": UNKNOWN}, place(3)))
    fold.add_source([(("i1",), {"a": "i2", "b": "sx"}), (("i2",), {"a": "i2", "b": "sx"})])
    ((key, source, topic),) = fold.unlike()
    assert key == ("i2",)
    assert source is not None
    assert topic is not None
    assert is_same(source, topic)
    assert not_compared(source, topic) == ["b"]
    fold.close()


def test_a_truncation_deletes_all_rows(tmp_path: Path) -> None:
    fold = KeyedFold(tmp_path / "rows")
    fold.add(Record(("i1",), b"1", {"a": "i1"}, place(1)))
    fold.watch([("i1",)])
    fold.truncate(place(2))
    fold.add(Record(("i2",), b"2", {"a": "i1"}, place(3)))
    assert [key for key, *_ in fold.unlike()] == [("i2",)]
    assert [state.row for state in fold.states(("i1",))] == [{"a": "i1"}, None]
    fold.close()


@given(source=st.lists(st.sampled_from("abc")), topic=st.lists(st.sampled_from("abc")))
def test_rows_without_a_key_are_counted(source: list[str], topic: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fold = CountedFold(Path(folder) / "rows")
        for sign, rows in ((1, source), (-1, topic)):
            for row in rows:
                fold.add({"a": row}, sign)
        missing, extra = Counter(source) - Counter(topic), Counter(topic) - Counter(source)
        assert fold.is_equal() == (not missing and not extra)
        assert {row["a"]: number for row, number in fold.unlike()} == {**missing, **{one: -extra[one] for one in extra}}
        fold.close()


@given(
    positions=st.lists(st.integers(1, 20), unique=True, max_size=8).map(sorted),
    seen=st.integers(1, 20),
    window=st.integers(0, 5),
    data=st.data(),
)
def test_a_view_has_one_of_the_possible_states(
    positions: list[int], seen: int, window: int, data: st.DataObject
) -> None:
    """A view between two positions has the state of the last change before it."""
    states = [FoldState({"n": "i0"}, ()), *(FoldState({"n": f"i{pos}"}, (place(pos),)) for pos in positions)]
    view = TableView(SourceOffset("binlog.000001", seen), SourceOffset("binlog.000001", seen + window))
    possible = possible_states(states, ViewOrder(view, same_server=True))
    read_at = data.draw(st.integers(seen, seen + window))
    last = [state for state, pos in zip(states, [0, *positions], strict=True) if pos < read_at][-1]
    assert last in possible
    earlier = [pos for pos in positions if pos < seen]
    assert possible[0].row == {"n": f"i{earlier[-1] if earlier else 0}"}, "no older state"
    assert all(state.row is not None and int(state.row["n"][1:]) < seen + window for state in possible)


def test_gtids_are_compared_where_records_have_them() -> None:
    uuid = "00000000-0000-0000-0000-000000000001"
    view = TableView(SourceOffset("", 0, f"{uuid}:1-5"), SourceOffset("binlog.000009", 99, f"{uuid}:1-6"))
    order = ViewOrder(view, same_server=False)
    found = [order.order(RecordPlace(0, n, "u", "binlog.000001", 4, f"{uuid}:{n}")).name for n in (5, 6, 7)]
    assert found == ["BEFORE", "WITHIN", "AFTER"]
    assert order.order(RecordPlace(0, 1, "r", "binlog.000001", 4, None, snapshot=True)).name == "WITHIN"


def test_a_difference_says_which_side_lacks_the_row() -> None:
    row = {"id": "i1", "n": "i2"}
    assert difference({"id": "i1"}, row, FoldState(None, ())).kind == "lost"
    assert difference({"id": "i1"}, None, FoldState(row, ())).kind == "extra"
    stale = difference({"id": "i1"}, row, FoldState({"id": "i1", "n": "i3"}, (place(7),)))
    assert (stale.kind, stale.columns, stale.places) == ("stale", ("n",), (place(7),))
