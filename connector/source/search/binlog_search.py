"""Searches the binlog on separate connections: for XA transactions, and for statements."""

import contextlib
import itertools
import logging
import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import ConnectorError, PositionPurged, ProtocolError, SnapshotError
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import ARTIFICIAL, GTID_TYPES, HEADER, ROWS_TYPES, EventType
from rowtide.connector.protocol.statements import FL_PREPARED_XA, is_xa, xa_end, xa_start
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.source.binlog_stream import StreamBroken, second_stream
from rowtide.connector.source.event_stream import EventStream, StreamFactory
from rowtide.connector.source.files.statements import BinlogStatement, StatementReader
from rowtide.connector.source.search.positions import BinlogFiles
from rowtide.schema_history.position.binlog_position import file_number

log = logging.getLogger(__name__)

_LONGEST_S = 300.0
"""Limit for a search: an XA transaction can stay prepared for months, in a binlog of terabytes."""
_SILENCE_S = 30.0
_TRIES, _RETRY_WAIT_S = 3, 1.0
_FIRST_EVENT = 4
_DECODED = {EventType.FORMAT_DESCRIPTION, EventType.ROTATE, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD}
_STREAM = {EventType.FORMAT_DESCRIPTION, EventType.ROTATE}
_ROWS = ROWS_TYPES | {EventType.TABLE_MAP}


class BinlogSearch:
    """Searches the binlog of one server.

    Args:
        config: address and account of the server.
        mariadb: whether the server is MariaDB.
        archive: opens a stream at a position that the server has purged; ``None`` if there is none.
    """

    def __init__(self, config: DatabaseConfig, *, mariadb: bool, archive: StreamFactory | None = None) -> None:
        self._config = config
        self._mariadb = mariadb
        self._archive = archive

    def prepared(self, xids: Collection[str], files: Sequence[str], position: SourceOffset) -> list[PreparedXa]:
        """Find XA transactions that are prepared at a position.

        Args:
            xids: the transactions.
            files: the server's binlog files, in order.
            position: the end of the search.

        Raises:
            StreamBroken: the connection breaks repeatedly.
            SnapshotError: the binlog does not have all of them, cannot be read, or is too large to search.
        """
        limit = time.monotonic() + _LONGEST_S
        last: dict[str, PreparedXa | None] = {}
        until = position
        for file in reversed(files[: files.index(position.file) + 1]):
            if last.keys() >= {*xids} or time.monotonic() > limit:
                break
            # Identifiers can be reused, so one that ends is not the one that is currently prepared.
            last = dict(self._events_of(xids, SourceOffset(file, 4), until, limit)) | last
            until = SourceOffset(file, 4)
        found = {xid: xa for xid in xids if (xa := last.get(xid)) is not None}
        if missing := sorted({*xids} - found.keys()):
            late = time.monotonic() > limit
            raise _unaccounted(missing, f"not found in {_LONGEST_S:.0f} s" if late else "no binlog file has them")
        return list(found.values())

    def first_events(
        self, xids: Collection[str], start: SourceOffset, end: SourceOffset
    ) -> dict[str, PreparedXa | None]:
        """Return the first event of XA transactions between two positions; ``None`` for the end of a transaction.

        Transactions without an event are not in the result.

        Raises:
            StreamBroken: the connection breaks repeatedly.
            SnapshotError: the binlog cannot be read.
        """
        return dict(reversed(self._events_of(xids, start, end)))

    def _events_of(
        self, xids: Collection[str], start: SourceOffset, end: SourceOffset, limit: float = math.inf
    ) -> list[tuple[str, PreparedXa | None]]:
        """Return the events of XA transactions between two positions: the place of a prepare; ``None`` for an end."""
        tries = 1
        while True:
            try:
                return [(xid, xa) for xid, xa in self._xa_events(start, end, limit) if xid in xids]
            except StreamBroken as error:
                if tries == _TRIES:
                    raise
                log.warning("%s; the search for prepared XA transactions starts again", error)
                time.sleep(_RETRY_WAIT_S)
                tries += 1
            except ConnectorError as error:
                raise _unaccounted((), f"the binlog file {start.file} cannot be read: {error}") from error

    def statements(self, start: SourceOffset, end: SourceOffset) -> Iterator[BinlogStatement]:
        """Yield the statements between two positions, without those that begin and end transactions.

        Raises:
            ConnectorError: the binlog cannot be read.
        """
        reader = StatementReader(EventDecoder(start.file))
        for packet in self._packets_between(start, end, reader.decoder):
            yield from reader.statements(reader.decoder.decode(packet))

    def _xa_events(
        self, start: SourceOffset, end: SourceOffset, limit: float = math.inf
    ) -> Iterator[tuple[str, PreparedXa | None]]:
        """Yield the XA transactions in order: with the place of its prepare, or with ``None`` at its end."""
        decoder = EventDecoder(start.file)

        def numbered() -> Iterator[tuple[int, bytes]]:
            for packet in self._packets_between(start, end, decoder, limit):
                _, _, _, size, log_pos, _ = HEADER.unpack_from(packet)
                yield log_pos - size, packet

        yield from _xa_parts(numbered(), decoder, start.pos)

    def packets(self, xa: PreparedXa) -> Iterator[bytes]:
        """Yield the events from the start of an XA transaction.

        With GTIDs, it is searched for after the preceding transactions, because a file and a position are valid on one
        server only: after a fail-over, another server has it elsewhere. There are no events if it is not found.

        Raises:
            StreamBroken: the connection breaks.
            ProtocolError: the server no longer has its part of the binlog.
        """
        gtids = None if xa.before is None else xa.before.gtids
        packets = self._packets(xa.file, xa.pos, gtids)
        try:
            yield from packets if gtids is None else _from_xa(packets, xa.xid)
        except PositionPurged as error:
            raise ProtocolError(
                f"the rows of XA transaction {xa.xid} are at {xa.file}:{xa.pos}, and the server no longer has that "
                "file: keep binlogs for longer than XA transactions stay prepared "
                "(binlog_expire_logs_seconds). Take a new snapshot of its tables, or set "
                "event.processing.failure.handling.mode=warn to continue without them"
            ) from error

    def _packets_between(
        self, start: SourceOffset, end: SourceOffset, decoder: EventDecoder, limit: float = math.inf
    ) -> Iterator[bytes]:
        """Yield the events between two positions, without those that hold rows.

        Args:
            start: the first position.
            end: the last position.
            decoder: the caller decodes at least each ROTATE with it, which shows the file.
            limit: the time of the monotonic clock at which to stop in any case.
        """
        last = _place(end)
        for packet in self._packets(start.file, start.pos):
            _, kind, _, _, log_pos, flags = HEADER.unpack_from(packet)
            if kind not in _ROWS:
                yield packet
            pos = decoder.position
            if kind != EventType.ROTATE and not flags & ARTIFICIAL:
                pos = max(pos, log_pos)
            if (file_number(decoder.file) or 0, pos) >= last or time.monotonic() > limit:
                return

    def _packets(self, file: str, pos: int, gtids: str | None = None) -> Iterator[bytes]:
        start = SourceOffset(file, pos, gtids)
        try:
            yield from self._of(second_stream(self._config, start, mariadb=self._mariadb), file)
        except PositionPurged:
            if self._archive is None:
                raise
            yield from self._of(self._archive(start), file)

    def _of(self, stream: EventStream, file: str) -> Iterator[bytes]:
        heard = time.monotonic()
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                if packets:
                    yield from packets
                    heard = time.monotonic()  # the caller may take its time
                elif time.monotonic() - heard > _SILENCE_S:
                    raise StreamBroken(f"no event of {file} came for {_SILENCE_S:.0f} s")


def xa_prepared_before(files: BinlogFiles, xid: str, start: SourceOffset) -> PreparedXa | None:
    """Return the XA transaction with this identifier that is prepared at a position, if the files have it."""
    for name in reversed(files.names[: files.names.index(start.file) + 1]):
        events_of_file = dict(_xa_in_file(files, name, start.pos if name == start.file else None))
        if xid in events_of_file:  # identifiers can be used again: the last event decides
            return events_of_file[xid]
    return None


def _xa_in_file(files: BinlogFiles, name: str, end: int | None) -> Iterator[tuple[str, PreparedXa | None]]:
    """Yield the XA transactions that are prepared or end in a file, before a position."""

    def numbered() -> Iterator[tuple[int, bytes]]:
        position = _FIRST_EVENT
        for packet in files.events(name):
            if end is not None and position >= end:
                return
            yield position, packet
            position += len(packet)

    yield from _xa_parts(numbered(), EventDecoder(name), _FIRST_EVENT)


def _xa_parts(
    packets: Iterable[tuple[int, bytes]], decoder: EventDecoder, group: int
) -> Iterator[tuple[str, PreparedXa | None]]:
    """Yield the XA transactions in order: with the place of its prepare, or with ``None`` at its end.

    Args:
        packets: each event with its position.
        decoder: decodes them.
        group: the beginning of the first transaction.
    """
    for position, packet in packets:
        kind = packet[4]
        if kind in GTID_TYPES:
            group = position
        elif kind in _DECODED or (kind == EventType.QUERY and b"XA " in packet):
            event: events.Event | None = decoder.decode(packet)
            if isinstance(event, events.TransactionPayload):
                event = _compressed_prepare(decoder, event)
            if isinstance(event, events.XaPrepare) and not event.one_phase:
                yield event.xid, PreparedXa(event.xid, decoder.file, group)
            elif isinstance(event, events.Query) and (xid := xa_end(event.statement)[0]):
                yield xid, None


def _from_xa(packets: Iterable[bytes], xid: str) -> Iterator[bytes]:
    """Yield the events that describe the stream, and all events from the start of an XA transaction.

    Other transactions in between are omitted, because servers need not have the same order.
    """
    decoder = EventDecoder()
    within = iter(packets)
    group: bytes | None = None
    for packet in within:
        kind = packet[4]
        if kind in _STREAM:
            decoder.decode(packet)
            yield packet
        elif kind in GTID_TYPES:
            group = packet
            event = decoder.decode(packet)
            if isinstance(event, events.MariadbGtidEvent) and event.flags & FL_PREPARED_XA and event.xid == xid:
                break
        elif kind == EventType.QUERY or (kind == EventType.TRANSACTION_PAYLOAD and group is not None):
            event = decoder.decode(packet)
            if isinstance(event, events.Query):
                if xa_end(event.statement)[0] == xid:
                    return
                found = xa_start(event.statement)
            else:
                assert isinstance(event, events.TransactionPayload)
                prepared = _compressed_prepare(decoder, event)
                found = "" if prepared is None else prepared.xid
            if found == xid:
                within = itertools.chain((packet,), within)
                break
    else:
        return
    if group is not None:
        yield group
    yield from within


def _compressed_prepare(decoder: EventDecoder, payload: events.TransactionPayload) -> events.XaPrepare | None:
    """Return the XA_PREPARE of a compressed transaction that begins with ``XA START``; ``None`` for others."""
    for number, event in enumerate(decoder.unpack(payload)):
        if number == 0 and not (isinstance(event, events.Query) and is_xa(event.statement[:3].upper())):
            return None
        if isinstance(event, events.XaPrepare):
            return event
    return None


def _unaccounted(xids: Sequence[str], reason: str) -> SnapshotError:
    names = "; ".join(xids) or "XA transactions"
    return SnapshotError(
        f"the changes of prepared XA transactions would be missing after XA COMMIT: {names}: {reason}. Commit or roll "
        "back the transactions that XA RECOVER lists, then start again"
    )


def _place(position: SourceOffset | PreparedXa) -> tuple[int, int]:
    return file_number(position.file) or 0, position.pos
