"""Packets of Canal's protocol: four bytes of length, then a message ``Packet`` with a request or an answer.

The messages are those of the package ``com.alibaba.otter.canal.protocol`` (``CanalProtocol.proto``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from rowtide.canal.entries import protobuf
from rowtide.envelope.protobuf.wire import fields, signed

MAX_FRAME = 1 << 20
"""The largest frame of a client, in bytes. Requests are short; the longest part is a filter."""

_VERSION = 1
_LENGTH_BYTES = 4
_EMPTY_BATCH = -1
_DEFAULT_TIMEOUT_MS = 3_600_000
_UNITS = (1e-9, 1e-6, 1e-3, 1, 60, 3600, 86400)
"""Seconds of each ``java.util.concurrent.TimeUnit``."""
_MILLISECONDS = 2


class PacketType(IntEnum):
    """The kind of a packet. The server handles requests 2, 4, 5, 6, 8 and 12."""

    PACKAGETYPECOMPATIBLEPROTO2 = 0
    HANDSHAKE = 1
    CLIENTAUTHENTICATION = 2
    ACK = 3
    SUBSCRIPTION = 4
    UNSUBSCRIPTION = 5
    GET = 6
    MESSAGES = 7
    CLIENTACK = 8
    SHUTDOWN = 9
    DUMP = 10
    HEARTBEAT = 11
    CLIENTROLLBACK = 12


class FrameError(ValueError):
    """The bytes of a client are not frames; the connection cannot continue."""


class FrameMemory:
    """The memory that the unfinished frames of all connections share.

    Args:
        most: the limit in bytes.
    """

    def __init__(self, most: int = 16 << 20) -> None:
        self._left = most

    def take(self, count: int) -> None:
        """Take bytes; a negative number returns them.

        Raises:
            FrameError: there are fewer.
        """
        if count > self._left:
            raise FrameError("the memory for unfinished frames is used up by other connections")
        self._left -= count


class PacketReader:
    """Cuts the bytes of a connection into frames.

    Args:
        memory: for unfinished frames; ``None`` for its own.
    """

    def __init__(self, memory: FrameMemory | None = None) -> None:
        self._buffer = bytearray()
        self._memory = memory or FrameMemory()
        self._taken = 0

    def receive(self, data: bytes) -> Iterator[bytes]:
        """Return the frames that are complete with these bytes, without their lengths.

        Raises:
            FrameError: a frame is longer than ``MAX_FRAME``, has a negative length, or does not fit into the memory.
        """
        self._buffer += data
        at = 0
        try:
            while len(self._buffer) - at >= _LENGTH_BYTES:
                size = int.from_bytes(self._buffer[at : at + _LENGTH_BYTES], "big")
                if size > MAX_FRAME:
                    raise FrameError(f"a frame of {size} bytes; requests have at most {MAX_FRAME}")
                begin = at + _LENGTH_BYTES
                if len(self._buffer) < begin + size:
                    break
                at = begin + size
                yield bytes(self._buffer[begin:at])
        finally:
            del self._buffer[:at]
        self._keep(len(self._buffer))

    def close(self) -> None:
        """Return the memory of an unfinished frame."""
        self._keep(0)

    def _keep(self, size: int) -> None:
        self._memory.take(size - self._taken)
        self._taken = size


def frame(packet: bytes) -> bytes:
    """Return a packet with its length in front."""
    return len(packet).to_bytes(_LENGTH_BYTES, "big") + packet


@dataclass(frozen=True, slots=True)
class Authentication:
    """``ClientAuth``: the first request of a connection.

    Attributes:
        user: the user.
        password: the token, in hexadecimal digits; see :mod:`rowtide.canal.server.authentication`.
        read_timeout_ms: the time after which the server closes a silent connection.
        subscription: the subscription to make immediately; ``None`` if the request names no destination or client.
    """

    user: str
    password: bytes
    read_timeout_ms: int
    subscription: "Subscription | None"


@dataclass(frozen=True, slots=True)
class Subscription:
    """``Sub``: start reading a destination. An empty filter leaves that of the destination."""

    destination: str
    client_id: str
    filter: str


@dataclass(frozen=True, slots=True)
class Unsubscription:
    """``Unsub``: stop reading a destination."""

    destination: str
    client_id: str


@dataclass(frozen=True, slots=True)
class Get:
    """``Get``: send the next batch.

    Attributes:
        destination: the destination.
        client_id: the client.
        fetch_size: entries or memory units, by ``canal.instance.memory.batch.mode``.
        timeout_s: how long to wait for a full batch; negative: not at all; 0: without limit.
    """

    destination: str
    client_id: str
    fetch_size: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """``ClientAck``: the client has handled a batch; ``0`` if it does not say which one."""

    destination: str
    client_id: str
    batch_id: int


@dataclass(frozen=True, slots=True)
class Rollback:
    """``ClientRollback``: send a batch again, or, with 0, all that are not acknowledged."""

    destination: str
    client_id: str
    batch_id: int


Request = Subscription | Unsubscription | Get | Acknowledgement | Rollback
"""A request for a destination."""


@dataclass(slots=True)
class _Fields:
    """The fields of a message by their numbers; the last one of a number counts."""

    numbers: dict[int, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)

    def integer(self, number: int, default: int = 0) -> int:
        """Return a field of an integer type."""
        return signed(self.numbers[number]) if number in self.numbers else default

    def text(self, number: int) -> str:
        """Return a field of text.

        Raises:
            ValueError: it is not UTF-8.
        """
        return self.contents.get(number, b"").decode()


def _read(message: bytes) -> _Fields:
    found = _Fields()
    for number, _, value in fields(message):
        if isinstance(value, int):
            found.numbers[number] = value
        else:
            found.contents[number] = value
    return found


def packet_of(data: bytes) -> tuple[int, bytes]:
    """Return the type of a packet, which may be missing in ``PacketType``, and its body.

    Raises:
        ValueError: the bytes are not a packet.
    """
    found = _read(data)
    return found.integer(3), found.contents.get(5, b"")


def authentication(body: bytes) -> Authentication:
    """Return the request of this body.

    Raises:
        ValueError: the body is not such a message.
    """
    found = _read(body)
    destination, client, timeout_ms = found.text(5), found.text(6), found.integer(3)
    return Authentication(
        found.text(1),
        found.contents.get(2, b""),
        timeout_ms if timeout_ms > 0 else _DEFAULT_TIMEOUT_MS,
        Subscription(destination, client, found.text(7)) if destination and client else None,
    )


def request(kind: PacketType, body: bytes) -> Request:
    """Return the request of this body.

    Raises:
        ValueError: the body is not such a message.
    """
    found = _read(body)
    destination, client = found.text(1), found.text(2)
    match kind:
        case PacketType.SUBSCRIPTION:
            return Subscription(destination, client, found.text(7))
        case PacketType.UNSUBSCRIPTION:
            return Unsubscription(destination, client)
        case PacketType.GET:
            timeout, unit = found.integer(4), found.integer(5)
            scale = _UNITS[unit if 0 <= unit < len(_UNITS) else _MILLISECONDS]
            return Get(destination, client, found.integer(3), timeout * scale)
        case PacketType.CLIENTACK:
            return Acknowledgement(destination, client, found.integer(3))
        case PacketType.CLIENTROLLBACK:
            return Rollback(destination, client, found.integer(3))
        case _:
            raise ValueError(f"{kind.name} is not a request for a destination")


def handshake(seed: bytes) -> bytes:
    """Return the server's greeting, with the seed of the password's token."""
    return _packet(PacketType.HANDSHAKE, protobuf.data(2, seed))


def success() -> bytes:
    """Return the answer to an authentication, a subscription or an unsubscription."""
    return _packet(PacketType.ACK)


def error(code: int, message: str) -> bytes:
    """Return the answer to a request that failed."""
    return _packet(PacketType.ACK, protobuf.integer(1, code) + protobuf.text(2, message))


def messages(batch_id: int, entries: Sequence[bytes]) -> bytes:
    """Return the answer to a ``Get``: the entries of a batch. As in Canal, it has no version if there are entries.

    Args:
        batch_id: the id of the batch; meaningless without entries.
        entries: messages ``Entry``.
    """
    if not entries:
        return _packet(PacketType.MESSAGES, protobuf.integer(1, _EMPTY_BATCH))
    body = protobuf.integer(1, batch_id) + b"".join([protobuf.data(2, entry) for entry in entries])
    return protobuf.integer(3, PacketType.MESSAGES) + protobuf.data(5, body)


def _packet(kind: PacketType, body: bytes = b"") -> bytes:
    head = protobuf.integer(2, _VERSION) + protobuf.integer(3, kind)
    return head + protobuf.data(5, body) if body else head
