"""Watches the offsets topic for a second writer: another program that stores offsets for the same connector.

Two writers deliver every change twice, and the stored offset alternates between theirs. Kafka fences the older one only
if both deliver exactly once with the same transactional id. Debezium, and rowtide with at-least-once delivery, are
found by their offset records. As with fencing, the newest rowtide continues and older ones stop.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Message

from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore, LastWrite
from rowtide.connector.delivery.kafka.writer import THIS_PROCESS, Writer
from rowtide.schema_history.store.topic_reader import record_headers

log = logging.getLogger(__name__)

_WARN_EVERY_S = 60.0
_LONGEST_INTERVAL_S = 60.0
"""Kafka Connect's default of ``offset.flush.interval.ms``."""
_SLACK_S = 1.0
_LOOK_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class SecondWriter:
    """Another writer of the connector's offsets.

    Attributes:
        name: the known facts about it.
        records: the number of its offset records since the start.
        seen_at: when the last one was written, in seconds since the epoch.
    """

    name: str
    records: int
    seen_at: float


class SecondWriterWatch:
    """Looks at the offset records that are written while the connector runs.

    Args:
        store: the connector's offset store.
        on_newer: called once, in another thread, if a newer process of rowtide has taken over.
    """

    def __init__(self, store: KafkaOffsetStore, on_newer: Callable[[Writer], None]) -> None:
        self._store = store
        self._on_newer = on_newer
        self._ended = False
        self._warned_at = float("-inf")
        self.seen: SecondWriter | None = None

    def start(self) -> None:
        """Start with the next record that is written.

        Raises:
            OffsetStoreError: the topic cannot be read.
        """
        self._store.follow(self._take)

    def close(self) -> None:
        """End, without waiting for Kafka."""
        self._ended = True
        self._store.leave()

    def _take(self, message: Message) -> None:
        writer = Writer.parse(record_headers(message))
        if self._ended or writer == THIS_PROCESS:
            return
        name = "another program, such as Kafka Connect with Debezium" if writer is None else str(writer)
        before, now = self.seen, time.monotonic()
        self.seen = SecondWriter(name, 1 if before is None else before.records + 1, message.timestamp()[1] / 1000)
        if writer is not None and writer.newer_than(THIS_PROCESS):
            self._ended = True
            self._on_newer(writer)
        elif before is None or before.name != name or now - self._warned_at > _WARN_EVERY_S:
            self._warned_at = now
            log.warning(
                "a second writer runs: %s also stores offsets for this connector in topic %s. Every change is "
                "delivered twice. Stop one of them",
                name,
                self._store.topic,
            )


def still_writing(
    store: KafkaOffsetStore, flush_interval_s: float, wait: Callable[[float], object]
) -> LastWrite | None:
    """Look for a program other than rowtide that still stores offsets for the connector.

    If its last record is older than the interval in which Kafka Connect stores offsets, it has stopped, or has nothing
    to store. Otherwise, wait for the next record, for at most the interval.

    Args:
        store: the connector's offset store.
        flush_interval_s: ``offset.flush.interval.ms``, in seconds.
        wait: waits for this many seconds; a true result ends the search.

    Returns:
        The newer record; ``None`` if there is none.

    Raises:
        OffsetStoreError: the topic cannot be read.
    """
    last = store.last_write()
    if last is None or last.writer is not None:
        return None
    interval = min(flush_interval_s, _LONGEST_INTERVAL_S) + _SLACK_S
    left = min(interval, interval - (time.time() - last.at_ms / 1000))
    if left > 0:
        log.info(
            "another program stored a position less than %.0f s ago: waiting %.0f s to see whether it stores another",
            interval,
            left,
        )
    while left > 0:
        if wait(min(left, _LOOK_EVERY_S)):
            return None
        left -= _LOOK_EVERY_S
        now = store.last_write()
        if now is not None and now != last:
            return now
    return None
