"""Canal's nodes in ZooKeeper: their paths, and the contents of those that announce a server.

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
"""

import json

_ROOT = "/otter/canal"


def server(address: str) -> str:
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
