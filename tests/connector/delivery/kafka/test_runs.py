"""Messages of batches that follow each other are joined: all, in order, and only those for one destination."""

from __future__ import annotations

from itertools import groupby

import hypothesis.strategies as st
from hypothesis import given

from rowtide.connector.delivery.kafka.native import runs
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset

OFFSET = SourceOffset("binlog.000001", 4)
DESTINATIONS = st.tuples(st.sampled_from("ab"), st.integers(-1, 0), st.integers(0, 1))
LARGE = 300_000


def batch(destination: tuple[str, int, int], values: list[bytes], size: int = 0) -> Batch:
    topic, partition, timestamp = destination
    return Batch(topic, partition, [(b"k", value, ()) for value in values], OFFSET, size, 0, timestamp=timestamp)


@given(st.lists(st.builds(batch, DESTINATIONS, st.lists(st.binary(), min_size=1, max_size=3))))
def test_runs_have_all_messages_in_order(batches: list[Batch]) -> None:
    def destination(one: Batch) -> tuple[str, int, int]:
        return one.topic, one.partition, one.timestamp

    expected = [
        (key, [message for one in found for message in one.messages]) for key, found in groupby(batches, destination)
    ]
    assert [((topic, partition, at), list(messages)) for topic, partition, messages, at in runs(batches)] == expected


def test_a_run_is_short() -> None:
    one = batch(("t", -1, 0), [b"1"], LARGE)
    assert [len(run.records) for run in runs([one] * 3 + [one._replace(size=10)] * 3)] == [1, 1, 4]


def test_the_messages_of_one_batch_are_not_copied() -> None:
    one = batch(("t", -1, 0), [b"1", b"2"])
    (run,) = runs([one])
    assert run.records is one.messages
