"""Where source offsets are kept: the protocol, in memory, and as a JSON file.

The key of an offset is Kafka Connect's: ``["<connector name>",{"server":"<topic.prefix>"}]``. An edge: it
reads and writes a file. The offsets topic is in ``kafka_offset_store``.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rowtide.connector.delivery_errors import OffsetStoreError
from rowtide.connector.offset import SourceOffset

_JAVA_SERIALIZED = b"\xac\xed"


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


class FileOffsetStore:
    """Offsets in one JSON file (``offset.storage.file.filename``): an object of keys and offsets, replaced as a whole.

    Kafka Connect's standalone mode writes Java's serialisation into such a file; that is refused, not overwritten.
    """

    def __init__(self, path: Path, name: str, prefix: str) -> None:
        self._path = path
        self._key = offset_key(name, prefix).decode()

    def record(self, offset: SourceOffset | None) -> None:
        """Offsets are not kept in Kafka."""

    def load(self) -> SourceOffset | None:
        """The stored offset, ``None`` if the file does not exist or has none under our key."""
        fields = self._read().get(self._key)
        if fields is None:
            return None
        try:
            return SourceOffset.from_map(fields)
        except (ValueError, AttributeError) as failure:
            raise OffsetStoreError(f"offset file {self._path}: {failure}") from failure

    def save(self, offset: SourceOffset | None) -> None:
        """Write the file anew beside the old one, then put it in its place."""
        offsets = self._read()
        offsets.pop(self._key, None)
        if offset is not None:
            offsets[self._key] = offset.to_map()
        beside = self._path.with_name(self._path.name + ".new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                json.dump(offsets, file, ensure_ascii=False, indent=1)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as failure:
            raise OffsetStoreError(f"cannot write offset file {self._path}: {failure}") from failure

    def _read(self) -> dict[str, Any]:
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as failure:
            raise OffsetStoreError(f"cannot read offset file {self._path}: {failure}") from failure
        if raw.startswith(_JAVA_SERIALIZED):
            raise OffsetStoreError(
                f"offset file {self._path} was written by Kafka Connect in Java's serialisation, which is not read "
                "here: name another file in offset.storage.file.filename, or use an offsets topic"
            )
        try:
            offsets = json.loads(raw or b"{}")
        except ValueError as failure:
            raise OffsetStoreError(f"offset file {self._path} is damaged: {failure}") from failure
        if not isinstance(offsets, dict):
            raise OffsetStoreError(f"offset file {self._path} is damaged: a JSON object is expected")
        return offsets
