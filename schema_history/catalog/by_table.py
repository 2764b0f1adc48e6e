"""Mappings by table, for servers with very many tables: no operation iterates over all of them."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeVar

from rowtide.schema_history.model import TableId

V = TypeVar("V")


class ByTable(MutableMapping[TableId, V]):
    """Values by table, which can be listed by database."""

    __slots__ = ("_databases", "_values")

    def __init__(self) -> None:
        self._values: dict[TableId, V] = {}
        self._databases: dict[str, dict[TableId, None]] = {}

    def __getitem__(self, key: TableId) -> V:
        return self._values[key]

    def __setitem__(self, key: TableId, value: V) -> None:
        self._values[key] = value
        self._databases.setdefault(key.database, {})[key] = None

    def __delitem__(self, key: TableId) -> None:
        del self._values[key]
        names = self._databases[key.database]
        del names[key]
        if not names:
            del self._databases[key.database]

    def __iter__(self) -> Iterator[TableId]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def of(self, database: str) -> list[TableId]:
        """Return the tables of a database."""
        return list(self._databases.get(database, ()))

    def copy(self) -> "ByTable[V]":
        """Return an independent copy."""
        other: ByTable[V] = ByTable()
        other._values = dict(self._values)
        other._databases = {database: dict(names) for database, names in self._databases.items()}
        return other


class ChangedByTable(MutableMapping[TableId, V]):
    """The values of another mapping, and changes that do not affect it. The other mapping must not change.

    Args:
        below: the other mapping.
        visible: returns which of its tables are included; ``None`` for all.
    """

    __slots__ = ("_below", "_changes", "_visible")

    def __init__(
        self, below: "ByTable[V] | ChangedByTable[V]", visible: Callable[[TableId], bool] | None = None
    ) -> None:
        self._below = below
        self._changes: dict[TableId, V | None] = {}  # None: removed
        self._visible = visible

    def __getitem__(self, key: TableId) -> V:
        if key in self._changes:
            found = self._changes[key]
            if found is None:
                raise KeyError(key)
            return found
        if not self._shown(key):
            raise KeyError(key)
        return self._below[key]

    def __setitem__(self, key: TableId, value: V) -> None:
        self._changes[key] = value

    def __delitem__(self, key: TableId) -> None:
        self[key]  # raises KeyError if there is none
        self._changes[key] = None

    def __iter__(self) -> Iterator[TableId]:
        yield from (key for key in self._below if key not in self._changes and self._shown(key))
        yield from (key for key, value in self._changes.items() if value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of(self, database: str) -> list[TableId]:
        """Return the tables of a database."""
        changed = [key for key, value in self._changes.items() if value is not None and key.database == database]
        kept = [key for key in self._below.of(database) if key not in self._changes and self._shown(key)]
        return [*kept, *changed]

    def copy(self) -> "ByTable[V]":
        """Return an independent copy."""
        other: ByTable[V] = ByTable()
        other.update(self)
        return other

    def _shown(self, key: TableId) -> bool:
        return self._visible is None or self._visible(key)
