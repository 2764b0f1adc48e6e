"""The nodes of a destination during a term: only the server that runs the destination changes them.

Canal does not change the node ``rowtide``, whose version is the number of the term. It creates ``running``, and does
not change it.
"""

from typing import Self

from rowtide.canal.cluster.paths import Paths, running_text
from rowtide.cluster.fence import Contest, FencedNodes, begin_term
from rowtide.cluster.session import ZooKeeperSession


class Nodes(FencedNodes):
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
