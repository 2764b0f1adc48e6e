"""The compact form of a history that is a file: files beside it. An edge: it reads and writes them."""

import os
from collections.abc import Iterator
from pathlib import Path

from rowtide.schema_history.store.history_store import HistoryStoreError


class FileSummaries:
    """``NAME.compact`` is the newest summary, ``NAME.compact.1`` the one before.

    Args:
        name: the history's file, with the connector's name if several may share it.
    """

    def __init__(self, name: Path) -> None:
        self._newest = name.with_name(f"{name.name}.compact")
        self._before = name.with_name(f"{name.name}.compact.1")

    def load(self) -> Iterator[bytes]:
        """The newest first."""
        for path in (self._newest, self._before):
            try:
                yield path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as failure:
                raise HistoryStoreError(f"cannot read the compact schema history {path}: {failure}") from failure

    def save(self, packed: bytes) -> None:
        """Write a new file, and give it the name when it is safe."""
        new = self._newest.with_name(f"{self._newest.name}.new")
        try:
            with new.open("wb") as file:
                file.write(packed)
                file.flush()
                os.fsync(file.fileno())
            if self._newest.exists():
                self._newest.replace(self._before)
            new.replace(self._newest)
        except OSError as failure:
            raise HistoryStoreError(f"cannot write the compact schema history {new}: {failure}") from failure
