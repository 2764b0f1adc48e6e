"""Decides when dumps are made and announced, while this server runs."""

import logging
import threading
import time
from collections.abc import Callable

from rowtide.cluster.fence import TermEndedError
from rowtide.cluster.session import ZooKeeperError
from rowtide.connector.backoff import Backoff
from rowtide.connector.errors import ConnectorError
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.databus.discovery import DumpDescriptor
from rowtide.databus.errors import DatabusError, DiscoveryError
from rowtide.databus.server.dumps.folder import DumpFolder
from rowtide.databus.server.dumps.publication import Publication, PublishedPosition
from rowtide.databus.server.dumps.source import DumpSource
from rowtide.databus.server.registration import ServerRegistration

log = logging.getLogger(__name__)

_LOOK_S = 1.0
_PUBLISHED_LOOK_S = 0.1
_FIRST_WAIT_S = 5.0
_LONGEST_WAIT_S = 300.0
_STOP_S = 10.0
"""The longest wait for the end of a dump that is being made."""
_KEPT = 2
"""How many dumps are kept: the current one, and the one that clients may have read the name of."""


class Dumping:
    """Makes a dump when this server starts running without the announced dump, and regularly after that.

    Args:
        source: makes the dumps.
        folder: the folder of the dumps.
        registration: of this server.
        interval_s: how long a dump is announced, in seconds; ``None`` forever.
        reading: returns the progress of the connector; ``None`` while it reads no stream. All later changes are
            published only once it reads a stream: clients of an earlier dump would miss some.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        source: DumpSource,
        folder: DumpFolder,
        registration: ServerRegistration,
        interval_s: float | None,
        reading: Callable[[], PublishedPosition | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._folder = folder
        self._registration = registration
        self._interval_s = interval_s
        self._reading = reading
        self._clock = clock
        self._term: int | None = None  # in which there is a dump
        self._due = 0.0  # when the next one is due in it, by the clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="databus-dumping", daemon=True)

    def start(self) -> None:
        """Make dumps in a thread. Failures are logged, and retried."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and abandon a dump that is being made."""
        self._stop.set()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        backoff = Backoff(_FIRST_WAIT_S, _LONGEST_WAIT_S)
        while not self._stop.is_set():
            try:
                self.poll()
                backoff.succeeded()
                self._stop.wait(_LOOK_S)
            except Exception as error:  # whatever it is: otherwise the thread would end unnoticed
                if self._stop.is_set():
                    return
                expected = ConnectorError, DatabaseUnreachableError, DatabusError, ZooKeeperError, OSError
                trace, wait = None if isinstance(error, expected) else error, backoff.failed()
                log.error("no dump is made: %s; retrying in %.0f s", error, wait, exc_info=trace)  # noqa: TRY400
                self._stop.wait(wait)

    def poll(self) -> None:
        """Make a dump if this server runs and one is due.

        Raises:
            ConnectorError, DatabusError: the source cannot be read.
            ZooKeeperError: ZooKeeper does not answer, or another server runs in the meantime.
            OSError: the dump cannot be written.
        """
        term = self._registration.term
        first = None if term is None else self._reading()
        if term is None or first is None:
            return
        if term != self._term:
            if self._has_announced():
                self._made(term)
                return
        elif self._clock() < self._due:
            return
        self._make(term, first)

    def _has_announced(self) -> bool:
        """Return whether the announced dump is in the folder: after a restart, or in a shared folder."""
        try:
            announced = self._registration.dump()
            found = None if announced is None else self._folder.open(announced.file)
        except (DiscoveryError, ValueError) as error:
            log.warning("%s; a new dump is made", error)
            return False
        if announced is not None and found is None:
            log.info("the dump that is announced, %s, is not on this server; a new one is made", announced.file)
        if found is not None:
            found.close()
        return found is not None

    def _make(self, term: int, first: PublishedPosition) -> None:
        begin = self._clock()
        name = self._folder.new_name()
        publication = Publication(first, self._clock)
        self._await(publication, term)
        with self._folder.writer(name) as writer, self._source.dump() as dump:
            publication.begin(dump.taken)
            for part in dump.parts:
                self._check_runs(term)
                publication.verify(self._reading())
                writer.add(part)
            self._await(publication, term)
            end = dump.end()
            self._await(publication, term)  # up to this end, all events are of the server of the dump
            writer.complete(end)
        self._registration.announce(DumpDescriptor(name, dump.position, dump.offset), term)
        log.info("dump %s is complete: %d rows in %.0f s", name, writer.rows, self._clock() - begin)
        self._made(term)
        self._folder.keep(name, _KEPT)

    def _await(self, publication: Publication, term: int) -> None:
        """Wait until all pending changes of the connector are in the topic, and the connector reads a stream."""
        while not publication.is_complete(self._reading(), self._source.connector):
            self._check_runs(term)
            self._stop.wait(_PUBLISHED_LOOK_S)

    def _check_runs(self, term: int) -> None:
        if self._stop.is_set() or self._registration.term != term:
            raise TermEndedError("this server no longer runs")

    def _made(self, term: int) -> None:
        self._term = term
        self._due = float("inf") if self._interval_s is None else self._clock() + self._interval_s
