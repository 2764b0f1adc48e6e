"""Edge: which destinations this server runs, and for how long that is certain.

::

             nobody runs it (for WAIT_S, if another one did)
    standby ────────────────────────────────────────────────► running
       ▲                                                          │
       └──────────────────────────────────────────────────────────┘
         another one runs it, or it was withdrawn, or no contact for its time-out

Without contact, ZooKeeper deletes the node ``running`` after the time-out at the earliest. No other server runs the
destination until then.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from rowtide.canal.cluster import paths
from rowtide.canal.cluster.nodes import OWN_RUNNING, Nodes
from rowtide.canal.cluster.paths import Paths
from rowtide.canal.cluster.session import RefusedError, ZooKeeperError, ZooKeeperSession

log = logging.getLogger(__name__)

WAIT_S = 5.0
"""How long a server waits after another one has ended, which may come back (Canal's ``delayTime``)."""


@dataclass(slots=True)
class _Place:
    """What is known of a destination.

    Attributes:
        nodes: of the term of this server; ``None`` if it has none.
        until: until when nobody else can run it, by the clock.
        free_from: from when on this server may begin a term, by the clock.
        taken: whether another server ran it when it was looked at last.
    """

    nodes: Nodes | None = None
    until: float = 0.0
    free_from: float = 0.0
    taken: bool = False


class Cluster:
    """This server's part in a cluster. ``poll`` and ``close`` come from one thread at a time.

    Args:
        session: with ZooKeeper.
        address: of this server, as its clients reach it.
        clock: in seconds.
    """

    def __init__(self, session: ZooKeeperSession, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._address = address
        self._clock = clock
        self._places: dict[str, _Place] = {}
        self._announced: tuple[int, set[str]] = 0, set()
        self._polling = threading.Lock()
        self._away = False

    def nodes(self, destination: str) -> Nodes | None:
        """The nodes of a destination that this server runs, for its present term; ``None`` if it does not run it."""
        place = self._places.get(destination)
        return None if place is None or self._clock() >= place.until else place.nodes

    def poll(self, destinations: Collection[str]) -> None:
        """Look at all destinations, begin terms, and prolong those that go on. To be called about once a second.

        Args:
            destinations: those that this server can run.
        """
        with self._polling:
            try:
                self._announce(destinations)
                for destination in destinations:
                    self._look(destination, self._places.setdefault(destination, _Place()))
                self._away = False
            except ZooKeeperError as error:
                if not self._away:
                    log.warning(
                        "%s. Destinations that this server runs go on for up to %.0f s", error, self._session.timeout_s
                    )
                self._away = True

    def release(self, destination: str) -> None:
        """End a term. Another server, or after a while this one, begins the next."""
        with self._polling:
            place = self._places.get(destination)
            if place is not None and place.nodes is not None:
                self._withdraw(destination, place)

    def _withdraw(self, destination: str, place: _Place) -> None:
        nodes, place.nodes = place.nodes, None
        place.until, place.free_from = 0.0, self._clock() + WAIT_S
        try:
            if nodes is not None:
                nodes.end()
        except ZooKeeperError as error:  # it ends with the session
            log.warning("destination %s: %s", destination, error)

    def _announce(self, destinations: Collection[str]) -> None:
        session = self._session.id
        known = self._announced[1] if self._announced[0] == session else set()
        wanted = {paths.server(self._address)}
        wanted |= {f"{Paths(destination).cluster}/{self._address}" for destination in destinations}
        for path in sorted(wanted - known):
            self._session.announce(path, session)
            known.add(path)
        for path in sorted(known - wanted):
            self._session.remove(path)
            known.discard(path)
        self._announced = session, known

    def _look(self, destination: str, place: _Place) -> None:
        asked = self._clock()
        session = self._session.id
        running = self._session.get(Paths(destination).running)
        if running is None:
            self._stand(destination, place, asked)
        elif running.owner != session:
            if place.nodes is not None:
                log.warning("destination %s: another server runs it: %s", destination, running.content.decode())
            place.nodes, place.until, place.taken = None, 0.0, True
        elif running.version != OWN_RUNNING:  # Canal's administration sets "active" to false
            log.warning("destination %s: %s was changed; it is withdrawn", destination, Paths(destination).running)
            self._session.remove(Paths(destination).running)
            place.nodes, place.until, place.free_from = None, 0.0, asked + WAIT_S
        elif place.nodes is not None:
            place.until = asked + self._session.timeout_s
        else:  # the answer to its creation was lost
            self._begin(destination, place, asked, running=True)

    def _stand(self, destination: str, place: _Place, now: float) -> None:
        """Nobody runs it: begin a term, unless another one comes first, which has just lost it."""
        if place.taken:
            place.taken, place.free_from = False, now + WAIT_S
        if now >= place.free_from:
            self._begin(destination, place, now, running=False)

    def _begin(self, destination: str, place: _Place, asked: float, *, running: bool) -> None:
        place.nodes, place.until = None, 0.0
        try:
            nodes = Nodes.begin(self._session, destination, self._address, running=running)
        except RefusedError:  # another one was faster
            place.taken = True
            return
        place.until, place.nodes = asked + self._session.timeout_s, nodes
        log.info("destination %s: this server runs it (%s)", destination, self._address)
