"""The nodes of a destination during a term: one server runs it, and only that one changes them.

A change is refused if another server has run the destination meanwhile. Of rowtide's servers, each begins its term with
a change of ``rowtide``, whose version is therefore that of the term. Canal does not change it, but creates ``running``
without changing it, which rowtide does.
"""

from collections.abc import Sequence

from rowtide.canal.cluster.paths import Paths, running_text
from rowtide.canal.cluster.session import Change, Found, RefusedError, ZooKeeperError, ZooKeeperSession

OWN_RUNNING = 1
"""The version of ``running`` if rowtide has created it: once changed. Canal's is 0."""


class TermEndedError(ZooKeeperError):
    """Another server runs the destination, or none: nothing was changed."""


class Nodes:
    """The nodes of a destination during a term of this server.

    Args:
        session: with ZooKeeper.
        destination: its name.
        term: the number of the term.

    Attributes:
        paths: of the nodes.
        term: the number of the term.
    """

    def __init__(self, session: ZooKeeperSession, destination: str, term: int) -> None:
        self._session = session
        self._destination = destination
        self.paths = Paths(destination)
        self.term = term

    @classmethod
    def begin(cls, session: ZooKeeperSession, destination: str, address: str, *, running: bool) -> "Nodes":
        """Begin a term.

        Args:
            session: with ZooKeeper.
            destination: its name.
            address: of this server.
            running: whether ``running`` is there already, as that of this session.

        Raises:
            RefusedError: another server runs it.
            ZooKeeperError: no answer.
        """
        paths, content = Paths(destination), running_text(address)
        session.ensure(paths.term)
        if running:
            first: list[Change] = [lambda change: change.check(paths.running, OWN_RUNNING)]
        else:
            first = [
                lambda change: change.create(paths.running, content, ephemeral=True),
                lambda change: change.set_data(paths.running, content),
            ]
        results = session.change([*first, lambda change: change.set_data(paths.term, address.encode())])
        return cls(session, destination, results[-1].version)

    def end(self) -> None:
        """End the term: another server can begin one.

        Raises:
            ZooKeeperError: no answer, or the term had ended before.
        """
        self.change([lambda change: change.delete(self.paths.running)])

    def get(self, path: str) -> Found | None:
        """A node; ``None`` if it does not exist.

        Raises:
            ZooKeeperError: no answer.
        """
        return self._session.get(path)

    def children(self, path: str) -> list[str]:
        """The names of the nodes below a node; none if it does not exist.

        Raises:
            ZooKeeperError: no answer.
        """
        return self._session.children(path)

    def change(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none.

        Raises:
            TermEndedError: another server runs the destination, or none.
            RefusedError: a node is missing, or exists already.
            ZooKeeperError: no answer; the changes may be made or not.
        """
        fences: list[Change] = [
            lambda change: change.check(self.paths.running, OWN_RUNNING),
            lambda change: change.check(self.paths.term, self.term),
        ]
        try:
            self._session.change([*fences, *changes])
        except RefusedError as error:
            if error.index < len(fences):
                raise TermEndedError(
                    f"destination {self._destination}: this server does not run it any more; another one may"
                ) from None
            raise

    def tree(self, path: str) -> list[str]:
        """A node and all below it, the deepest first; nothing if it does not exist.

        Raises:
            ZooKeeperError: no answer.
        """
        if self._session.get(path) is None:
            return []
        below = [found for name in self._session.children(path) for found in self.tree(f"{path}/{name}")]
        return [*below, path]


def put(path: str, content: bytes, *, exists: bool) -> Change:
    """The change that gives a node its content."""
    if exists:
        return lambda change: change.set_data(path, content)
    return lambda change: change.create(path, content)


def removal(path: str) -> Change:
    """The change that deletes a node."""
    return lambda change: change.delete(path)
