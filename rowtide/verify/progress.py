"""Edge: finds out whether a connector has delivered all changes before a position of its source."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.delivery.offset_store import OffsetStore
from rowtide.connector.errors import PositionPurged
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import HEADER, end_of_event
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.view.stream_order import binlog_order, has_passed
from rowtide.connector.source.search.places import ServerFiles
from rowtide.connector.source.search.positions import BinlogFiles
from rowtide.connector.source.search.unread import is_transaction_end, unread_rows
from rowtide.connector.source.server_queries import binlog_files
from rowtide.connector.source.session import Session

_FIRST_EVENT = 4
_STRUCTURE = re.compile(rb"\s*(?:/\*.*?\*/\s*)*(?:TRUNCATE|DROP|RENAME|ALTER|CREATE)\b", re.IGNORECASE | re.DOTALL)

Captures = Callable[[str, str], bool]
"""Tells whether a table of a database is captured."""


class Progress:
    """How far a connector is.

    Args:
        config: its configuration.
        offsets: where it stores its position.
        captures: whether a table of a database is captured.
    """

    def __init__(self, config: Configuration, offsets: OffsetStore, captures: Captures) -> None:
        self._config, self._offsets, self._captures = config, offsets, captures
        self._scanned: tuple[SourceOffset, SourceOffset, bool] | None = None
        self.stored: SourceOffset | None = None

    def has_delivered(self, end: SourceOffset, session: Session) -> bool:
        """Whether all records of captured tables before a position are in the topics.

        A connector stores no position for transactions that it does not publish. So if the stored position is
        earlier, the binlog between both is searched for changes of captured tables.

        Raises:
            OffsetStoreError: the position cannot be read.
            ConnectorError: the binlog cannot be read.
        """
        stored = self.stored = self._offsets.load()
        if stored is None or stored.snapshot is not None:
            return False
        stored = replace(stored, server=end.server)
        if has_passed(stored, end, self._config.flavor.value):
            return True
        if self._scanned is None or self._scanned[:2] != (stored, end):
            database, mariadb = self._config.database, self._config.flavor is Flavor.MARIADB
            files = ServerFiles(database, binlog_files(session.client), mariadb=mariadb)
            self._scanned = stored, end, has_changes(files, stored, end, self._captures)
        return not self._scanned[2]


def has_changes(files: BinlogFiles, start: SourceOffset, end: SourceOffset, captures: Captures) -> bool:
    """Whether there may be changes of captured tables between a stored position and another one.

    Raises:
        PositionPurged: the server no longer has the binlog at the start.
        ConnectorError: the binlog cannot be read.
    """
    if start.file not in files.names:
        raise PositionPurged(
            f"the connector's position {start.file}:{start.pos} is in a binlog file that the server no longer has"
        )
    begun = bool(start.event or start.row)
    if begun and unread_rows(files, start, captures) != 0:
        return True
    for event in _events_between(files, start, end):
        if begun:  # the rest of the transaction that was counted
            begun = not is_transaction_end(event)
        elif isinstance(event, events.TableMap):
            if captures(event.structure.database, event.structure.table):
                return True
        elif isinstance(event, events.Query) and _STRUCTURE.match(event.statement):
            return True
    return False


def _events_between(files: BinlogFiles, start: SourceOffset, end: SourceOffset) -> Iterator[events.Event]:
    last = binlog_order(end.file, end.pos)
    for file in files.names[files.names.index(start.file) :]:
        decoder, position = EventDecoder(file), _FIRST_EVENT
        for packet in files.events(file):
            if binlog_order(file, position) >= last:
                return
            _, _, _, size, log_pos, _ = HEADER.unpack_from(packet)
            decoded = decoder.decode(packet)
            if file != start.file or position >= start.pos:
                if isinstance(decoded, events.TransactionPayload):
                    yield from decoder.unpack(decoded)
                elif decoded is not None:
                    yield decoded
            position = end_of_event(position, size, log_pos)
        if binlog_order(file, position) >= last:
            return
