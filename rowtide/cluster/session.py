"""The session of a server with ZooKeeper. No request waits longer than a few seconds."""

import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

SESSION_S = 8.0
"""The session timeout, in seconds; the servers of ZooKeeper must allow it (``maxSessionTimeout``)."""

_REQUEST_S = 3.0
_RETRY_S = 2

T = TypeVar("T")
Change = Callable[[TransactionRequest], None]


class ZooKeeperError(ConnectionError):
    """ZooKeeper does not answer; the changes may or may not have been written."""


class RefusedError(ZooKeeperError):
    """A transaction was refused as a whole: a node is missing, exists already, or has a different version.

    Attributes:
        index: the change that was refused.
    """

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"ZooKeeper refuses a change: {reason}")
        self.index = index


class FoundNode(NamedTuple):
    """A node.

    Attributes:
        content: its content.
        version: the number of changes since it was created.
        owner: the session whose end deletes it; 0 if it is persistent.
    """

    content: bytes
    version: int
    owner: int


def own_host(servers: str) -> str:
    """Return the address of this host in the network of ZooKeeper.

    Args:
        servers: the ZooKeeper servers, as for ``ZooKeeperSession``.

    Raises:
        OSError: there is no route to it.
    """
    host, _, port = servers.partition("/")[0].split(",")[0].rpartition(":")
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)  # of UDP: nothing is sent
        return str(probe.getsockname()[0])


class ZooKeeperSession:
    """A session, which is renewed when it expires. Thread-safe.

    Every request raises :class:`ZooKeeperError` if ZooKeeper does not answer.

    Args:
        servers: the ZooKeeper servers: ``host:port`` separated by commas, with an optional root at the end.
        setting: the setting with the servers, for messages.

    Attributes:
        timeout_s: the time without contact after which its ephemeral nodes are deleted, in seconds.
    """

    def __init__(self, servers: str, setting: str) -> None:
        self.timeout_s = SESSION_S
        self._servers = servers
        self._setting = setting
        logging.getLogger("kazoo.client").setLevel(logging.ERROR)
        retry = KazooRetry(max_tries=-1, max_delay=_RETRY_S)
        self._client = KazooClient(servers, timeout=self.timeout_s, connection_retry=retry)

    def start(self) -> None:
        """Connect; if that takes long, it continues in a thread."""
        self._client.start_async().wait(_REQUEST_S)

    def close(self) -> None:
        """End the session; its ephemeral nodes vanish."""
        self._client.stop()
        self._client.close()

    @property
    def id(self) -> int:
        """The id of the current session.

        Raises:
            ZooKeeperError: there is no connection.
        """
        found = self._client.client_id
        if not self._client.connected or found is None:
            raise self._away()
        return int(found[0])

    def get(self, path: str) -> FoundNode | None:
        """Return a node; ``None`` if it does not exist."""
        try:
            content, stat = self._answer(lambda: self._client.get_async(path))
        except NoNodeError:
            return None
        return FoundNode(content or b"", stat.version, stat.ephemeralOwner)

    def children(self, path: str) -> list[str]:
        """Return the names of the nodes below a node; none if it does not exist."""
        try:
            found: list[str] = self._answer(lambda: self._client.get_children_async(path))
        except NoNodeError:
            return []
        return sorted(found)

    def ensure(self, path: str) -> None:
        """Create a node, and those above it, if they are missing."""
        self._answer(lambda: self._client.ensure_path_async(path))

    def announce(self, path: str, session: int) -> None:
        """Create an ephemeral node; one of another session that has not expired yet is replaced.

        Raises:
            ZooKeeperError: ZooKeeper does not answer, or another server announces the same.
        """
        known = self.get(path)
        if known is not None and known.owner == session:
            return
        try:
            if known is not None:
                self._answer(lambda: self._client.delete_async(path, known.version))
            self._answer(lambda: self._client.create_async(path, b"", ephemeral=True, makepath=True))
        except (NodeExistsError, NoNodeError) as error:
            raise ZooKeeperError(f"node {path} is being changed by another program") from error

    def remove(self, path: str) -> None:
        """Delete a node, if it exists."""
        with suppress(NoNodeError):
            self._answer(lambda: self._client.delete_async(path))

    def change(self, changes: Sequence[Change]) -> list[Any]:
        """Make all changes, or none.

        Returns:
            The result of each.

        Raises:
            RefusedError: none was made.
            ZooKeeperError: ZooKeeper does not answer.
        """
        request = self._client.transaction()
        for change in changes:
            change(request)
        results: list[Any] = self._answer(request.commit_async)
        for index, result in enumerate(results):
            if isinstance(result, Exception) and not isinstance(result, RolledBackError | RuntimeInconsistency):
                raise RefusedError(index, type(result).__name__)
        return results

    def _answer(self, ask: Callable[[], Any]) -> Any:
        if not self._client.connected:
            raise self._away()
        try:
            return ask().get(timeout=_REQUEST_S)
        except (NodeExistsError, NoNodeError):
            raise
        except (KazooException, KazooTimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ZooKeeperError(f"ZooKeeper at {self._servers} does not answer: {reason}") from error

    def _away(self) -> ZooKeeperError:
        return ZooKeeperError(f"no connection to ZooKeeper at {self._servers} ({self._setting})")
