"""The requests of signals to snapshots: ``execute-snapshot`` and ``stop-snapshot``."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.signal import Signal
from rowtide.schema_history.model import TableId
from rowtide.topics.java_regex import InvalidPatternError, Pattern, compile_java, compile_untrusted

SnapshotType = Literal["incremental", "blocking"]


@dataclass(frozen=True, slots=True)
class Collections:
    """Regular expressions for tables, each matched against the whole ``db.table``, in the order of the signal.

    Attributes:
        sources: the expressions as written.
    """

    sources: tuple[str, ...]
    _compiled: tuple[Pattern, ...]

    @classmethod
    def parse(cls, sources: Iterable[str]) -> "Collections":
        """Compile Java regular expressions, case-insensitive. Raises ``SignalError``, which names the invalid one."""
        kept = tuple(sources)
        try:
            return cls(kept, tuple(compile_java(source, ignore_case=True) for source in kept))
        except InvalidPatternError as error:
            raise _invalid(error) from error

    @classmethod
    def of_signal(cls, signal: Signal) -> "Collections":
        """Compile ``data-collections``. Raises ``SignalError`` if one is invalid, or they take too long to match."""
        sources = signal.texts("data-collections")
        conditions = [source for condition in _conditions(signal) for source in condition.collection.sources]
        try:
            compile_untrusted([*sources, *conditions])
        except InvalidPatternError as error:
            raise _invalid(error) from error
        return cls.parse(sources)

    def select(self, tables: Iterable[TableId]) -> list[TableId]:
        """Return the selected tables: those of the first expression, then those of the next one, each once."""
        names = {table: str(table) for table in tables}
        found = (table for pattern in self._compiled for table, name in names.items() if pattern.fullmatch(name))
        return list(dict.fromkeys(found))

    def unmatched(self, tables: Iterable[TableId]) -> list[str]:
        """Return the expressions that match no table."""
        names = [str(table) for table in tables]
        pairs = zip(self.sources, self._compiled, strict=True)
        return [source for source, pattern in pairs if not any(map(pattern.fullmatch, names))]

    def __bool__(self) -> bool:
        return bool(self.sources)


@dataclass(frozen=True, slots=True)
class Condition:
    """An ``additional-condition``.

    Attributes:
        collection: the tables.
        filter: a condition in SQL for an incremental snapshot (``color = 'blue'``), a whole SELECT for a blocking one.
    """

    collection: Collections
    filter: str


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """``execute-snapshot``.

    Attributes:
        signal: the signal; its id is that of the notifications of an incremental snapshot.
        type: the kind of snapshot.
        collections: the tables.
        conditions: filters of rows.
        surrogate_key: a column by which rows are cut into chunks instead of the primary key.
    """

    signal: Signal
    type: SnapshotType
    collections: Collections
    conditions: tuple[Condition, ...] = ()
    surrogate_key: str | None = None

    def filter_of(self, table: TableId) -> str | None:
        """Return the filter for a table: that of the first condition that matches it."""
        return next((one.filter for one in self.conditions if one.collection.select([table])), None)


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """``rowtide-reread-rows``.

    Attributes:
        signal: the signal; its id is that of the notifications.
        collection: the table, ``database.table``.
        columns: the columns of its key.
        keys: the values of each key.
    """

    signal: Signal
    collection: str
    columns: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class StopRequest:
    """``stop-snapshot``.

    Attributes:
        signal: the signal.
        type: the kind of snapshot.
        collections: the tables to skip from now on; without any, the whole snapshot stops.
    """

    signal: Signal
    type: SnapshotType
    collections: Collections


def snapshot_request(signal: Signal) -> SnapshotRequest:
    """Return the request of an ``execute-snapshot`` signal; raises ``SignalError`` for wrong parameters."""
    collections = Collections.of_signal(signal)
    if not collections:
        raise SignalError("'data-collections' is missing from the data: the list of tables, as regular expressions")
    return SnapshotRequest(
        signal, snapshot_type(signal), collections, tuple(_conditions(signal)), signal.text("surrogate-key")
    )


def rows_request(signal: Signal) -> RowsRequest:
    """Return the request of a ``rowtide-reread-rows`` signal; raises ``SignalError`` for wrong parameters."""
    collection, columns, keys = signal.text("data-collection"), signal.texts("key-columns"), signal.data.get("keys")
    if not collection or not columns:
        raise SignalError("the data must have 'data-collection', a table, and 'key-columns', the columns of its key")
    if not isinstance(keys, list) or not keys or not all(_is_key(key, len(columns)) for key in keys):
        raise SignalError(f"'keys' must be a list of lists, each with {len(columns)} strings, not {keys!r:.200}")
    return RowsRequest(signal, collection, columns, tuple(map(tuple, keys)))


def _is_key(key: object, size: int) -> bool:
    return isinstance(key, list) and len(key) == size and all(isinstance(value, str) for value in key)


def stop_request(signal: Signal) -> StopRequest:
    """Return the request of a ``stop-snapshot`` signal. Raises ``SignalError`` if a parameter is wrong."""
    return StopRequest(signal, snapshot_type(signal), Collections.of_signal(signal))


def snapshot_type(signal: Signal) -> SnapshotType:
    """Return the ``type`` in the data, ``incremental`` by default; raises ``SignalError`` for others."""
    kind = (signal.text("type") or "incremental").lower()
    if kind == "incremental":
        return "incremental"
    if kind == "blocking":
        return "blocking"
    raise SignalError(f"'type' in the data must be incremental or blocking, not {signal.text('type')!r}")


def _invalid(error: InvalidPatternError) -> SignalError:
    return SignalError(f"'data-collections' or a 'data-collection' is not a regular expression: {error}")


def _conditions(signal: Signal) -> Iterator[Condition]:
    listed = signal.data.get("additional-conditions") or []
    if not isinstance(listed, list):
        raise SignalError(f"'additional-conditions' must be a list, not {listed!r:.200}")
    for item in listed:
        collection, text = (
            (item.get("data-collection"), item.get("filter")) if isinstance(item, Mapping) else (None, None)
        )
        if not isinstance(collection, str) or not isinstance(text, str):
            raise SignalError(
                f"an item of 'additional-conditions' must have a 'data-collection' and a 'filter', not {item!r:.200}"
            )
        yield Condition(Collections.parse([collection]), text)
