"""Nodes that only one server may change: the one that is running something, during its term.

A change is refused if another server has begun a term since. Each term begins with a change of the term node, whose
version is therefore that of the term. The running node is ephemeral, and is changed once after its creation: this
distinguishes rowtide from a program that only creates it, such as Canal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rowtide.cluster.session import Change, FoundNode, RefusedError, ZooKeeperError, ZooKeeperSession

OWN_RUNNING = 1
"""The version of the running node if rowtide has created it: once changed."""


class TermEndedError(ZooKeeperError):
    """Another server runs it, or none does: nothing was changed."""


@dataclass(frozen=True, slots=True)
class Contest:
    """A contest between the servers of a cluster.

    Attributes:
        name: the name for messages, such as ``destination shop``.
        running: the path of the running node.
        term: the path of the term node.
    """

    name: str
    running: str
    term: str


class FencedNodes:
    """Nodes during a term of this server.

    Every request raises :class:`ZooKeeperError` if ZooKeeper does not answer.

    Args:
        session: the session with ZooKeeper.
        contest: the contest that this server has won.
        term: the number of the term.
    """

    def __init__(self, session: ZooKeeperSession, contest: Contest, term: int) -> None:
        self._session = session
        self._contest = contest
        self.term = term

    def end(self) -> None:
        """End the term: another server can begin one.

        Raises:
            ZooKeeperError: ZooKeeper does not answer, or the term had ended before.
        """
        self.change([removal(self._contest.running)])

    def get(self, path: str) -> FoundNode | None:
        """Return a node; ``None`` if it does not exist."""
        return self._session.get(path)

    def children(self, path: str) -> list[str]:
        """Return the names of the nodes below a node; none if it does not exist."""
        return self._session.children(path)

    def change(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none.

        Raises:
            TermEndedError: another server runs it, or none does.
            RefusedError: a node is missing, or exists already.
            ZooKeeperError: ZooKeeper does not answer; the changes may or may not be made.
        """
        fences: list[Change] = [
            lambda change: change.check(self._contest.running, OWN_RUNNING),
            lambda change: change.check(self._contest.term, self.term),
        ]
        try:
            self._session.change([*fences, *changes])
        except RefusedError as error:
            if error.index < len(fences):
                raise TermEndedError(f"{self._contest.name}: this server no longer runs it; another one may") from None
            raise

    def tree(self, path: str) -> list[str]:
        """Return a node and all below it, the deepest first; nothing if it does not exist."""
        if self._session.get(path) is None:
            return []
        below = [found for name in self._session.children(path) for found in self.tree(f"{path}/{name}")]
        return [*below, path]


def begin_term(session: ZooKeeperSession, contest: Contest, address: str, content: bytes, *, running: bool) -> int:
    """Begin a term.

    Args:
        session: the session with ZooKeeper.
        contest: the contest.
        address: of this server, the content of the term node.
        content: the content of the running node.
        running: whether this session has already created the running node.

    Returns:
        The number of the term.

    Raises:
        RefusedError: another server runs it.
        ZooKeeperError: ZooKeeper does not answer.
    """
    session.ensure(contest.term)
    if running:
        first: list[Change] = [lambda change: change.check(contest.running, OWN_RUNNING)]
    else:
        first = [
            lambda change: change.create(contest.running, content, ephemeral=True),
            lambda change: change.set_data(contest.running, content),
        ]
    results = session.change([*first, lambda change: change.set_data(contest.term, address.encode())])
    return int(results[-1].version)


def put(path: str, content: bytes, *, exists: bool, version: int = -1) -> Change:
    """Return the change that sets the content of a node.

    Args:
        path: of the node.
        content: its new content.
        exists: whether the node exists.
        version: the version that it must have; -1 for any.
    """
    if exists:
        return lambda change: change.set_data(path, content, version)
    return lambda change: change.create(path, content)


def removal(path: str) -> Change:
    """Return the change that deletes a node."""
    return lambda change: change.delete(path)
