"""Stores of summaries: their protocol, and its implementation in files next to a history file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from rowtide.schema_history.store.history_store import HistoryStoreError
from rowtide.synced_files import write_synced

SUMMARIES_KEPT = 2
"""How many summaries are kept. The stored offset may still be after the newest one; then the older one is used."""


class SummaryStore(Protocol):
    """Stores the newest summaries of one history. A summary that was not written completely does not count."""

    def load(self) -> Iterator[bytes]:
        """Yield the complete summaries, newest first.

        Raises:
            HistoryStoreError: the summaries cannot be read.
        """
        ...

    def save(self, packed: bytes) -> None:
        """Store a new summary.

        Raises:
            HistoryStoreError: the summary cannot be written.
        """
        ...


class FileSummaries:
    """Summaries in files next to a history file: ``NAME.compact`` is the newest, ``NAME.compact.1`` the previous one.

    Args:
        name: path of the history file; ends with the connector's name if connectors share the history.
    """

    def __init__(self, name: Path) -> None:
        self._newest = name.with_name(f"{name.name}.compact")
        self._previous = name.with_name(f"{name.name}.compact.1")

    def load(self) -> Iterator[bytes]:
        """Yield the summaries, newest first."""
        for path in (self._newest, self._previous):
            try:
                yield path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as failure:
                raise HistoryStoreError(f"cannot read the compact schema history {path}: {failure}") from failure

    def save(self, packed: bytes) -> None:
        """Write a temporary file, force it to disk, and rename it; a crash leaves the previous summaries intact."""
        new = self._newest.with_name(f"{self._newest.name}.new")
        try:
            write_synced(new, packed)
            if self._newest.exists():
                self._newest.replace(self._previous)
            new.replace(self._newest)
        except OSError as failure:
            raise HistoryStoreError(f"cannot write the compact schema history {new}: {failure}") from failure
