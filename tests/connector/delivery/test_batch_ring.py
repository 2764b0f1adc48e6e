"""The ring does what a list with two marks does, and never holds more than it may."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.connector.delivery import batch_ring
from rowtide.connector.delivery.batch_ring import INIT_SEQUENCE, BatchRing
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset

OFFSET = SourceOffset("binlog.000001", 4)
SLOTS, EVENTS, BYTES = 8, 10, 100


def batch(number: int, events: int, size: int) -> Batch:
    return Batch(f"t{number}", -1, [(None, None, ())] * events, OFFSET, size, 0)


class Model:
    """A list of everything ever put, with the numbers of what was given out and acknowledged."""

    def __init__(self) -> None:
        self.all: list[Batch] = []
        self.got = self.acked = 0

    def has_room(self, new: Batch) -> bool:
        held, unread = self.all[self.acked :], self.all[self.got :]
        if not held:
            return True
        return (
            len(held) < SLOTS
            and sum(b.size for b in held) + new.size <= BYTES
            and (not unread or sum(len(b.messages) for b in unread) + len(new.messages) <= EVENTS)
        )

    def get(self, max_events: int) -> list[Batch]:
        taken: list[Batch] = []
        for b in self.all[self.got :]:
            if taken and sum(len(t.messages) for t in taken) + len(b.messages) > max_events:
                break
            taken.append(b)
        self.got += len(taken)
        return taken


actions = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 14), st.integers(0, 120)),
        st.tuples(st.just("get"), st.integers(0, 12), st.just(0)),
        st.tuples(st.just("ack"), st.floats(0, 1), st.just(0)),
        st.tuples(st.just("rollback"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=400)
@given(actions, st.sampled_from([1, 2, SLOTS]))
def test_behaves_as_a_list_with_two_marks(steps: list[tuple[str, float, int]], first_slots: int) -> None:
    with patch.object(batch_ring, "_FIRST_SLOTS", first_slots):
        ring, model = BatchRing[Batch](SLOTS, EVENTS, BYTES), Model()
    for what, number, size in steps:
        if what == "put":
            new = batch(len(model.all), int(number), size)
            assert ring.has_room(new) == model.has_room(new)
            if model.has_room(new):
                assert ring.put(new) == len(model.all)
                model.all.append(new)
            else:
                with pytest.raises(OverflowError):
                    ring.put(new)
        elif what == "get":
            assert ring.get(int(number)) == model.get(int(number))
        elif what == "ack":
            upto = model.acked + round(number * (model.got - model.acked))
            ring.ack(upto - 1)
            model.acked = upto
        else:
            assert ring.rollback() == model.got - model.acked
            model.got = model.acked
        held, unread = model.all[model.acked :], model.all[model.got :]
        assert (ring.held, ring.unread) == (len(held), len(unread))
        assert ring.held_events == sum(len(b.messages) for b in held)
        assert ring.unread_events == sum(len(b.messages) for b in unread)
        assert ring.held_bytes == sum(b.size for b in held)
        given_out = model.all[model.acked : model.got]
        assert ring.given_share == max(sum(b.size for b in given_out) / BYTES, len(given_out) / SLOTS)


def filled(*batches: Batch) -> BatchRing[Batch]:
    ring: BatchRing[Batch] = BatchRing(4, 10, 100)
    for each in batches:
        ring.put(each)
    return ring


def test_acknowledged_entries_are_freed() -> None:
    ring = filled(batch(0, 1, 1), batch(1, 1, 1))
    ring.get(10)
    ring.ack(1)
    assert ring._entries == [None] * 4
    assert ring.held_bytes == ring.held_events == 0


def test_a_ring_takes_memory_for_its_slots_when_they_are_needed() -> None:
    ring = BatchRing[Batch](1 << 20, 1 << 30, 1 << 30)
    assert len(ring._entries) < 5000
    for number in range(5000):
        ring.put(batch(number, 0, 1))
    assert [each.topic for each in ring.get(1)] == [f"t{number}" for number in range(5000)]


def test_numbers_go_on_past_32_bits() -> None:
    ring = BatchRing(4, 2**40, 2**50)
    for number in range(6):
        assert ring.put(batch(number, 0, 2**33)) == number
        ring.get(1)
        ring.ack(number)
    assert ring._ack_bytes == 6 * 2**33


def test_a_batch_larger_than_the_ring_is_taken_when_nothing_is_in_its_way() -> None:
    ring = filled()
    large = batch(0, 1000, 100_000)
    assert ring.has_room(large)
    ring.put(large)
    assert not ring.has_room(batch(1, 1, 1))
    assert ring.get(1) == [large]
    assert ring.given_share > 1


def test_acknowledging_twice_or_an_older_one_changes_nothing() -> None:
    ring = filled(batch(0, 1, 1), batch(1, 1, 1))
    ring.get(10)
    ring.ack(1)
    ring.ack(0)
    ring.ack(INIT_SEQUENCE)
    assert ring.ack_sequence == 1


def test_what_was_not_given_out_cannot_be_acknowledged() -> None:
    ring = filled(batch(0, 1, 1))
    with pytest.raises(ValueError, match="only -1 was handed out"):
        ring.ack(0)


@pytest.mark.parametrize("limits", [(0, 1, 1), (3, 1, 1), (6, 1, 1), (4, 0, 1), (4, 1, 0), (-4, 1, 1)])
def test_limits_must_make_sense(limits: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"power of 2|must be positive"):
        BatchRing(*limits)
