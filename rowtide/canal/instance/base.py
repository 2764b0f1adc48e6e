"""The base of all instances: a thread that reads, and one that writes positions; and the state, for metrics."""

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass

from rowtide.canal.configuration.model import InstanceSettings
from rowtide.canal.entries.sink import EntryKinds, EntrySink
from rowtide.canal.instance.client_positions import ClientPositions
from rowtide.canal.instance.positions import Master
from rowtide.canal.instance.reading import Outlet, ReadingThread
from rowtide.canal.instance.storage import Storage
from rowtide.canal.server.destination import Traffic
from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.delivery.event_store import StoreUse
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.records.offset import SourceOffset


@dataclass(frozen=True, slots=True)
class InstanceState:
    """The state of an instance.

    Attributes:
        destination: its name.
        reading: whether it reads the binlog.
        batch_mode: ``canal.instance.memory.batch.mode``.
        buffer_size: ``canal.instance.memory.buffer.size``.
        status: of the reader; ``None`` before the first one.
        store: the use of the event store; ``None`` before delivery to Kafka begins.
        traffic: the entries that clients have taken; ``None`` in the Kafka mode.
        delivery: the messages sent to Kafka; ``None`` for clients over TCP.
    """

    destination: str
    reading: bool
    batch_mode: str
    buffer_size: int
    status: ReaderStatus | None
    store: StoreUse | None
    traffic: Traffic | None = None
    delivery: DeliveryCounters | None = None


class BaseInstance(Outlet, ABC):
    """One source. It is itself the outlet of its :class:`ReadingThread`.

    Args:
        settings: of the instance.
        kinds: the kinds of entries that are omitted.
        storage: of the positions of its clients, and of its schema history.
        flush_s: how often positions are written, in seconds.

    Attributes:
        sink: selects the entries.

    Raises:
        OffsetError: the positions are damaged, or cannot be read.
    """

    def __init__(self, settings: InstanceSettings, kinds: EntryKinds, storage: Storage, flush_s: float) -> None:
        self._settings = settings
        self._name = settings.destination
        self._flush_s = flush_s
        self._positions = ClientPositions(storage, Master(settings.host, settings.port, settings.slave_id))
        self.sink = EntrySink(settings.filter, kinds)
        self._reading = ReadingThread(settings, storage, self)
        self._stop = threading.Event()
        self._flusher = threading.Thread(target=self._flush, name=f"canal-meta-{self._name}", daemon=True)

    def start(self) -> None:
        """Begin to read, in a thread."""
        self._reading.start()
        self._flusher.start()

    def stop(self, limit_s: float | None = None) -> bool:
        """Stop reading, and write the positions.

        Args:
            limit_s: how long to wait for the end of reading, in seconds; ``None`` to wait without limit.

        Returns:
            Whether reading has ended.
        """
        ended = self._reading.stop(limit_s)
        self._stop.set()
        if self._flusher.ident is not None:
            self._flusher.join()
        return ended

    @property
    def error(self) -> str | None:
        """The reason why it currently does not read or deliver; ``None`` if it does."""
        return self._reading.error

    @property
    def status(self) -> ReaderStatus | None:
        """The state of the reader; ``None`` before the first one."""
        return self._reading.status

    @property
    def reading(self) -> bool:
        """Whether it is connected to the server and reads."""
        status = self.status
        return status is not None and status.connected

    @property
    @abstractmethod
    def state(self) -> InstanceState:
        """The current state."""

    def _state(
        self, use: StoreUse | None, traffic: Traffic | None = None, delivery: DeliveryCounters | None = None
    ) -> InstanceState:
        settings = self._settings
        mode = "ITEMSIZE" if settings.mode.counts_entries else "MEMSIZE"
        return InstanceState(self._name, self.reading, mode, settings.buffer_size, self.status, use, traffic, delivery)

    def begins(self, offset: SourceOffset, since_ms: int) -> None:
        """Store the position at which the instance begins."""
        self._positions.begins(offset, since_ms)

    @abstractmethod
    def _write_positions(self) -> None:
        """Write the positions that have changed; an error is logged."""

    def _flush(self) -> None:
        while not self._stop.wait(self._flush_s):
            self._write_positions()
