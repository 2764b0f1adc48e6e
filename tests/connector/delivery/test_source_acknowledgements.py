"""Transactions are acknowledged to the server when their batches are delivered."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import pytest

from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.source_acknowledgements import SourceAcknowledgements
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from tests.support.in_memory_sink import InMemorySink


def test_positions_are_acknowledged_in_order_behind_their_batches() -> None:
    acknowledgements, sent = SourceAcknowledgements(), list[str]()
    acknowledgements.add(-1, partial(sent.append, "filtered"))
    assert sent == ["filtered"], "nothing has to be delivered"
    acknowledgements.add(3, partial(sent.append, "a"))
    acknowledgements.add(4, partial(sent.append, "b"))
    acknowledgements.add(7, partial(sent.append, "c"))
    acknowledgements.delivered(2)
    assert sent == ["filtered"]
    acknowledgements.delivered(5)
    assert sent == ["filtered", "b"], "the last one includes those before it"
    acknowledgements.add(5, partial(sent.append, "d"))
    assert sent == ["filtered", "b"], "not before the one that still waits"
    acknowledgements.delivered(7)
    assert sent == ["filtered", "b", "d"]


def test_a_position_is_acknowledged_before_a_later_one_of_another_thread() -> None:
    """The stream sends the last acknowledgement only: an earlier one after it would leave a commit waiting."""
    acknowledgements, sent = SourceAcknowledgements(), list[str]()
    reader = threading.Thread(target=acknowledgements.add, args=(0, partial(sent.append, "later")))

    def earlier() -> None:
        reader.start()
        reader.join(0.2)
        sent.append("earlier")

    acknowledgements.add(0, earlier)
    acknowledgements.delivered(0)
    reader.join()
    assert sent == ["earlier", "later"]


def test_the_positions_of_a_former_stream_are_dropped() -> None:
    acknowledgements, sent = SourceAcknowledgements(), list[str]()
    acknowledgements.add(1, partial(sent.append, "a"))
    acknowledgements.forget()
    acknowledgements.delivered(1)
    assert sent == []


def test_the_reader_waits_until_everything_is_delivered() -> None:
    acknowledgements = SourceAcknowledgements()
    assert acknowledgements.wait(-1, 0)
    assert not acknowledgements.wait(0, 0)
    thread = threading.Timer(0.01, acknowledgements.delivered, (0,))
    thread.start()
    assert acknowledgements.wait(0, 60)
    thread.join()


class SlowSink(InMemorySink):
    """A sink whose messages are acknowledged when the test says so.

    Attributes:
        pending: the number of messages that are not acknowledged.
    """

    pending = 0

    def waiting(self) -> int:
        return self.pending

    def send(self, batches: Sequence[Batch]) -> None:
        super().send(batches)
        self.pending += sum(len(batch.messages) for batch in batches)


def batch(number: int, *messages: bytes) -> Batch:
    return Batch("t", -1, [(key, key, ()) for key in messages], SourceOffset("b.1", number), 2 * len(messages), 0)


def delivery(sink: InMemorySink, store: EventStore, delivered: list[int], *, by_poll: bool = False) -> Delivery:
    return Delivery(store, sink, CommitPolicy(1e9, by_poll=by_poll), on_delivered=delivered.append)


def test_batches_are_delivered_when_no_message_is_unacknowledged() -> None:
    """Only the number of acknowledged messages is known, not which ones they are."""
    store, sink, delivered = EventStore(), SlowSink(), list[int]()
    loop = delivery(sink, store, delivered)
    store.put([batch(1, b"a"), batch(2), batch(3, b"b")])
    loop._step()
    sink.pending = 1
    loop._watch()
    assert delivered == []
    sink.pending = 0
    loop._watch()
    assert delivered == [2]
    store.put([batch(4)])
    loop._step()
    assert delivered[-1] == 3, "a batch without messages, such as a position"


@pytest.mark.parametrize("number", [1, 2])
def test_messages_in_a_transaction_are_delivered_with_its_commit(number: int) -> None:
    store, sink, delivered = EventStore(), InMemorySink(transactional=True), list[int]()
    loop = delivery(sink, store, delivered, by_poll=True)
    for one in range(number):
        store.put([batch(one, b"a")])
    sink.failures = [None] * number + [None]
    loop._step()
    assert sink.offsets
    assert delivered == [number - 1]


def test_messages_in_an_open_transaction_are_not_delivered() -> None:
    store, sink, delivered = EventStore(), InMemorySink(transactional=True), list[int]()
    loop = delivery(sink, store, delivered)
    store.put([batch(1)])
    loop._step()
    assert delivered == [0]
    store.put([batch(2, b"a")])
    loop._step()
    loop._watch()
    assert set(delivered) == {0}
