"""Splits a stream of events into chunks for decoder processes, and events that only the parent's pipeline can process.

A chunk consists of transactions that only change rows of tables whose codec the parent has built already. Larger
transactions are cut between two events.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rowtide.connector.errors import ProtocolError
from rowtide.connector.pipeline.captured_tables import CapturedTable
from rowtide.connector.pipeline.executed_gtids import ExecutedGtids
from rowtide.connector.protocol.events.classes import Event, Gtid, MariadbGtidEvent
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import GTID_TYPES, HEADER, HEADER_LENGTH, ROWS_TYPES, EventType
from rowtide.connector.protocol.statements import FL_PREPARED_XA
from rowtide.connector.records.offset import SourceOffset

_TABLE_BODY = HEADER_LENGTH + 8
"""Where the body of a TABLE_MAP begins, after the table id and the flags."""
_QUERY_HEAD = HEADER_LENGTH + 13
"""Where the status variables of a QUERY event begin."""
_TYPE, _QUERY, _XID, _TABLE_MAP = 4, EventType.QUERY, EventType.XID, EventType.TABLE_MAP
_STATEMENT_TEXTS = frozenset({EventType.ROWS_QUERY, EventType.MARIADB_ANNOTATE_ROWS})


class FoundTable(NamedTuple):
    """The table of a TABLE_MAP; ``None`` if it is not captured."""

    structure: TableStructure
    captured: CapturedTable | None


Tables = Mapping[bytes, FoundTable]
"""Tables by the body of their TABLE_MAP."""


class End(NamedTuple):
    """The end that a chunk must reach, which the next one assumes.

    Attributes:
        gtids: the transactions of the stream.
        events: the number of complete events of the last transaction; 0 after its end.
    """

    gtids: str | None
    events: int


@dataclass(frozen=True, slots=True)
class EventChunk:
    """A range of events.

    Attributes:
        start: the resume position before its first transaction.
        head: the events of that transaction that a pipeline must have processed, if the chunk begins inside the
            transaction.
        events: the number of complete events of that transaction.
        position: the position of its first event in the binlog file.
        gtids: the transactions of the stream at its first event.
        packets: its events.
        tables: the tables of its rows.
        end: the end that it must reach.
    """

    start: SourceOffset
    head: Sequence[bytes]
    events: int
    position: int
    gtids: str | None
    packets: Sequence[bytes]
    tables: Tables
    end: End

    @property
    def size(self) -> int:
        """Bytes of its events."""
        return sum(map(len, self.packets))


class Inline(NamedTuple):
    """Events that the pipeline must process once every chunk before them is done.

    Attributes:
        packets: the events.
        head: as :attr:`EventChunk.head`.
        resets: whether the next chunk begins at the position of the pipeline, not at an expected one.
    """

    packets: Sequence[bytes]
    head: Sequence[bytes]
    resets: bool


Piece = EventChunk | Inline


@dataclass(slots=True)
class _Transaction:
    """The current transaction.

    Attributes:
        gtid: its GTID event.
        head: the packets up to BEGIN.
        open: whether they are complete.
        maps: the TABLE_MAPs by table id.
        text: the last ROWS_QUERY or ANNOTATE_ROWS.
        tables: its tables.
        unknown: TABLE_MAPs of tables whose first rows the pipeline has to process.
        events: the number of its events in earlier chunks, as offsets count them.
        cut: whether there are any.
    """

    gtid: Gtid | MariadbGtidEvent
    head: list[bytes]
    open: bool
    maps: dict[bytes, bytes] = field(default_factory=dict)
    text: bytes | None = None
    tables: dict[bytes, FoundTable] = field(default_factory=dict)
    unknown: dict[bytes, bytes] = field(default_factory=dict)
    events: int = 0
    cut: bool = False

    def replayed(self) -> list[bytes]:
        """Return the events that a pipeline needs to continue inside the transaction."""
        return [*self.head, *([self.text] if self.text else ()), *self.maps.values()]


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place between two transactions at which chunks can begin.

    Attributes:
        offset: the resume position.
        connector: ``mysql`` or ``mariadb``.
        checksums: whether events end with a checksum.
    """

    offset: SourceOffset
    connector: str
    checksums: bool


class Splitter:
    """Splits a stream.

    Args:
        boundary: returns the position of the pipeline, which has processed everything before the current transaction;
            ``None`` if no chunk may begin there.
        table: returns the table of a TABLE_MAP, ``None`` if only the pipeline may process its rows; raises ``KeyError``
            if the pipeline has to process rows of it first.
        decode: decodes an event.
        limit: bytes of events in a chunk.
        most: the maximum size in bytes of a transaction that may not be cut; the pipeline processes larger ones.
        cuts: whether a transaction may be cut.

    Attributes:
        limit: the limit, which may be changed.
    """

    def __init__(
        self,
        boundary: Callable[[], Boundary | None],
        table: Callable[[bytes], FoundTable | None],
        decode: Callable[[bytes], Event],
        limit: int,
        most: int,
        *,
        cuts: bool,
    ) -> None:
        self.limit = limit
        self._most = most
        self._cuts = cuts
        self._boundary = boundary
        self._table = table
        self._decode = decode
        self._reset()

    def _reset(self) -> None:
        self._next: _Next | None = None
        self._current: _Transaction | None = None
        self._packets: list[bytes] = []
        self._complete = 0  # packets of complete transactions
        self._size = 0
        self._tables: dict[bytes, FoundTable] = {}  # of complete transactions

    def add(self, packet: bytes) -> Sequence[Piece]:
        """Add the next event, and return the pieces that are now complete, in order."""
        kind = packet[_TYPE]
        current = self._current
        if current is None:
            return self._begin(packet) if kind in GTID_TYPES else self._give_up(packet)
        if not current.open:
            if kind != _QUERY or self._statement(packet) != b"BEGIN":
                return self._give_up(packet)
            current.head.append(packet)
            current.open = True
        elif kind == _TABLE_MAP:
            if not self._map(current, packet):
                return self._give_up(packet)
            if current.unknown:
                return self._pass(current, packet)
        elif kind in _STATEMENT_TEXTS:
            current.text = packet
        elif kind in (_XID, _QUERY):
            if (kind == _QUERY and self._statement(packet) != b"COMMIT") or not _log_pos(packet):
                return self._give_up(packet)
            return self._end(current, packet)
        elif kind not in ROWS_TYPES or (current.unknown and not self._find_tables(current)):
            return self._give_up(packet)
        elif current.unknown:
            return self._pass(current, packet)
        self._append(packet)
        if self._size < self.limit:
            return ()
        return self.flush() or (self._cut_inside(current) if self._cuts else self._at_most())

    def flush(self) -> list[EventChunk]:
        """Return the chunk of the complete transactions."""
        following = self._next
        if not self._complete or following is None:
            return []
        packets, self._packets = self._packets[: self._complete], self._packets[self._complete :]
        gtids = following.executed.text
        chunk = following.chunk(packets, self._tables, End(gtids, 0))
        seconds, _, server_id, _, log_pos, _ = HEADER.unpack_from(packets[-1])
        following.start = replace(following.start, pos=log_pos, gtids=gtids, server_id=server_id, ts_sec=seconds)
        following.head, following.events = (), 0
        following.position, following.gtids = log_pos, gtids
        self._size = sum(map(len, self._packets))
        self._tables, self._complete = {}, 0
        return [chunk]

    def finish(self) -> list[Piece]:
        """Return everything that remains at the end of the events."""
        return self._give_up()

    def rebase(self) -> Sequence[Piece]:
        """Continue at the position of the pipeline, after all pieces, and return the events that it must process."""
        if self._current is None:
            self._reset()
        elif not self._current.cut:
            return self._give_up()
        return ()

    def _begin(self, packet: bytes) -> Sequence[Piece]:
        if self._next is None:
            boundary = self._boundary()
            self._next = None if boundary is None else _Next(boundary)
        try:
            event = self._decode(packet) if self._next is not None else None
        except ProtocolError:
            return self._give_up(packet)
        if isinstance(event, MariadbGtidEvent):
            if event.standalone or event.flags & FL_PREPARED_XA:
                return self._give_up(packet)
        elif not isinstance(event, Gtid):
            return self._give_up(packet)
        self._current = _Transaction(event, [packet], isinstance(event, MariadbGtidEvent))
        self._append(packet)
        return ()

    def _append(self, packet: bytes) -> None:
        self._packets.append(packet)
        self._size += len(packet)

    def _give_up(self, *packet: bytes) -> list[Piece]:
        """Leave the rest of the current transaction, and this event, to the pipeline."""
        pieces: list[Piece] = [*self.flush()]
        head = self._next.head if self._next is not None and self._current is not None and self._current.cut else ()
        packets = [*self._packets, *packet]
        self._reset()
        if packets:
            pieces.append(Inline(packets, head, resets=True))
        return pieces

    def _map(self, current: _Transaction, packet: bytes) -> bool:
        """Add a TABLE_MAP, and return false if only the pipeline may process the transaction."""
        current.unknown[packet[_TABLE_BODY : self._event_end(packet)]] = packet
        current.maps[packet[HEADER_LENGTH : HEADER_LENGTH + 6]] = packet
        return self._find_tables(current)

    def _find_tables(self, current: _Transaction) -> bool:
        """Look up the unknown tables of a transaction, and return false if only the pipeline may process it."""
        for body, one in list(current.unknown.items()):
            try:
                found = current.tables.get(body) or self._tables.get(body) or self._table(one)
            except KeyError:
                if not self._cuts:
                    return False
                continue
            except ProtocolError:
                return False
            if found is None:
                return False
            current.tables[body] = found
            del current.unknown[body]
        return True

    def _event_end(self, packet: bytes) -> int:
        assert self._next is not None
        return len(packet) - 4 if self._next.checksums else len(packet)

    def _statement(self, packet: bytes) -> bytes:
        """Return the statement of a QUERY event; empty if the event is damaged."""
        if len(packet) < _QUERY_HEAD:
            return b""
        status_size = int.from_bytes(packet[_QUERY_HEAD - 2 : _QUERY_HEAD], "little")
        database_size = packet[_QUERY_HEAD - 5]
        return packet[_QUERY_HEAD + status_size + database_size + 1 : self._event_end(packet)]

    def _end(self, current: _Transaction, packet: bytes) -> Sequence[Piece]:
        assert self._next is not None
        self._append(packet)
        if not current.cut:
            self._next.executed.add(current.gtid)
        self._tables |= current.tables
        self._complete = len(self._packets)
        self._current = None
        return self.flush() if self._size >= self.limit else ()

    def _at_most(self) -> Sequence[Piece]:
        return self._give_up() if self._size > self._most else ()

    def _cut_inside(self, current: _Transaction) -> Sequence[Piece]:
        """Return the available part of the current transaction."""
        following = self._next
        if following is None or not current.open:
            return ()
        packets, self._packets, self._size = self._packets, [], 0
        end = following.advance(current, len(packets))
        chunk = following.chunk(packets, dict(current.tables), end)
        following.begin_inside(current, packets)
        return [chunk]

    def _pass(self, current: _Transaction, packet: bytes) -> Sequence[Piece]:
        """Leave the available part of the transaction to the pipeline: the first rows of a table."""
        pieces: list[Piece] = [*self.flush()]
        following = self._next
        assert following is not None
        packets, self._packets, self._size = [*self._packets, packet], [], 0
        pieces.append(Inline(packets, following.head if current.cut else (), resets=False))
        following.advance(current, len(packets))
        following.begin_inside(current, packets)
        return pieces


class _Next:
    """The start of the next chunk; see :class:`EventChunk`."""

    def __init__(self, boundary: Boundary) -> None:
        self.checksums = boundary.checksums
        self.executed = ExecutedGtids(boundary.offset, boundary.connector)
        self.start = boundary.offset
        self.head: Sequence[bytes] = ()
        self.events = 0
        self.position = boundary.offset.pos
        self.gtids = self.executed.text

    def advance(self, current: _Transaction, packets: int) -> End:
        """Advance inside a transaction, and return the end of the preceding part."""
        current.events += packets
        if not current.cut:
            self.executed.add(current.gtid)
            current.events -= len(current.head) - 1  # the events before BEGIN
            current.cut = True
        return End(self.executed.text, current.events)

    def begin_inside(self, current: _Transaction, packets: Sequence[bytes]) -> None:
        """Begin the next chunk after these events of a transaction."""
        self.head, self.events = current.replayed(), current.events
        self.position += sum(map(len, packets))
        self.gtids = self.executed.text

    def chunk(self, packets: Sequence[bytes], tables: Tables, end: End) -> EventChunk:
        return EventChunk(self.start, self.head, self.events, self.position, self.gtids, packets, tables, end)


def _log_pos(packet: bytes) -> int:
    return int(HEADER.unpack_from(packet)[4])
