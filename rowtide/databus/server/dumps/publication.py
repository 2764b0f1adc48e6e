"""Determines whether the topic has all events that a dump covers: from that offset on, clients accept every event.

::

    end of the topic ──► snapshot ──► the connector has read past it ──► Kafka has all of that ──► end of the topic

Between the two ends, clients compare the positions of events with that of the dump, so all of them must come from one
server. If the connector changes to another server in the meantime, the dump is useless.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.view.stream_order import has_passed
from rowtide.databus.errors import DumpDiscarded

log = logging.getLogger(__name__)

_WARN_S = 30.0
_LONGEST_S = 300.0
"""How long the connector may neither read nor publish anything while a dump waits for it."""


@dataclass(frozen=True, slots=True)
class PublishedPosition:
    """The progress of a connector in reading and publishing.

    Attributes:
        stream: equal while the connector reads from one server, and has not started again.
        position: between two transactions, with the ``server_id`` as its server.
        sequence: the number of the last batch in the event store; everything before ``position`` is in this batch or an
            earlier one.
        delivered: the number of the last batch that Kafka has, together with all earlier ones.
    """

    stream: object
    position: SourceOffset
    sequence: int
    delivered: int


def reading_of(task: ConnectorTask) -> PublishedPosition | None:
    """Return the progress of a connector in reading and publishing; ``None`` while no stream is open."""
    run = task.current
    reader, components = run.reader, run.components
    position = None if reader is None or not reader.status.connected else reader.place.take()
    if reader is None or components is None or position is None:
        return None
    store = components.store
    return PublishedPosition((reader, reader.place.servers), position, store.last_sequence, store.acknowledged)


class Publication:
    """Compares the readings of a connector with the position of a dump.

    Args:
        first: the reading before the dump.
        clock: returns the time in seconds.
    """

    def __init__(self, first: PublishedPosition, clock: Callable[[], float]) -> None:
        self._first = first
        self._clock = clock
        self._taken: SourceOffset | None = None
        self._sequence: int | None = first.sequence
        self._progress: PublishedPosition | None = None
        self._began = self._moved = clock()
        self._warned = False

    def begin(self, taken: SourceOffset) -> None:
        """Wait for the position of a dump, instead of the position read before it.

        Args:
            taken: the position of the dump, with the ``server_id`` as its server.

        Raises:
            DumpDiscarded: the dump is from another server.
        """
        read = self._first.position.server
        if taken.server != read:
            raise DumpDiscarded(
                f"the dump is discarded: its rows come from server_id {taken.server}, and the connector reads the "
                f"binlog of server_id {read}. If there was no fail-over, let database.hostname name one server; if "
                "server_id was changed while the server ran, execute FLUSH BINARY LOGS"
            )
        self._taken, self._sequence = taken, None
        self._began = self._moved = self._clock()

    def verify(self, reading: PublishedPosition | None) -> None:
        """Check that the connector still reads from the same server.

        Raises:
            DumpDiscarded: it reads from another server, or has started again.
        """
        if reading is not None and reading.stream != self._first.stream:
            raise DumpDiscarded(
                "the dump is discarded: the connector has started again, or reads from another server. It was at "
                f"{_place(self._first.position)}, and is at {_place(reading.position)}"
            )

    def is_complete(self, reading: PublishedPosition | None, connector: str) -> bool:
        """Return whether the topic has all awaited events.

        Args:
            reading: the current one.
            connector: ``mysql`` or ``mariadb``.

        Raises:
            DumpDiscarded: the server has changed, or the connector makes no progress.
        """
        self.verify(reading)
        self._watch(reading)
        if reading is None:
            return False
        if self._sequence is None and self._taken is not None and has_passed(reading.position, self._taken, connector):
            self._sequence = reading.sequence
        return self._sequence is not None and reading.delivered >= self._sequence

    def _watch(self, reading: PublishedPosition | None) -> None:
        now = self._clock()
        if reading is not None and reading != self._progress:
            self._progress, self._moved = reading, now
        elif now - self._moved > _LONGEST_S:
            raise DumpDiscarded(
                f"{self._state()}. Neither has changed for {_LONGEST_S:.0f} s, so the dump is discarded. Look for "
                "errors of the connector in /health and in the log"
            )
        if not self._warned and now - self._began > _WARN_S:
            self._warned = True
            log.warning("%s", self._state())

    def _state(self) -> str:
        found = self._progress or self._first
        until = self._taken or self._first.position
        return (
            f"a dump waits until the connector has published everything before {_place(until)}. The connector has read "
            f"to {_place(found.position)}; batches that are not in Kafka: {found.sequence - found.delivered}"
        )


def _place(position: SourceOffset) -> str:
    return f"{position.file}:{position.pos} of server_id {position.server}"
