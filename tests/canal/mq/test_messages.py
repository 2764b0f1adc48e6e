"""Which entries have one packet, and which mark messages of a snapshot have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowtide.canal.entries.entry import Entry, EntryHeader, EntryStatement, EventType, TransactionEnd
from rowtide.canal.entries.sink import PassedEntry
from rowtide.canal.mq.messages import CanalMessageForm, MessageMaker
from rowtide.canal.mq.routing import Router, Routes
from rowtide.canal.server.stored_entry import BatchMode
from rowtide.connector.records.offset import SourceOffset
from tests.support.canal.golden import fields

OFFSET = SourceOffset("binlog.000001", 4)


def statement(kind: EventType = EventType.QUERY, props: tuple[tuple[str, str], ...] = ()) -> PassedEntry:
    header = EntryHeader("f", 4, 400, 1, 1, "shop", "t", "", props)
    return PassedEntry(Entry(header, EntryStatement(kind, "x", ddl=kind is not EventType.QUERY)), replace(OFFSET))


def packets(form: CanalMessageForm, *entries: PassedEntry) -> list[int]:
    """The number of entries of each packet."""
    made = [
        value for batch in MessageMaker(Router(Routes("t")), form).batches(entries) for _, value, _ in batch.messages
    ]
    return [len(fields(bytes(dict(fields(value or b""))[5]))) for value in made]


@pytest.mark.parametrize(
    ("form", "counts"),
    [
        (CanalMessageForm(flat=False, batch_size=2, mode=BatchMode(counts_entries=True, unit=1)), [2, 2, 1]),
        (CanalMessageForm(flat=False, batch_size=3, mode=BatchMode(counts_entries=False, unit=1024)), [3, 2]),
        (CanalMessageForm(flat=False, isolate_ddl=True), [2, 1, 2]),
        (CanalMessageForm(flat=False), [5]),
    ],
)
def test_packets(form: CanalMessageForm, counts: list[int]) -> None:
    ddl = statement(EventType.ALTER)
    assert packets(form, statement(), statement(), ddl, statement(), statement()) == counts


@pytest.mark.parametrize("flat", [True, False])
def test_the_entries_of_one_event_are_in_one_batch(flat: bool) -> None:
    """Otherwise, a crash between two batches would lose the second one: its event counts as done."""
    form = CanalMessageForm(flat=flat, batch_size=2, mode=BatchMode(counts_entries=True, unit=1))
    last = statement()
    event = [statement(), *[last._replace(offset=last.offset) for _ in range(3)], statement()]
    batches = list(MessageMaker(Router(Routes("t")), form).batches(event))
    assert [batch.offset for batch in batches if batch.offset is last.offset] == [last.offset]
    assert len(batches) == 2


def test_entries_without_messages_advance_the_position() -> None:
    end = PassedEntry(Entry(EntryHeader("f", 4, 31, 1, 9), TransactionEnd(1)), OFFSET)
    for flat in (True, False):
        (batch,) = MessageMaker(Router(Routes("t")), CanalMessageForm(flat=flat)).batches([end])
        assert (list(batch.messages), batch.offset, batch.ts_ms) == ([], OFFSET, 9000)


@pytest.mark.parametrize("flat", [True, False])
def test_messages_of_a_snapshot_have_a_header(flat: bool) -> None:
    maker = MessageMaker(Router(Routes("t")), CanalMessageForm(flat=flat))
    for props, headers in (((), []), ((("snapshot", "initial"),), [("snapshot", b"initial")])):
        (batch,) = maker.batches([statement(props=props)])
        assert [list(found) for _, _, found in batch.messages] == [headers]
