"""Counts the events of a transaction, for transaction metadata (``provide.transaction.metadata``)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.batch import Message
from rowtide.connector.records.offset import java_hash_map_order
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.converters.json import json_message
from rowtide.envelope.transaction import KEY_SCHEMA, VALUE_SCHEMA, begin_value, block_text, end_value

BOUNDARY_SCHEMAS = KEY_SCHEMA, VALUE_SCHEMA
"""The schemas of the records at the beginning and the end of a transaction."""

_ORDER = "transaction_data_collection_order_"

MonitorState = tuple[str | None, Mapping[str, int], Sequence[tuple[str, int]], int, Mapping[str, Any]]
"""The state of a :class:`TransactionMonitor`."""


class _OffsetFields(Mapping[str, Any]):
    """The fields of one offset, made when they are read.

    Each offset has a field for every table of the transaction, and most offsets are never stored.

    Args:
        transaction_id: the transaction's id.
        counts: records by table, some records before.
        changes: the counts since then, in order; there may be more now.
        size: how many of the changes precede the offset.
    """

    __slots__ = ("_changes", "_counts", "_id", "_made", "_size")

    def __init__(
        self, transaction_id: str, counts: Mapping[str, int], changes: Sequence[tuple[str, int]], size: int
    ) -> None:
        self._id, self._counts, self._changes, self._size = transaction_id, counts, changes, size
        self._made: dict[str, Any] | None = None

    def _fields(self) -> dict[str, Any]:
        if self._made is None:
            counts = {**self._counts, **dict(self._changes[: self._size])}
            self._made = {"transaction_id": self._id, **{f"{_ORDER}{name}": count for name, count in counts.items()}}
        return self._made

    def __getitem__(self, name: str) -> Any:
        return self._fields()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields())

    def __len__(self) -> int:
        return len(self._fields())


class TransactionMonitor:
    """The id of the current transaction, and the number of records of each table in it.

    Args:
        restored: the transaction fields of the start position, if it is inside a transaction.

    Attributes:
        id: of the transaction, ``None`` outside of one.
    """

    def __init__(self, restored: Mapping[str, Any] | None) -> None:
        self.id: str | None = None
        self._counts: dict[str, int] = {}
        self._total = 0
        # The counts that offsets share, and the changes of them since then: neither is changed in place, only extended.
        self._base: dict[str, int] = {}
        self._changes: list[tuple[str, int]] = []
        # Counts of a transaction that a stop has cut; they apply if the stream reaches it again.
        self._restored = dict(restored or {})

    def begin(self, transaction_id: str) -> bool:
        """Begin a transaction; returns false for the rest of one that a stop has cut."""
        self.id = transaction_id
        resumed = self._restored.get("transaction_id") == transaction_id
        orders = ((name, count) for name, count in self._restored.items() if resumed and name.startswith(_ORDER))
        self._set({name.removeprefix(_ORDER): int(count) for name, count in orders})
        self._restored = {}
        return not resumed

    def end(self) -> None:
        """End the transaction."""
        self._set({})
        self.id = None

    @property
    def counts(self) -> Mapping[str, int]:
        """Records so far by ``db.table``, in the order of Debezium's map."""
        return java_hash_map_order(self._counts)

    def blocks(self, collection: str, number: int) -> list[str]:
        """Return the ``transaction`` fields of the next records of a table; only within a transaction."""
        assert self.id is not None
        total, order = self._total, self._counts.get(collection, 0)
        self._add(collection, number)
        return [block_text(self.id, total + place, order + place) for place in range(1, number + 1)]

    def block(self, collection: str) -> dict[str, Any] | None:
        """Return the ``transaction`` field of a table's next record as a value, ``None`` outside of a transaction."""
        if self.id is None:
            return None
        self._add(collection, 1)
        return {"id": self.id, "total_order": self._total, "data_collection_order": self._counts[collection]}

    def offset_fields(self) -> Mapping[str, Any]:
        """Return the fields of the offset; none outside of a transaction.

        Before the first transaction begins they are those of the start position, so that a restart finds them again.
        """
        if self.id is None:
            return dict(self._restored)
        return _OffsetFields(self.id, *self._shared())

    def state(self) -> MonitorState:
        """Return the state for :meth:`return_to`."""
        return self.id, *self._shared(), self._restored

    def return_to(self, state: MonitorState) -> None:
        """Return to an earlier state."""
        self.id, counts, changes, size, restored = state
        self._restored = dict(restored)
        self._set({**counts, **dict(changes[:size])})

    def _shared(self) -> tuple[Mapping[str, int], Sequence[tuple[str, int]], int]:
        """Return the counts so far: base counts, the changes since then, and the number of those changes."""
        if len(self._changes) >= len(self._base):  # copied as rarely as there are tables
            self._base, self._changes = dict(self._counts), []
        return self._base, self._changes, len(self._changes)

    def _set(self, counts: dict[str, int]) -> None:
        self._counts, self._total = counts, sum(counts.values())
        self._base, self._changes = dict(counts), []

    def _add(self, collection: str, number: int) -> None:
        self._total += number
        count = self._counts[collection] = self._counts.get(collection, 0) + number
        self._changes.append((collection, count))


def begin_message(settings: PipelineSettings, monitor: TransactionMonitor, progress: Progress) -> Message | None:
    """Begin a transaction, and return the message of its BEGIN record; ``None`` for the rest of one that was cut."""
    transaction_id = progress.gtid or f"file={progress.file},pos={progress.pos}"
    if not monitor.begin(transaction_id):
        return None
    return _boundary(settings, transaction_id, begin_value(transaction_id, progress.boundary_ms()))


def end_message(settings: PipelineSettings, monitor: TransactionMonitor, progress: Progress) -> Message | None:
    """End a transaction, and return the message of its END record; ``None`` if none has begun."""
    if monitor.id is None:
        return None
    message = _boundary(settings, monitor.id, end_value(monitor.id, monitor.counts, progress.boundary_ms()))
    monitor.end()
    return message


def _boundary(settings: PipelineSettings, transaction_id: str, value: Mapping[str, Any]) -> Message:
    key = json_message(KEY_SCHEMA, {"id": transaction_id}, settings.keys)
    return key, json_message(VALUE_SCHEMA, value, settings.values), ()
