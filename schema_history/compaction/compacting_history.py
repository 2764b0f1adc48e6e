"""A history store that writes a summary each time a given number of records has been added."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rowtide.schema_history.compaction.history_reader import HistoryReader, StoredHistory, read_history
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.history_store import SchemaHistoryStore, StoredText

log = logging.getLogger(__name__)


class CompactingHistory(SchemaHistoryStore):
    """The history store of a streaming connector, with summaries.

    Summaries are optional: if one cannot be built or written, a warning is logged and streaming continues.

    Args:
        history: the history and its summaries.
        server: determines how statements are parsed.
        interval: number of records between two summaries.
        unsummarised: number of records that already exist and are in no summary.
    """

    def __init__(self, history: StoredHistory, server: Server, interval: int, unsummarised: int = 0) -> None:
        self._history = history
        self._server = server
        self._interval = interval
        self._unsummarised = unsummarised
        self._buffering = False
        self.summarise()

    def append(self, text: str) -> None:
        """Add a record, and write a summary if one is due; this takes as long as reading the records since the last."""
        self._history.store.append(text)
        self._unsummarised += 1
        if not self._buffering:
            self.summarise()

    @contextmanager
    def buffered(self) -> Iterator[None]:
        """Buffer the records of the block, and write a summary at its end if one is due."""
        self._buffering = True
        try:
            with self._history.store.buffered():
                yield
        finally:
            self._buffering = False
        self.summarise()

    def summarise(self) -> None:
        """Write a summary, if one is due."""
        if self._unsummarised < self._interval:
            return
        self._unsummarised = 0  # after a failure, the next attempt comes an interval later
        try:
            reader = read_history(self._history, self._server, None)
        except SchemaHistoryError as failure:
            log.warning("no summary of the schema history is written: %s", failure)
        else:
            save_summary(self._history, reader, 0)

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Yield the records."""
        return self._history.store.texts(start)

    def describe(self, at: int) -> str:
        """Return the location of a record, for messages."""
        return self._history.store.describe(at)

    def exists(self) -> bool:
        """Return whether there is a history."""
        return self._history.store.exists()

    def close(self) -> None:
        """Close the store."""
        self._history.store.close()


def save_summary(history: StoredHistory, reader: HistoryReader, interval: int) -> int:
    """Store the records read so far as a summary, if one is due.

    Args:
        history: the history and its summaries.
        reader: the reader that has read the history.
        interval: a summary is due if this many records are in none.

    Returns:
        The number of records that are in no summary afterwards.
    """
    if history.summaries is None or reader.unsummarised < interval:
        return reader.unsummarised
    try:
        packed = reader.summary()
        if packed is None:
            return reader.unsummarised
        history.summaries.save(packed)
    except SchemaHistoryError as failure:
        log.warning("no summary of the schema history is written: %s", failure)
        return 0
    log.info("wrote a summary of %d records of the schema history (%.1f MB)", reader.records, len(packed) / 1e6)
    return 0
