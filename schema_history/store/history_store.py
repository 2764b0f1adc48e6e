"""The protocol of a schema history store, and its implementation in memory.

A store keeps texts in order; each is a JSON object. ``kafka`` and ``file`` are the other implementations,
``history_record`` formats and parses the texts, and ``compaction.history_reader`` selects the records that count.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from rowtide.schema_history.errors import DamagedHistory, SchemaHistoryError

T = TypeVar("T")


class HistoryStoreError(SchemaHistoryError):
    """The schema history cannot be reached, read or written; the message says where, and what to do.

    Attributes:
        retriable: whether a later attempt may succeed without any other change.
    """

    retriable: ClassVar[bool] = True


class UnusableHistory(HistoryStoreError):
    """The schema history cannot be used until it, a setting or a permission is repaired."""

    retriable = False


class TrimmedHistory(UnusableHistory):
    """Records of the schema history were deleted, so structures can no longer be recovered from it."""


class StoredText(NamedTuple):
    """A record in a store.

    Attributes:
        at: its location; a number that grows from record to record.
        end: the location after it, from which the next record is read.
        text: its text, possibly damaged; bytes that are not UTF-8 are surrogates.
        lost: the error if records are missing here; then there is no text.
    """

    at: int
    end: int
    text: str
    lost: TrimmedHistory | None = None


class SchemaHistoryStore(Protocol):
    """Stores the records of a schema history, in order."""

    def append(self, text: str) -> None:
        """Add a record and wait until it is stored durably (unless ``buffered``).

        Args:
            text: one JSON object.

        Raises:
            HistoryStoreError: it cannot be written.
        """
        ...

    def buffered(self) -> AbstractContextManager[None]:
        """Wait for durable storage only at the end of the block, for the many records of a snapshot."""
        ...

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Yield every record from a location, including damaged ones.

        Raises:
            HistoryStoreError: it cannot be read.
        """
        ...

    def describe(self, at: int) -> str:
        """Return the location of a record, for messages."""
        ...

    def replay(self, parse: Callable[[str], T]) -> Iterator[T]:
        """Parse every record and yield the results.

        Args:
            parse: parses a text; raises ``ValueError``, or another of ``PARSE_FAILURES``, if it is damaged.

        Raises:
            TrimmedHistory: records are missing.
            DamagedHistory: a record is damaged; the message names its location.
            HistoryStoreError: it cannot be read.
        """
        for stored in self.texts():
            if stored.lost is not None:
                raise stored.lost
            yield parsed(stored, self, parse)

    def exists(self) -> bool:
        """Return whether a history exists, that is, whether anything was ever written to it.

        Raises:
            HistoryStoreError: the store cannot be reached.
        """
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


PARSE_FAILURES = (ValueError, KeyError, TypeError, RecursionError, DamagedHistory)
"""The exceptions that a parser may raise for a damaged record."""


def json_object(text: str) -> str:
    """Return ``text`` if it is one JSON object.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(json.loads(text), dict):
        raise ValueError("a JSON object is expected")  # noqa: TRY004 - the text is wrong, not its type
    return text


def one_line(text: str) -> str:
    """Return the same JSON on one line.

    Debezium writes a record on many lines to a topic, and on one line to a file.
    """
    if "\n" not in text and "\r" not in text:
        return text
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


def parsed(stored: StoredText, store: SchemaHistoryStore, parse: Callable[[str], T]) -> T:
    """Parse a stored record.

    Raises:
        DamagedHistory: ``parse`` fails, or the text is not UTF-8; the message names the location.
    """
    try:
        if not stored.text.isascii():
            stored.text.encode()
        return parse(stored.text)
    except PARSE_FAILURES as failure:
        raise DamagedHistory(
            f"damaged record in the schema history, {store.describe(stored.at)}: {failure}. It is not skipped, because "
            "all structures after it could be wrong; rebuild the history with snapshot.mode=recovery"
        ) from failure


class InMemorySchemaHistory(SchemaHistoryStore):
    """A history in a list, which is lost when the process ends."""

    def __init__(self, *texts: str) -> None:
        self.records = list(texts)

    def append(self, text: str) -> None:
        """Add a record."""
        self.records.append(text)

    def buffered(self) -> AbstractContextManager[None]:
        """Do nothing: there is nothing to buffer."""
        return nullcontext()

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Yield every record; its location is its number."""
        for number, text in enumerate(self.records[start:], start):
            yield StoredText(number, number + 1, text)

    def describe(self, at: int) -> str:
        """Return the number of the record."""
        return f"record {at}"

    def exists(self) -> bool:
        """Return whether there is any record."""
        return bool(self.records)

    def close(self) -> None:
        """Do nothing."""
