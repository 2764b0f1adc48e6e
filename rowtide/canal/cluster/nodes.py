"""Canal's nodes in ZooKeeper: their paths, and the nodes of a destination during a term.

::

    /otter/canal/cluster/ADDRESS                            a server
    /otter/canal/destinations/D/cluster/ADDRESS             a server that can run the destination
                               /running                     the one that runs it
                               /parse                       where reading resumes without positions of clients
                               /CLIENT/filter
                               /CLIENT/cursor               the last position that the client acknowledged
                               /rowtide                     rowtide's own: its version is the number of terms
                               /rowtide/positions
                               /rowtide/history/NUMBER

Only the server that runs a destination changes its nodes. Canal does not change the node ``rowtide``, whose version is
the number of the term. It creates ``running``, and does not change it.
"""

import json
from typing import Self

from rowtide.cluster.fence import Contest, FencedNodes, begin_term
from rowtide.cluster.session import ZooKeeperSession

_ROOT = "/otter/canal"


def server_path(address: str) -> str:
    """Return the node of a server."""
    return f"{_ROOT}/cluster/{address}"


class Paths:
    """The nodes of a destination.

    Args:
        destination: its name.

    Attributes:
        root: the parent of all.
        cluster: the parent of the servers that can run it.
        running: the server that runs it.
        parse: where reading resumes without positions of clients.
        term: rowtide's own node.
        positions: rowtide's own positions.
        history: the parent of the schema history.
    """

    def __init__(self, destination: str) -> None:
        self.root = f"{_ROOT}/destinations/{destination}"
        self.cluster = f"{self.root}/cluster"
        self.running = f"{self.root}/running"
        self.parse = f"{self.root}/parse"
        self.term = f"{self.root}/rowtide"
        self.positions = f"{self.term}/positions"
        self.history = f"{self.term}/history"

    def client(self, client_id: int) -> str:
        """Return the node of a client."""
        return f"{self.root}/{client_id}"

    def filter(self, client_id: int) -> str:
        """Return the filter of a client's subscription."""
        return f"{self.root}/{client_id}/filter"

    def cursor(self, client_id: int) -> str:
        """Return the position of a client."""
        return f"{self.root}/{client_id}/cursor"


def running_text(address: str) -> bytes:
    """Return the content of the node of the running server (``ServerRunningData``)."""
    return json.dumps({"active": True, "address": address}, separators=(",", ":")).encode()


class DestinationNodes(FencedNodes):
    """The nodes of a destination during a term of this server.

    Args:
        session: the session with ZooKeeper.
        destination: its name.
        term: the number of the term.

    Attributes:
        paths: of the nodes.
    """

    def __init__(self, session: ZooKeeperSession, destination: str, term: int) -> None:
        super().__init__(session, contest(destination), term)
        self.paths = Paths(destination)

    @classmethod
    def begin(cls, session: ZooKeeperSession, destination: str, address: str, *, running: bool) -> Self:
        """Begin a term.

        Args:
            session: the session with ZooKeeper.
            destination: its name.
            address: of this server.
            running: whether this session has already created ``running``.

        Raises:
            RefusedError: another server runs it.
            ZooKeeperError: ZooKeeper does not answer.
        """
        term = begin_term(session, contest(destination), address, running_text(address), running=running)
        return cls(session, destination, term)


def contest(destination: str) -> Contest:
    """Return the contest of the servers that can run a destination."""
    paths = Paths(destination)
    return Contest(f"destination {destination}", paths.running, paths.term)
