"""Where source offsets are kept: the protocol, and the form that keeps them in memory.

The key of an offset is Kafka Connect's: ``["<connector name>",{"server":"<topic.prefix>"}]``. The offsets topic is in
``kafka_offset_store``.
"""

import json
from typing import NamedTuple, Protocol

from rowtide.connector.records.offset import SourceOffset


def offset_key(name: str, prefix: str) -> bytes:
    """The key under which Kafka Connect keeps the offset of connector ``name`` with ``topic.prefix`` ``prefix``."""
    return json.dumps([name, {"server": prefix}], separators=(",", ":"), ensure_ascii=False).encode()


def is_offset_key(raw: bytes | None, name: str, prefix: str) -> bool:
    """Whether ``raw`` is that key, in any spelling of its JSON."""
    if raw is None:
        return False
    try:
        return bool(json.loads(raw) == [name, {"server": prefix}])
    except ValueError:  # another program's key
        return False


class OffsetRecord(NamedTuple):
    """The Kafka record that stores an offset; its partition is left to the key."""

    topic: str
    key: bytes
    value: bytes | None


class OffsetStore(Protocol):
    """Keeps the source offset of one connector."""

    def record(self, offset: SourceOffset | None) -> OffsetRecord | None:
        """What a producer of records must send to store this offset itself, ``None`` if it must call ``save``."""
        ...

    def load(self) -> SourceOffset | None:
        """The stored offset, ``None`` if there is none.

        Raises:
            OffsetStoreError: it cannot be read, or what is stored is no offset.
        """
        ...

    def save(self, offset: SourceOffset | None) -> None:
        """Store an offset and wait until it is safe; ``None`` deletes the stored one.

        Raises:
            OffsetStoreError: it cannot be written.
        """
        ...


class InMemoryOffsetStore:
    """Offsets in memory, for tests and for a replay: nothing survives the process."""

    def __init__(self, offset: SourceOffset | None = None) -> None:
        self.offset = offset

    def record(self, offset: SourceOffset | None) -> None:
        """Offsets are not kept in Kafka."""

    def load(self) -> SourceOffset | None:
        """The offset that was saved last."""
        return self.offset

    def save(self, offset: SourceOffset | None) -> None:
        """Keep the offset."""
        self.offset = offset
