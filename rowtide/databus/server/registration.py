"""This server in ZooKeeper: whether it is the running one, and the addresses of it and its dumps for clients.

::

    /Databus/NODENAME/TOPIC                  the dump that new clients begin with
    /Databus/KEEPALIVEPATH/TOPIC             the running server, with the time of its last write
                                /running     rowtide's own: ephemeral, while a server runs
                                /term        rowtide's own: its version is the number of terms
                                /written     rowtide's own: the parent's content, if rowtide wrote it last

The original's servers compete by the time in the keep-alive node alone. rowtide's compete by ``running``. The node
``written`` shows whether the keep-alive node is that of an original server: if so, this one stands by until the node
has not changed for a while.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from rowtide.cluster.candidate import Candidate
from rowtide.cluster.fence import Contest, FencedNodes, begin_term, put
from rowtide.cluster.session import FoundNode, RefusedError, ZooKeeperError, ZooKeeperSession
from rowtide.databus.discovery import DumpDescriptor, KeepAlive, root_path

log = logging.getLogger(__name__)

_POLL_S = 1.0
_KEEP_ALIVE_S = 20.0
"""How often the keep-alive node is written; the original writes it every 30 seconds."""


@dataclass(frozen=True, slots=True)
class ServerNodes:
    """The nodes of a topic.

    Attributes:
        root: of all nodes.
        node_name: node of the dump descriptors (``nodename``).
        keep_alive_path: node of the running servers (``keepalivepath``).
        topic: the topic.
    """

    root: str
    node_name: str
    keep_alive_path: str
    topic: str

    @property
    def dump(self) -> str:
        """The path of the dump descriptor."""
        return f"{root_path(self.root)}/{self.node_name.strip('/')}/{self.topic}"

    @property
    def keep_alive(self) -> str:
        """The path of the keep-alive node."""
        return f"{root_path(self.root)}/{self.keep_alive_path.strip('/')}/{self.topic}"

    @property
    def written(self) -> str:
        """The path of rowtide's copy of its last keep-alive."""
        return f"{self.keep_alive}/written"

    @property
    def contest(self) -> Contest:
        """The contest of the servers to run the topic."""
        return Contest(f"topic {self.topic}", f"{self.keep_alive}/running", f"{self.keep_alive}/term")


class ServerRegistration:
    """This server in ZooKeeper. Thread-safe.

    Args:
        session: the session with ZooKeeper.
        nodes: the nodes of the topic.
        host: the address of the dump server, as clients reach it.
        port: its port.
        alive_timeout_s: how long an original server counts as alive after its last keep-alive
            (``masteralive_timeout``).
        clock: returns the time in seconds.
        now: the time, in seconds since the epoch.

    Attributes:
        on_end: called in the polling thread when the term that :meth:`wait` waited for has ended.
        problem: the reason why ZooKeeper currently does not answer; ``None`` if it does.
        failures: the number of consecutive failures.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        nodes: ServerNodes,
        host: str,
        port: int,
        alive_timeout_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._session = session
        self._nodes = nodes
        self._host = host
        self._port = port
        self._alive_timeout_s = alive_timeout_s
        self._clock = clock
        self._now = now
        self._candidate: Candidate[FencedNodes] = Candidate(session, nodes.contest, self._begin, clock)
        self._kept: tuple[int, float] | None = None  # the term of the last keep-alive, and when it is due again
        self._seen: tuple[bytes, float] | None = None  # the keep-alive of an original server, and since when
        self._polling = threading.Lock()
        self.problem: str | None = None
        self.failures = 0
        self.on_end: Callable[[], None] = lambda: None
        self._running = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="databus-zookeeper", daemon=True)

    @property
    def term(self) -> int | None:
        """The term of this server; ``None`` if it is not certain that this server is the running one."""
        nodes = self._candidate.nodes
        return None if nodes is None else nodes.term

    def start(self) -> None:
        """Poll in a thread, about once a second."""
        self._thread.start()

    def stop(self) -> None:
        """End the term, and stop polling."""
        self._stop.set()
        self._thread.join()
        self.release()

    def wait(self, seconds: float) -> bool:
        """Wait until this server runs.

        Args:
            seconds: the time to wait.

        Returns:
            Whether it runs.
        """
        return self._running.wait(seconds)

    def _run(self) -> None:
        known: int | None = None
        while not self._stop.is_set():
            try:
                self.poll()
            except Exception:  # whatever it is: the thread must continue
                log.exception("the state in ZooKeeper cannot be read")
            term = self.term
            if known is not None and term != known:
                self._running.clear()
                self.on_end()
            known = term
            if term is not None:
                self._running.set()
            self._stop.wait(_POLL_S)

    def poll(self) -> None:
        """Check which server runs, begin or end a term, and keep the current one alive."""
        with self._polling:
            try:
                self._look()
                self.problem, self.failures = None, 0
            except ZooKeeperError as error:
                if self.problem is None:
                    log.warning("%s. A server that runs continues for up to %.0f s", error, self._session.timeout_s)
                self.problem, self.failures = str(error), self.failures + 1

    def release(self) -> None:
        """End the term. Another server begins the next one, or, after a while, this server does."""
        with self._polling:
            self._candidate.release()

    def dump(self) -> DumpDescriptor | None:
        """Return the dump that new clients begin with; ``None`` if there is none.

        Raises:
            ZooKeeperError: ZooKeeper does not answer.
            DiscoveryError: the node is damaged.
        """
        found = self._session.get(self._nodes.dump)
        if found is None or not found.content:
            return None
        return DumpDescriptor.decode(found.content.decode(errors="replace"), self._nodes.dump)

    def announce(self, dump: DumpDescriptor, term: int) -> None:
        """Announce a dump with which new clients begin.

        Args:
            dump: the dump.
            term: the term in which it was made.

        Raises:
            ZooKeeperError: ZooKeeper does not answer, or the term has ended.
        """
        nodes = FencedNodes(self._session, self._nodes.contest, term)
        path = self._nodes.dump
        self._session.ensure(path.rpartition("/")[0])
        nodes.change([put(path, dump.encoded().encode(), exists=self._session.get(path) is not None)])
        log.info("topic %s: new clients begin with dump %s at %s", self._nodes.topic, dump.file, dump.position)

    def _begin(self, running: bool) -> FencedNodes:
        address = f"{self._host}:{self._port}"
        contest = self._nodes.contest
        term = begin_term(self._session, contest, address, address.encode(), running=running)
        return FencedNodes(self._session, contest, term)

    def _look(self) -> None:
        alive = self._session.get(self._nodes.keep_alive)
        original = self._original(alive)
        self._candidate.look(may_begin=not original)
        nodes = self._candidate.nodes
        if nodes is None:
            self._kept = None
        elif original:
            log.warning("topic %s: an original databus server runs: %s", self._nodes.topic, self._text(alive))
            self._candidate.release()
        elif self._kept is None or self._kept[0] != nodes.term or self._clock() >= self._kept[1]:
            self._keep_alive(nodes, alive)

    def _original(self, alive: FoundNode | None) -> bool:
        """Return whether an original server is alive."""
        written = self._session.get(self._nodes.written)
        if alive is None or not alive.content or (written is not None and written.content == alive.content):
            self._seen = None
            return False
        now = self._clock()
        if self._seen is None or self._seen[0] != alive.content:
            if self._seen is None:
                log.info("topic %s: there is an original databus server: %s", self._nodes.topic, self._text(alive))
            self._seen = alive.content, now
        return now < self._seen[1] + self._alive_timeout_s

    def _keep_alive(self, nodes: FencedNodes, alive: FoundNode | None) -> None:
        """Write the keep-alive node, unless an original server has written it in the meantime."""
        content = KeepAlive(self._host, self._port, self._nodes.topic, int(self._now())).encoded().encode()
        path, written = self._nodes.keep_alive, self._nodes.written
        known = 0 if alive is None else alive.version  # if it is new, the term has created it
        exists = self._session.get(written) is not None
        now = self._clock()
        try:
            nodes.change([put(path, content, exists=True, version=known), put(written, content, exists=exists)])
        except RefusedError:
            return  # the next poll sees who it was
        self._kept = nodes.term, now + _KEEP_ALIVE_S

    @staticmethod
    def _text(alive: FoundNode | None) -> str:
        return "" if alive is None else alive.content.decode(errors="replace")
