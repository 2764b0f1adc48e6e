"""Decides when this server starts and stops running something, and for how long that is certain.

::

             no server runs it (for WAIT_S, if another one did)
    standby ────────────────────────────────────────────────► running
       ▲                                                          │
       └──────────────────────────────────────────────────────────┘
         another one runs it, or it was withdrawn, or no contact for the time-out

Without contact, ZooKeeper deletes the running node after the time-out at the earliest. No other server begins earlier.
"""

import logging
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from rowtide.cluster.fence import OWN_RUNNING, Contest, FencedNodes
from rowtide.cluster.session import RefusedError, ZooKeeperError, ZooKeeperSession

log = logging.getLogger(__name__)

WAIT_S = 5.0
"""How long a server waits after another one has ended, because that one may return (Canal's ``delayTime``)."""

N = TypeVar("N", bound=FencedNodes)


class Candidate(Generic[N]):
    """This server in a contest. ``nodes`` may be read from any thread; the rest is for one thread at a time.

    Args:
        session: the session with ZooKeeper.
        contest: the contest that it takes part in.
        begin: begins a term. Its argument says whether this session has already created the running node.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        contest: Contest,
        begin: Callable[[bool], N],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._contest = contest
        self._begin_term = begin
        self._clock = clock
        self._nodes: N | None = None
        self._until = 0.0  # until when no other server can run it, by the clock
        self._free_from = 0.0  # from when on this server may begin a term
        self._taken = False  # whether another server ran it at the last look

    @property
    def nodes(self) -> N | None:
        """The nodes for the current term of this server; ``None`` if it is not certain that it has one."""
        nodes = self._nodes
        return None if self._clock() >= self._until else nodes

    def look(self, *, may_begin: bool = True) -> None:
        """Check which server runs it, and begin a term or extend the current one. Call this about once a second.

        Args:
            may_begin: whether this server begins a term if no server runs it.

        Raises:
            ZooKeeperError: ZooKeeper does not answer.
        """
        asked = self._clock()
        session = self._session.id
        running = self._session.get(self._contest.running)
        if running is None:
            self._stand(asked, may_begin=may_begin)
        elif running.owner != session:
            if self._nodes is not None:
                log.warning("%s: another server runs it: %s", self._contest.name, running.content.decode())
            self._lose()
            self._taken = True
        elif running.version != OWN_RUNNING:  # Canal's administration sets "active" to false
            log.warning("%s: %s was changed; it is withdrawn", self._contest.name, self._contest.running)
            self._session.remove(self._contest.running)
            self._lose()
            self._free_from = asked + WAIT_S
        elif self._nodes is not None:
            self._until = asked + self._session.timeout_s
        else:  # the answer to its creation was lost
            self._begin(asked, running=True)

    def release(self) -> None:
        """End the term, if there is one. Another server begins the next one, or, after a while, this server does."""
        nodes = self._nodes
        if nodes is None:
            return
        self._lose()
        self._free_from = self._clock() + WAIT_S
        try:
            nodes.end()
        except ZooKeeperError as error:  # it ends with the session
            log.warning("%s: %s", self._contest.name, error)

    def _lose(self) -> None:
        self._until, self._nodes = 0.0, None

    def _stand(self, now: float, *, may_begin: bool) -> None:
        """Begin a term, because no server runs it, unless a server that has just lost it comes first."""
        if self._taken:
            self._taken, self._free_from = False, now + WAIT_S
        if may_begin and now >= self._free_from:
            self._begin(now, running=False)
        else:
            self._lose()

    def _begin(self, asked: float, *, running: bool) -> None:
        self._lose()
        try:
            nodes = self._begin_term(running)
        except RefusedError:  # another one was faster
            self._taken = True
            return
        self._until, self._nodes = asked + self._session.timeout_s, nodes
        log.info("%s: this server runs it", self._contest.name)
