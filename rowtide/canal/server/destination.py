"""The entries of one instance, in batches for its clients (Canal's ``CanalServerWithEmbedded``). No method waits.

All clients of a destination share one cursor: a batch goes to the client that asks first. Batches are numbered for each
client, and acknowledged in their order.

Deliberate differences from Canal, none of which a client with its own destination sees: an acknowledgement does not
free an unacknowledged batch of another client, and its position counts only when those are acknowledged, too; a
rollback takes the batches of all clients back, since the cursor is theirs, too; a rollback of the oldest batch takes
back those after it.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rowtide.canal.server.errors import BatchOrderError, CanalError, ClientIdError
from rowtide.canal.server.stored_entry import BatchMode, LogPosition, StoredEntry, fits
from rowtide.connector.delivery.batch_ring import INIT_SEQUENCE
from rowtide.connector.delivery.event_store import Store

DEFAULT_FETCH_SIZE = 1000
_MAX_CLIENT_ID = 0x7FFF
NO_BATCH = -1


@dataclass(frozen=True, slots=True)
class EntryMessage:
    """A batch for a client.

    Attributes:
        id: to acknowledge it; ``NO_BATCH`` if there are no entries.
        entries: messages ``Entry``.
    """

    id: int
    entries: list[bytes]


@dataclass(slots=True)
class Passed:
    """Counts of entries that have passed one of the cursors: put into the store, taken, or acknowledged.

    Attributes:
        entries: the number of entries.
        rows: the number of their rows.
        bytes: their bytes.
        ts_ms: when the last one was written, in milliseconds since the epoch; 0 before the first.
    """

    entries: int = 0
    rows: int = 0
    bytes: int = 0
    ts_ms: int = 0

    def add(self, entries: int, rows: int, size: int, ts_ms: int) -> None:
        """Count entries."""
        self.entries += entries
        self.rows += rows
        self.bytes += size
        self.ts_ms = ts_ms


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic of a destination since its start. Entries that are sent again count again.

    Attributes:
        put: entries put into the store.
        got: entries taken by clients.
        acked: entries acknowledged by clients.
        subscriptions: the number of clients.
    """

    put: Passed
    got: Passed
    acked: Passed
    subscriptions: int


@dataclass(frozen=True, slots=True)
class _Batch:
    first: int  # sequence of its first entry in the store
    last: int
    rows: int
    bytes: int
    ts_ms: int
    position: LogPosition | None  # of its last entry at which a client can resume


@dataclass(slots=True)
class _Client:
    subscribed: bool = False
    last_id: int = 0
    batches: dict[int, _Batch] = field(default_factory=dict)  # in their order


class Destination:
    """The interface of an instance for clients. Thread-safe; no method waits.

    Args:
        name: of the destination.
        store: the entries.
        mode: the unit of fetch sizes.
        isolate_ddl: whether a statement of DDL has its own batch (``canal.instance.get.ddl.isolation``).
        filtered: called with the filter of a subscription, which replaces ``canal.instance.filter.regex``.
        acknowledged: called with a client's number and its new position; everything before it is acknowledged.
        subscribed: called with the client's number and its filter.
        unsubscribed: called with the client's number.
    """

    def __init__(
        self,
        name: str,
        store: Store[StoredEntry],
        mode: BatchMode,
        *,
        isolate_ddl: bool = False,
        filtered: Callable[[str], None] = lambda _filter: None,
        acknowledged: Callable[[int, LogPosition], None] = lambda _client, _position: None,
        subscribed: Callable[[int, str], None] = lambda _client, _filter: None,
        unsubscribed: Callable[[int], None] = lambda _client: None,
    ) -> None:
        self.name = name
        self.store = store
        self._mode = mode
        self._isolate_ddl = isolate_ddl
        self._filtered = filtered
        self._acknowledged = acknowledged
        self._subscribe = subscribed
        self._unsubscribe = unsubscribed
        self._clients: dict[int, _Client] = {}
        self._done = INIT_SEQUENCE  # the last entry that was acknowledged, perhaps before others of another client
        self._early: list[tuple[int, int, LogPosition]] = []  # last entry, client and position of such batches
        self._left: list[_Batch] = []  # not acknowledged by clients that have unsubscribed
        self._put, self._got, self._acked = Passed(), Passed(), Passed()
        self._lock = threading.Lock()

    def count(self, entries: Sequence[StoredEntry]) -> None:
        """Count entries that are put into the store."""
        if entries:
            rows, size = sum(entry.rows for entry in entries), sum(entry.size for entry in entries)
            self._put.add(len(entries), rows, size, entries[-1].ts_ms)

    @property
    def traffic(self) -> Traffic:
        """The traffic so far."""
        with self._lock:
            subscriptions = sum(client.subscribed for client in self._clients.values())
            return Traffic(replace(self._put), replace(self._got), replace(self._acked), subscriptions)

    @property
    def subscribers(self) -> list[int]:
        """The numbers of the clients."""
        with self._lock:
            return [number for number, client in self._clients.items() if client.subscribed]

    def has_subscriber(self, client_id: str) -> bool:
        """Return whether a client is subscribed."""
        try:
            return client_number(client_id) in self.subscribers
        except ClientIdError:
            return False

    def subscribe(self, client_id: str, filter_: str = "") -> None:
        """Begin or continue to read.

        Args:
            client_id: the client's number.
            filter_: the filter for all clients of the destination; empty to keep the current one.

        Raises:
            ClientIdError: the client's number is not a number of 16 bits.
        """
        number = client_number(client_id)
        self._subscribe(number, filter_)
        if filter_:
            self._filtered(filter_)
        with self._lock:
            self._clients.setdefault(number, _Client()).subscribed = True

    def unsubscribe(self, client_id: str) -> None:
        """Stop reading. The cursor stays; entries that the client has not acknowledged are sent again after a rollback.

        Raises:
            ClientIdError: the client's number is not a number of 16 bits.
        """
        number = client_number(client_id)
        with self._lock:
            client = self._clients.get(number)
            if client is not None:
                client.subscribed = False
                self._early = [early for early in self._early if early[1] != number]
                self._left += client.batches.values()
                client.batches.clear()
        self._unsubscribe(number)

    def full(self, fetch_size: int) -> bool:
        """Return whether a batch is full, or no more entries will come before some are taken."""
        wanted = fetch_size or DEFAULT_FETCH_SIZE
        unread = self.store.unread if self._mode.counts_entries else self.store.unread_bytes
        return unread >= wanted * self._mode.unit or self.store.overflows or self.store.closed

    def get(self, client_id: str, fetch_size: int) -> EntryMessage:
        """Return the next batch: the available entries, up to the fetch size.

        Args:
            client_id: the client's number.
            fetch_size: entries, or memory units, of which the last entry may exceed the number; 0 for
                ``DEFAULT_FETCH_SIZE``.

        Raises:
            CanalError: the client is not subscribed, or the fetch size is negative.
        """
        if fetch_size < 0:
            raise CanalError(f"the fetch size is {fetch_size}; it must not be negative")
        number = client_number(client_id)
        with self._lock:
            client = self._subscribed(number)
            taken = self.store.get_while(fits(self._mode, fetch_size or DEFAULT_FETCH_SIZE, self._isolate_ddl))
            if not taken.batches:
                return EntryMessage(NO_BATCH, [])
            client.last_id += 1
            ends = [entry.position for entry in taken.batches if entry.resumable]
            batch = client.batches[client.last_id] = _Batch(
                taken.sequence - len(taken.batches) + 1,
                taken.sequence,
                sum(entry.rows for entry in taken.batches),
                sum(entry.size for entry in taken.batches),
                taken.batches[-1].ts_ms,
                ends[-1] if ends else None,
            )
            self._got.add(len(taken.batches), batch.rows, batch.bytes, batch.ts_ms)
            return EntryMessage(client.last_id, [entry.raw for entry in taken.batches])

    def ack(self, client_id: str, batch_id: int) -> None:
        """Free a batch, which must be the oldest one of the client; ``NO_BATCH`` is ignored.

        Raises:
            CanalError: the client is not subscribed, or has no such batch.
            BatchOrderError: it is not the oldest one.
        """
        if batch_id == NO_BATCH:
            return
        number = client_number(client_id)
        with self._lock:
            client = self._subscribed(number)
            if batch_id not in client.batches:
                raise CanalError(f"ack error , clientId:{number} batchId:{batch_id} is not exist , please check")
            _require_oldest(client, batch_id)
            batch = client.batches.pop(batch_id)
            self._acked.add(batch.last - batch.first + 1, batch.rows, batch.bytes, batch.ts_ms)
            if batch.position is not None:
                self._early.append((batch.last, number, batch.position))
            self._done = max(self._done, batch.last)
            waiting = [batch.first for every in self._clients.values() for batch in every.batches.values()]
            waiting += [batch.first for batch in self._left]
            free = min([self._done, *(first - 1 for first in waiting)])
            for last, early, position in sorted(self._early):
                if last <= free:  # otherwise, a restart would skip what another client has not acknowledged
                    self._acknowledged(early, position)
            self._early = [early for early in self._early if early[0] > free]
            self.store.ack(free)

    def rollback(self, client_id: str, batch_id: int = 0) -> None:
        """Send all unacknowledged entries again.

        Args:
            client_id: the client's number.
            batch_id: the oldest batch of the client, or 0.

        Raises:
            CanalError: there is no such batch.
            BatchOrderError: it is not the oldest one.
        """
        number = client_number(client_id)
        with self._lock:
            client = self._clients.get(number)
            if client is None or not client.subscribed:
                return  # a client rolls back when it connects, before it subscribes
            if batch_id:
                if batch_id not in client.batches:
                    raise CanalError(
                        f"rollback error, clientId:{number} batchId:{batch_id} is not exist , please check"
                    )
                _require_oldest(client, batch_id)
            self._give_out_again()

    def take_back(self) -> None:
        """Resend the entries that clients had not acknowledged when they unsubscribed, as Canal does after a restart.

        If there are such entries, this is a rollback.
        """
        with self._lock:
            if self._left:
                self._give_out_again()

    def _give_out_again(self) -> None:
        for every in self._clients.values():
            every.batches.clear()
        self._done = INIT_SEQUENCE
        self._early.clear()
        self._left.clear()
        self.store.rollback()

    def _subscribed(self, number: int) -> _Client:
        client = self._clients.get(number)
        if client is None or not client.subscribed:
            identity = f"ClientIdentity[destination={self.name},clientId={number},filter=<null>]"
            raise CanalError(f"ClientIdentity:{identity} should subscribe first")
        return client


def _require_oldest(client: _Client, batch_id: int) -> None:
    oldest = next(iter(client.batches))
    if batch_id != oldest:
        raise BatchOrderError(f"batchId:{batch_id} is not the firstly:{oldest}")


def client_number(client_id: str) -> int:
    """Return the client's number.

    Raises:
        ClientIdError: it is not a number of 16 bits.
    """
    try:
        number = int(client_id)
    except ValueError:
        number = _MAX_CLIENT_ID + 1
    if not -_MAX_CLIENT_ID - 1 <= number <= _MAX_CLIENT_ID:
        raise ClientIdError(f'For input string: "{client_id}"')
    return number
