"""An instance: offers the entries of one server to the clients of a destination. It can also be used in Python.

::

    Reading ──► event store ◄── Destination ◄── clients
                                     └──► storage: meta.dat, or ZooKeeper
"""

import logging
import threading
from collections.abc import Callable, Sequence

from rowtide.canal.configuration.model import InstanceSettings
from rowtide.canal.entries.filters import EntryFilter, TablePatterns
from rowtide.canal.entries.sink import PassedEntry
from rowtide.canal.instance.base import BaseInstance, InstanceState
from rowtide.canal.instance.client_positions import Resumption
from rowtide.canal.instance.storage import Storage
from rowtide.canal.server.destination import Destination
from rowtide.canal.server.stored_entry import StoredEntry, stored
from rowtide.connector.delivery.event_store import Store
from rowtide.topics.java_regex import InvalidPatternError

log = logging.getLogger(__name__)

_ITEMSIZE_BYTES = 1 << 28
_CLIENT_S = 0.2
"""The interval at which a waiting instance checks for a client, in seconds."""
_FULL_S = 60.0
"""The least time between two log lines about a full store, in seconds."""


class Instance(BaseInstance):
    """One source and its clients.

    Args:
        settings: of the instance.
        storage: of the positions of its clients, and of its schema history.
        flush_s: how often positions of clients are written, in seconds.

    Attributes:
        destination: the interface for clients.
        sink: selects the entries.

    Raises:
        OffsetError: the positions of clients are damaged, or cannot be read.
    """

    def __init__(self, settings: InstanceSettings, storage: Storage, flush_s: float = 1.0) -> None:
        super().__init__(settings, settings.kinds, storage, flush_s)
        mode = settings.mode
        self._store: Store[StoredEntry] = Store(
            settings.buffer_size, _ITEMSIZE_BYTES if mode.counts_entries else settings.buffer_size * mode.unit
        )
        self._filter_by(self._positions.filter)
        self.destination = Destination(
            settings.destination,
            self._store,
            mode,
            isolate_ddl=settings.isolate_ddl,
            filtered=self._filter_by,
            acknowledged=self._positions.acknowledged,
            subscribed=self._subscribed,
            unsubscribed=self._unsubscribed,
        )
        self._resumption: Resumption | None = None  # after the last entry in the store

    def stop(self, limit_s: float | None = None) -> bool:
        """Stop reading, and write the positions of the clients."""
        ended = super().stop(limit_s)
        self._write_positions()
        return ended

    @property
    def state(self) -> InstanceState:
        """The current state."""
        return self._state(self._store.use(), self.destination.traffic)

    # --- as the outlet of reading ------------------------------------------------------------------------------------

    def open(self, failed: Callable[[], None]) -> Resumption | None:
        """Return the resume position: after the last entry in the store, or at the positions of the clients."""
        return self._resumption or self._positions.resumption()

    def snapshot_begins(self, stop: threading.Event) -> bool:
        """Wait for the first client, for which the filter of its subscription counts."""
        while not self.destination.subscribers and not stop.wait(_CLIENT_S):
            pass
        return self._positions.snapshot_begins()

    def put(self, entries: Sequence[PassedEntry], resumption: Resumption | None) -> None:
        """Put entries into the store for the clients, and wait for space.

        Args:
            entries: the entries.
            resumption: where reading continues after them; ``None`` within a snapshot.

        Raises:
            StoreClosed: the instance stops.
        """
        left = [stored(entry, offset) for entry, offset in entries]
        self.destination.count(left)  # before clients can acknowledge them: a metric must not show more of these
        while left and (count := self._store.put(left, _FULL_S)) < len(left):
            left = left[count:]
            log.warning(
                "destination %s: reading waits: the store is full, and clients have not acknowledged %d entries",
                self._name,
                self._store.use().held_events,
            )
        self._resumption = resumption or self._resumption

    def ended(self) -> None:
        """Do nothing: the entries in the store stay there for the clients."""

    def close(self) -> None:
        """Accept no more entries."""
        self._store.close()

    # --- clients -----------------------------------------------------------------------------------------------------

    def _subscribed(self, client_id: int, text: str) -> None:
        """Store the client. An invalid filter is not stored, because it has no effect."""
        self._positions.subscribed(client_id, text if self._filtered(text) else "")

    def _unsubscribed(self, client_id: int) -> None:
        self._positions.unsubscribed(client_id)
        self.destination.take_back()

    def _filter_by(self, text: str) -> None:
        self.sink.tables = self._filtered(text) or self.sink.tables

    def _filtered(self, text: str) -> EntryFilter | None:
        """Return the filter of a subscription; ``None`` if it has none, or an invalid one, which Canal accepts, too."""
        try:
            return EntryFilter(TablePatterns.of_client(text), self._settings.filter.black) if text else None
        except InvalidPatternError as error:
            log.warning("destination %s: the filter of a client is ignored: %s", self._name, error)
            return None

    def _write_positions(self) -> None:
        try:
            self._positions.flush()
        except OSError as error:
            log.error("%s: the positions of clients cannot be written: %s", self._name, error)  # noqa: TRY400
