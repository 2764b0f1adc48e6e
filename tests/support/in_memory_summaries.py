"""Summaries of a schema history in memory."""

from collections.abc import Iterator

from rowtide.schema_history.compaction.summary_store import SUMMARIES_KEPT


class InMemorySummaries:
    """Summaries in a list, for tests."""

    def __init__(self) -> None:
        self.summaries: list[bytes] = []

    def load(self) -> Iterator[bytes]:
        """Yield the summaries, newest first."""
        yield from reversed(self.summaries)

    def save(self, packed: bytes) -> None:
        """Store a summary, and drop all except the newest ``SUMMARIES_KEPT``."""
        self.summaries = [*self.summaries, packed][-SUMMARIES_KEPT:]
