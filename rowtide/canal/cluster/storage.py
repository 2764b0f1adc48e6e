"""Stores the positions of a destination's clients in ZooKeeper, in Canal's form and rowtide's own."""

from collections.abc import Mapping

from rowtide.canal.cluster.history import ZooKeeperHistory, forget
from rowtide.canal.cluster.nodes import DestinationNodes
from rowtide.canal.instance.positions import (
    CanalPosition,
    ClientPosition,
    Master,
    cursor_text,
    read_cursor,
)
from rowtide.canal.instance.storage import StoredClients
from rowtide.cluster.fence import put, removal
from rowtide.cluster.session import Change, FoundNode, ZooKeeperError
from rowtide.connector.errors import OffsetError
from rowtide.schema_history.store.history_store import SchemaHistoryStore


class ZooKeeperStorage:
    """The storage of an instance during a term of this server. Not thread-safe, except for ``history``.

    Args:
        nodes: of the destination.
    """

    def __init__(self, nodes: DestinationNodes) -> None:
        self._nodes = nodes
        self._known: dict[str, bytes] | None = None  # what the nodes have; None if it is not certain

    def load(self) -> StoredClients:
        """Return the clients."""
        try:
            found = self._read()
        except ZooKeeperError as error:
            raise OffsetError(f"the positions of clients cannot be read: {error}") from error
        return self._stored(found)

    def save(self, stored: StoredClients) -> None:
        """Store all changes, or none of them."""
        known = self._known
        if known is None:
            known = {path: node.content for path, node in self._read().items()}
        self._known = None
        wanted = self._wanted(stored)
        # The node of a client that has unsubscribed still has Canal's marks, and the client's own node, below it.
        gone = [path for path in known if path not in wanted and self._is_client(path)]
        changes: list[Change] = [removal(below) for path in gone for below in self._nodes.tree(path)]
        for path, content in wanted.items():
            if known.get(path) != content:
                changes.append(put(path, content, exists=path in known))
        self._nodes.change(changes)
        self._known = wanted

    def history(self) -> SchemaHistoryStore:
        """Return the schema history in ZooKeeper."""
        return ZooKeeperHistory(self._nodes)

    def forget_history(self) -> None:
        """Invalidate all records."""
        forget(self._nodes)

    def _read(self) -> dict[str, FoundNode]:
        """Return the existing nodes."""
        paths = self._nodes.paths
        wanted = [paths.positions, paths.parse]
        for client_id in self._client_ids():
            wanted += [paths.client(client_id), paths.filter(client_id), paths.cursor(client_id)]
        found = {path: self._nodes.get(path) for path in wanted}
        return {path: node for path, node in found.items() if node is not None}

    def _client_ids(self) -> list[int]:
        return [int(name) for name in self._nodes.children(self._nodes.paths.root) if name.isdecimal()]

    def _stored(self, found: Mapping[str, FoundNode]) -> StoredClients:
        paths = self._nodes.paths
        clients = []
        for client_id in sorted({int(path.rpartition("/")[2]) for path in found if self._is_client(path)}):
            filter_ = found.get(paths.filter(client_id))
            position = self._position(found.get(paths.cursor(client_id)), paths.cursor(client_id))
            text = "" if filter_ is None else filter_.content.decode(errors="replace")
            clients.append(ClientPosition(client_id, text, *(position or (None, None))))
        own = found.get(paths.positions)
        parse = self._position(found.get(paths.parse), paths.parse)
        return StoredClients(clients, None if own is None else own.content.decode(errors="replace"), parse)

    def _position(self, node: FoundNode | None, path: str) -> tuple[Master, CanalPosition] | None:
        if node is None or not node.content:
            return None
        try:
            return read_cursor(node.content.decode())
        except ValueError as error:
            raise OffsetError(
                f"ZooKeeper's {path} is damaged: {error}. Restore it, or delete it: reading then begins at "
                "canal.instance.master.* of instance.properties, or at the end of the binlog"
            ) from None

    def _wanted(self, stored: StoredClients) -> dict[str, bytes]:
        paths = self._nodes.paths
        wanted = {paths.positions: (stored.own or "").encode()}
        for client in stored.clients:
            wanted[paths.client(client.client_id)] = b""
            wanted[paths.filter(client.client_id)] = client.filter.encode()
            position = stored.parse  # of a client without one: Canal would begin at the current end of the binlog
            if client.master is not None and client.position is not None:
                position = client.master, client.position
            if position is not None:
                wanted[paths.cursor(client.client_id)] = cursor_text(*position, typed=True).encode()
        if stored.parse is not None:
            wanted[paths.parse] = cursor_text(*stored.parse, typed=False).encode()
        return wanted

    def _is_client(self, path: str) -> bool:
        parent, _, name = path.rpartition("/")
        return parent == self._nodes.paths.root and name.isdecimal()
