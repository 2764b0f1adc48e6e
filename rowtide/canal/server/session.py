"""The server's side of one connection, and the handling of its requests, without input or output."""

from collections.abc import Iterator, Mapping
from enum import Enum, auto

from rowtide.canal.server import packets
from rowtide.canal.server.authentication import Credentials
from rowtide.canal.server.destination import Destination
from rowtide.canal.server.errors import (
    BAD_REQUEST,
    MISSING_BATCH,
    MISSING_CLIENT,
    CanalError,
    MessageError,
    failure_text,
)
from rowtide.canal.server.packets import (
    Acknowledgement,
    FrameError,
    FrameMemory,
    Get,
    PacketReader,
    PacketType,
    Request,
    Rollback,
    Subscription,
    frame,
)

SEED_BYTES = 8
_REQUESTS = {
    PacketType.SUBSCRIPTION,
    PacketType.UNSUBSCRIPTION,
    PacketType.GET,
    PacketType.CLIENTACK,
    PacketType.CLIENTROLLBACK,
}


class Answer(bytes):
    """Bytes to send to the client."""


class SessionClosed(Enum):
    """The connection must be closed after everything is sent."""

    REFUSED = auto()
    """The client is not admitted."""
    MALFORMED = auto()
    """The client sent bytes that are not a packet."""


class CanalSession:
    """Reads the requests of one client and writes the answers.

    As in Canal, the first packet always counts as the authentication, whatever its type. After a failed
    authentication the session ends; Canal 1.1.7 continues.

    Args:
        credentials: of the server.
        seed: ``SEED_BYTES`` random bytes.
        channel: names the connection in errors.
        memory: for unfinished frames; ``None`` for its own.

    Attributes:
        admitted: whether the client has logged in.
        read_timeout_s: the time after which a silent client is disconnected; the client chooses it.
    """

    def __init__(self, credentials: Credentials, seed: bytes, channel: str, memory: FrameMemory | None = None) -> None:
        self.admitted = False
        self.read_timeout_s = 3600.0
        self._credentials = credentials
        self._seed = seed
        self._channel = channel
        self._frames = PacketReader(memory)

    def greeting(self) -> Answer:
        """Return the first packet that the server sends."""
        return Answer(frame(packets.handshake(self._seed)))

    def receive(self, data: bytes) -> Iterator[Request | Answer | SessionClosed]:
        """Yield the requests in these bytes, and the answers that need no destination, in their order.

        Every request must be answered before the next one is read. After ``Closed``, nothing else comes.
        """
        try:
            for content in self._frames.receive(data):
                for found in self._packet(content):
                    yield found
                    if isinstance(found, SessionClosed):
                        return
        except FrameError:
            yield SessionClosed.MALFORMED

    def close(self) -> None:
        """Forget an unfinished frame."""
        self._frames.close()

    def _packet(self, content: bytes) -> Iterator[Request | Answer | SessionClosed]:
        try:
            number, body = packets.packet_of(content)
        except ValueError:
            yield SessionClosed.MALFORMED
            return
        try:
            if not self.admitted:
                yield from self._authenticate(body)
            elif number in _REQUESTS:
                yield self._request(PacketType(number), body)
            else:
                name = PacketType(number).name if number in set(PacketType) else "UNRECOGNIZED"
                yield self.refused(BAD_REQUEST, f"packet type={name} is NOT supported!")
        except ValueError as error:
            yield self.failed(MessageError(str(error)))

    def _authenticate(self, body: bytes) -> Iterator[Request | Answer | SessionClosed]:
        request = packets.authentication(body)
        if not self._credentials.admit(request, self._seed):
            yield self.refused(BAD_REQUEST, f"auth failed for user:{request.user}")
            yield SessionClosed.REFUSED
            return
        self.admitted = True
        self.read_timeout_s = request.read_timeout_ms / 1000
        if request.subscription is None:
            yield self.succeeded()
        else:
            yield request.subscription

    def _request(self, kind: PacketType, body: bytes) -> Request | Answer:
        request = packets.request(kind, body)
        if not request.destination or not request.client_id:
            return self.refused(MISSING_CLIENT, "destination or clientId is null")
        if isinstance(request, Acknowledgement) and request.batch_id == 0:
            return self.refused(MISSING_BATCH, "batchId should assign value")
        return request

    def succeeded(self) -> Answer:
        """Return the answer to a subscription or its end. Acknowledgements and rollbacks have none."""
        return Answer(frame(packets.success()))

    def batch(self, batch_id: int, entries: list[bytes]) -> Answer:
        """Return the answer to a ``Get``.

        Args:
            batch_id: the id of the batch; meaningless without entries.
            entries: the batch; empty if there is nothing.
        """
        return Answer(frame(packets.messages(batch_id, entries)))

    def failed(self, error: CanalError) -> Answer:
        """Return the answer to a request that could not be handled."""
        return self.refused(BAD_REQUEST, failure_text(self._channel, error))

    def refused(self, code: int, text: str) -> Answer:
        """Return the answer to a request that is not allowed."""
        return Answer(frame(packets.error(code, text)))


def destination_of(request: Request, destinations: Mapping[str, Destination]) -> Destination:
    """Return the destination of a request.

    Raises:
        CanalError: there is none with this name.
    """
    found = destinations.get(request.destination)
    if found is None:
        raise CanalError(f"destination:{request.destination} should start first")
    return found


def perform(request: Request, session: CanalSession, destinations: Mapping[str, Destination]) -> Answer | None:
    """Perform a request without waiting, and return the answer, if it has one.

    A ``Get`` returns the available entries; the caller first waits for a full batch.

    Args:
        request: of the session.
        session: makes the answer.
        destinations: by their names.
    """
    try:
        destination = destination_of(request, destinations)
        match request:
            case Get(fetch_size=size):
                batch = destination.get(request.client_id, size)
                return session.batch(batch.id, batch.entries)
            case Acknowledgement(batch_id=batch_id):
                destination.ack(request.client_id, batch_id)
                return None
            case Rollback(batch_id=batch_id):
                destination.rollback(request.client_id, batch_id)
                return None
            case Subscription(filter=filter_):
                destination.subscribe(request.client_id, filter_)
            case _:
                destination.unsubscribe(request.client_id)
        return session.succeeded()
    except CanalError as error:
        return session.failed(error)
