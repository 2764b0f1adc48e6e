"""Reads the nodes of databus in ZooKeeper, for clients."""

import logging
from collections.abc import Sequence
from typing import Self

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from rowtide.databus.discovery import root_path
from rowtide.databus.errors import DiscoveryError

log = logging.getLogger(__name__)

_SESSION_S = 5.0
_CONNECT_S = 10.0


class DatabusNodes:
    """The nodes below a root (``ZkConn`` of the original).

    Args:
        servers: the ZooKeeper servers, ``host:port``.
        root: the root; it is created if it is missing.

    Raises:
        DiscoveryError: ZooKeeper cannot be reached.
    """

    def __init__(self, servers: Sequence[str], root: str) -> None:
        self._root = root_path(root)
        self._servers = ",".join(servers)
        logging.getLogger("kazoo.client").setLevel(logging.WARNING)
        self._client = KazooClient(self._servers, timeout=_SESSION_S)
        try:
            self._client.start(_CONNECT_S)
            self._client.ensure_path(self._root or "/")
        except (KazooException, KazooTimeoutError) as error:
            self.close()
            raise self._unreachable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def path(self, node: str) -> str:
        """Return the full path of a node."""
        return f"{self._root}/{node.strip('/')}"

    def get(self, node: str) -> str | None:
        """Return the content of a node; ``None`` if it does not exist.

        Raises:
            DiscoveryError: ZooKeeper does not answer.
        """
        try:
            data, _ = self._client.get(self.path(node))
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as error:
            raise self._unreachable(error) from error
        return (data or b"").decode(errors="replace")

    def close(self) -> None:
        """End the session."""
        self._client.stop()
        self._client.close()

    def _unreachable(self, error: BaseException) -> DiscoveryError:
        reason = str(error) or type(error).__name__
        return DiscoveryError(
            f"ZooKeeper at {self._servers} does not answer: {reason}. Check zkpath, and that it is running"
        )
