"""The connections to the brokers, each with a thread that sends one request at a time."""

import ssl
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from rowtide.connector.kafka_producer import translation
from rowtide.connector.kafka_producer.connection.connection import Connection
from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed, Interrupted
from rowtide.connector.kafka_producer.connection.settings import Address, ConnectionSettings
from rowtide.connector.kafka_producer.machine.messages import Answer, Outgoing, Produce

Result = Answer | Exception
"""The answer to a request, or why there is none; see :class:`Brokers`."""

_SAME_BROKER_S = 10.0
"""How long one broker answers the requests that any broker can answer. The answers of a broker that is cut off from the
others are out of date, and several brokers must answer before a topic is considered missing (``missing_topic_s``).
"""


_MORE_THAN_REPLICAS = 4 / 3
"""The minimum wait for an answer, in addition to the time for which the broker may wait for its replicas."""


class Brokers:
    """Sends requests to brokers. All methods return immediately.

    Args:
        settings: the settings of connections.
        context: of TLS; ``None`` for plain text.
        version: rowtide's version, for the brokers' metrics.
        produce_timeout_ms: the time that a broker may wait for its replicas (``request.timeout.ms``).
        on_result: called once for each request, in the thread of its broker, with the answer or the error:
            ``ConnectionFailed`` if the request was lost, anything else if the producer cannot continue.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        context: ssl.SSLContext | None,
        version: str,
        produce_timeout_ms: int,
        on_result: Callable[[Outgoing, Result], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._context = context
        self._version = version
        self._produce_timeout_ms = produce_timeout_ms
        self._on_result = on_result
        self.clock = clock
        self._turn = 0
        self._addresses: dict[int, Address] = {}
        self._threads: dict[int | None, _BrokerThread] = {}

    def send(self, outgoing: Outgoing) -> None:
        """Send a request; the previous request to the same broker must have its result."""
        thread = self._threads.get(outgoing.broker)
        if thread is None:
            thread = self._threads[outgoing.broker] = _BrokerThread(self, outgoing.broker)
            thread.start()
        thread.requests.put(outgoing)

    def close(self) -> None:
        """Interrupt all requests and end the threads, without waiting for them."""
        for thread in list(self._threads.values()):
            thread.end()

    def connect(self, broker: int | None) -> Connection:
        """Return a new connection to a broker, or to any of them; each call tries another one first.

        Raises:
            ConnectionFailed: the broker cannot be reached, or has no address.
        """
        if broker is None:
            known = tuple(dict.fromkeys((*self._settings.bootstrap, *self._addresses.values())))
            first = self._turn % len(known)
            self._turn += 1
            addresses = known[first:] + known[:first]
        elif broker in self._addresses:
            addresses = (self._addresses[broker],)
        else:
            raise ConnectionFailed(f"broker {broker} has no address")
        return Connection(addresses, self._settings, self._context, self._version)

    def is_current(self, broker: int | None, connection: Connection, age: float, idle: float) -> bool:
        """Return whether a connection may still be used.

        Args:
            broker: the broker for which it is; ``None`` for any.
            connection: the connection.
            age: its age in seconds.
            idle: the seconds since it was used.
        """
        if idle >= self._settings.max_idle:
            return False
        return age < _SAME_BROKER_S if broker is None else connection.address == self._addresses.get(broker)

    def exchange(self, connection: Connection, outgoing: Outgoing) -> Answer:
        """Send a request and wait for its answer; raises as :meth:`Connection.call`."""
        request, at_most = translation.request(outgoing.request, self._produce_timeout_ms)
        timeout = self._settings.request_timeout
        if isinstance(outgoing.request, Produce):
            timeout = max(timeout, self._produce_timeout_ms / 1000 * _MORE_THAN_REPLICAS)
        received = connection.call(request, at_most=at_most, timeout=timeout)
        found = {number: Address(host, port) for number, host, port in translation.brokers(received)}
        if found:
            self._addresses = {**self._addresses, **found}
        return translation.answer(outgoing.request, received, connection.versions)

    def finished(self, outgoing: Outgoing, result: Result) -> None:
        """Report a result."""
        self._on_result(outgoing, result)


class _BrokerThread(threading.Thread):
    """Sends the requests to one broker, one after the other."""

    def __init__(self, brokers: Brokers, broker: int | None) -> None:
        super().__init__(name=f"kafka-broker-{'any' if broker is None else broker}", daemon=True)
        self.requests: SimpleQueue[Outgoing | None] = SimpleQueue()
        self._brokers = brokers
        self._broker = broker
        self._connection: Connection | None = None
        self._connected_at = 0.0
        self._used_at = 0.0
        self._lock = threading.Lock()
        self._ended = False

    def run(self) -> None:
        while (outgoing := self.requests.get()) is not None:
            try:
                result: Result = self._send(outgoing)
            except Interrupted:
                break
            except Exception as error:  # noqa: BLE001 - without a result, the request would be in flight forever
                self._disconnect()
                result = error
            self._brokers.finished(outgoing, result)
        self._disconnect()

    def end(self) -> None:
        """End the thread, and interrupt its current request; other threads may call this."""
        self.requests.put(None)
        with self._lock:
            self._ended = True
            if self._connection is not None:
                self._connection.interrupt()

    def _send(self, outgoing: Outgoing) -> Answer:
        now = self._brokers.clock()
        if self._connection is not None and not self._is_usable(self._connection, now):
            self._disconnect()
        if self._connection is None:
            connection = self._brokers.connect(self._broker)
            self._connected_at = now
            with self._lock:
                self._connection = connection
                if self._ended:
                    raise Interrupted
            connection.open()
        answer = self._brokers.exchange(self._connection, outgoing)
        self._used_at = self._brokers.clock()
        return answer

    def _is_usable(self, connection: Connection, now: float) -> bool:
        age, idle = now - self._connected_at, now - self._used_at
        return self._brokers.is_current(self._broker, connection, age, idle) and not connection.is_over()

    def _disconnect(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
