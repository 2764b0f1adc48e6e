"""A mapping with changes over another one, for copies that cost nothing, however many tables there are."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Layered(MutableMapping[K, V]):
    """The entries of another mapping, and changes that do not affect it. The other mapping must not change.

    Args:
        below: the other mapping.
        visible: tells which keys of it are included; ``None`` for all.
    """

    __slots__ = ("_below", "_changes", "_visible")

    def __init__(self, below: MutableMapping[K, V], visible: Callable[[K], bool] | None = None) -> None:
        self._below = below
        self._changes: dict[K, V | None] = {}  # None: removed
        self._visible = visible

    def __getitem__(self, key: K) -> V:
        if key in self._changes:
            found = self._changes[key]
            if found is None:
                raise KeyError(key)
            return found
        if self._visible is not None and not self._visible(key):
            raise KeyError(key)
        return self._below[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._changes[key] = value

    def __delitem__(self, key: K) -> None:
        self[key]  # raises KeyError if there is none
        self._changes[key] = None

    def __iter__(self) -> Iterator[K]:
        for key in self._below:
            if key not in self._changes and (self._visible is None or self._visible(key)):
                yield key
        yield from (key for key, value in self._changes.items() if value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
