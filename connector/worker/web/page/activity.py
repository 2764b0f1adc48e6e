"""What a connector does with its time: samples of its counters, and the last hour of them. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rowtide.connector.worker.status import Status

PERIOD_S = 15.0
"""Seconds between two points of the history."""
_HOUR_S = 3600.0
_MOSTLY = 0.5
SLOW_ANSWER_S = 5.0
"""Kafka acknowledges records within milliseconds; a connector that waits for it this long is blocked."""

Activity = Literal["idle", "reading", "blocked"]


@dataclass(frozen=True, slots=True)
class Point:
    """What a connector has done between two moments.

    Attributes:
        at: the end, in seconds since the epoch.
        records_per_second: records given to the sink.
        bytes_per_second: bytes of their keys and values.
        lag_s: the lag at the end, in seconds; ``None`` if not known.
        server: the part of the time in which the reader waited for the server, 0 to 1; ``None`` if it does not run.
        decoding: the same for decoding; the three add up to 1.
        sink: the same for waiting for space in the queue, because the sink is slower.
    """

    at: float
    records_per_second: float
    bytes_per_second: float
    lag_s: float | None
    server: float | None = None
    decoding: float | None = None
    sink: float | None = None

    def to_list(self) -> list[float | None]:
        """Return the values in the order of the attributes, rounded."""
        parts = (self.server, self.decoding, self.sink)
        return [
            round(self.at, 1),
            round(self.records_per_second, 1),
            round(self.bytes_per_second),
            None if self.lag_s is None else round(self.lag_s, 3),
            *(None if part is None else round(part, 3) for part in parts),
        ]


def point(before: Status, now: Status) -> Point | None:
    """Return what a connector has done between two statuses; ``None`` if no time is between them."""
    seconds = now.now - before.now
    if seconds <= 0:
        return None
    sent, sent_before = now.delivery, before.delivery
    again = sent_before is None or sent is None or sent.messages < sent_before.messages  # it was started again
    records, size = (0, 0) if sent is None else (sent.messages, sent.bytes)
    if not again and sent_before is not None:
        records, size = records - sent_before.messages, size - sent_before.bytes
    server, decoding, sink = _parts(before, now, seconds)
    return Point(now.now, records / seconds, size / seconds, now.lag_s, server, decoding, sink)


def _parts(before: Status, now: Status, seconds: float) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return where the reader's time went: the server, decoding, the sink."""
    if now.reader is None or now.queue is None or before.reader is None or before.queue is None:
        return None, None, None
    waited = now.reader.waited_s - before.reader.waited_s
    blocked = now.queue.put_blocked_s - before.queue.put_blocked_s
    if waited < 0 or blocked < 0:  # it was started again
        return None, None, None
    waited, blocked = min(waited / seconds, 1.0), min(blocked / seconds, 1.0)
    if now.reader.idle and now.reader.connected and not now.queue.held_events:
        waited = max(waited, 1 - blocked)  # the wait that has not ended yet is not counted
    return min(waited, 1 - blocked), max(0.0, 1 - waited - blocked), blocked


def activity(status: Status, last: Point | None) -> Activity | None:
    """Tell whether a connector that streams has nothing to read, reads, or is blocked by the sink.

    Args:
        status: its status.
        last: what it has done before that; ``None`` if not known.

    Returns:
        The activity; ``None`` if the connector does not stream.
    """
    reader, queue, delivery = status.reader, status.queue, status.delivery
    if status.state not in ("RUNNING", "RESTARTING") or reader is None or queue is None:
        return None
    if queue.held_events and delivery is not None and delivery.stuck_s > SLOW_ANSWER_S:
        return "blocked"
    if last is not None and last.sink is not None and last.sink >= _MOSTLY:
        return "blocked"
    return "idle" if reader.idle and reader.connected and not queue.held_events else "reading"


class History:
    """The last hour of some connectors."""

    def __init__(self) -> None:
        self._last: dict[str, Status] = {}
        self._points: dict[str, deque[list[float | None]]] = {}

    def add(self, statuses: Iterable[Status]) -> None:
        """Add the next statuses, :data:`PERIOD_S` after those before; connectors that are not among them are gone."""
        found = {status.name: status for status in statuses}
        for name, now in found.items():
            made = None if name not in self._last else point(self._last[name], now)
            points = self._points.setdefault(name, deque(maxlen=round(_HOUR_S / PERIOD_S)))
            if made is not None:
                points.append(made.to_list())
        self._last = found
        self._points = {name: points for name, points in self._points.items() if name in found}

    def of(self, name: str) -> Mapping[str, Any]:
        """Return the points of a connector, oldest first, as a JSON object."""
        return {"period_seconds": PERIOD_S, "points": list(self._points.get(name, ()))}
