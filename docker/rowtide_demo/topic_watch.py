"""A consumer of the topics that counts records and measures their delay."""

import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

import rowtide
from rowtide_demo.errors import DemoError

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["TopicWatch", "expected_records", "operation"]

_OPERATION = b'"op":"'
_COMMITTED = re.compile(rb'"ts_us":(\d+)')
_DISCOVERY = 0.5  # seconds between look-ups of new topics
_SAMPLE = 20  # the delay of every 20th record is measured: finding the timestamp in the text takes time


class TopicWatch:
    """Reads all table topics of a prefix from their first record, in a thread, until the end of ``with``.

    Args:
        bootstrap: the addresses of Kafka.
        prefix: ``topic.prefix``.
        registry: the URL of the schema registry of records in Avro; ``None`` for JSON.

    Attributes:
        seen: number of records, by table and operation (``r``, ``c``, ``u``, ``d``, ``tombstone``).
        delays: seconds between the commit in MySQL and the consumption here, for a sample of the streamed records.
        bytes: total size of keys and values.
    """

    def __init__(self, bootstrap: str, prefix: str, registry: str | None = None) -> None:
        from confluent_kafka import Consumer  # noqa: PLC0415 - an extra

        self._decoder = None if registry is None else rowtide.Decoder(registry)
        self.seen: Counter[tuple[str, str]] = Counter()
        self.delays: list[float] = []
        self.bytes = 0
        self._prefix = prefix
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "rowtide-demo-watch",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",  # records of open transactions are not counted
                "log_level": 0,
            }
        )
        self._topics = re.compile(re.escape(prefix) + r"\.[^.]+\..+")
        self._assigned: set[tuple[str, int]] = set()
        self._discovered = 0.0
        self._failure: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    @property
    def total(self) -> int:
        """Number of records seen.

        Raises:
            DemoError: the topics cannot be read.
        """
        if self._failure is not None:
            raise DemoError(f"the topics cannot be read: {self._failure}") from self._failure
        return self.seen.total()

    def of(self, operation: str) -> int:
        """Return number of records of one operation, over all tables."""
        return sum(count for (_, found), count in list(self.seen.items()) if found == operation)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._discover_topics()
                for message in self._consumer.consume(5000, timeout=0.2):
                    if message.error() is None:
                        self._count(message)
        except Exception as error:  # noqa: BLE001 - raised by `total`
            self._failure = error
        finally:
            self._consumer.close()
            if self._decoder is not None:
                self._decoder.close()

    def _discover_topics(self) -> None:
        """Assign topics that have been created since the last look-up."""
        # A subscription would read all topics again after each new one, because no offsets are committed.
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition  # noqa: PLC0415 - an extra

        if time.monotonic() - self._discovered < _DISCOVERY:
            return
        self._discovered = time.monotonic()
        topics = self._consumer.list_topics(timeout=10).topics
        existing = {(name, part) for name in topics if self._topics.fullmatch(name) for part in topics[name].partitions}
        new = sorted(existing - self._assigned)
        if new:
            self._consumer.incremental_assign([TopicPartition(*partition, OFFSET_BEGINNING) for partition in new])
            self._assigned.update(new)

    def _count(self, message: "Message") -> None:
        topic, value = message.topic() or "", message.value()
        self.bytes += len(message.key() or b"") + len(value or b"")
        if self._decoder is None:
            kind, committed = operation(value), None
        else:
            change = self._decoder.decode_message(message)
            kind, committed = ("tombstone", None) if change is None else (change.op, change.timestamp)
        table = topic[len(self._prefix) + 1 :].partition(".")[2]
        self.seen[table, kind] += 1
        if value is not None and kind != "r" and self.seen.total() % _SAMPLE == 0:
            seconds = commit_seconds(value) if committed is None else committed.timestamp()
            if seconds is not None:
                self.delays.append(time.time() - seconds)


def commit_seconds(value: bytes) -> float | None:
    """Return the time of the commit of a record in JSON, since the epoch."""
    found = _COMMITTED.search(value, value.rfind(b'"source":{'))
    return int(found[1]) / 1_000_000 if found else None


def operation(value: bytes | None) -> str:
    """Return the operation of a record in Debezium's envelope, found from the end of its text without parsing it."""
    if value is None:
        return "tombstone"
    start = value.rfind(_OPERATION)
    return value[start + len(_OPERATION) :][:1].decode()


def expected_records(done: Mapping[tuple[str, str], int]) -> Counter[tuple[str, str]]:
    """Return the number of records that changed rows must produce, by table and operation; ``done`` is `Workload.done`.

    An update of a key is a delete under the old key and a create under the new one. A tombstone follows every delete.
    """
    found: Counter[tuple[str, str]] = Counter()
    kinds = {"insert": "c", "update": "u", "delete": "d tombstone", "key": "d tombstone c"}
    for (table, kind), count in done.items():
        for name in kinds[kind].split():
            found[table, name] += count
    return found
