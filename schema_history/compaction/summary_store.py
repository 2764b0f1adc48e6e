"""Where the compact form of a schema history is kept: the protocol, and the form that keeps it in memory."""

from collections.abc import Iterator
from typing import Protocol

KEPT = 2
"""How many summaries are kept: the stored position may not have reached the newest one yet."""


class SummaryStore(Protocol):
    """Keeps the newest summaries of one history. One that was not written whole is as if it had not been written."""

    def load(self) -> Iterator[bytes]:
        """All that are whole, the newest first.

        Raises:
            HistoryStoreError: they cannot be read.
        """
        ...

    def save(self, packed: bytes) -> None:
        """Keep another one.

        Raises:
            HistoryStoreError: it cannot be written.
        """
        ...


class InMemorySummaries:
    """Summaries in a list, for tests."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def load(self) -> Iterator[bytes]:
        """The newest first."""
        yield from reversed(self.kept)

    def save(self, packed: bytes) -> None:
        """Keep it, and the one before."""
        self.kept = [*self.kept, packed][-KEPT:]
