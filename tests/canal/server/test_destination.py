"""Batches of several clients: nothing is freed before everybody has acknowledged it; a rollback returns everything."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.canal.entries.entry import (
    Entry,
    EntryHeader,
    EntryStatement,
    EventType,
    RowChange,
    TransactionBegin,
    TransactionEnd,
)
from rowtide.canal.server.destination import NO_BATCH, Destination, client_number
from rowtide.canal.server.errors import BatchOrderError, CanalError, ClientIdError
from rowtide.canal.server.stored_entry import BatchMode, LogPosition, StoredEntry, stored
from rowtide.connector.delivery.event_store import Store
from rowtide.connector.records.offset import SourceOffset

OFFSET = SourceOffset("binlog.000001", 4)
ENTRIES = BatchMode(counts_entries=True, unit=1)


def entry(number: int, *, ddl: bool = False, size: int = 10) -> StoredEntry:
    position = LogPosition("binlog.000001", number, 1, 1000, "", OFFSET)
    return StoredEntry(b"%d" % number + b" " * size, position, resumable=True, ddl=ddl, transaction=False)


def destination(count: int, mode: BatchMode = ENTRIES, *, ddl: frozenset[int] = frozenset()) -> Destination:
    store: Store[StoredEntry] = Store(max_events=1000)
    store.put([entry(number, ddl=number in ddl) for number in range(count)])
    return Destination("example", store, mode, isolate_ddl=bool(ddl))


def numbers(entries: list[bytes]) -> list[int]:
    return [int(raw) for raw in entries]


def test_batches_come_in_order_and_are_numbered() -> None:
    found = destination(5)
    found.subscribe("1001")
    first, second = found.get("1001", 3), found.get("1001", 3)
    assert (first.id, numbers(first.entries)) == (1, [0, 1, 2])
    assert (second.id, numbers(second.entries)) == (2, [3, 4])
    assert found.get("1001", 3).id == NO_BATCH


def test_the_oldest_batch_must_be_acknowledged_first() -> None:
    found = destination(4)
    found.subscribe("1001")
    found.get("1001", 1), found.get("1001", 1)
    with pytest.raises(BatchOrderError, match="batchId:2 is not the firstly:1"):
        found.ack("1001", 2)
    found.ack("1001", NO_BATCH)
    found.ack("1001", 1)
    found.ack("1001", 2)
    with pytest.raises(CanalError, match="batchId:2 is not exist"):
        found.ack("1001", 2)


def test_an_acknowledgement_does_not_free_what_another_client_has() -> None:
    found = destination(4)
    found.subscribe("1001")
    found.subscribe("1002")
    found.get("1001", 2)
    found.get("1002", 2)
    found.ack("1002", 1)
    assert found.store.use().held_events == 4
    found.ack("1001", 1)
    assert found.store.use().held_events == 0


def test_a_rollback_returns_the_batches_of_all_clients() -> None:
    found = destination(4)
    found.subscribe("1001")
    found.subscribe("1002")
    found.get("1001", 2)
    found.get("1002", 2)
    found.rollback("1001")
    again = found.get("1001", 4)
    assert (again.id, numbers(again.entries)) == (2, [0, 1, 2, 3])
    with pytest.raises(CanalError, match="ack error , clientId:1002 batchId:1 is not exist"):
        found.ack("1002", 1)


def test_what_a_client_has_not_acknowledged_when_it_unsubscribes_comes_again() -> None:
    found = destination(4)
    found.subscribe("1001")
    found.get("1001", 2)
    found.unsubscribe("1001")
    found.take_back()
    found.rollback("1001")  # as clients do before they subscribe
    found.subscribe("1001")
    assert numbers(found.get("1001", 4).entries) == [0, 1, 2, 3]


def test_a_position_counts_when_nothing_before_it_is_left_to_acknowledge() -> None:
    told: list[tuple[int, int]] = []
    store = destination(6).store
    found = Destination("d", store, ENTRIES, acknowledged=lambda client, position: told.append((client, position.pos)))
    found.subscribe("1")
    found.subscribe("2")
    found.get("1", 2)
    found.get("2", 2)
    found.ack("2", 1)
    assert told == []
    found.ack("1", 1)
    assert told == [(1, 1), (2, 3)]
    found.get("1", 1)
    found.get("2", 1)
    found.ack("2", 2)
    found.rollback("2")  # a restart must not skip what is given out again
    found.get("1", 1)
    found.get("2", 1)
    found.ack("2", 3)
    assert told[2:] == []


def test_a_rollback_before_the_subscription_is_ignored() -> None:
    found = destination(1)
    found.rollback("1001")
    with pytest.raises(CanalError, match=r"clientId=1001,filter=<null>\] should subscribe first"):
        found.get("1001", 1)


def test_the_position_is_that_of_the_last_entry_at_which_a_client_can_resume() -> None:
    store: Store[StoredEntry] = Store()
    header = EntryHeader("binlog.000001", 4, 10, 1, 1)
    begin, end = Entry(header, TransactionBegin(1)), Entry(replace(header, offset=40), TransactionEnd(1))
    store.put(
        [
            stored(begin, OFFSET),
            stored(end, OFFSET),
            stored(Entry(header, RowChange(EventType.INSERT, 1, (), ())), OFFSET),
        ]
    )
    told: list[tuple[int, int]] = []
    found = Destination("d", store, ENTRIES, acknowledged=lambda client, position: told.append((client, position.pos)))
    found.subscribe("7")
    found.get("7", 3)
    found.ack("7", 1)
    assert told == [(7, 40)]


def test_with_gtids_a_begin_is_not_a_place_to_resume() -> None:
    begin = Entry(EntryHeader("f", 4, 10, 1, 1, gtid="u:1"), TransactionBegin(1))
    assert not stored(begin, OFFSET).resumable
    ddl = Entry(EntryHeader("f", 4, 10, 1, 1, gtid="u:1"), EntryStatement(EventType.ALTER, "ALTER", True))
    assert stored(ddl, OFFSET).resumable
    assert not stored(ddl, replace(OFFSET, event=2)).resumable  # CREATE TABLE ... SELECT: its rows come later


def test_ddl_has_a_batch_of_its_own_if_asked_for() -> None:
    found = destination(6, ddl=frozenset({0, 3}))
    found.subscribe("1")
    assert [numbers(found.get("1", 4).entries) for _ in range(4)] == [[0], [1, 2], [3], [4, 5]]


def test_memory_units_are_exceeded_by_one_entry() -> None:
    found = destination(6, BatchMode(counts_entries=False, unit=10))
    found.subscribe("1")
    assert numbers(found.get("1", 2).entries) == [0, 1]  # 11 bytes each
    assert numbers(found.get("1", 1).entries) == [2]


def test_a_batch_is_full_when_the_store_is() -> None:
    """A client that waits for more entries than the store holds would wait for ever."""
    store: Store[StoredEntry] = Store(max_events=2)
    found = Destination("d", store, ENTRIES)
    found.subscribe("1")
    putting = Thread(target=lambda: store.put([entry(number) for number in range(3)]))
    putting.start()
    while not found.full(10):
        pass
    assert numbers(found.get("1", 10).entries) == [0, 1]
    putting.join()
    assert not found.full(10)


@pytest.mark.parametrize("client", ["abc", "", "70000", "-32769"])
def test_a_client_is_a_number_of_16_bits(client: str) -> None:
    with pytest.raises(ClientIdError, match=f'For input string: "{client}"'):
        client_number(client)


actions = st.lists(
    st.tuples(
        st.sampled_from(["get", "ack", "rollback", "leave"]), st.sampled_from(["1", "2", "3"]), st.integers(1, 4)
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(actions)
def test_every_entry_is_acknowledged_by_the_client_that_got_it_last(steps: list[tuple[str, str, int]]) -> None:
    """Whatever clients do: an entry is freed only if it was acknowledged after it was given out last."""
    found = destination(30)
    outstanding: dict[str, dict[int, list[int]]] = {"1": {}, "2": {}, "3": {}}
    for client in outstanding:
        found.subscribe(client)
    settled: set[int] = set()
    for action, client, size in steps:
        batches = outstanding[client]
        if action == "get":
            batch = found.get(client, size)
            if batch.entries:
                batches[batch.id] = numbers(batch.entries)
                settled -= set(batches[batch.id])
        elif action == "ack" and batches:
            oldest = min(batches)
            found.ack(client, oldest)
            settled |= set(batches.pop(oldest))
        elif action == "rollback":
            found.rollback(client)
            for every in outstanding.values():
                every.clear()
        elif action == "leave":
            found.unsubscribe(client)
            found.subscribe(client)
            batches.clear()
        use = found.store.use()
        assert set(range(30 - use.held_events)) <= settled
