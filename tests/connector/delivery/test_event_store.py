"""The event store between threads: nothing is lost, doubled or reordered, and waiting ends when it should."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import pytest

from rowtide.connector.delivery import event_store
from rowtide.connector.delivery.event_store import DEFAULT_MAX_BYTES, EventStore, StoreClosed, Taken
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from tests.support.processes.interrupted import Interrupted

OFFSET = SourceOffset("binlog.000001", 4)
SOON = 120.0


def batch(number: int, events: int = 1, size: int = 1) -> Batch:
    return Batch(str(number), -1, [(None, None, ())] * events, OFFSET, size, 0)


def numbers(batches: object) -> list[int]:
    return [int(each.topic) for each in batches]  # type: ignore[attr-defined]


class Background:
    """Runs a function in a thread and keeps what becomes of it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self.done = threading.Event()
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error
        self.done.set()

    def wait(self) -> object:
        assert self.done.wait(SOON)
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.result


def test_what_is_put_is_got_in_order_and_forgotten_after_ack() -> None:
    store = EventStore()
    assert store.put([batch(0), batch(1), batch(2)]) == 3
    first = store.get(2)
    assert numbers(first.batches) == [0, 1]
    second = store.get(2)
    assert numbers(second.batches) == [2]
    store.ack(second.sequence)
    assert store.use().held_events == 0


def test_get_without_waiting_is_empty_when_there_is_nothing() -> None:
    store = EventStore()
    assert not store.get(10, 0).batches
    assert not store.get(10, 0.01).batches


def test_get_waits_for_the_first_batch() -> None:
    store = EventStore()
    taking = Background(lambda: numbers(store.get(10).batches))
    store.put([batch(7)])
    assert taking.wait() == [7]


def test_wake_ends_one_wait_now_or_later() -> None:
    store = EventStore()
    waiting = Background(lambda: store.get(1))
    store.wake()
    waiting.wait()
    store.wake()
    assert not store.get(1).batches
    again = Background(lambda: store.get(1))
    store.put([batch(0)])
    taken = again.wait()
    assert isinstance(taken, Taken)
    assert numbers(taken.batches) == [0]


def test_rollback_gives_out_again_and_wakes_who_waits() -> None:
    store = EventStore()
    store.put([batch(0), batch(1)])
    store.get(10)
    taking = Background(lambda: numbers(store.get(10).batches))
    assert store.rollback() == 2
    assert taking.wait() == [0, 1]


def test_rollback_keeps_what_was_acknowledged() -> None:
    store = EventStore()
    store.put([batch(0), batch(1)])
    store.ack(store.get(1).sequence)
    store.get(1)
    store.rollback()
    assert numbers(store.get(10).batches) == [1]


def test_put_waits_for_room_in_messages_until_they_are_taken() -> None:
    store = EventStore(max_events=2)
    store.put([batch(0), batch(1)])
    assert store.put([batch(2)], timeout=0.01) == 0
    putting = Background(lambda: store.put([batch(2)]))
    assert numbers(store.get(10).batches) == [0, 1]
    assert putting.wait() == 1
    assert store.use().put_blocked_s > 0


def test_put_waits_for_room_in_bytes_until_they_are_acknowledged() -> None:
    store = EventStore(max_bytes=100)
    store.put([batch(0, size=60)])
    assert store.put([batch(1, size=60)], timeout=0.01) == 0
    taken = store.get(10)
    putting = Background(lambda: store.put([batch(1, size=60)]))
    assert not putting.done.wait(0.05)
    store.ack(taken.sequence)
    assert putting.wait() == 1


def test_a_put_that_ran_out_of_time_says_how_much_it_took() -> None:
    store = EventStore(max_events=2)
    assert store.put([batch(0), batch(1), batch(2), batch(3)], timeout=0.01) == 2
    assert numbers(store.get(10).batches) == [0, 1]


def test_the_first_part_of_a_long_put_can_be_taken_while_the_rest_waits() -> None:
    store = EventStore(max_events=2)
    putting = Background(lambda: store.put([batch(n) for n in range(6)]))
    seen: list[int] = []
    while len(seen) < 6:
        seen += numbers(store.get(10, SOON).batches)
    assert seen == list(range(6))
    assert putting.wait() == 6


def test_a_batch_larger_than_the_store_passes_through_it() -> None:
    store = EventStore(max_events=2, max_bytes=10)
    store.put([batch(0)])
    putting = Background(lambda: store.put([batch(1, events=1000, size=1000)]))
    store.ack(store.get(10).sequence)
    assert putting.wait() == 1
    assert numbers(store.get(1).batches) == [1]


def test_closing_wakes_the_reader_with_the_cause() -> None:
    store = EventStore(max_events=1)
    store.put([batch(0)])
    putting = Background(lambda: store.put([batch(1)]))
    cause = RuntimeError("Kafka is on fire")
    store.close(cause)
    with pytest.raises(StoreClosed) as caught:
        putting.wait()
    assert caught.value.__cause__ is cause
    with pytest.raises(StoreClosed):
        store.put([batch(2)])


def test_a_closed_store_hands_out_what_is_left() -> None:
    store = EventStore()
    store.put([batch(0)])
    store.close()
    assert not store.drained
    taken = store.get(10)
    assert numbers(taken.batches) == [0]
    assert not store.get(10).batches
    store.ack(taken.sequence)
    assert store.drained


def test_closing_wakes_the_deliverer() -> None:
    store = EventStore()
    taking = Background(lambda: store.get(10))
    store.close()
    assert not taking.wait().batches  # type: ignore[attr-defined]


def test_quiet_holds_the_reader_and_lets_it_go() -> None:
    store = EventStore()
    with store.quiet():
        putting = Background(lambda: store.put([batch(0)]))
        assert not putting.done.wait(0.05)
    assert putting.wait() == 1


def test_a_pause_that_begins_as_the_reader_continues_drops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store, pause = EventStore(), ExitStack()

    def clock() -> Iterator[float]:
        yield 0.0  # the reader waits
        pause.enter_context(store.quiet())  # it has waited, and another thread runs
        yield 1.0

    with store.quiet():
        monkeypatch.setattr(event_store, "time", SimpleNamespace(monotonic=clock().__next__))
        putting = Background(lambda: store.put([batch(0)]))
        assert not putting.done.wait(0.05)
    assert putting.wait() == 1
    pause.close()
    assert store.unread == 1


def test_a_held_reader_ends_when_the_store_is_closed() -> None:
    store = EventStore()
    with store.quiet():
        putting = Background(lambda: store.put([batch(0)]))
        store.close()
        with pytest.raises(StoreClosed):
            putting.wait()


def test_pressed_tells_when_only_a_commit_makes_room() -> None:
    store = EventStore(max_bytes=100)
    store.put([batch(0, size=40)])
    store.get(10)
    assert not store.pressed
    store.put([batch(1, size=20)])
    store.get(10)
    assert store.pressed


def test_pressed_when_the_reader_waits_behind_what_was_taken() -> None:
    store = EventStore(max_bytes=100)
    store.put([batch(0, size=10)])
    store.get(10)
    putting = Background(lambda: store.put([batch(1, size=95)]))
    while not store.pressed:
        assert not putting.done.wait(0.001)
    store.ack(0)
    assert putting.wait() == 1


def test_use_tells_how_full_it_is() -> None:
    store = EventStore(max_events=100, max_bytes=1000)
    store.put([batch(0, events=3, size=30), batch(1, events=4, size=40)])
    store.get(1)
    use = store.use()
    assert (use.events, use.held_events, use.max_events, use.bytes, use.max_bytes, use.unread) == (
        4,
        7,
        100,
        70,
        1000,
        1,
    )


def test_without_a_limit_in_bytes_there_is_one_all_the_same() -> None:
    assert EventStore(max_bytes=0).use().max_bytes == DEFAULT_MAX_BYTES


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_doubled_or_reordered_between_threads(seed: int) -> None:
    """A reader and a deliverer at random paces, with rollbacks, over a store that is nearly always full."""
    store = EventStore(max_events=20, max_bytes=50)
    chance = random.Random(seed)
    made = [batch(number, chance.randrange(4), chance.randrange(8)) for number in range(3000)]

    def read() -> None:
        pace = random.Random(seed + 100)
        at = 0
        while at < len(made):
            group = made[at : at + pace.randrange(1, 9)]
            at += store.put(group, timeout=pace.choice([None, 0.001]))
        store.close()

    def deliver() -> list[int]:
        pace = random.Random(seed + 200)
        delivered: list[int] = []
        open_batches: list[int] = []
        sequence = -1
        while not store.drained:
            taken = store.get(pace.randrange(1, 30), 0.001)
            open_batches += numbers(taken.batches)
            sequence = taken.sequence
            if pace.random() < 0.2:
                store.rollback()
                open_batches.clear()
            elif store.pressed or store.closed or pace.random() < 0.3:
                store.ack(sequence)
                delivered += open_batches
                open_batches.clear()
            with store.quiet():
                pass
        return delivered

    reading, delivering = Background(read), Background(deliver)
    assert delivering.wait() == list(range(3000))
    reading.wait()


def test_taking_while_something_fits_waits_for_nothing() -> None:
    store = EventStore()
    assert store.get_while(lambda _batch: True).batches == []
    store.put([batch(1), batch(2), batch(3)])
    assert len(store.get_while(lambda _batch: False).batches) == 1
    assert len(store.get_while(lambda _batch: True).batches) == 2


def test_listeners_hear_of_batches_rollbacks_and_the_end() -> None:
    store, heard = EventStore(), []
    store.listen(lambda: heard.append(None))
    store.put([batch(1)])
    assert len(heard) == 1
    store.get(1)
    store.rollback()
    assert len(heard) == 2
    store.close()
    assert len(heard) == 3


def take_and_acknowledge(store: EventStore) -> None:
    store.wait(0.001)
    taken = store.get(1, timeout=0.001)
    store.ack(taken.sequence)
    store.get(1, timeout=0.001)
    assert not store.unread


def test_ctrl_c_anywhere_leaves_the_store_usable() -> None:
    """The main thread takes and acknowledges; then the program closes the store, while the reader puts."""
    places = 0
    while True:
        store = EventStore()
        store.put([batch(0)])
        interrupted = Interrupted(places, (event_store, threading))
        with suppress(KeyboardInterrupt), interrupted.tracing():
            take_and_acknowledge(store)
        assert Background(lambda store=store: store.put([batch(1)])).wait() == 1, places  # type: ignore[misc]
        assert Background(store.close).wait() is None
        if not interrupted.raised:
            break
        places += 1
    assert places > 10


def test_the_last_batch_that_is_acknowledged_is_shown() -> None:
    store = EventStore()
    assert (store.acknowledged, store.last_sequence) == (-1, -1)
    store.put([batch(0), batch(1), batch(2)])
    taken = store.get(2, 0)
    assert store.acknowledged == -1
    store.ack(taken.sequence)
    assert (store.acknowledged, store.last_sequence) == (1, 2)
