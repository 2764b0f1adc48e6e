"""Numbered messages that are delivered to Kafka, from the stored offset again after each failure, and their account."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.event_store import EventStore, StoreClosed
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import IdempotentSink, SinkProducer, TransactionalSink
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset

if TYPE_CHECKING:
    from rowtide.connector.delivery.sink import Sink

__all__ = ["BLOCK", "Place", "Stream", "account", "place"]

BLOCK = 10
"""Messages in a batch of the connector."""
_KEYS = 23
_LARGEST = 1500
_RETRY_S = 0.3
_QUEUED = 600
_STORED = 400
_FILE = "binlog.000001"

Place = tuple[str, int]
"""A topic and a partition; -1 if the key determines it."""


def place(number: int, places: Sequence[Place]) -> Place:
    """Where a message is sent, the same in every run."""
    return places[random.Random(number // BLOCK).randrange(len(places))]


def _block(number: int, places: Sequence[Place]) -> Batch:
    """The messages with the numbers from ``number`` on; their offset is the number after the last one."""
    topic, partition = place(number, places)
    padding = b" " * random.Random(number).randrange(_LARGEST)
    messages = [(b"k%d" % (n % _KEYS), b"%d%b" % (n, padding), ()) for n in range(number, number + BLOCK)]
    size = sum(len(value) for _, value, _ in messages)
    return Batch(topic, partition, messages, SourceOffset(_FILE, number + BLOCK), size, int(time.time() * 1000))


@dataclass
class Stream:
    """Delivers messages with growing numbers until it is told to finish. An offset is stored with them.

    Attributes:
        bootstrap: the brokers.
        places: where to.
        offsets: the offsets topic.
        transactional_id: for delivery exactly once; ``""`` for at least once.
        settings: of the producer, with librdkafka's names.
        kind: the producer.
        policy: when offsets are stored.
        pause_s: the longest pause after a batch.
        starts: the number of producers that were made.
        ends: why they have ended.
        problems: what must not happen.
        delivered: the number after the last message whose offset is stored.
    """

    bootstrap: str
    places: Sequence[Place]
    offsets: str
    transactional_id: str
    settings: dict[str, Any]
    kind: ProducerKind = ProducerKind.NATIVE
    policy: CommitPolicy = CommitPolicy(interval_s=0.3, timeout_s=2.0)  # noqa: RUF009 - it is frozen
    pause_s: float = 0.02
    starts: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    delivered: int = 0

    def __post_init__(self) -> None:
        self._finishing = threading.Event()
        self._last: int | None = None
        self._fed = 0
        self._abandoned = threading.Event()
        self._delivery: Delivery | None = None
        self._producer: SinkProducer | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start it."""
        self._thread.start()

    def finish(self, within_s: float) -> int:
        """Deliver everything that was sent up to now; returns the number of messages.

        It is a problem if this takes longer than ``within_s`` seconds.
        """
        self._finishing.set()
        self._thread.join(within_s)
        if self._thread.is_alive():
            producer, delivery = self._producer, self._delivery
            self.problems.append(
                f"{self.delivered} of {self._last} messages are delivered {within_s:.0f} s behind the last fault; "
                f"waiting {producer and producer.waiting}, problem {producer and producer.problem!r}, failure "
                f"{delivery and delivery.failure!r}, {self.ends}"
            )
            self._abandoned.set()
            self._thread.join(60)
        return self._last or 0

    @property
    def producer(self) -> SinkProducer | None:
        """The present producer."""
        return self._producer

    def _run(self) -> None:
        try:
            while not self._abandoned.is_set() and not self._attempt():
                self._abandoned.wait(_RETRY_S)
        except Exception as error:  # noqa: BLE001 - whatever it is, the round reports it
            self.problems.append(f"{type(error).__name__}: {error}")

    def _attempt(self) -> bool:
        """Deliver with a new producer from the stored offset on; returns whether all is delivered."""
        client = {"bootstrap.servers": self.bootstrap}
        offsets = KafkaOffsetStore(
            self.offsets, "numbered", "p", producer=client, consumer=client, admin=client, timeout=10
        )
        store = EventStore(max_events=_STORED)
        made: SinkProducer | None = None
        try:
            made = self._producer = self._made(store)
            if self.transactional_id:
                sink: Sink = TransactionalSink(made, offsets, open_timeout=20)
            else:
                sink = IdempotentSink(made, offsets)
            self.starts += 1
            sink.open()
            stored = offsets.load()
        except DeliveryError as failure:
            self._ended(failure)
            if made is not None:
                made.close()
            return False
        begin = stored.pos if stored else 0
        if begin < self.delivered:
            self.problems.append(f"the stored offset went back from {self.delivered} to {begin}")
        self.delivered = begin
        self._delivery = delivery = Delivery(store, sink, self.policy)
        delivery.start()
        finished = self._feed(store, begin)
        if finished and delivery.stop(None if not self._abandoned.is_set() else 0):
            self.delivered = self._last or 0
            return True
        delivery.stop(0)
        if delivery.failure is not None:
            self._ended(delivery.failure)
        counted = delivery.counters().offset
        self.delivered = max(self.delivered, counted.pos if counted else 0)
        return False

    def _made(self, store: EventStore) -> SinkProducer:
        client = {"bootstrap.servers": self.bootstrap, "queue.buffering.max.messages": _QUEUED, **self.settings}
        if self.transactional_id:
            settings = transactional_settings(client, self.transactional_id)
        else:
            settings = idempotent_settings(client)
        return new_producer(self.kind, settings, quiet=store.quiet, show_keys=True)

    def _feed(self, store: EventStore, begin: int) -> bool:
        """Returns whether the last message is in the store."""
        decide = random.Random(begin)
        number = begin
        while self._last is None or number < self._last:
            if self._abandoned.is_set():
                return False
            try:
                if not store.put([_block(number, self.places)], timeout=0.5):
                    continue
            except StoreClosed:
                return False
            number += BLOCK
            self._fed = max(self._fed, number)
            if self._finishing.is_set() and self._last is None:
                self._last = self._fed
            if self._producer is not None and self._producer.waiting > _QUEUED + BLOCK:
                self.problems.append(f"{self._producer.waiting} messages are in the producer's memory")
            if decide.random() < 0.5:
                time.sleep(decide.uniform(0, self.pause_s))
        return True

    def _ended(self, failure: BaseException) -> None:
        self.ends[f"{type(failure).__name__}: {failure}"] += 1
        if not (isinstance(failure, DeliveryError) and failure.restartable):
            self.problems.append(f"not restartable: {type(failure).__name__}: {failure}")
            self._abandoned.set()


def account(
    read: Callable[[str], Iterable[Any]], places: Sequence[Place], count: int, starts: int, *, exactly_once: bool
) -> tuple[list[str], int]:
    """Compare the records of the topics with the messages that were delivered.

    Args:
        read: returns the records of a topic, partition by partition.
        places: where the messages were sent.
        count: the number of messages.
        starts: the number of producers.
        exactly_once: whether repeated records are a problem.

    Returns:
        The problems, and the number of repeated records.
    """
    expected: dict[Place, list[int]] = defaultdict(list)
    for number in range(count):
        expected[place(number, places)].append(number)
    problems, repeated = [], 0
    for topic in {topic for topic, _ in places}:
        found: dict[Place, list[int]] = defaultdict(list)
        by_key = (topic, -1) in places
        for record in read(topic):
            found[topic, record.partition].append(int(record.value.split()[0]))
        if by_key:
            numbers = sorted(itertools.chain(*found.values()))
            numbers = numbers if exactly_once else sorted(set(numbers))
            problems += _difference(f"{topic}, all partitions", expected[topic, -1], numbers)
        for (_, partition), numbers in found.items():
            where = f"{topic}, partition {partition}"
            wanted = sorted(set(numbers)) if by_key else expected[topic, partition]
            again, wrong = _in_order(where, wanted, numbers)
            problems += wrong
            repeated += again
            jumps = sum(later <= earlier for earlier, later in itertools.pairwise(numbers))
            if exactly_once and again:
                problems.append(f"{where}: {again} records are repeated: {_first_repeated(numbers)}")
            if jumps > 2 * (starts - 1):  # a new producer, and what was on its way from the one before
                problems.append(f"{where}: the numbers go back {jumps} times, with {starts} producers")
        for at in {at for at in places if at[0] == topic and at[1] >= 0} - found.keys():
            if expected[at]:
                problems.append(f"{at}: nothing of {len(expected[at])} records")
    return problems, repeated


def _in_order(where: str, wanted: Sequence[int], numbers: Sequence[int]) -> tuple[int, list[str]]:
    """The number of repeated records, and whether each new one follows the last new one."""
    known = set(wanted)
    done = again = 0
    for at, number in enumerate(numbers):
        if done < len(wanted) and number == wanted[done]:
            done += 1
        elif number in known and number <= wanted[done - 1]:
            again += 1
        else:
            missing = wanted[done] if done < len(wanted) else "nothing"
            return again, [f"{where}: record {at} is {number} behind {list(numbers[:at][-5:])}, not {missing}"]
    if done < len(wanted):
        return again, [f"{where}: {len(wanted) - done} records from {wanted[done]} on are lost, of {len(wanted)}"]
    return again, []


def _difference(where: str, wanted: Sequence[int], found: Sequence[int]) -> list[str]:
    if list(wanted) == list(found):
        return []
    lost, more = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    return [f"{where}: lost {lost[:20]} of {len(wanted)}, and unexpected {more[:20]}, or records are repeated"]


def _first_repeated(numbers: Sequence[int]) -> list[int]:
    return [number for number, count in Counter(numbers).items() if count > 1][:10]
