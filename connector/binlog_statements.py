"""The statements in the binlog files of a folder, each with its place: for ``rowtide schema`` without a history.

An edge: it opens the files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowtide.connector.binlog_folder import binlog_files
from rowtide.connector.protocol import events
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.statements import is_begin, is_end, is_xa, query_event
from rowtide.schema_history.gtid import GtidSet, MariadbGtidPosition
from rowtide.schema_history.position import BinlogPosition
from rowtide.schema_history.query import QueryEvent


@dataclass(frozen=True, slots=True)
class BinlogStatement:
    """One statement.

    Attributes:
        place: behind it: the file, the position, the GTIDs that are executed then.
        event: the statement, with all that decides what it does.
        version: of the server that wrote it.
    """

    place: BinlogPosition
    event: QueryEvent
    version: str


def binlog_statements(folder: Path) -> Iterator[BinlogStatement]:
    """Every statement but the frame of transactions, in order.

    Raises:
        ConnectorError: a file cannot be read.
    """
    files = binlog_files(folder)
    reader = _Reader()
    for number, file in enumerate(files, 1):
        with file.path.open("rb") as stream:
            reader.decoder.file = file.name
            for packet in binlog_packets(stream, file.name, active=number == len(files)):
                yield from reader.statements(reader.decoder.decode(packet))


class _Reader:
    def __init__(self) -> None:
        self.decoder = EventDecoder()
        self._gtids: GtidSet | MariadbGtidPosition | None = None

    def statements(self, event: events.Event) -> Iterator[BinlogStatement]:
        if isinstance(event, events.TransactionPayload):
            for inner in self.decoder.unpack(event):
                yield from self.statements(inner)
        elif isinstance(event, events.PreviousGtids):
            self._gtids = event.gtids.copy()
        elif isinstance(event, events.Gtid) and not event.anonymous and isinstance(self._gtids, GtidSet):
            self._gtids.add(event.uuid, event.gno, event.tag)
        elif isinstance(event, events.MariadbGtidEvent):
            self._gtids = self._gtids or MariadbGtidPosition()
            if isinstance(self._gtids, MariadbGtidPosition):
                self._gtids.add(event.gtid)
        elif isinstance(event, events.Query):
            word = event.statement[:24].lstrip().upper()
            if not (is_begin(word) or is_end(word) or is_xa(word)):
                yield self._statement(event)

    def _statement(self, event: events.Query) -> BinlogStatement:
        file, header = self.decoder.file, event.header
        gtids = str(self._gtids) if self._gtids else None
        place = BinlogPosition(file, header.log_pos, gtids, server_id=header.server_id, ts_sec=header.timestamp)
        version = self.decoder.format.server_version if self.decoder.format else ""
        return BinlogStatement(place, query_event(event, f"{file}:{header.log_pos}"), version)
