"""A connection to a broker, for one request at a time."""

import secrets
import ssl
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed
from rowtide.connector.kafka_producer.connection.interruptible_socket import InterruptibleSocket
from rowtide.connector.kafka_producer.connection.settings import Address, ConnectionSettings
from rowtide.connector.kafka_producer.wire import opening
from rowtide.connector.kafka_producer.wire.apis import BrokerVersions, api_of
from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer, WireError
from rowtide.connector.kafka_producer.wire.frames import FrameReader, decode_answer, encode_request
from rowtide.connector.kafka_producer.wire.schema import NEVER, Answer, Request

_SOFTWARE = "rowtide"
_SESSION_SHARE = 0.85
"""The part of a session's time after which to log in again, as the Java client does at the earliest."""
_CORRELATION_IDS = 1 << 31

_T = TypeVar("_T")


class Connection:
    """A connection to one broker. Only :meth:`interrupt` may be called by other threads.

    After any error the connection is closed; create a new one.

    Args:
        addresses: the addresses of the broker, of which the first reachable one is used, as in ``bootstrap.servers``.
        settings: how to connect.
        context: of TLS; ``None`` for plain text.
        version: rowtide's version, for the broker's metrics.
        clock: seconds.

    Raises:
        ConnectionFailed: the process has too many files open.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        settings: ConnectionSettings,
        context: ssl.SSLContext | None,
        version: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = addresses
        self._settings = settings
        self._context = context
        self._version = version
        self._clock = clock
        self._socket = InterruptibleSocket(settings, clock)
        self._frames = FrameReader(settings.longest_answer)
        self._correlation_id = 0
        self._session_end = float("inf")
        self._versions: BrokerVersions | None = None
        self.address = addresses[0]

    @property
    def versions(self) -> BrokerVersions:
        """The broker's versions, after :meth:`open`."""
        if self._versions is None:
            raise ConnectionFailed("it is not connected")
        return self._versions

    def open(self) -> None:
        """Connect, begin TLS, determine the broker's versions, and log in.

        Raises:
            ConnectionFailed: no broker can be reached, or it does not have the protocol of ``security.protocol``.
            AuthenticationFailed: a broker refused the credentials.
            UnsupportedBroker: the broker is older than Kafka 1.0.
            MalformedAnswer: the broker's answer to the login cannot be read.
            Interrupted: :meth:`interrupt` was called.
        """
        problems = []
        try:
            for address in self._addresses:
                self.address = address
                try:
                    return self._open(address)
                except ConnectionFailed as error:
                    problems.append(str(self._named(error)))
        except WireError as error:
            self.close()
            raise self._named(error) from None
        except BaseException:
            self.close()
            raise
        self.close()
        raise ConnectionFailed("; ".join(problems))

    def _open(self, address: Address) -> None:
        deadline = self._clock() + self._settings.connect_timeout
        self._frames = FrameReader(self._settings.longest_answer)
        self._socket.connect(address, deadline)
        if self._context is not None:
            self._socket.encrypt(self._context, address.host, deadline)
        try:
            self._versions = self._follow(opening.versions(_SOFTWARE, self._version), deadline)
        except (ConnectionFailed, MalformedAnswer) as error:
            raise ConnectionFailed(
                f"{error} (at the first request: check that security.protocol is that of the broker's listener)"
            ) from None
        self._log_in(deadline)

    def _log_in(self, deadline: float) -> None:
        if self._settings.credentials is not None:
            steps = opening.login(self.versions, self._settings.credentials, secrets.token_urlsafe(24))
            began = self._clock()
            lifetime_ms = self._follow(steps, deadline)
            self._session_end = began + _SESSION_SHARE * lifetime_ms / 1000 if lifetime_ms else float("inf")

    def call(self, request: Request[Answer], *, at_most: int = NEVER, timeout: float | None = None) -> Answer:
        """Send a request and wait for its answer. If the broker requires it (KIP-368), log in again first.

        Args:
            request: the request.
            at_most: the highest version to use; see :meth:`BrokerVersions.version`.
            timeout: seconds for both; ``None`` for the request timeout of the settings.

        Returns:
            The answer.

        Raises:
            ConnectionFailed: the connection was lost, or no answer came in time. The broker may have processed it.
            MalformedAnswer: the received bytes are not an answer to it. The broker may have processed it.
            AuthenticationFailed: the broker refused the credentials at a new login.
            UnsupportedBroker: the broker has no version of the request that rowtide has.
            NotEncodable: the request does not fit the version.
            Interrupted: :meth:`interrupt` was called.
        """
        try:
            version = self.versions.version(api_of(request), at_most)
            now = self._clock()
            deadline = now + (self._settings.request_timeout if timeout is None else timeout)
            if now >= self._session_end:
                self._log_in(deadline)
            answer: Answer = self._exchange(request, version, deadline)
        except (ConnectionFailed, WireError) as error:
            self.close()
            raise self._named(error) from None
        except BaseException:  # whatever it is: the next request would be out of step
            self.close()
            raise
        return answer

    def is_over(self) -> bool:
        """Return whether the broker has closed the connection between two requests, as it does with idle ones."""
        return not self._socket.is_quiet()

    def interrupt(self) -> None:
        """Make the call in another thread, and every later one, raise ``Interrupted``; any thread may call this."""
        self._socket.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._versions = None
        self._socket.close()

    def _follow(self, steps: Generator[opening.Step, Any, _T], deadline: float) -> _T:
        """Send the requests that a generator yields, until it returns."""
        try:
            request, version = next(steps)
            while True:
                request, version = steps.send(self._exchange(request, version, deadline))
        except StopIteration as end:
            result: _T = end.value
            return result

    def _exchange(self, request: Request[Any], version: int, deadline: float) -> Any:
        self._correlation_id = (self._correlation_id + 1) % _CORRELATION_IDS
        sent, parts = encode_request(request, version, self._correlation_id, self._settings.client_id)
        self._socket.send(parts, deadline)
        self._socket.wait(deadline)
        while True:
            space = self._frames.space()
            frame = self._frames.received(self._socket.receive_into(space, deadline))
            if frame is not None:
                return decode_answer(sent, frame)

    def _named(self, error: ConnectionFailed | WireError) -> ConnectionFailed | WireError:
        """Return the same error with the broker in its message."""
        return type(error)(f"broker {self.address}: {error}")
