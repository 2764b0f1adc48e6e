"""Determines whether a connector has delivered all changes before a position of its source."""

import re
from collections.abc import Callable, Collection, Iterator
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
from rowtide.connector.source.search.positions import BinlogFiles, Head, file_of_gtids
from rowtide.connector.source.search.unread import is_transaction_end, unread_rows
from rowtide.connector.source.server_queries import binlog_files
from rowtide.connector.source.session import Session
from rowtide.verify.errors import Undecided
from rowtide.verify.positions import ServerIdentity, have_gtids, refuse_other_server

_FIRST_EVENT = 4
_STRUCTURE = re.compile(rb"\s*(?:/\*.*?\*/\s*)*(?:TRUNCATE|DROP|RENAME|ALTER|CREATE)\b", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(r"[\w$]+", re.ASCII)
"""The names that a statement spells like this, whatever its character set and quotes are."""

Captured = Collection[tuple[str, str]]
"""The databases and names of the captured tables."""


class ConnectorProgress:
    """The progress of a connector.

    Args:
        config: its configuration.
        offsets: the store of its position.
        captured: the captured tables.
    """

    def __init__(self, config: Configuration, offsets: OffsetStore, captured: Captured) -> None:
        self._config, self._offsets, self._captured = config, offsets, captured
        self._scanned: tuple[SourceOffset, SourceOffset, bool] | None = None
        self.stored: SourceOffset | None = None

    def is_of(self, server: ServerIdentity, end: SourceOffset) -> bool:
        """Return whether, by its stored position, the connector's records have positions in the binlog of a server.

        Raises:
            OffsetStoreError: the position cannot be read.
            Undecided: it cannot be compared with a position of the server.
        """
        stored = self.stored = self._offsets.load()
        if stored is None:
            return False
        refuse_other_server(stored, end, server)
        return server.wrote(stored)

    def has_delivered(self, end: SourceOffset, session: Session, server: ServerIdentity) -> bool:
        """Return whether all records of captured tables before a position are in the topics.

        A connector stores no position for transactions that it does not publish. So if the stored position is
        earlier, the binlog between both is searched for changes of captured tables.

        Raises:
            OffsetStoreError: the position cannot be read.
            Undecided: the positions are of different servers, without GTIDs.
            ConnectorError: the binlog cannot be read.
        """
        same_server, stored = self.is_of(server, end), self.stored
        if stored is None or stored.snapshot is not None:
            return False
        flavor = self._config.flavor.value
        if has_passed(replace(stored, server=end.server if same_server else None), end, flavor):
            return True
        if self._scanned is None or self._scanned[:2] != (stored, end):
            database, mariadb = self._config.database, self._config.flavor is Flavor.MARIADB
            annotations = self._config.values.include_query
            files = ServerFiles(database, binlog_files(session.client), mariadb=mariadb)
            if have_gtids(stored, end):
                changed = has_other_changes(files, stored, end, self._captured, flavor, annotations=annotations)
            else:
                changed = has_changes(files, stored, end, self._captured, annotations=annotations)
            self._scanned = stored, end, changed
        return not self._scanned[2]


def has_changes(
    files: BinlogFiles, start: SourceOffset, end: SourceOffset, captured: Captured, *, annotations: bool = True
) -> bool:
    """Return whether there may be changes of captured tables between two positions of one server.

    ``annotations`` is whether positions of the connector count MariaDB's ANNOTATE_ROWS (``include.query``).

    Raises:
        PositionPurged: the server no longer has the binlog at the start.
        Undecided: the files belong to another server.
        ConnectorError: the binlog cannot be read.
    """
    if start.file not in files.names:
        raise PositionPurged(
            f"the connector's position {start.file}:{start.pos} is in a binlog file that the server no longer has"
        )
    begun = bool(start.event or start.row)
    if begun and unread_rows(files, start, _test(captured), annotations=annotations) != 0:
        return True
    for event in _events_between(files, start, end):
        if begun:  # the rest of the transaction that was counted
            begun = not is_transaction_end(event)
        elif _is_change(event, captured):
            return True
    return False


def has_other_changes(
    files: BinlogFiles,
    start: SourceOffset,
    end: SourceOffset,
    captured: Captured,
    connector: str,
    *,
    annotations: bool = True,
) -> bool:
    """Return whether there may be changes of captured tables in a GTID set that are not in another one.

    Args:
        files: the binlog files of any server that has the second set.
        start: contains the delivered GTIDs, and the delivered part of the transaction after them.
        end: contains the wanted GTIDs.
        captured: the captured tables.
        connector: ``mysql`` or ``mariadb``.
        annotations: whether positions of the connector count MariaDB's ANNOTATE_ROWS (``include.query``).

    Raises:
        PositionPurged: the server no longer has all of these transactions.
        ConnectorError: the binlog cannot be read.
    """
    known, wanted = start.gtid_set(connector), end.gtid_set(connector)
    first = file_of_gtids(files, known)
    if first is None:
        raise PositionPurged(
            f"the server no longer has the binlog of transactions that the connector has not read, after {start.gtids}"
        )
    names = files.names
    for file in names[names.index(first) :]:
        omitted = True  # until the first GTID event of the file
        for event in _events_of(files, file):
            if not isinstance(event, events.Gtid | events.MariadbGtidEvent):
                if not omitted and _is_change(event, captured):
                    return True
                continue
            head = Head(0, event)
            omitted = head.gtid is not None and (head.within(known) or not head.within(wanted))
            if not omitted and (start.event or start.row) and _is_begun(start, file, event, head):
                if unread_rows(files, start, _test(captured), annotations=annotations) != 0:
                    return True
                omitted = True
    return False


def _is_begun(start: SourceOffset, file: str, event: events.Event, head: Head) -> bool:
    """Return whether a position is inside a transaction."""
    if start.within is not None:
        return head.gtid == start.within
    header = event.header
    return file == start.file and start.pos in (header.log_pos - header.size, header.log_pos)


def _test(captured: Captured) -> Callable[[str, str], bool]:
    return lambda *name: name in captured


def _is_change(event: events.Event, captured: Captured) -> bool:
    if isinstance(event, events.TableMap):
        return (event.structure.database, event.structure.table) in captured
    if not isinstance(event, events.Query) or _STRUCTURE.match(event.statement) is None:
        return False
    # A statement about other tables has no records here, and the connector may store its position much later.
    statement = event.text.lower()
    return any(_PLAIN.fullmatch(name) is None or name.lower() in statement for table in captured for name in table)


def _events_of(files: BinlogFiles, file: str) -> Iterator[events.Event]:
    decoder = EventDecoder(file)
    for packet in files.events(file):
        yield from _unpacked(decoder, decoder.decode(packet))


def _unpacked(decoder: EventDecoder, event: events.Event | None) -> Iterator[events.Event]:
    """Yield the events of a compressed transaction, or another event itself."""
    if isinstance(event, events.TransactionPayload):
        yield from decoder.unpack(event)
    elif event is not None:
        yield event


def _events_between(files: BinlogFiles, start: SourceOffset, end: SourceOffset) -> Iterator[events.Event]:
    last = binlog_order(end.file, end.pos)
    for file in files.names[files.names.index(start.file) :]:
        decoder, position = EventDecoder(file), _FIRST_EVENT
        for packet in files.events(file):
            if binlog_order(file, position) >= last:
                return
            _, _, _, size, log_pos, _ = HEADER.unpack_from(packet)
            decoded = decoder.decode(packet)
            if position == _FIRST_EVENT and decoder.format is not None:
                _refuse_files(file, str(decoder.format.header.server_id), end)
            if file != start.file or position >= start.pos:
                yield from _unpacked(decoder, decoded)
            position = end_of_event(position, size, log_pos)
        if binlog_order(file, position) >= last:
            return


def _refuse_files(file: str, written_by: str, end: SourceOffset) -> None:
    """Refuse files of another server, to which the same host name may lead."""
    if end.server is not None and written_by != end.server:
        raise Undecided(
            f"the binlog file {file} was written by the server with server_id {written_by}, but the tables are read "
            f"from the one with server_id {end.server}: let database.hostname name one server, or use GTIDs"
        )
