"""The position of a connector with its tables."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from rowtide.connector.delivery.errors import OffsetStoreError
from rowtide.connector.delivery.offset_store import OffsetRecord
from rowtide.connector.records.offset import SourceOffset


class TableOffsets(ABC):
    """The position of one connector, stored with its tables. A table store writes both together.

    Args:
        path: the file or the directory of the tables.
        name: the connector's name.
        prefix: its ``topic.prefix``.
        history: the file of the schema history, which must not be older than the tables; ``None`` if it is not a file.

    Attributes:
        anew: instructions for a new snapshot of everything, for the end of an error message.
    """

    anew: ClassVar[str]

    def __init__(self, path: Path, name: str, prefix: str, history: Path | None = None) -> None:
        self.path = path
        self.connector = (name, prefix)
        self._history = history

    def record(self, _offset: SourceOffset | None) -> OffsetRecord | None:
        """Return ``None``: offsets are not stored in Kafka."""
        return None

    def load(self) -> SourceOffset | None:
        """Return the stored offset, ``None`` if there is none.

        Raises:
            OffsetStoreError: it cannot be read, or the schema history is older than the tables.
        """
        stored = self._stored()
        if stored is None:
            return None
        text, length = stored
        size = self.history_bytes()
        if length is not None and size is not None and size < length:
            raise OffsetStoreError(
                f"the schema history {self._history} has {size} bytes, but the tables in {self.path} were written "
                f"with {length} bytes of it: it is lost or from an older backup. Restore it, or {self.anew}"
            )
        try:
            return SourceOffset.from_json(text)
        except ValueError as error:
            raise OffsetStoreError(f"{self.path}: the stored offset cannot be read: {error}") from error

    @abstractmethod
    def save(self, offset: SourceOffset | None) -> None:
        """Store an offset without rows; ``None`` deletes the stored one.

        Raises:
            OffsetStoreError: it cannot be written.
        """

    @abstractmethod
    def _stored(self) -> tuple[str, int | None] | None:
        """Return the stored offset as JSON, and the length of the schema history with it."""

    def history_bytes(self) -> int | None:
        """Return the length of the schema history, if it is a file."""
        try:
            return None if self._history is None else self._history.stat().st_size
        except FileNotFoundError:
            return 0
