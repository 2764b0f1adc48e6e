"""Where the records of a schema history are kept: the protocol, and the form that keeps them in memory.

A store keeps texts in order and knows nothing of what they say, but that each is a JSON object. The Kafka form is in
``kafka``, the file form in ``file``; ``record`` makes and understands the texts, ``reading`` decides which count.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol, TypeVar

from rowtide.schema_history.errors import DamagedHistory, SchemaHistoryError

T = TypeVar("T")


class HistoryStoreError(SchemaHistoryError):
    """The schema history cannot be reached, read or written; the message says where and what to do."""


class TrimmedHistory(HistoryStoreError):
    """The beginning of the schema history was deleted, so structures can no longer be known from it."""


class StoredText(NamedTuple):
    """A record where it is kept.

    Attributes:
        at: its place; a number that grows from record to record.
        end: the place behind it, where the next one is looked for.
        text: what was written; it may be damaged, and bytes that are not UTF-8 are surrogates.
        lost: tells that records are missing here; then there is no text.
    """

    at: int
    end: int
    text: str
    lost: TrimmedHistory | None = None


class SchemaHistoryStore(Protocol):
    """Keeps the records of one connector's schema history, in order."""

    def append(self, text: str) -> None:
        """Add a record and wait until it is safe (unless ``buffered``).

        Args:
            text: one JSON object.

        Raises:
            HistoryStoreError: it cannot be written.
        """
        ...

    def buffered(self) -> AbstractContextManager[None]:
        """Within this block records need not be safe one by one, only at its end: for the many of a snapshot."""
        ...

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Every record from a place on, also damaged ones.

        Raises:
            HistoryStoreError: it cannot be read.
        """
        ...

    def place(self, at: int) -> str:
        """A record's place, for people."""
        ...

    def replay(self) -> Iterator[str]:
        """Every record from the first on; raises as ``replay_as``."""
        return self.replay_as(json_object)

    def replay_as(self, parse: Callable[[str], T]) -> Iterator[T]:
        """Every record from the first on, parsed; what ``parse`` cannot read is an error that names the place.

        Args:
            parse: raises ``ValueError`` (or another of ``PARSE_FAILURES``) for a text that it does not understand.

        Raises:
            TrimmedHistory: records are missing.
            DamagedHistory: a record is not what it should be; the message names its place.
            HistoryStoreError: it cannot be read.
        """
        for stored in self.texts():
            if stored.lost is not None:
                raise stored.lost
            yield parsed(stored, self, parse)

    def exists(self) -> bool:
        """Whether there is a history, that is whether anything was ever written to it.

        Raises:
            HistoryStoreError: that cannot be found out.
        """
        ...

    def close(self) -> None:
        """Let go of all resources."""
        ...


PARSE_FAILURES = (ValueError, KeyError, TypeError, DamagedHistory)
"""What a parser may raise for a damaged record."""


def json_object(text: str) -> str:
    """Return ``text`` if it is one JSON object.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(json.loads(text), dict):
        raise ValueError("a JSON object is expected")  # noqa: TRY004 - the text is wrong, not its type
    return text


def one_line(text: str) -> str:
    """The same JSON without line ends: Debezium writes a record to a topic over many lines, to a file on one."""
    if "\n" not in text and "\r" not in text:
        return text
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


def parsed(stored: StoredText, store: SchemaHistoryStore, parse: Callable[[str], T]) -> T:
    """Apply ``parse``.

    Raises:
        DamagedHistory: it fails, or there are bytes that are no text; the message names the place.
    """
    try:
        if not stored.text.isascii():
            stored.text.encode()
        return parse(stored.text)
    except PARSE_FAILURES as failure:
        raise DamagedHistory(
            f"damaged record in the schema history, {store.place(stored.at)}: {failure}. It is not skipped, for "
            "structures would be wrong from there on; rebuild the history with snapshot.mode=recovery. Record: "
            f"{stored.text[:200]!r}"
        ) from failure


class InMemorySchemaHistory(SchemaHistoryStore):
    """A history in a list, for tests: nothing survives the process."""

    def __init__(self, *texts: str) -> None:
        self.records = list(texts)

    def append(self, text: str) -> None:
        """Keep the record."""
        self.records.append(text)

    def buffered(self) -> AbstractContextManager[None]:
        """Do nothing: every record is kept at once."""
        return nullcontext()

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Every record; their places are their numbers."""
        for number, text in enumerate(self.records[start:], start):
            yield StoredText(number, number + 1, text)

    def place(self, at: int) -> str:
        """The record's number."""
        return f"record {at}"

    def exists(self) -> bool:
        """Whether there is any record."""
        return bool(self.records)

    def close(self) -> None:
        """Do nothing."""
