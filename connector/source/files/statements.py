"""Reads the statements in binlog files, each with its position.

``rowtide schema`` uses them if there is no schema history, and a replay uses them for table structures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowtide.connector.protocol import events
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.statements import is_begin, is_end, is_xa, query_event
from rowtide.connector.source.files.folder import binlog_files
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from rowtide.schema_history.server.query_event import QueryEvent


@dataclass(frozen=True, slots=True)
class BinlogStatement:
    """A statement of the binlog.

    Attributes:
        position: the position after it: file, offset, and the GTIDs executed by then.
        event: the statement with its session settings.
        version: the version of the server that wrote it.
    """

    position: BinlogPosition
    event: QueryEvent
    version: str


def binlog_statements(folder: Path) -> Iterator[BinlogStatement]:
    """Yield every statement in order, except BEGIN, COMMIT and the like.

    Raises:
        ConnectorError: a file cannot be read.
    """
    files = binlog_files(folder)
    reader = StatementReader(EventDecoder())
    for number, file in enumerate(files, 1):
        with file.path.open("rb") as stream:
            reader.decoder.file = file.name
            for packet in binlog_packets(stream, file.name, active=number == len(files)):
                yield from reader.statements(reader.decoder.decode(packet))


class StatementReader:
    """Extracts the statements from events, which must be passed in order.

    Args:
        decoder: decodes the events.

    Attributes:
        gtids: the GTIDs executed up to the last event; ``None`` if there were none.
    """

    def __init__(self, decoder: EventDecoder) -> None:
        self.decoder = decoder
        self.gtids: GtidSet | MariadbGtidPosition | None = None

    def statements(self, event: events.Event) -> Iterator[BinlogStatement]:
        """Yield the statements of an event, except BEGIN, COMMIT and the like."""
        if isinstance(event, events.TransactionPayload):
            for inner in self.decoder.unpack(event):
                yield from self.statements(inner)
        elif isinstance(event, events.PreviousGtids):
            self.gtids = event.gtids.copy()
        elif isinstance(event, events.Gtid) and not event.anonymous and isinstance(self.gtids, GtidSet):
            self.gtids.add(event.uuid, event.gno, event.tag)
        elif isinstance(event, events.MariadbGtidEvent):
            self.gtids = self.gtids or MariadbGtidPosition()
            if isinstance(self.gtids, MariadbGtidPosition):
                self.gtids.add(event.gtid)
        elif isinstance(event, events.Query):
            word = event.statement[:24].lstrip().upper()
            if not (is_begin(word) or is_end(word) or is_xa(word)):
                yield self._statement(event)

    def _statement(self, event: events.Query) -> BinlogStatement:
        file, header = self.decoder.file, event.header
        gtids = str(self.gtids) if self.gtids else None
        position = BinlogPosition(file, header.log_pos, gtids, server_id=header.server_id, ts_sec=header.timestamp)
        version = self.decoder.format.server_version if self.decoder.format else ""
        return BinlogStatement(position, query_event(event, f"{file}:{header.log_pos}"), version)
