"""An observer of the topics: counts what is in them, as a consumer sees it, and how late it came."""

import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rowtide_demo.errors import DemoError

if TYPE_CHECKING:
    from confluent_kafka import Message

__all__ = ["Watch", "expected", "operation"]

_OPERATION = b'"op":"'
_COMMITTED = re.compile(rb'"ts_us":(\d+)')
_LOOK = 0.5  # seconds between looks for new topics
_SAMPLE = 20  # the delay of every 20th record is looked at: reading it out of the text takes time


class Watch:
    """Reads all tables' topics of a prefix from their beginning, in a thread, until the end of ``with``.

    Attributes:
        seen: records by table and operation (``r``, ``c``, ``u``, ``d``, ``tombstone``).
        delays: seconds between the commit in MySQL and the arrival here, of some streamed records.
        bytes: of keys and values.
    """

    def __init__(self, bootstrap: str, prefix: str) -> None:
        from confluent_kafka import Consumer  # noqa: PLC0415 - an extra

        self.seen: Counter[tuple[str, str]] = Counter()
        self.delays: list[float] = []
        self.bytes = 0
        self._prefix = prefix
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "rowtide-demo-watch",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",  # what a transaction has not committed is not there
                "log_level": 0,
            }
        )
        self._topics = re.compile(re.escape(prefix) + r"\.[^.]+\..+")
        self._assigned: set[tuple[str, int]] = set()
        self._looked = 0.0
        self._failure: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    @property
    def total(self) -> int:
        """Records seen.

        Raises:
            DemoError: the topics cannot be read.
        """
        if self._failure is not None:
            raise DemoError(f"the topics cannot be read: {self._failure}") from self._failure
        return self.seen.total()

    def of(self, operation: str) -> int:
        """Records of one operation, of all tables."""
        return sum(count for (_, found), count in list(self.seen.items()) if found == operation)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._look_for_topics()
                for message in self._consumer.consume(5000, timeout=0.2):
                    if message.error() is None:
                        self._count(message)
        except Exception as error:  # noqa: BLE001 - told by whoever asks next
            self._failure = error
        finally:
            self._consumer.close()

    def _look_for_topics(self) -> None:
        """Take up topics that have appeared."""
        # Not by a subscription: with each new topic it would begin all of them anew, as there are no committed offsets.
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition  # noqa: PLC0415 - an extra

        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        topics = self._consumer.list_topics(timeout=10).topics
        there = {(name, part) for name in topics if self._topics.fullmatch(name) for part in topics[name].partitions}
        new = sorted(there - self._assigned)
        if new:
            self._consumer.incremental_assign([TopicPartition(*place, OFFSET_BEGINNING) for place in new])
            self._assigned.update(new)

    def _count(self, message: "Message") -> None:
        topic, value = message.topic() or "", message.value()
        self.bytes += len(message.key() or b"") + len(value or b"")
        kind = operation(value)
        table = topic[len(self._prefix) + 1 :].partition(".")[2]
        self.seen[table, kind] += 1
        if value is not None and kind != "r" and self.seen.total() % _SAMPLE == 0:
            committed = _COMMITTED.search(value, value.rfind(b'"source":{'))
            if committed:
                self.delays.append(time.time() - int(committed[1]) / 1_000_000)


def operation(value: bytes | None) -> str:
    """The operation of a record in Debezium's envelope: found at the end of its text, without reading the rest."""
    if value is None:
        return "tombstone"
    place = value.rfind(_OPERATION)
    return value[place + len(_OPERATION) :][:1].decode()


def expected(done: Mapping[tuple[str, str], int]) -> Counter[tuple[str, str]]:
    """The records that changed rows must give, by table and operation; ``done`` as `Business.done`.

    A row that got another key is deleted under the old one and created under the new one; a tombstone follows every
    delete.
    """
    found: Counter[tuple[str, str]] = Counter()
    kinds = {"insert": "c", "update": "u", "delete": "d tombstone", "key": "d tombstone c"}
    for (table, kind), count in done.items():
        for name in kinds[kind].split():
            found[table, name] += count
    return found
