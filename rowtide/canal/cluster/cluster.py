"""Decides which destinations this server runs."""

import logging
import threading
import time
from collections.abc import Callable, Collection

from rowtide.canal.cluster.nodes import DestinationNodes, Paths, contest, server_path
from rowtide.cluster.candidate import Candidate
from rowtide.cluster.session import ZooKeeperError, ZooKeeperSession

log = logging.getLogger(__name__)


class ClusterMember:
    """This server's part in a cluster. ``poll`` and ``release`` may be called from any thread.

    Args:
        session: the session with ZooKeeper.
        address: the address at which clients reach this server.
        clock: returns the time in seconds.
    """

    def __init__(self, session: ZooKeeperSession, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._address = address
        self._clock = clock
        self._candidates: dict[str, Candidate[DestinationNodes]] = {}
        self._announced: tuple[int, set[str]] = 0, set()
        self._polling = threading.Lock()
        self._away = False

    def nodes(self, destination: str) -> DestinationNodes | None:
        """Return the nodes of a destination during the current term of this server.

        ``None`` if this server does not run the destination.
        """
        candidate = self._candidates.get(destination)
        return None if candidate is None else candidate.nodes

    def poll(self, destinations: Collection[str]) -> None:
        """Check all destinations: begin new terms and extend current ones. Call this about once a second.

        Args:
            destinations: the destinations that this server can run.
        """
        with self._polling:
            try:
                self._announce(destinations)
                for destination in destinations:
                    self._candidate(destination).look()
                self._away = False
            except ZooKeeperError as error:
                if not self._away:
                    log.warning(
                        "%s. The destinations of this server continue for up to %.0f s",
                        error,
                        self._session.timeout_s,
                    )
                self._away = True

    def release(self, destination: str) -> None:
        """End a term. Another server begins the next one, or, after a while, this server does."""
        with self._polling:
            if destination in self._candidates:
                self._candidates[destination].release()

    def _candidate(self, destination: str) -> Candidate[DestinationNodes]:
        if destination not in self._candidates:

            def begin(running: bool) -> DestinationNodes:
                return DestinationNodes.begin(self._session, destination, self._address, running=running)

            self._candidates[destination] = Candidate(self._session, contest(destination), begin, self._clock)
        return self._candidates[destination]

    def _announce(self, destinations: Collection[str]) -> None:
        session = self._session.id
        known = self._announced[1] if self._announced[0] == session else set()
        wanted = {server_path(self._address)}
        wanted |= {f"{Paths(destination).cluster}/{self._address}" for destination in destinations}
        for path in sorted(wanted - known):
            self._session.announce(path, session)
            known.add(path)
        for path in sorted(known - wanted):
            self._session.remove(path)
            known.discard(path)
        self._announced = session, known
