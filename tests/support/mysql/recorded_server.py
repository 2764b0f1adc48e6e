"""A stub of a server that sends the events of a recorded binlog file from a resume position on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import GTID_TYPES
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from tests.support.mysql.packets import golden_packets

__all__ = ["FILE", "RecordedServer", "recorded_file", "recorded_stream"]

FILE = "binlog.000001"
_BINLOGS = Path(__file__).parents[2] / "connector" / "pipeline" / "binlogs"


@dataclass(frozen=True)
class RecordedServer:
    """One binlog file.

    Attributes:
        events: every event with its position, the FORMAT_DESCRIPTION first.
        connector: ``mysql`` or ``mariadb``.
    """

    events: Sequence[tuple[int, bytes]]
    connector: str

    def decoder(self) -> EventDecoder:
        """A decoder that has read the FORMAT_DESCRIPTION."""
        decoder = EventDecoder(FILE)
        decoder.decode(self.events[0][1])
        return decoder

    def start(self) -> SourceOffset:
        """The offset in front of the file's first transaction, with the GTIDs that were executed before it."""
        event = self.decoder().decode(self.events[1][1])
        if isinstance(event, events.PreviousGtids):
            return SourceOffset(FILE, 4, str(event.gtids) or None)
        assert isinstance(event, events.MariadbGtidList)
        return SourceOffset(FILE, 4, ",".join(map(str, event.gtids)))

    def stream(self, start: SourceOffset) -> Iterator[bytes]:
        """The events after an offset: by GTID set if the offset has one, else by position."""
        if start.gtids is None:
            yield from (packet for pos, packet in self.events[1:] if pos >= start.pos)
            return
        executed, decoder, needed = start.gtid_set(self.connector), self.decoder(), False
        for _, packet in self.events[1:]:
            if packet[4] in GTID_TYPES:
                needed = not _contains(executed, decoder.decode(packet))
            if needed:
                yield packet

    def transaction(self, xa: PreparedXa) -> Iterator[bytes]:
        """The FORMAT_DESCRIPTION and the events from the start of an XA transaction on."""
        yield self.events[0][1]
        yield from (packet for pos, packet in self.events[1:] if pos >= xa.pos)


def _contains(executed: GtidSet | MariadbGtidPosition, event: events.Event) -> bool:
    if isinstance(event, events.Gtid):
        assert isinstance(executed, GtidSet)
        return executed.contains(event.uuid, event.gno, event.tag)
    assert isinstance(event, events.MariadbGtidEvent)
    assert isinstance(executed, MariadbGtidPosition)
    return executed.contains(event.gtid)


def recorded_stream(name: str) -> RecordedServer:
    """The server of a file in ``tests/connector/pipeline/binlogs``; see the README there for what it has."""
    return recorded_file(_BINLOGS / f"{name}.gz", name.split("-", maxsplit=1)[0])


def recorded_file(path: Path, connector: str) -> RecordedServer:
    """The server of a recorded binlog file."""
    found, pos = [], 4
    for packet in golden_packets(path):
        found.append((pos, packet))
        pos += len(packet)
    return RecordedServer(found, connector)
