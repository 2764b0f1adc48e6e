"""Decides which connectors of a fleet move to which workers to balance their loads. Pure.

A load is the rate of bytes that a connector reads from the binlog and writes to Kafka. A connector moves only if the
heavier one of the two workers becomes clearly lighter. Each move therefore makes the sum of the squared loads smaller:
while the loads stay the same, moves end, and none is undone.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

IDLE = 1000.0
"""The minimum load of a connector, in bytes per second, so that idle connectors are spread by their number."""
_GAIN = 0.85
"""The heavier one of both workers must have at most this fraction of its load after a move."""

Workers = Mapping[str, Mapping[str, Collection[int]]]
"""The partitions that workers have, by worker and topic."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A connector on a worker.

    Attributes:
        name: its name.
        topic: the topic whose partitions decide where it runs.
        partition: its partition there.
        load: bytes per second.
        movable: whether it may move now.
    """

    name: str
    topic: str
    partition: int
    load: float
    movable: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A connector moves to another worker.

    Attributes:
        name: of the connector.
        partitions: the partitions of its topic that the other worker has.
        before: the loads of its worker and of the other one, in bytes per second.
        after: the same after the move.
    """

    name: str
    partitions: Collection[int]
    before: tuple[float, float]
    after: tuple[float, float]


def next_move(connectors: Sequence[Placed], workers: Workers) -> Move | None:
    """Return the move that balances loads best; ``None`` if no move is worthwhile.

    Args:
        connectors: all connectors that run.
        workers: the partitions of each worker.
    """
    homes = {one.name: worker for one in connectors if (worker := _owner(workers, one)) is not None}
    totals = dict.fromkeys(workers, 0.0)
    for one in connectors:
        if one.name in homes:
            totals[homes[one.name]] += IDLE + one.load
    best: Move | None = None
    least = 0.0
    for one in connectors:
        if not one.movable or one.name not in homes:
            continue
        home, load = totals[homes[one.name]], IDLE + one.load
        for worker, topics in workers.items():
            there = totals[worker]
            partitions = topics.get(one.topic, ())
            gain = load * (home - there - load)  # half of the decrease of the sum of the squares
            if (
                partitions
                and worker != homes[one.name]
                and gain > least
                and max(home - load, there + load) <= _GAIN * home
            ):
                best, least = Move(one.name, partitions, (home, there), (home - load, there + load)), gain
    return best


def _owner(workers: Workers, one: Placed) -> str | None:
    return next((name for name, topics in workers.items() if one.partition in topics.get(one.topic, ())), None)


class LoadMeter:
    """The average rate of a growing total over about one period.

    Args:
        period_s: seconds.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._since: float | None = None
        self._seen = (0.0, 0)
        self._rate = 0.0

    def sample(self, total: int, now: float) -> None:
        """Add the next value of the total; a smaller value than before starts at 0 again."""
        at, before = self._seen
        self._seen = (now, total)
        if self._since is None:
            self._since = now
            return
        if now <= at:
            return
        part = 1 - math.exp((at - now) / self._period_s)
        grown = total - before if total >= before else total
        self._rate += part * (grown / (now - at) - self._rate)

    @property
    def rate(self) -> int | None:
        """The rate per second; ``None`` until a period is over."""
        known = self._since is not None and self._seen[0] - self._since >= self._period_s
        return round(self._rate) if known else None
