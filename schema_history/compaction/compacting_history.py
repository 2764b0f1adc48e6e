"""A history of which a summary is written after every so many records."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rowtide.schema_history.compaction.history_reader import HistoryReader, StoredHistory, read_history
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.history_store import SchemaHistoryStore, StoredText

log = logging.getLogger(__name__)


class CompactingHistory(SchemaHistoryStore):
    """The store of a history, for the time of streaming.

    A summary is never needed: if it cannot be made or written, that is logged.

    Args:
        kept: the history and its summaries.
        server: decides how statements are read.
        interval: after how many records a summary is written.
        behind: how many records there are already that are in none.
    """

    def __init__(self, kept: StoredHistory, server: Server, interval: int, behind: int = 0) -> None:
        self._kept = kept
        self._server = server
        self._interval = interval
        self._behind = behind
        self._buffering = False
        self.summarise()

    def append(self, text: str) -> None:
        """Add a record, and a summary if one is due; that takes as long as reading the records since the last one."""
        self._kept.store.append(text)
        self._behind += 1
        if not self._buffering:
            self.summarise()

    @contextmanager
    def buffered(self) -> Iterator[None]:
        """A summary is written at the end of the block at the earliest."""
        self._buffering = True
        try:
            with self._kept.store.buffered():
                yield
        finally:
            self._buffering = False
        self.summarise()

    def summarise(self) -> None:
        """Write a summary, if one is due."""
        if self._behind < self._interval:
            return
        self._behind = 0  # if it fails, it is tried again as many records later
        try:
            reading = read_history(self._kept, self._server, None)
        except SchemaHistoryError as failure:
            log.warning("no summary of the schema history is written: %s", failure)
        else:
            save_summary(self._kept, reading, 0)

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """The records."""
        return self._kept.store.texts(start)

    def place(self, at: int) -> str:
        """A record's place, for people."""
        return self._kept.store.place(at)

    def exists(self) -> bool:
        """Whether there is a history."""
        return self._kept.store.exists()

    def close(self) -> None:
        """Let go of the store."""
        self._kept.store.close()


def save_summary(kept: StoredHistory, reading: HistoryReader, interval: int) -> int:
    """Keep what was read as a summary, if one is due; returns how many of its records are in none then."""
    if kept.summaries is None or reading.behind < interval:
        return reading.behind
    try:
        packed = reading.summary()
        if packed is None:
            return reading.behind
        kept.summaries.save(packed)
    except SchemaHistoryError as failure:
        log.warning("no summary of the schema history is written: %s", failure)
        return 0
    log.info("wrote a summary of %d records of the schema history (%.1f MB)", reading.records, len(packed) / 1e6)
    return 0
