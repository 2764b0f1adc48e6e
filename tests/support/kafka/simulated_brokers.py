"""The brokers of a producer, in a thread of a test: a `SimulatedKafka`, and what happens to each request.

The values of messages are numbers in decimal; those are the records in the simulated cluster.
"""

from __future__ import annotations

import enum
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch

from rowtide.connector.kafka_producer.brokers import Result
from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed
from rowtide.connector.kafka_producer.machine.messages import Outgoing, Produce, SentBatch, TopicPartition
from rowtide.connector.kafka_producer.producer import Producer
from rowtide.connector.kafka_producer.settings import producer_settings
from tests.support.kafka.simulated_kafka import SimulatedKafka

PATIENCE = 60.0
"""Seconds that a test waits for what must come."""
QUICK: Mapping[str, object] = {
    "linger.ms": 0,
    "retry.backoff.ms": 1,
    "retry.backoff.max.ms": 2,
    "reconnect.backoff.ms": 1,
    "reconnect.backoff.max.ms": 2,
}
"""Settings for tests that retry."""


class Fate(enum.Enum):
    """What happens to a request."""

    ANSWERED = enum.auto()
    LOST = enum.auto()
    ANSWER_LOST = enum.auto()
    HELD = enum.auto()
    """It gets no answer until ``release``, and then one."""


class SimulatedBrokers:
    """Answers requests in their order.

    Args:
        kafka: the cluster.
        done: takes the results.
        fates: of the first requests; later ones are answered.
        fate: of each request without one of those.

    Attributes:
        outgoing: all requests, in order.
        results: instead of an answer, the result of the next requests of a type.
        closed: whether the producer was closed.
    """

    def __init__(
        self,
        kafka: SimulatedKafka,
        done: Callable[[Outgoing, Result], None],
        fates: Iterable[Fate] = (),
        fate: Callable[[Outgoing], Fate] = lambda _outgoing: Fate.ANSWERED,
    ) -> None:
        self.kafka = kafka
        self.outgoing: list[Outgoing] = []
        self.results: dict[type, list[Result]] = {}
        self.fate = fate
        self.closed = False
        self._done = done
        self._fates = iter(fates)
        self._queue: SimpleQueue[Outgoing | None] = SimpleQueue()
        self._held: list[Outgoing] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def send(self, outgoing: Outgoing) -> None:
        """Take a request."""
        self.outgoing.append(outgoing)
        self._queue.put(outgoing)

    def close(self) -> None:
        """Answer nothing more."""
        self.closed = True
        self._queue.put(None)

    def release(self) -> None:
        """Answer the requests that were held, and all later ones."""
        with self._lock:
            self.fate = lambda _outgoing: Fate.ANSWERED
            held, self._held = self._held, []
        for outgoing in held:
            self._queue.put(outgoing)

    def produced(self) -> list[SentBatch]:
        """All batches that were sent, retries among them."""
        requests = [outgoing.request for outgoing in self.outgoing if isinstance(outgoing.request, Produce)]
        return [batch for request in requests for batch in request.batches]

    def _run(self) -> None:
        while (outgoing := self._queue.get()) is not None:
            with self._lock:
                fate = next(self._fates, None) or self.fate(outgoing)
                if fate is Fate.HELD:
                    self._held.append(outgoing)
            if fate is not Fate.HELD:
                self._done(outgoing, self._result(outgoing, fate))

    def _result(self, outgoing: Outgoing, fate: Fate) -> Result:
        given = self.results.get(type(outgoing.request))
        if given:
            return given.pop(0)
        if fate is Fate.LOST or outgoing.broker in self.kafka.down:
            return ConnectionFailed("broker test:9092: it cannot be reached")
        request = outgoing.request
        if isinstance(request, Produce):
            request = request._replace(batches=tuple(map(_readable, request.batches)))
        answer = self.kafka.process(0 if outgoing.broker is None else outgoing.broker, request)
        return ConnectionFailed("broker test:9092: the connection was lost") if fate is Fate.ANSWER_LOST else answer


def made_producer(
    kafka: SimulatedKafka,
    *,
    fates: Iterable[Fate] = (),
    fate: Callable[[Outgoing], Fate] = lambda _outgoing: Fate.ANSWERED,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
    **settings: object,
) -> tuple[Producer, SimulatedBrokers]:
    """A producer with a simulated cluster; settings with ``_`` instead of dots are of librdkafka."""
    named: dict[str, Any] = {**QUICK, **{name.replace("_", "."): value for name, value in settings.items()}}
    found: list[SimulatedBrokers] = []

    def brokers(done: Callable[[Outgoing, Result], None]) -> SimulatedBrokers:
        found.append(SimulatedBrokers(kafka, done, fates, fate))
        return found[0]

    return Producer(producer_settings(named), brokers, clock, wall_clock), found[0]


def numbers(batch: SentBatch) -> list[int]:
    """The numbers in a batch."""
    return [int(record.value or b"") for record in DefaultRecordBatch(bytearray(batch.data))]


def _readable(batch: SentBatch) -> SentBatch:
    """A batch in the form of `simulated_log.Records`."""
    data = bytes(batch.data)
    producer_id, epoch, sequence = (
        int.from_bytes(data[begin:end], "big", signed=True) for begin, end in ((43, 51), (51, 53), (53, 57))
    )
    records: Sequence[int] = numbers(batch)
    transactional = bool(data[22] & 0x10)
    return batch._replace(data=json.dumps([producer_id, epoch, sequence, transactional, records]).encode())


def cluster(**topics: int) -> SimulatedKafka:
    kafka = SimulatedKafka()
    for name, partitions in (topics or {"orders": 1}).items():
        kafka.create(name, partitions)
    return kafka


def stored(kafka: SimulatedKafka, topic: str = "orders", partition: int = 0) -> list[int]:
    log = kafka.log(TopicPartition(topic, partition))
    assert log is not None
    return log.stored()


def committed(kafka: SimulatedKafka, topic: str = "orders", partition: int = 0) -> list[int]:
    log = kafka.log(TopicPartition(topic, partition))
    assert log is not None
    return log.committed()


def holding(*requests: type) -> Callable[[Outgoing], Fate]:
    """Holds requests of these types."""
    return lambda outgoing: Fate.HELD if isinstance(outgoing.request, requests) else Fate.ANSWERED


def sent(brokers: SimulatedBrokers, request: type) -> bool:
    """Whether a request of a type was sent."""
    return any(isinstance(outgoing.request, request) for outgoing in brokers.outgoing)


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[BaseException | None]]:
    """Call something in a thread; its error, or ``None``, is in the list at the end."""
    ended: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - for the test
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, ended


def until(reached: Callable[[], object]) -> None:
    waited = threading.Event()
    for _ in range(int(PATIENCE / 0.005)):
        if reached():
            return
        waited.wait(0.005)
    raise AssertionError("not reached")
