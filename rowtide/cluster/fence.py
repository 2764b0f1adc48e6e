"""Nodes that only one server changes: the one that runs something, during its term.

A change is refused if another server has run it since. Each term begins with a change of the term node, whose
version is therefore that of the term. The running node is ephemeral, and is changed once after its creation: a program
that only creates it, as Canal does, can be told from rowtide.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rowtide.cluster.session import Change, Found, RefusedError, ZooKeeperError, ZooKeeperSession

OWN_RUNNING = 1
"""The version of the running node if rowtide has created it: once changed."""


class TermEndedError(ZooKeeperError):
    """Another server runs it, or none: nothing was changed."""


@dataclass(frozen=True, slots=True)
class Contest:
    """What servers of a cluster compete for.

    Attributes:
        name: for messages, ``destination shop``.
        running: the path of the running node.
        term: the path of the term node.
    """

    name: str
    running: str
    term: str


class FencedNodes:
    """Nodes during a term of this server.

    Args:
        session: with ZooKeeper.
        contest: what this server runs.
        term: the number of the term.

    Attributes:
        term: the number of the term.
    """

    def __init__(self, session: ZooKeeperSession, contest: Contest, term: int) -> None:
        self._session = session
        self._contest = contest
        self.term = term

    def end(self) -> None:
        """End the term: another server can begin one.

        Raises:
            ZooKeeperError: no answer, or the term had ended before.
        """
        self.change([removal(self._contest.running)])

    def get(self, path: str) -> Found | None:
        """Return a node; ``None`` if it does not exist.

        Raises:
            ZooKeeperError: no answer.
        """
        return self._session.get(path)

    def children(self, path: str) -> list[str]:
        """Return the names of the nodes below a node; none if it does not exist.

        Raises:
            ZooKeeperError: no answer.
        """
        return self._session.children(path)

    def change(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none.

        Raises:
            TermEndedError: another server runs it, or none.
            RefusedError: a node is missing, or exists already.
            ZooKeeperError: no answer; the changes may be made or not.
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
        """Return a node and all below it, the deepest first; nothing if it does not exist.

        Raises:
            ZooKeeperError: no answer.
        """
        if self._session.get(path) is None:
            return []
        below = [found for name in self._session.children(path) for found in self.tree(f"{path}/{name}")]
        return [*below, path]


def begin_term(session: ZooKeeperSession, contest: Contest, address: str, content: bytes, *, running: bool) -> int:
    """Begin a term.

    Args:
        session: with ZooKeeper.
        contest: what this server is to run.
        address: of this server, the content of the term node.
        content: of the running node.
        running: whether the running node is there already, as that of this session.

    Returns:
        The number of the term.

    Raises:
        RefusedError: another server runs it.
        ZooKeeperError: no answer.
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
    """Return the change that gives a node its content.

    Args:
        path: of the node.
        content: what it is given.
        exists: whether it exists.
        version: the version that it must have; -1 for any.
    """
    if exists:
        return lambda change: change.set_data(path, content, version)
    return lambda change: change.create(path, content)


def removal(path: str) -> Change:
    """Return the change that deletes a node."""
    return lambda change: change.delete(path)
