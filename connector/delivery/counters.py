"""Counters of the delivery, for metrics and log lines. Pure: the caller passes the time."""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset

_WINDOW_S = 10.0
_SAMPLE_S = 0.5
_MAX_TOPICS = 1000
OTHER_TOPICS = "(other)"
"""Stands for all topics but the first thousand; no topic can have this name."""
AGES_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 21600.0)
"""The upper bounds of the classes of ``Ages``."""


class Ages(NamedTuple):
    """The ages of changes when the sink acknowledged their records.

    Attributes:
        counts: records by class: one for each bound of ``AGES_S``, and one for older changes.
        sum_s: the sum of all ages, in seconds.
    """

    counts: tuple[int, ...] = (0,) * (len(AGES_S) + 1)
    sum_s: float = 0.0


@dataclass(frozen=True, slots=True)
class DeliveryCounters:
    """Totals since the start, and the current state.

    Attributes:
        messages: messages passed to the sink; those sent again after a rollback count again.
        bytes: bytes of their keys and values.
        topics: messages and bytes per topic; those after the first thousand are counted together (``OTHER_TOPICS``).
        batches: batches passed to the sink.
        commits: stored offsets; with exactly-once delivery, committed transactions.
        rollbacks: transactions that were rolled back and sent again.
        messages_per_second: over the last ten seconds.
        bytes_per_second: over the last ten seconds.
        sent_ts_ms: when the source changed the last rows that were sent (milliseconds since the epoch); 0 if unknown.
        committed_ts_ms: the same for the last rows that a stored offset covers.
        offset: the last stored offset; ``None`` if none was stored since the start.
        commit_s: seconds spent on storing offsets, including the wait for acknowledgements.
        delivered: whether anything was acknowledged since the start.
        stuck_s: seconds since the last acknowledgement, or since there was nothing to deliver; many seconds mean that
            the sink does not respond.
        problem: the reason why delivery is retried: the last error since the last stored offset; ``None`` if there was
            none.
        ages: of the changes, when their records were acknowledged.
    """

    messages: int = 0
    bytes: int = 0
    topics: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    batches: int = 0
    commits: int = 0
    rollbacks: int = 0
    messages_per_second: float = 0.0
    bytes_per_second: float = 0.0
    sent_ts_ms: int = 0
    committed_ts_ms: int = 0
    offset: SourceOffset | None = None
    commit_s: float = 0.0
    delivered: bool = False
    stuck_s: float = 0.0
    problem: str | None = None
    ages: Ages = field(default_factory=Ages)


class Rate:
    """Growth of two totals per second over a sliding window."""

    def __init__(self, now: float) -> None:
        self._samples: deque[tuple[float, int, int]] = deque([(now, 0, 0)])

    def add(self, now: float, messages: int, size: int) -> None:
        """Add a sample of the totals; calls within half a second of the last sample are ignored."""
        if now - self._samples[-1][0] < _SAMPLE_S:
            return
        self._samples.append((now, messages, size))
        while len(self._samples) > 2 and now - self._samples[1][0] > _WINDOW_S:
            self._samples.popleft()

    def per_second(self, now: float, messages: int, size: int) -> tuple[float, float]:
        """Return both rates, given the current totals."""
        samples = list(self._samples)
        start = next((sample for sample in reversed(samples) if now - sample[0] >= _WINDOW_S), samples[0])
        seconds = now - start[0]
        if seconds <= 0:
            return 0.0, 0.0
        return (messages - start[1]) / seconds, (size - start[2]) / seconds


class _Sent(NamedTuple):
    """The counters of :meth:`Totals.sent`; a separate tuple takes less time than all counters in one."""

    messages: int = 0
    bytes: int = 0
    batches: int = 0
    sent_ts_ms: int = 0


class _Stored(NamedTuple):
    """The counters of :meth:`Totals.committed`."""

    commits: int = 0
    committed_ts_ms: int = 0
    offset: SourceOffset | None = None
    commit_s: float = 0.0


class Totals:
    """The mutable counterpart of ``DeliveryCounters``: one thread updates it, any thread may take a snapshot."""

    def __init__(self, now: float) -> None:
        self._rate = Rate(now)
        self._sent = _Sent()
        self._stored = _Stored()
        self._rollbacks = 0
        self._topics: dict[str, tuple[int, int]] = {}
        self._ages = list(Ages().counts)
        self._ages_s = 0.0
        self._progress_at = now
        self._delivered = False

    def progress(self, now: float, *, delivered: bool) -> None:
        """Note that delivery is not stuck.

        Args:
            now: the time.
            delivered: whether messages were acknowledged; otherwise, none wait for it.
        """
        self._progress_at = now
        self._delivered |= delivered

    def sent(self, batches: Sequence[Batch], now: float) -> tuple[int, int]:
        """Count batches that were passed to the sink; returns the number of their messages, and their bytes."""
        old = self._sent
        messages, size, topics = old.messages, old.bytes, self._topics
        for batch in batches:
            number = batch.events
            messages += number
            size += batch.size
            topic = batch.topic if batch.topic in topics or len(topics) < _MAX_TOPICS else OTHER_TOPICS
            before = topics.get(topic, (0, 0))
            topics[topic] = (before[0] + number, before[1] + batch.size)
        self._rate.add(now, messages, size)
        self._sent = _Sent(messages, size, old.batches + len(batches), batches[-1].ts_ms or old.sent_ts_ms)
        return messages - old.messages, size - old.bytes

    def acknowledged(self, records: int, age_s: float) -> None:
        """Count records that the sink has acknowledged, whose changes are at most this old."""
        self._ages[bisect_left(AGES_S, age_s)] += records
        self._ages_s += records * age_s

    def committed(self, offset: SourceOffset, ts_ms: int, seconds: float) -> None:
        """Count a stored offset."""
        self._delivered = True
        self._stored = _Stored(self._stored.commits + 1, ts_ms, offset, self._stored.commit_s + seconds)

    def rolled_back(self) -> None:
        """Count a transaction that is sent again."""
        self._rollbacks += 1

    def snapshot(self, now: float) -> DeliveryCounters:
        """Return the current numbers."""
        sent = self._sent
        messages, size = self._rate.per_second(now, sent.messages, sent.bytes)
        return DeliveryCounters(
            **sent._asdict(),
            **self._stored._asdict(),
            rollbacks=self._rollbacks,
            topics=self._topics.copy(),
            messages_per_second=messages,
            bytes_per_second=size,
            delivered=self._delivered,
            stuck_s=now - self._progress_at,
            ages=Ages(tuple(self._ages), self._ages_s),
        )
