"""The client's side of a replication session, as a state machine: bytes in, events and bytes out.

::

    READY ── QUERY ──► QUERYING ──► COLUMNS ──► ROWS ─┐
      ▲ │                  │                          │
      │ └─ COMMAND ► ANSWERING                        │
      └────────────────────┴──────────────────────────┘
      └─── DUMP ──► STREAMING ──► ENDED, REFUSED

A connection that is logged in is READY. What each state allows both sides to send is in ``TRANSITIONS``.
"""

from collections.abc import Generator
from enum import Enum, auto

from rowtide.connector.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from rowtide.connector.protocol.byte_reader import ByteReader
from rowtide.connector.protocol.header import HEADER_LENGTH
from rowtide.connector.protocol.packets import PacketBuffer
from rowtide.connector.protocol.replication.request import SEMI_SYNC, ReplicaRegistration, StreamRequest
from rowtide.connector.protocol.replication.semi_sync import Acknowledgement, SemiSyncStream

_CHUNK = 1 << 20
_PARSE_ERROR = 1064
_NULL = 0xFB
_LONGEST_END = 9
_SEMI_SYNC_VARIABLES = {"rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"}
"""Of the older and the newer plugin of MySQL; MariaDB has the older name without a plugin."""


class State(Enum):
    """The packet for which the session waits."""

    READY = auto()
    """Nothing: the next command can be sent."""
    ANSWERING = auto()
    """The answer to a command."""
    QUERYING = auto()
    """The first packet of a result."""
    COLUMNS = auto()
    """A column of a result, or the end of the columns."""
    ROWS = auto()
    """A row of a result, or its end."""
    STREAMING = auto()
    """An event."""
    ENDED = auto()
    """Nothing more: the server has ended the stream."""
    REFUSED = auto()
    """Nothing more: the server has refused a command, or ended the stream with an error."""


class Sent(Enum):
    """The kinds of data that the client sends."""

    COMMAND = auto()
    QUERY = auto()
    DUMP = auto()
    ACKNOWLEDGEMENT = auto()


class Received(Enum):
    """The kinds of packets that the server sends; the first byte shows the kind."""

    OK = auto()
    """0x00; in a stream, an event."""
    END = auto()
    """0xFE in a short packet."""
    ERROR = auto()
    """0xFF."""
    DATA = auto()
    """Anything else."""


_KINDS = {b"\x00": Received.OK, b"\xfe": Received.END, b"\xff": Received.ERROR}

TRANSITIONS: dict[State, dict[Sent | Received, State]] = {
    State.READY: {Sent.COMMAND: State.ANSWERING, Sent.QUERY: State.QUERYING, Sent.DUMP: State.STREAMING},
    State.ANSWERING: {Received.OK: State.READY, Received.ERROR: State.REFUSED},
    State.QUERYING: {Received.OK: State.READY, Received.DATA: State.COLUMNS, Received.ERROR: State.READY},
    State.COLUMNS: {Received.DATA: State.COLUMNS, Received.END: State.ROWS, Received.ERROR: State.REFUSED},
    State.ROWS: {
        Received.OK: State.ROWS,
        Received.DATA: State.ROWS,
        Received.END: State.READY,
        Received.ERROR: State.REFUSED,
    },
    State.STREAMING: {
        Sent.ACKNOWLEDGEMENT: State.STREAMING,
        Received.OK: State.STREAMING,
        Received.END: State.ENDED,
        Received.ERROR: State.REFUSED,
    },
    State.ENDED: {},
    State.REFUSED: {},
}
"""The state after data is sent or received; anything else is a violation of the protocol."""


class ServerError(ProtocolError):
    """The server refuses a command, or ends the stream, with an error packet.

    Attributes:
        code: the number of the error.
        text: the server's message.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} (error {code})")
        self.code = code
        self.text = text


class StreamEnded(ProtocolError):
    """The server has ended the stream without an error."""


class ServerIdInUse(ProtocolError):
    """Another replica has the server id: registering would disconnect it."""


Row = dict[str, str | None]
"""A row of a result, by the names of the columns in lower case."""
_Script = Generator[tuple[Sent, bytes], list[Row] | ServerError, None]
"""The commands in order; the rows of the answer, or the refusal of a query, are sent into it."""


class ReplicationSession:
    """A replication session on a connection that is logged in.

    ::

        session = ReplicationSession(request)
        sock.sendall(session.start())
        while True:
            count = sock.recv_into(session.space())
            events = session.received(count)
            if data := session.to_send():
                sock.sendall(data)

    Args:
        request: the requested stream.

    Attributes:
        state: the current state.
        same_id: another replica that has registered with the same server id, if there is one.
    """

    def __init__(self, request: StreamRequest) -> None:
        self.state = State.READY
        self.same_id: ReplicaRegistration | None = None
        self._semi_sync: SemiSyncStream | None = None
        self._request = request
        self._buffer = PacketBuffer(_CHUNK)
        self._out: list[bytes] = []
        self._end: ProtocolError | None = None
        self._columns: list[str] = []
        self._rows: list[Row] = []
        self._script = self._commands()

    def start(self) -> bytes:
        """Begin the session, and return the bytes to send."""
        self._send(next(self._script))
        return self.to_send()

    def space(self) -> memoryview:
        """Return the buffer for received bytes; use it before the next call of :meth:`received`."""
        return self._buffer.space()

    def received(self, count: int) -> list[bytes]:
        """Process ``count`` bytes in :meth:`space`, and return the events that are complete.

        An error after events is raised by the next call, for which ``count`` may be 0.

        Raises:
            ServerError: the server refuses the session, or ends the stream with an error.
            StreamEnded: the server has ended the stream.
            ServerIdInUse: the session would disconnect another replica.
            RemoteProtocolError: a packet that the protocol does not allow here.
        """
        if self._end is not None:
            raise self._end
        payloads = self._buffer.received(count)
        if self.state is not State.STREAMING:
            payloads = self._set_up(payloads)
        if self._semi_sync is None:
            events = [payload[1:] for payload in payloads if len(payload) > HEADER_LENGTH and not payload[0]]
            if len(events) == len(payloads):
                return events
        return self._events(payloads)

    @property
    def semi_sync(self) -> bool:
        """Whether the stream is a semi-synchronous one: it was requested, and the server supports it."""
        return self._semi_sync is not None

    def requested_acknowledgement(self) -> Acknowledgement | None:
        """Return the acknowledgement that the server waits for after the events so far; it is returned once."""
        if self._semi_sync is None:
            return None
        requested, self._semi_sync.requested = self._semi_sync.requested, None
        return requested

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """Add an acknowledgement to the bytes to send; after the end of the stream, it is dropped."""
        if Sent.ACKNOWLEDGEMENT in TRANSITIONS[self.state]:
            self._send((Sent.ACKNOWLEDGEMENT, acknowledgement.payload()))

    def _set_up(self, payloads: list[bytes]) -> list[bytes]:
        """Process packets before the stream, and return those that belong to it."""
        for number, payload in enumerate(payloads, 1):
            self._receive(payload)
            if self.state is State.STREAMING:
                return payloads[number:]
        return []

    def to_send(self) -> bytes:
        """Return the bytes to send now; each is returned once."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def _commands(self) -> _Script:
        for statement in self._request.settings():
            yield Sent.COMMAND, _query(statement)
        yield from self._look_up_same_id()
        yield Sent.COMMAND, self._request.registration()
        if self._request.semi_sync:
            yield from self._request_semi_sync()
        yield Sent.DUMP, self._request.dump()

    def _look_up_same_id(self) -> _Script:
        """Check whether another replica has the server id; an account without the right to do so skips this."""
        replica, mariadb = self._request.replica, self._request.mariadb
        found = yield Sent.QUERY, _query("SHOW SLAVE HOSTS" if mariadb else "SHOW REPLICAS")
        if isinstance(found, ServerError) and found.code == _PARSE_ERROR:  # MySQL before 8.0.22
            found = yield Sent.QUERY, _query("SHOW SLAVE HOSTS")
        for row in [] if isinstance(found, ServerError) else found:
            uuid, host = row.get("replica_uuid") or row.get("slave_uuid") or "", row.get("host") or ""
            own = host == replica.host if mariadb else uuid == replica.uuid
            if row.get("server_id") == str(replica.server_id) and not own:
                self.same_id = ReplicaRegistration(replica.server_id, uuid, host)
        if mariadb and self.same_id is not None:  # MySQL distinguishes replicas by their UUIDs
            raise ServerIdInUse(
                f"the replica at {self.same_id.host or 'an unknown host'} has the same server id {replica.server_id}, "
                "and MariaDB would disconnect it"
            )

    def _request_semi_sync(self) -> _Script:
        """Request a semi-synchronous stream if the server has the plugin, enabled or not: it can be enabled later."""
        found = yield Sent.QUERY, _query("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%_enabled'")
        names = set() if isinstance(found, ServerError) else {row.get("variable_name") for row in found}
        if names & _SEMI_SYNC_VARIABLES:
            yield Sent.COMMAND, _query(SEMI_SYNC)
            self._semi_sync = SemiSyncStream()

    def _send(self, command: tuple[Sent, bytes]) -> None:
        kind, payload = command
        following = TRANSITIONS[self.state].get(kind)
        if following is None:
            raise LocalProtocolError(f"{kind.name} cannot be sent in state {self.state.name}")
        self.state = following
        self._out.append(packet(payload))

    def _receive(self, payload: bytes) -> None:
        """Process a packet before the stream."""
        kind, before = _kind(payload), self.state
        following = TRANSITIONS[before].get(kind)
        if following is None:
            raise _unexpected(payload, before)
        self.state = following
        if kind is Received.ERROR and following is State.REFUSED:
            raise _error(payload)
        if before is State.QUERYING:
            self._columns, self._rows = [], []
        elif before is State.COLUMNS and kind is Received.DATA:
            self._columns.append(_column_name(payload))
        elif before is State.ROWS and following is State.ROWS:
            self._rows.append(dict(zip(self._columns, _values(payload, len(self._columns)), strict=True)))
        if following is State.READY:
            self._send(self._script.send(_error(payload) if kind is Received.ERROR else self._rows))

    def _events(self, payloads: list[bytes]) -> list[bytes]:
        """Return the events up to the first other packet, which is the end of the stream."""
        events: list[bytes] = []
        for payload in payloads:
            kind = _kind(payload)
            if kind is Received.OK and len(payload) > HEADER_LENGTH:
                events.append(payload[1:] if self._semi_sync is None else self._semi_sync.event(payload))
                continue
            self.state = TRANSITIONS[self.state].get(kind, self.state)
            self._end = _end(payload, kind)
            break
        if not events and self._end is not None:
            raise self._end
        return events


def _end(payload: bytes, kind: Received) -> ProtocolError:
    if kind is Received.ERROR:
        return _error(payload)
    if kind is Received.END:
        return StreamEnded("the server ended the replication stream")
    return RemoteProtocolError(f"the server sent a packet that begins with {payload[:8].hex()}, which is not an event")


def _query(statement: str) -> bytes:
    return b"\x03" + statement.encode()  # COM_QUERY


def packet(payload: bytes) -> bytes:
    """Return a payload of less than 16 MiB as the first packet of a command."""
    return len(payload).to_bytes(3, "little") + b"\0" + payload


def _kind(payload: bytes) -> Received:
    if payload[:1] == b"\xfe" and len(payload) >= _LONGEST_END:  # a row whose first value is very long
        return Received.DATA
    return _KINDS.get(payload[:1], Received.DATA)


def _error(payload: bytes) -> ServerError:
    """Return an ERR packet: the number, a marker and the SQL state, the message."""
    return ServerError(int.from_bytes(payload[1:3], "little"), payload[9:].decode("utf-8", "replace"))


def _unexpected(payload: bytes, state: State) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"the server sent a packet that begins with {payload[:8].hex()}, which no server sends in state {state.name}"
    )


def _column_name(payload: bytes) -> str:
    """Return the name in a column definition, after catalog, database and two tables, in lower case."""
    reader = ByteReader(payload, 0, len(payload))
    return [reader.packed_string() for _ in range(5)][-1].decode("utf-8", "replace").lower()


def _values(payload: bytes, count: int) -> list[str | None]:
    reader = ByteReader(payload, 0, len(payload))
    values: list[str | None] = []
    for _ in range(count):
        if reader.remaining() and payload[reader.pos] == _NULL:
            reader.take(1)
            values.append(None)
        else:
            values.append(reader.packed_string().decode("utf-8", "replace"))
    return values
