"""Makes Kafka messages from Canal's entries: FlatMessages, or packets of entries (``canal.mq.flatMessage``). Pure."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rowtide.canal.entries import protobuf
from rowtide.canal.entries.entry import Entry, EntryType, RowChange
from rowtide.canal.entries.flat_message import flat_messages
from rowtide.canal.entries.sink import PassedEntry
from rowtide.canal.mq.routing import Router
from rowtide.canal.server.stored_entry import BatchMode, is_isolated
from rowtide.connector.records.batch import Batch, Headers, Message, joined

_BYTES_PER_BYTE = 3
"""Canal's estimate of the size of an entry: three times that of its event."""
_MESSAGES = 7
_VERSION = 1
SNAPSHOT_HEADER: Headers = (("snapshot", b"initial"),)
"""Of the messages of a snapshot: a FlatMessage has no place for properties of its entry."""

_KIB = BatchMode(counts_entries=False, unit=1024)

Destination = tuple[str, int]
"""A topic and a partition."""


@dataclass(frozen=True, slots=True)
class CanalMessageForm:
    """The form of messages.

    Attributes:
        flat: FlatMessages (``canal.mq.flatMessage``), one for each entry and partition; otherwise, packets of entries.
        transactions: whether packets have the bounds of transactions (``canal.instance.filter.transaction.entry``).
        batch_size: the number of entries in a batch, which share one ``id`` (``canal.mq.canalBatchSize``); in packets,
            the unit is that of ``mode``.
        mode: the unit of the size of a packet.
        isolate_ddl: whether a statement of DDL has its own packet.
    """

    flat: bool = True
    transactions: bool = False
    batch_size: int = 50
    mode: BatchMode = _KIB
    isolate_ddl: bool = False


class MessageMaker:
    """Makes the messages of one destination.

    Args:
        router: the topics and partitions.
        form: the form of messages.
        clock: milliseconds since the epoch.
    """

    def __init__(
        self, router: Router, form: CanalMessageForm, clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._router = router
        self._form = form
        self._clock = clock
        self._batch_id = 0

    def batches(self, entries: Sequence[PassedEntry]) -> Iterator[Batch]:
        """Yield the messages of entries, in batches with the resume position after them.

        Entries without messages, such as the ends of transactions, only advance the position. The entries of one event
        are in one batch: a restart resumes after an event.
        """
        for group in self._groups(entries):
            self._batch_id += 1
            found = self._flat(group) if self._form.flat else self._packets(group)
            offset, ts_ms = group[-1].offset, group[-1].entry.header.execute_time
            pieces = [
                Batch(topic, partition, messages, offset, sum([len(value or b"") for _, value, _ in messages]), ts_ms)
                for (topic, partition), messages in found.items()
            ]
            yield joined(pieces) if pieces else Batch("", -1, (), offset, 0, ts_ms)

    def _groups(self, entries: Sequence[PassedEntry]) -> Iterator[Sequence[PassedEntry]]:
        form, begin, size, alone = self._form, 0, 0, False
        counted = form.flat or form.mode.counts_entries
        room = form.batch_size if counted else form.batch_size * form.mode.unit
        for place, (entry, offset) in enumerate(entries):
            isolated = not form.flat and form.isolate_ddl and is_isolated(entry)
            same_event = place > begin and offset is entries[place - 1].offset
            if place > begin and not same_event and (size >= room or isolated or alone):
                yield entries[begin:place]
                begin, size = place, 0
            size += 1 if counted else entry.header.length * _BYTES_PER_BYTE
            alone = isolated
        if begin < len(entries):
            yield entries[begin:]

    def _flat(self, entries: Sequence[PassedEntry]) -> dict[Destination, list[Message]]:
        found: dict[Destination, list[Message]] = {}
        now = self._clock()
        for entry, _ in entries:
            if entry.type is not EntryType.ROWDATA:
                continue
            topic = self._topic(entry)
            places = self._router.places(entry, topic, exact_names=True)
            for place, text in flat_messages(entry, self._batch_id, now, places):
                found.setdefault((topic, place), []).append((None, text.encode(), _headers(entry)))
        return found

    def _packets(self, entries: Sequence[PassedEntry]) -> dict[Destination, list[Message]]:
        contents: dict[Destination, list[bytes]] = {}
        headers: Headers = ()
        transactions = self._form.transactions and self._router.transactions
        for entry, _ in entries:
            if entry.type is not EntryType.ROWDATA and not transactions:
                continue
            headers = headers or _headers(entry)
            topic = self._topic(entry)
            places = self._router.places(entry, topic, exact_names=False)
            if isinstance(places, int):
                contents.setdefault((topic, places), []).append(entry.encoded())
                continue
            for place, row in zip(places, _single_rows(entry), strict=True):
                contents.setdefault((topic, place), []).append(row.encoded())
        return {destination: [(None, packet(found), headers)] for destination, found in contents.items()}

    def _topic(self, entry: Entry) -> str:
        return self._router.topic(entry.header.database or "", entry.header.table or "")


def packet(entries: Sequence[bytes]) -> bytes:
    """Return the packet ``MESSAGES`` of Canal's protocol, without the number of a batch, as Canal sends it to queues.

    Args:
        entries: messages ``Entry``.
    """
    body = b"".join([protobuf.data(2, entry) for entry in entries])
    return protobuf.integer(2, _VERSION) + protobuf.integer(3, _MESSAGES) + protobuf.data(5, body)


def _single_rows(entry: Entry) -> Iterator[Entry]:
    content = entry.content
    assert isinstance(content, RowChange)
    for row in content.rows:
        yield replace(entry, content=replace(content, rows=[row]))


def _headers(entry: Entry) -> Headers:
    return SNAPSHOT_HEADER if ("snapshot", "initial") in entry.header.props else ()
