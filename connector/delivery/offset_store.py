"""The protocol of offset stores, and an offset store in memory.

The key of an offset is Kafka Connect's: ``["<connector name>",{"server":"<topic.prefix>"}]``.
"""

import json
from typing import NamedTuple, Protocol

from rowtide.connector.records.offset import SourceOffset


def offset_key(name: str, prefix: str) -> bytes:
    """Return the key under which Kafka Connect stores the offset of a connector."""
    return json.dumps([name, {"server": prefix}], separators=(",", ":"), ensure_ascii=False).encode()


def is_offset_key(raw: bytes | None, name: str, prefix: str) -> bool:
    """Return whether ``raw`` is that key, regardless of the JSON formatting."""
    if raw is None:
        return False
    try:
        return bool(json.loads(raw) == [name, {"server": prefix}])
    except (ValueError, RecursionError):  # another program's key
        return False


class OffsetRecord(NamedTuple):
    """The Kafka record that stores an offset; the key determines its partition."""

    topic: str
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class OffsetStore(Protocol):
    """Stores the source offset of one connector."""

    def record(self, offset: SourceOffset | None) -> OffsetRecord | None:
        """Return the record with which a producer can store this offset itself; ``None`` if it must call ``save``."""
        ...

    def load(self) -> SourceOffset | None:
        """Return the stored offset; ``None`` if there is none.

        Raises:
            OffsetStoreError: it cannot be read, or is not a valid offset.
        """
        ...

    def save(self, offset: SourceOffset | None) -> None:
        """Store an offset, and wait until it is durable; ``None`` deletes the stored one.

        Raises:
            OffsetStoreError: it cannot be written.
        """
        ...


class InMemoryOffsetStore:
    """An offset in memory, for tests and replays; it is lost when the process ends."""

    def __init__(self) -> None:
        self.offset: SourceOffset | None = None

    def record(self, offset: SourceOffset | None) -> None:
        """Return ``None``: offsets are not stored in Kafka."""

    def load(self) -> SourceOffset | None:
        """Return the last saved offset."""
        return self.offset

    def save(self, offset: SourceOffset | None) -> None:
        """Save the offset."""
        self.offset = offset
