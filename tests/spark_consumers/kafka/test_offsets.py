"""Ranges of offsets: new, limited, and lost ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.spark_consumers.errors import OffsetsLostError
from rowtide.spark_consumers.kafka.offsets import (
    LastRecord,
    advanced,
    assignment,
    before,
    count,
    ends,
    new_ranges,
    require,
    require_records,
    require_topic,
    starting_offsets,
)


@given(
    st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=4),
    st.one_of(st.none(), st.integers(1, 7)),
)
def test_batches_read_every_offset_once(sizes: dict[int, tuple[int, int]], limit: int | None) -> None:
    bounds = {partition: (first, first + size) for partition, (first, size) in sizes.items()}
    done: dict[int, int] = {}
    read: list[tuple[int, int]] = []
    while ranges := new_ranges("t", bounds, done, limit):
        read += [(partition, offset) for partition, found in ranges.items() for offset in range(*found)]
        assert count(ranges) == sum(end - first for first, end in ranges.values()) > 0
        require("t", bounds, ranges)
        done = advanced(done, ranges)
    assert read == sorted(set(read)) or limit is not None
    assert sorted(read) == [(partition, offset) for partition in sorted(bounds) for offset in range(*bounds[partition])]


@pytest.mark.parametrize(
    ("bounds", "done", "what"),
    [
        ({0: (10, 20)}, {0: 7}, r"topic t, partition 0: offsets 7 to 9 were deleted by Kafka .* \(--restart\)"),
        ({0: (0, 5)}, {0: 6}, r"stored offset 6 is after the end, 5\. .* recreated"),
        ({0: (0, 5)}, {0: 1, 3: 1}, r"topic t no longer has partition 3"),
    ],
)
def test_lost_records_are_an_error(bounds: dict[int, tuple[int, int]], done: dict[int, int], what: str) -> None:
    with pytest.raises(OffsetsLostError, match=what):
        new_ranges("t", bounds, done)


def test_offsets_of_another_topic_with_the_same_name_are_an_error() -> None:
    for stored, found in ((None, None), (None, "a"), ("a", None), ("a", "a")):
        require_topic("t", stored, found)
    with pytest.raises(OffsetsLostError, match=r"topic t was deleted and re-created: its id is b, .* \(--restart\)"):
        require_topic("t", "a", "b")


def test_another_record_at_a_stored_offset_is_an_error() -> None:
    last = LastRecord.of(7, 1000, b"k", b"v")
    require_records("t", {0: last, 1: last}, {0: last})  # a record that Kafka has deleted proves nothing
    others = (
        LastRecord.of(7, 1001, b"k", b"v"),
        LastRecord.of(7, 1000, b"kv", b""),
        LastRecord.of(7, 1000, b"k", None),
        LastRecord.of(7, 1000, None, b"v"),
    )
    for other in others:
        with pytest.raises(OffsetsLostError, match=r"re-created: partition 0 has another .* 7\..*\(--restart\)"):
            require_records("t", {0: last}, {0: other})


@pytest.mark.parametrize("bounds", [{0: (3, 10)}, {0: (0, 3)}, {}])
def test_planned_records_that_were_deleted_are_an_error(bounds: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(OffsetsLostError, match="topic t, partition 0"):
        require("t", bounds, {0: (2, 4)})


def test_the_first_and_last_offsets_of_a_batch() -> None:
    assert ends({0: (5, 100), 1: (0, 3)}, 10) == ({0: (5, 15), 1: (0, 3)}, {0: (90, 100), 1: (0, 3)})


def test_the_options_of_spark() -> None:
    assert assignment("t", {1: (2, 3), 0: (0, 1)}) == '{"t": [0, 1]}'
    assert starting_offsets("t", {1: (2, 3)}) == '{"t": {"1": 2}}'


def test_what_was_read_before_a_batch_ends_where_the_batch_begins() -> None:
    bounds = {0: (5, 50), 1: (0, 9), 2: (0, 9), 3: (7, 7)}
    assert before(bounds, {0: (20, 50), 2: (0, 9)}, {0: 50, 1: 4, 2: 9}) == {0: (5, 20), 1: (0, 4)}
