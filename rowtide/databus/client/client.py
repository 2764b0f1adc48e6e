"""The client of databus: a dump, if one is wanted, then the events of the topic, in order and without repeats.

::

    ZooKeeper ──► where the dump is ──► dump over TCP ──┐
    offset file, or a position ──► offset in Kafka ─────┴──► get_event() ──► ack() ──► offset file
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Self

from rowtide.databus.client.dump import DumpReader
from rowtide.databus.client.offset_file import ClientProgress, save
from rowtide.databus.client.settings import ClientSettings
from rowtide.databus.client.start import DumpStart, find_start
from rowtide.databus.client.topic import EventTopic
from rowtide.databus.errors import Closed, HandlerInterrupted, UnreadableMessage
from rowtide.databus.events import DUMP, Event, KafkaKey, Position, QueryEvent, RowsEvent, decode_message

LOOK_BACK = 10_000
"""The number of events among which repeats are found."""


class Repeats:
    """Finds repeated events by the positions of their keys and their content.

    The original drops all events whose binlog file has a lower number than the last one: if the last one was in a file
    of another server before a fail-over, it drops them forever. Here, only repeats are dropped. Their content counts,
    too: after RESET BINARY LOGS AND GTIDS, or a fail-over to a server whose files have the same names, positions are
    repeated with other changes.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[Position, int], None] = OrderedDict()

    def seen(self, position: Position, event: RowsEvent | QueryEvent) -> bool:
        """Return whether this event is a repeat, and remember it."""
        known = position, _content(event)
        if known in self._seen:
            return True
        self._seen[known] = None
        if len(self._seen) > LOOK_BACK:
            self._seen.popitem(last=False)
        return False

    def forget(self, position: Position) -> None:
        """Accept events with this position, even if they are repeats."""
        for known in [known for known in self._seen if known[0] == position]:
            del self._seen[known]


def _content(event: RowsEvent | QueryEvent) -> int:
    """Return a hash of the changes of an event.

    The structure is ignored, because its statistics may differ in a repeat.
    """
    change = event.query if isinstance(event, QueryEvent) else event.rows
    return hash((event.action, str(event.table), change))


log = logging.getLogger(__name__)

_POLL_S = 0.5

Handler = Callable[[RowsEvent | QueryEvent], None]
"""Handles an event; raises ``HandlerInterrupted`` to end the run."""


class Client:
    """Reads a databus topic, starting as its settings and its offset file demand (``NewClient``, ``ClientStart``).

    An event is done when it is acknowledged: :meth:`ack` saves it in the offset file, and a client that starts again
    continues after it. Events that were returned but not acknowledged are delivered again. One thread may use
    the client; any thread may call ``close``.

    Args:
        settings: of the client.

    Raises:
        DatabusError: it cannot begin; the message says what to do.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._topic = EventTopic(settings.topic, {**settings.kafka, "bootstrap.servers": ",".join(settings.brokers)})
        self._handlers: list[Handler] = []
        self._sequence = 0
        self._acknowledged = -1  # offset of the last event of the topic that is done
        self._of_dump_acknowledged = 0  # number of events of the dump that are done
        self._of_dump_all: int | None = None  # number of events of a dump that is complete and not saved yet
        self._unsaved: Event | None = None  # read but not returned yet, because the offset file cannot be written
        self._repeats = Repeats()
        self._last: Position | None = None
        self._closed = threading.Event()
        self._reading = threading.Lock()
        self._saving = threading.Lock()  # ``AsyncClient`` acknowledges in one thread and reads in another
        self._dump: DumpReader | None = None
        start = find_start(settings, self._topic)
        if isinstance(start, DumpStart):
            self._after_dump = ClientProgress(start.dump.position, start.dump.offset, inclusive=True)
            name = f"{start.dump.file} at {start.dump.position}"
            log.info("topic %s: begins with dump %s of %s:%d", settings.topic, name, start.host, start.port)
            marker = settings.dump_end_marker
            self._dump = DumpReader(start.host, start.port, start.dump.file, end_marker=marker)
        else:
            self._begin(start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def get_event(self, timeout: float | None = None) -> Event:
        """Return the next event (``GetEvent``).

        Args:
            timeout: seconds to wait for it; by default, without limit.

        Raises:
            TimeoutError: no event arrives in time.
            Closed: the client is closed.
            DatabusError: the dump or the topic cannot be read.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _POLL_S if end is None else max(end - time.monotonic(), 0.0)
            with self._reading:
                if self._closed.is_set():
                    raise Closed("the client was closed; create a new one to continue after the last acknowledgement")
                event = self._unsaved or self._poll(min(left, _POLL_S))
                if event is not None and self._settings.save_on_get:
                    self._unsaved = event
                    self.ack(event)
                    self._unsaved = None
            if event is not None:
                return event
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"topic {self._settings.topic} received no further event within {timeout} s")

    def __iter__(self) -> Iterator[Event]:
        """Yield events until the client is closed."""
        with suppress(Closed):
            while True:
                yield self.get_event()

    def ack(self, event: Event) -> None:
        """Save that an event is done, and all events before it.

        A dump is done only as a whole: a client that restarts before its last event is acknowledged reads it again.

        Raises:
            OffsetFileError: the offset file cannot be written.
        """
        with self._saving:
            if event.offset is None:
                self._of_dump_acknowledged = max(self._of_dump_acknowledged, event.sequence)
                self._save_dump()
            elif event.offset > self._acknowledged:
                save(self._settings.offset_file, ClientProgress(event.header.position, event.offset))
                self._acknowledged, self._of_dump_all = event.offset, None

    def register(self, handler: Handler) -> None:
        """Add a handler, for :meth:`run` (``RegRowsEventHandler``)."""
        self._handlers.append(handler)

    def run(self, timeout: float | None = None) -> None:
        """Pass each event to all handlers, in their order, and acknowledge it (``TravelRowsEventHandler``).

        Args:
            timeout: the seconds without an event after which the run ends; by default, it does not end.

        Raises:
            HandlerInterrupted: a handler ends the run. The event is not acknowledged, as with any other error.
            DatabusError: the dump or the topic cannot be read.
        """
        while True:
            try:
                event = self.get_event(timeout)
            except (TimeoutError, Closed):
                return
            for handler in self._handlers:
                try:
                    handler(event.event)
                except HandlerInterrupted:
                    log.info("%s: a handler has stopped the run", event.header.position)
                    raise
            self.ack(event)

    def close(self) -> None:
        """Close the client; a :meth:`get_event` in another thread returns within a second."""
        self._closed.set()
        with self._reading:
            self._topic.close()
            if self._dump is not None:
                self._dump.close()

    # --- events ------------------------------------------------------------------------------------------------------

    def _poll(self, timeout: float) -> Event | None:
        return self._of_topic(timeout) if self._dump is None else self._of_dump(self._dump, timeout)

    def _of_dump(self, dump: DumpReader, timeout: float) -> Event | None:
        found = dump.poll(timeout)
        if found is not None:
            return self._numbered(Event(KafkaKey(self._after_dump.position, DUMP), found))
        if dump.ended:
            dump.close()
            if not dump.rows:
                log.warning(
                    "topic %s: the dump has no rows: the tables are empty, or the file no longer exists",
                    self._settings.topic,
                )
            log.info("topic %s: end of the dump, %d rows", self._settings.topic, dump.rows)
            self._after_dump = replace(self._after_dump, dump_end=dump.end)
            with self._saving:
                self._of_dump_all = self._sequence
                self._save_dump()
            self._begin(self._after_dump)
            self._dump = None  # only now: if this fails, the next call does it again
        return None

    def _begin(self, start: ClientProgress) -> None:
        """Read the topic from a place; the events before it are only examined, to find repeats."""
        self._start = start
        self._begun = False
        first = start.offset + (0 if start.inclusive else 1)
        self._acknowledged = first - 1
        for key, event in self._topic.events(max(self._topic.extent().low, first - LOOK_BACK), first):
            self._last = key.position
            # A start may lie among repeats: the events after it then are repeats, but new to this client.
            if key.position.before(start.position) or key.position == start.position:
                self._repeats.seen(key.position, event)
        if start.inclusive:
            self._repeats.forget(start.position)
        self._topic.read_from(first)
        log.info("topic %s: reading from %s (offset %d)", self._settings.topic, start.position, first)

    def _of_topic(self, timeout: float) -> Event | None:
        message = self._topic.poll(timeout)
        if message is None:
            return None
        offset = message.offset()
        assert offset is not None, "a message of a topic has an offset"
        key = message.key()
        value = message.value()
        try:
            header, event = decode_message(self._settings.topic, offset, key, value)
        except UnreadableMessage as error:
            if self._settings.unreadable == "fail":
                self._topic.read_from(offset)  # the next call fails as well, instead of omitting it
                raise
            log.warning("%s", error)
            return None
        if self._repeats.seen(header.position, event) or self._is_before_start(header, offset):
            log.debug("topic %s, offset %d: %s is a repeat", self._settings.topic, offset, header.position)
            return None
        return self._numbered(Event(header, event, offset))

    def _is_before_start(self, key: KafkaKey, offset: int) -> bool:
        """Return whether the dump already has the event; the offset in its description may be that of an earlier event.

        The dump has no event after the end that rowtide's server sends. Descending positions are those of another
        server after a fail-over, and cannot be compared with the start.
        """
        start, last, self._last = self._start, self._last, key.position
        fail_over = key.position.server != start.position.server or (last is not None and key.position.before(last))
        after_dump = start.dump_end is not None and offset >= start.dump_end
        if self._begun or not start.inclusive or fail_over or after_dump:
            self._begun = True
            return False
        self._begun = not key.position.before(start.position)
        return not self._begun

    def _numbered(self, event: Event) -> Event:
        self._sequence += 1
        return replace(event, sequence=self._sequence)

    def _save_dump(self) -> None:
        """Save that the dump is done, once it is complete and acknowledged."""
        if self._of_dump_all is not None and self._of_dump_acknowledged >= self._of_dump_all:
            save(self._settings.offset_file, self._after_dump)
            self._of_dump_all = None
