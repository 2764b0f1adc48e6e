"""Measures the lag of tables behind their topics."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Offsets = Mapping[int, int]
"""The offset after the last record of each partition."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a table.

    Attributes:
        records: the offsets that are not applied. Markers of transactions have offsets, too.
        seconds: the time since the oldest of them was seen in Kafka.
    """

    records: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Lags:
    """The lag of each topic's table, from the ends seen in Kafka and the ends applied to tables.

    The lag in seconds is as exact as the time between two calls of :meth:`seen`. Any thread may call any method.
    """

    clock: Callable[[], float] = time.monotonic
    _topics: dict[str, "_Topic"] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seen(self, topic: str, ends: Offsets) -> None:
        """Note the ends of a topic's partitions in Kafka."""
        with self._lock:
            found = self._topics.setdefault(topic, _Topic())
            if dict(ends) != found.ends:
                found.ends = dict(ends)
                found.waiting.append((self.clock(), found.ends))
                found.drop_applied()

    def applied(self, topic: str, ends: Offsets) -> None:
        """Note that all records before these offsets are in the table."""
        with self._lock:
            found = self._topics.setdefault(topic, _Topic())
            found.applied |= {p: end for p, end in ends.items() if end > found.applied.get(p, 0)}
            found.drop_applied()

    def of(self, topic: str) -> Lag:
        """Return the lag of a topic's table."""
        with self._lock:
            found = self._topics.get(topic, _Topic())
            records = sum(max(end - found.applied.get(partition, 0), 0) for partition, end in found.ends.items())
            return Lag(records, self.clock() - found.waiting[0][0]) if records and found.waiting else Lag(records)

    def topics(self) -> list[str]:
        """Return the topics that are known, sorted."""
        with self._lock:
            return sorted(self._topics)


_MOST_WAITING = 1000
"""Ends that are kept of a topic; of more, every second one is dropped, which makes its lag less exact."""


@dataclass(slots=True)
class _Topic:
    ends: dict[int, int] = field(default_factory=dict)
    applied: dict[int, int] = field(default_factory=dict)
    waiting: deque[tuple[float, dict[int, int]]] = field(default_factory=deque)

    def drop_applied(self) -> None:
        while self.waiting and all(self.applied.get(p, 0) >= end for p, end in self.waiting[0][1].items()):
            self.waiting.popleft()
        if len(self.waiting) > _MOST_WAITING:
            self.waiting = deque(list(self.waiting)[::2])
