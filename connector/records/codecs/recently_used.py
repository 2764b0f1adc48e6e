"""A cache that keeps the most recently used entries, up to a total size."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_DECODERS = 32
"""Decoders of one table. With minimal images, every set of changed columns has its own decoder."""


class RecentlyUsed(Generic[K, V]):
    """A cache. When its entries exceed the limit together, the least recently used ones are dropped.

    Args:
        limit: the maximum sum of the entries' sizes; one larger entry may be alone in the cache.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._entries: dict[K, tuple[V, int]] = {}  # the most recently used one is the last

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value of a key, ``None`` if it is not in the cache."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry
        return entry[0]

    def put(self, key: K, value: V, size: int = 1) -> None:
        """Add or replace a value."""
        self.discard(key)
        self._entries[key] = value, size
        self._size += size
        while self._size > self._limit and len(self._entries) > 1:
            self.discard(next(iter(self._entries)))

    def discard(self, key: K) -> None:
        """Drop the value of a key, if it is in the cache."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= entry[1]
