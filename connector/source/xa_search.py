"""Edge: looks for prepared XA transactions in the binlog, over a connection beside the stream's.

A snapshot neither has what they have changed, nor does what follows its position: their rows stand before it.
"""

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence

from rowtide.connector.config.model import DatabaseConfig
from rowtide.connector.errors import ConnectorError, PositionPurged, ProtocolError
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import ARTIFICIAL, GTID_TYPES, HEADER, EventType
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.source.binlog_stream import stream_beside

log = logging.getLogger(__name__)

_LONGEST_S = 60.0
"""How long the binlog is searched: nobody waits for transactions that were forgotten months ago."""
_SILENCE_S = 30.0
_READ = {EventType.FORMAT_DESCRIPTION, EventType.ROTATE, EventType.XA_PREPARE}


class XaSearch:
    """The binlog of one server.

    Args:
        config: how the server is reached.
        mariadb: whether it is a MariaDB.
    """

    def __init__(self, config: DatabaseConfig, *, mariadb: bool) -> None:
        self._config = config
        self._mariadb = mariadb

    def find(self, xids: Sequence[str], files: Sequence[str], end: SourceOffset) -> list[PreparedXa]:
        """The places of transactions, the newest binlog file first, as far as there is time for.

        Args:
            xids: the transactions.
            files: the server's binlog files, in order.
            end: where they stood all prepared.
        """
        found: dict[str, PreparedXa] = {}
        limit = time.monotonic() + _LONGEST_S
        try:
            for file in reversed(files[: files.index(end.file) + 1]):
                prepared = self._prepared(file, end.pos if file == end.file else None, limit)
                found = {xid: prepared[xid] for xid in xids if xid in prepared} | found
                if len(found) == len(xids) or time.monotonic() > limit:
                    break
        except ConnectorError as error:
            log.warning("the binlog cannot be searched for XA transactions: %s", error)
        return sorted(found.values(), key=lambda xa: (files.index(xa.file), xa.pos))

    def _prepared(self, file: str, end: int | None, limit: float) -> dict[str, PreparedXa]:
        """All that were prepared in a file, up to a position of it; the last one of a name counts."""
        decoder = EventDecoder(file)
        group = 4
        found: dict[str, PreparedXa] = {}
        for packet in self._packets(file, 4):
            _, kind, _, size, log_pos, flags = HEADER.unpack_from(packet)
            if kind in GTID_TYPES:
                group = log_pos - size
            elif kind in _READ:
                event = decoder.decode(packet)
                if isinstance(event, events.Rotate) and event.next_file != file:
                    break
                if isinstance(event, events.XaPrepare):
                    found[event.xid] = PreparedXa(event.xid, file, group)
            at_end = end is not None and not flags & ARTIFICIAL and log_pos >= end
            if at_end or time.monotonic() > limit:
                break
        return found

    def packets(self, xa: PreparedXa) -> Iterator[bytes]:
        """The events from the beginning of a transaction on.

        Raises:
            StreamBroken: the connection breaks.
            ProtocolError: the server has that file no more.
        """
        try:
            yield from self._packets(xa.file, xa.pos)
        except PositionPurged as error:
            raise ProtocolError(
                f"the rows of XA transaction {xa.xid} stand at {xa.file}:{xa.pos}, and the server has that file no "
                "more: keep binlogs for longer than XA transactions stay prepared (binlog_expire_logs_seconds). Take a "
                "new snapshot of its tables, or set event.processing.failure.handling.mode=warn to go on without them"
            ) from error

    def _packets(self, file: str, pos: int) -> Iterator[bytes]:
        stream = stream_beside(self._config, SourceOffset(file, pos), mariadb=self._mariadb)
        heard = time.monotonic()
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                if packets:
                    heard = time.monotonic()
                elif time.monotonic() - heard > _SILENCE_S:
                    return
                yield from packets
