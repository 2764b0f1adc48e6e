"""The delivery loop: takes batches from the event store, sends them, and stores the offsets after them.

It runs in its own thread. An error from which it cannot recover closes the store, so that the reader stops too,
and is available in ``failure``.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from rowtide.connector.backoff import Backoff
from rowtide.connector.delivery.batch_ring import INIT_SEQUENCE
from rowtide.connector.delivery.counters import DeliveryCounters, Totals
from rowtide.connector.delivery.errors import (
    ClaimCheckUnavailable,
    DeliveryError,
    DeliveryInterrupted,
    SinkUnavailable,
    TransactionAborted,
)
from rowtide.connector.delivery.event_store import EventStore, Taken
from rowtide.connector.delivery.sink import Sink
from rowtide.connector.errors import exhausted
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.errors import KafkaUnreachable, TopicError

log = logging.getLogger(__name__)

_IDLE_WAIT_S = 0.1
_QUIET_WAIT_S = 0.5
"""The longest wait while only the offset has to be stored, at a tenth of its interval."""
_UNACKNOWLEDGED_WAIT_S = 0.01
"""How long to wait for batches while acknowledgements are pending, which free space in the store."""
_REPORTED_WAIT_S = 0.05
"""The same if the sink says when there is something to do, and the space is not needed."""
_AWAITED_WAIT_S = 0.001
"""The same while a caller waits for the acknowledgements, such as a commit on the server."""
_FIRST_RETRY_S = 0.1
_LONGEST_RETRY_S = 10.0
_INTERRUPT_S = 30.0
_LONGEST_POLL_S = 0.2
"""How long a transaction with ``transaction.boundary=poll`` may stay open while the store always has more batches."""


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    """Decides when the offset is stored.

    Attributes:
        interval_s: seconds between two commits (``offset.flush.interval.ms``; with exactly-once delivery and
            ``transaction.boundary=interval``: ``transaction.boundary.interval.ms``).
        by_poll: with exactly-once delivery, commit when the store has no more batches, or the transaction has been open
            for long enough (``transaction.boundary=poll``).
        timeout_s: the time for which a commit may block delivery, without exactly-once delivery
            (``offset.flush.timeout.ms``).
    """

    interval_s: float = 60.0
    by_poll: bool = True
    timeout_s: float = 5.0

    def due(self, *, in_transaction: bool, age_s: float, unread: int, pressed: bool) -> bool:
        """Return whether to commit now.

        Args:
            in_transaction: a transaction is open.
            age_s: seconds since the first batch after the last commit was sent.
            unread: the number of batches ready in the store.
            pressed: the reader waits for space that only a commit frees.
        """
        if age_s >= self.interval_s or (in_transaction and pressed):
            return True
        return in_transaction and self.by_poll and (unread == 0 or age_s >= _LONGEST_POLL_S)


class SentRecords(NamedTuple):
    """Records that were given to the sink together.

    Attributes:
        sequence: the number that acknowledges their batches, and those before, in the event store.
        until: the number of messages sent since the start of delivery, with these.
        records: their number.
        size: bytes of their keys and values.
        topics: the topics that they are for.
        offset: the resume position after them.
        ts_ms: when the source made the first of their changes (milliseconds since the epoch); 0 if unknown.
        taken_s: when delivery took them from the event store, in seconds since the epoch.
    """

    sequence: int
    until: int
    records: int
    size: int
    topics: Collection[str]
    offset: SourceOffset
    ts_ms: int
    taken_s: float


class Delivery:
    """Moves batches from the store to the sink until the store is closed and empty, or an error ends it.

    Args:
        store: the source of batches.
        sink: their destination. It must be open; delivery closes it at the end.
        policy: when offsets are stored.
        ensure_topics: called with new topics before their first messages (``topics.admin.MissingTopics``).
        fitting: returns the batches to send in place of others (``large_records.LargeRecords``); called again if it
            raises ``ClaimCheckUnavailable``.
        on_failure: called in the delivery thread when an error has ended delivery; ``failure`` is set.
        on_delivered: called in the delivery thread with the sequence up to which Kafka has all batches.
        on_acknowledged: called in the delivery thread with records that are acknowledged, and the time.
        clock: returns seconds of a monotonic clock.
        wall_clock: returns seconds since the epoch.
        name: the connector's name, for the name of the thread.
    """

    def __init__(
        self,
        store: EventStore,
        sink: Sink,
        policy: CommitPolicy,
        *,
        ensure_topics: Callable[[Collection[str]], None] = lambda _topics: None,
        fitting: Callable[[Sequence[Batch]], Sequence[Batch]] = lambda batches: batches,
        on_failure: Callable[[BaseException], None] = lambda _failure: None,
        on_delivered: Callable[[int], None] | None = None,
        on_acknowledged: Callable[[SentRecords, float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        name: str = "rowtide",
    ) -> None:
        self._store = store
        self._sink = sink
        self._policy = policy
        self._ensure_topics = ensure_topics
        self._fitting = fitting
        self._on_failure = on_failure
        self._on_delivered = on_delivered
        self._on_acknowledged = on_acknowledged
        self._clock = clock
        self._wall_clock = wall_clock
        self._sink_reports = sink.call_when_due(store.wake) and on_delivered is None
        self._wait_s = _UNACKNOWLEDGED_WAIT_S if on_delivered is None else _AWAITED_WAIT_S
        self._quiet_wait_s = max(_IDLE_WAIT_S, min(_QUIET_WAIT_S, policy.interval_s / 10))
        self._group = max(1, store.use().max_events // 4)
        self._known: set[str] = set()
        self._pending: SourceOffset | None = None
        self._rollback_offset: SourceOffset | None = None  # of messages sent without a transaction
        self._pending_ts_ms = 0
        self._pending_since = 0.0
        self._sequence = INIT_SEQUENCE
        self._sent: deque[SentRecords] = deque()  # what the sink has not acknowledged
        self._messages_sent = self._messages_acked = 0
        self._in_snapshot = False
        self._in_transaction = False
        self._rollbacks = Backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S)
        self._problem: str | None = None  # of a topic or a transaction; the sink's own errors say more
        self._interrupted = threading.Event()
        self._totals = Totals(clock())
        self._thread = threading.Thread(target=self.run, name=f"{name}/delivery", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Start the delivery thread."""
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Close the store, deliver its batches, store the last offset, and end.

        Args:
            timeout: seconds after which the rest is dropped (a restart reads it again); ``None`` for no limit.

        Returns:
            Whether everything was delivered, and the last offset was stored.
        """
        self._store.close()
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._interrupted.set()
            self._sink.interrupt()
            self._thread.join(_INTERRUPT_S)
        return self.failure is None and not self._thread.is_alive()

    def drain(self, stop: threading.Event) -> None:
        """Close the store and wait, until its batches are delivered or ``stop`` is set."""
        self._store.close()
        while self._thread.is_alive() and not stop.is_set():
            self._thread.join(_IDLE_WAIT_S)

    @property
    def complete(self) -> bool:
        """Whether the thread has ended, has delivered everything, and has stored the last offset."""
        return self._thread.ident is not None and not self._thread.is_alive() and self.failure is None

    def raise_failure(self) -> None:
        """Raise the error that ended delivery, if there is one."""
        if self.failure is not None:
            raise self.failure

    def counters(self) -> DeliveryCounters:
        """Return the current counters."""
        return replace(self._totals.snapshot(self._clock()), problem=self._sink.problem or self._problem)

    @property
    def topics(self) -> list[str]:
        """The topics to which messages were sent, in alphabetical order."""
        return sorted(self._known.copy())

    def run(self) -> None:
        """Deliver in the calling thread, as ``start`` does in a new one. Errors are stored in ``failure``."""
        try:
            while not self._done():
                self._watch()
                self._step()
        except DeliveryInterrupted as failure:
            log.warning("delivery was interrupted: %s", failure)
            self._give_up(failure)
        except DeliveryError as failure:
            self._give_up(failure)
        except BaseException as failure:
            if exhausted(failure) is None:
                log.exception("delivery has failed")
            self._give_up(failure)
        try:
            self._sink.close()
        except BaseException as failure:  # noqa: BLE001 - a failure like any other
            if self.failure is None:
                self._give_up(failure)

    def _give_up(self, failure: BaseException) -> None:
        self.failure = failure
        self._store.close(failure)
        self._on_failure(failure)

    def _done(self) -> bool:
        """Return whether the store is closed and all its batches are delivered; if so, store the last offset."""
        if not self._store.closed or self._store.unread:
            return False
        try:
            while self._pending is not None and not self._interrupted.is_set():
                self._commit(None)
            if self._pending is not None:
                raise DeliveryInterrupted("stopped before the last offset was stored")
        except TransactionAborted as failure:
            self._roll_back(failure)
            return False
        return True

    def _watch(self) -> None:
        """Note whether delivery is stuck. A transaction that is sent again counts as progress only at its commit."""
        acknowledged = self._acknowledge()
        if acknowledged or not (self._unacknowledged or self._problem):
            self._totals.progress(self._clock(), delivered=acknowledged)

    def _acknowledge(self) -> bool:
        """Release acknowledged batches in the store.

        Only the number of acknowledged messages is known, so the oldest batches are released first. Offsets do not
        depend on this: they are stored when all messages are acknowledged.

        Returns:
            Whether there were acknowledgements since the last call.
        """
        if not self._unacknowledged:
            return False
        acked = self._messages_sent - self._sink.waiting()
        moved = acked > self._messages_acked
        self._messages_acked = acked
        self._release(acked)
        if self._on_delivered is not None and acked == self._messages_sent:
            self._on_delivered(self._sequence)
        return moved

    @property
    def _unacknowledged(self) -> bool:
        """Whether acknowledgements are awaited. In a transaction, its commit takes their place."""
        return bool(self._sent) and not self._in_transaction

    def _release(self, acked: int) -> None:
        """Release the batches of the first ``acked`` messages in the store, and count their records by age."""
        if not self._sent or self._sent[0].until > acked:
            return
        now = self._wall_clock()
        while self._sent and self._sent[0].until <= acked:
            sent = self._sent.popleft()
            self._store.ack(sent.sequence)
            if sent.ts_ms:
                self._totals.acknowledged(sent.records, max(0.0, now - sent.ts_ms / 1000))
            if sent.records and self._on_acknowledged is not None:
                self._on_acknowledged(sent, now)

    def _step(self) -> None:
        try:
            if not self._store.unread:
                self._sink.poll()
            taken = self._store.get(self._group, self._longest_wait())
            if taken.batches:
                self._send(taken)
            if self._due():
                self._commit(None if self._sink.transactional else self._policy.timeout_s)
        except TransactionAborted as failure:
            self._roll_back(failure)

    def _longest_wait(self) -> float:
        """Return the seconds to wait for a batch, after which events that do not wake the thread are checked."""
        if self._unacknowledged:
            can_wait = self._sink_reports and self._sink.problem is None and not self._store.pressed
            return _REPORTED_WAIT_S if can_wait else self._wait_s
        return _IDLE_WAIT_S if self._in_transaction else self._quiet_wait_s

    def _send(self, taken: Taken[Batch]) -> None:
        batches: Sequence[Batch] = [piece for batch in taken.batches if batch.events for piece in batch.destinations()]
        last, taken_s = taken.batches[-1], self._wall_clock()
        topics: dict[str, None] = {}
        records = size = ts_ms = 0
        if batches:
            topics = dict.fromkeys(batch.topic for batch in batches)
            new = [topic for topic in topics if topic not in self._known]
            if new:
                self._ensure(new)
            batches = self._fitted(batches)
            self._in_transaction = self._sink.transactional
            self._send_all(batches)
            records, size = self._totals.sent(batches, self._clock())
            self._messages_sent += records
            ts_ms = next((batch.ts_ms for batch in batches if batch.ts_ms), 0)
        if self._pending is None:
            self._pending_since = self._clock()
        self._sequence = taken.sequence
        self._sent.append(
            SentRecords(taken.sequence, self._messages_sent, records, size, topics, last.offset, ts_ms, taken_s)
        )
        if self._in_snapshot and last.offset.snapshot is None:
            self._pending_since = float("-inf")  # store it immediately: without it, a restart repeats the snapshot
        self._in_snapshot = last.offset.snapshot is not None
        self._pending = last.offset
        self._pending_ts_ms = last.ts_ms or self._pending_ts_ms
        if not self._in_transaction:  # nothing to roll back
            self._acknowledge()
            self._rollback_offset = self._pending

    def _send_all(self, batches: Sequence[Batch]) -> None:
        """Send batches. If the sink cannot currently write, the offset of the batches before them is stored.

        Otherwise, each new start would write the same batches again, for example until a disk is full again.
        """
        try:
            self._sink.send(batches)
        except SinkUnavailable:
            with suppress(DeliveryError):  # the failure of the sink says more
                self._commit(self._policy.timeout_s)
            raise

    def _ensure(self, topics: Sequence[str]) -> None:
        """Have topics created, and retry until Kafka is reachable."""
        backoff = Backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S)
        while True:
            try:
                self._ensure_topics(topics)
            except KafkaUnreachable as failure:
                self._problem, wait = str(failure), backoff.failed()
                log.warning("%s; retrying in %.1f s", failure, wait)
                if self._interrupted.wait(wait):
                    raise DeliveryInterrupted(f"stopped while topic {topics[0]!r} could not be looked up") from failure
            except TopicError as failure:
                raise DeliveryError(f"no message can be sent: {failure}") from failure
            else:
                self._known.update(topics)
                self._problem = None
                return

    def _fitted(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        """Return the batches to send, and retry until the folder of claim checks can be written.

        While this happens, earlier records are committed, so that no transaction expires.
        """
        backoff, failed = Backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S), False
        while True:
            try:
                fitting = self._fitting(batches)
            except ClaimCheckUnavailable as failure:
                self._commit(None if self._in_transaction else self._policy.timeout_s)
                self._problem, failed, wait = str(failure), True, backoff.failed()
                log.warning("%s; retrying in %.1f s", failure, wait)
                if self._interrupted.wait(wait):
                    raise DeliveryInterrupted("stopped while the folder of claim checks was not available") from failure
            else:
                if failed:
                    self._problem = None
                return fitting

    def _due(self) -> bool:
        return self._pending is not None and self._policy.due(
            in_transaction=self._in_transaction,
            age_s=self._clock() - self._pending_since,
            unread=self._store.unread if self._in_transaction else 0,
            pressed=self._in_transaction and self._store.pressed,
        )

    def _commit(self, timeout: float | None) -> None:
        if self._pending is None:
            return
        start = self._clock()
        if not self._sink.commit(self._pending, timeout):
            log.warning(
                "Kafka has not acknowledged all messages within %.1f s: delivery continues, and the offset is stored "
                "later",
                timeout or 0.0,
            )
            self._pending_since = self._clock()
            return
        self._release(self._messages_sent)
        if self._on_delivered is not None:
            self._on_delivered(self._sequence)
        self._totals.committed(self._pending, self._pending_ts_ms, self._clock() - start)
        self._pending = self._rollback_offset = None
        self._in_transaction = False
        self._rollbacks.succeeded()
        self._problem = None

    def _roll_back(self, failure: TransactionAborted) -> None:
        self._problem = str(failure)
        self._sink.rollback()
        self._sent.clear()
        back = self._store.rollback()
        self._pending = self._rollback_offset
        self._in_transaction = False
        self._totals.rolled_back()
        wait = self._rollbacks.failed()
        log.warning("%s. %d batches will be sent again in %.1f s", failure, back, wait)
        if self._interrupted.wait(wait):
            raise DeliveryInterrupted("stopped while a transaction had to be repeated") from failure
