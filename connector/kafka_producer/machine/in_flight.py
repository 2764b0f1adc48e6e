"""The requests in flight: at most one to each broker, and one to "any broker"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rowtide.connector.kafka_producer.machine.backoff import Backoff, Retry
from rowtide.connector.kafka_producer.machine.messages import Outgoing, Request
from rowtide.connector.kafka_producer.machine.partition_queue import PartitionQueue


@dataclass(slots=True)
class _Broker:
    """A broker: whether a request to it is in flight, and when the next one may be sent."""

    retry: Retry
    busy: bool = False
    throttled_until: float = float("-inf")


class Sent(NamedTuple):
    """A request in flight.

    Attributes:
        broker: the broker's id; ``None`` for any broker.
        request: the request.
        queues: the sources of its batches.
    """

    broker: int | None
    request: Request
    queues: Sequence[PartitionQueue]

    def __str__(self) -> str:
        broker = "a broker" if self.broker is None else f"broker {self.broker}"
        return f"{type(self.request).__name__} to {broker}"


class InFlight:
    """The requests in flight.

    Args:
        reconnect: the delays after a request that was lost, by broker.
    """

    def __init__(self, reconnect: Backoff) -> None:
        self._reconnect = reconnect
        self._brokers: dict[int | None, _Broker] = {}
        self._sent: dict[int, Sent] = {}
        self._number = 0

    def is_idle(self, broker: int | None, now: float) -> bool:
        """Return whether a request may be sent to a broker."""
        found = self._broker(broker)
        return not found.busy and now >= max(found.retry.at, found.throttled_until)

    def send(self, broker: int | None, request: Request, queues: Sequence[PartitionQueue] = ()) -> Outgoing:
        """Return a request to an idle broker."""
        self._number += 1
        self._sent[self._number] = Sent(broker, request, queues)
        self._broker(broker).busy = True
        return Outgoing(self._number, broker, request)

    def answered(self, number: int) -> Sent:
        """Note that the request with this number is answered.

        Raises:
            KeyError: it is not in flight.
        """
        sent = self._sent.pop(number)
        broker = self._broker(sent.broker)
        broker.busy = False
        broker.retry.succeeded()
        return sent

    def lost(self, number: int, now: float) -> Sent:
        """Note that the request with this number is no longer answered.

        Raises:
            KeyError: it is not in flight.
        """
        sent = self._sent.pop(number)
        broker = self._broker(sent.broker)
        broker.busy = False
        broker.retry.failed(now)
        return sent

    def throttle(self, broker: int | None, until: float) -> None:
        """Send nothing to a broker before this time."""
        self._broker(broker).throttled_until = until

    @property
    def next_attempts(self) -> list[float]:
        """The next times, including past ones, for requests to brokers that are down or throttle the producer."""
        return [max(broker.retry.at, broker.throttled_until) for broker in self._brokers.values()]

    def next_attempt(self, broker: int) -> float:
        """Return the time at which requests may be sent to a broker again.

        It is infinite while a request is in flight, whose end must be awaited.
        """
        found = self._broker(broker)
        return float("inf") if found.busy else max(found.retry.at, found.throttled_until)

    def _broker(self, broker: int | None) -> _Broker:
        found = self._brokers.get(broker)
        if found is None:
            found = self._brokers[broker] = _Broker(Retry(self._reconnect))
        return found
