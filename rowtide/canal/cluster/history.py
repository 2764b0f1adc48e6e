"""The schema history of a destination in ZooKeeper, where every server that takes over finds it.

Records are stored in parts, each of which is a node with compressed lines. ``history`` has the number of parts that
count; those of a snapshot count when it is complete.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from rowtide.canal.cluster.nodes import DestinationNodes
from rowtide.cluster.fence import put
from rowtide.cluster.session import ZooKeeperError
from rowtide.schema_history.store.history_store import (
    HistoryStoreError,
    SchemaHistoryStore,
    StoredText,
    UnusableHistory,
    one_line,
)

_PART = 1 << 16
"""The size of a part, uncompressed, in bytes."""
_LARGEST = 1_000_000
"""The largest content of a node in ZooKeeper, in bytes (``jute.maxbuffer``)."""


class ZooKeeperHistory(SchemaHistoryStore):
    """The schema history of a destination; the location of a record is its number.

    Args:
        nodes: of the destination.
    """

    def __init__(self, nodes: DestinationNodes) -> None:
        self._nodes = nodes
        self._left: list[str] | None = None  # in a buffered block

    def append(self, text: str) -> None:
        """Add a record (at the end of the block if ``buffered``)."""
        if self._left is not None:
            self._left.append(one_line(text))
        else:
            self._append([one_line(text)])

    @contextmanager
    def buffered(self) -> Iterator[None]:
        """Write records at the end of the block, and none if the block fails."""
        self._left = []
        try:
            yield
            self._append(self._left)
        finally:
            self._left = None

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Yield every record."""
        number = 0
        for part in range(self._count()):
            for text in self._lines(part):
                if number >= start:
                    yield StoredText(number, number + 1, text)
                number += 1

    def describe(self, at: int) -> str:
        """Return the path of the history and the number of the record."""
        return f"ZooKeeper's {self._nodes.paths.history}, record {at + 1}"

    def exists(self) -> bool:
        """Return whether there is any record."""
        return self._count() > 0

    def close(self) -> None:
        """Do nothing: the session is that of the server."""

    def _append(self, texts: list[str]) -> None:
        if not texts:
            return
        try:
            count = self._count()
            last = self._lines(count - 1) if count else []
            if count and len("\n".join(last + texts).encode()) <= _PART:
                parts, at = [last + texts], count - 1
            else:
                parts, at = _parts(texts), count
            for part, lines in enumerate(parts, at):  # they count when all of them are written
                complete = part == at + len(parts) - 1
                self._write(part, lines, part + 1 if complete else None)
        except ZooKeeperError as error:
            raise HistoryStoreError(f"cannot write the schema history: {error}") from error

    def _write(self, part: int, lines: list[str], count: int | None) -> None:
        content = zlib.compress("\n".join(lines).encode())
        if len(content) > _LARGEST:
            raise UnusableHistory(
                f"a record of the schema history is too large for ZooKeeper: {len(content)} bytes, compressed. "
                "Leave canal.zkServers empty, or exclude its tables (canal.instance.filter.black.regex)"
            )
        root = self._nodes.paths.history
        counted = self._nodes.get(root) is not None
        if not counted:
            self._nodes.change([put(root, b"0", exists=False)])
        path = self._part(part)
        changes = [put(path, content, exists=self._nodes.get(path) is not None)]
        if count is not None:
            changes.append(put(root, str(count).encode(), exists=True))
        self._nodes.change(changes)

    def _count(self) -> int:
        return int(self._read(self._nodes.paths.history) or b"0")

    def _lines(self, part: int) -> list[str]:
        content = self._read(self._part(part))
        try:
            return zlib.decompress(content or b"").decode().split("\n")
        except (zlib.error, UnicodeDecodeError):
            raise UnusableHistory(
                f"the schema history is damaged: ZooKeeper's {self._part(part)}. Stop all servers and delete "
                f"{self._nodes.paths.history} with all below it: a history then begins with the current structures"
            ) from None

    def _read(self, path: str) -> bytes | None:
        try:
            found = self._nodes.get(path)
        except ZooKeeperError as error:
            raise HistoryStoreError(f"cannot read the schema history: {error}") from error
        return None if found is None else found.content

    def _part(self, number: int) -> str:
        return f"{self._nodes.paths.history}/{number:010}"


def forget(nodes: DestinationNodes) -> None:
    """Invalidate all records.

    Raises:
        ZooKeeperError: ZooKeeper does not answer.
    """
    if nodes.get(nodes.paths.history) is not None:
        nodes.change([put(nodes.paths.history, b"0", exists=True)])


def _parts(texts: list[str]) -> list[list[str]]:
    """Divide the records into parts. A record that is larger than a part has its own."""
    parts: list[list[str]] = [[]]
    size = 0
    for text in texts:
        length = len(text.encode()) + 1
        if parts[-1] and size + length > _PART:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += length
    return parts
