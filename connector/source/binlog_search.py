"""Edge: searches the binlog on connections beside that of the stream: for XA transactions, and for statements."""

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence

from rowtide.connector.config.model import DatabaseConfig
from rowtide.connector.errors import ConnectorError, PositionPurged, ProtocolError, SnapshotError
from rowtide.connector.pipeline.statements import is_xa
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import ARTIFICIAL, GTID_TYPES, HEADER, ROWS_TYPES, EventType
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.source.binlog_statements import BinlogStatement, StatementReader
from rowtide.connector.source.binlog_stream import StreamBroken, stream_beside
from rowtide.schema_history.position.binlog_position import file_number

log = logging.getLogger(__name__)

_LONGEST_S = 300.0
"""Limit for a search: an XA transaction can stay prepared for months, in a binlog of terabytes."""
_SILENCE_S = 30.0
_TRIES, _RETRY_WAIT_S = 3, 1.0
_DECODED = {EventType.FORMAT_DESCRIPTION, EventType.ROTATE, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD}
_NO_STATEMENT = ROWS_TYPES | {EventType.TABLE_MAP}


class BinlogSearch:
    """Searches the binlog of one server.

    Args:
        config: how the server is reached.
        mariadb: whether it is a MariaDB.
    """

    def __init__(self, config: DatabaseConfig, *, mariadb: bool) -> None:
        self._config = config
        self._mariadb = mariadb

    def prepared(
        self, xids: Sequence[str], files: Sequence[str], start: SourceOffset, end: SourceOffset
    ) -> list[PreparedXa]:
        """Where XA transactions that are prepared stand in the binlog, in its order.

        Args:
            xids: the transactions.
            files: the server's binlog files, in order.
            start: where streaming starts. Transactions that were prepared after it are left out: the stream has them.
            end: a position at which all were prepared.

        Raises:
            StreamBroken: the connection breaks again and again.
            SnapshotError: the binlog does not have them all, cannot be read, or is too large to be searched.
        """
        found: dict[str, PreparedXa] = {}
        limit = time.monotonic() + _LONGEST_S
        for file in reversed(files[: files.index(end.file) + 1]):
            prepared = self._prepared_in(file, end.pos if file == end.file else None, limit)
            found = {xid: prepared[xid] for xid in xids if xid in prepared} | found
            if len(found) == len(xids):
                break
            if time.monotonic() > limit:
                break
        if missing := sorted({*xids} - found.keys()):
            late = time.monotonic() > limit
            raise _unaccounted(missing, f"not found in {_LONGEST_S:.0f} s" if late else "no binlog file has them")
        before = files[: files.index(start.file) + 1]
        places = (xa for xa in found.values() if xa.file in before)
        return sorted(
            (xa for xa in places if xa.file != start.file or xa.pos < start.pos),
            key=lambda xa: (before.index(xa.file), xa.pos),
        )

    def _prepared_in(self, file: str, end: int | None, limit: float) -> dict[str, PreparedXa]:
        """All XA transactions that are prepared in a file, up to a position; of one name, the last."""
        tries = 1
        while True:
            try:
                return {xa.xid: xa for xa in self._xa_prepares(file, end, limit)}
            except StreamBroken as error:
                if tries == _TRIES:
                    raise
                log.warning("%s; the search for prepared XA transactions starts again", error)
                time.sleep(_RETRY_WAIT_S)
                tries += 1
            except ConnectorError as error:
                raise _unaccounted((), f"the binlog file {file} cannot be read: {error}") from error

    def _xa_prepares(self, file: str, end: int | None, limit: float) -> Iterator[PreparedXa]:
        decoder = EventDecoder(file)
        group = 4
        for packet in self._packets(file, 4):
            _, kind, _, size, log_pos, flags = HEADER.unpack_from(packet)
            if kind in GTID_TYPES:
                group = log_pos - size
            elif kind in _DECODED:
                event = decoder.decode(packet)
                if isinstance(event, events.Rotate) and event.next_file != file:
                    return
                inner = _compressed_prepare(decoder, event) if isinstance(event, events.TransactionPayload) else None
                event = inner or event
                if isinstance(event, events.XaPrepare) and not event.one_phase:
                    yield PreparedXa(event.xid, file, group)
            at_end = end is not None and not flags & ARTIFICIAL and log_pos >= end
            if at_end or time.monotonic() > limit:
                return

    def statements(self, start: SourceOffset, end: SourceOffset) -> Iterator[BinlogStatement]:
        """The statements between two positions, without those that begin and end transactions.

        Raises:
            ConnectorError: the binlog cannot be read.
        """
        reader = StatementReader(EventDecoder(start.file))
        decoder = reader.decoder
        last = (file_number(end.file) or 0, end.pos)
        for packet in self._packets(start.file, start.pos):
            if HEADER.unpack_from(packet)[1] not in _NO_STATEMENT:
                yield from reader.statements(decoder.decode(packet))
            if (file_number(decoder.file) or 0, decoder.position) >= last:
                return

    def packets(self, xa: PreparedXa) -> Iterator[bytes]:
        """The events from the beginning of an XA transaction on.

        Raises:
            StreamBroken: the connection breaks.
            ProtocolError: the server no longer has the binlog file.
        """
        try:
            yield from self._packets(xa.file, xa.pos)
        except PositionPurged as error:
            raise ProtocolError(
                f"the rows of XA transaction {xa.xid} are at {xa.file}:{xa.pos}, and the server no longer has that "
                "file: keep binlogs for longer than XA transactions stay prepared (binlog_expire_logs_seconds). Take a "
                "new snapshot of its tables, or set event.processing.failure.handling.mode=warn to continue without "
                "them"
            ) from error

    def _packets(self, file: str, pos: int) -> Iterator[bytes]:
        stream = stream_beside(self._config, SourceOffset(file, pos), mariadb=self._mariadb)
        heard = time.monotonic()
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                if packets:
                    heard = time.monotonic()
                elif time.monotonic() - heard > _SILENCE_S:
                    raise StreamBroken(f"no event of {file} came for {_SILENCE_S:.0f} s")
                yield from packets


def _compressed_prepare(decoder: EventDecoder, payload: events.TransactionPayload) -> events.XaPrepare | None:
    """The XA_PREPARE of a compressed transaction; ``None`` if the transaction does not begin with ``XA START``."""
    for number, event in enumerate(decoder.unpack(payload)):
        if number == 0 and not (isinstance(event, events.Query) and is_xa(event.statement[:3].upper())):
            return None
        if isinstance(event, events.XaPrepare):
            return event
    return None


def _unaccounted(xids: Sequence[str], reason: str) -> SnapshotError:
    names = "; ".join(xids) or "XA transactions"
    return SnapshotError(
        f"prepared on the server, and their changes would be missing after XA COMMIT: {names}: {reason}. Commit or "
        "roll them back (XA RECOVER lists them), then start again"
    )
