"""The splitter: no event is lost or moved, whatever the stream consists of."""

from itertools import pairwise

import pytest

from rowtide.connector.engine.decoding.chunks import Boundary, EventChunk, FoundTable, Piece, Splitter
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.classes import TableMap
from rowtide.connector.protocol.header import EventType
from rowtide.connector.records.offset import SourceOffset
from tests.support.recordings.golden import Case, cases


class Stream:
    """The events of a case, without their processing: every table is one that is not captured."""

    def __init__(self, name: str) -> None:
        self.decoder = EventDecoder()
        self.packets: list[bytes] = []
        self.connector = "mariadb" if name.startswith("mariadb") else "mysql"
        for path in sorted(Case(name).binlog.iterdir()):
            with path.open("rb") as stream:
                self.packets += binlog_packets(stream, path.name, active=True)
        self.decoder.decode(self.packets[0])

    def boundary(self) -> Boundary | None:
        assert self.decoder.format is not None
        return Boundary(SourceOffset("binlog.1", 4), self.connector, self.decoder.format.checksum == "CRC32")

    def table(self, packet: bytes) -> FoundTable:
        event = self.decoder.decode(packet)
        assert isinstance(event, TableMap)
        return FoundTable(event.structure, None)

    def split(self, limit: int, *, cuts: bool = True) -> list[Piece]:
        splitter = Splitter(self.boundary, self.table, self.decoder.decode, limit, 10 * limit, cuts=cuts)
        pieces = [piece for packet in self.packets for piece in splitter.add(packet)]
        return [*pieces, *splitter.finish()]


@pytest.mark.parametrize("cuts", [True, False])
@pytest.mark.parametrize("name", cases())
def test_the_pieces_are_the_stream(name: str, cuts: bool) -> None:
    stream = Stream(name)
    for limit in (1, 300, 10_000):
        pieces = stream.split(limit, cuts=cuts)
        assert [packet for piece in pieces for packet in piece.packets] == stream.packets
        assert all(piece.packets for piece in pieces)
        chunks = [piece for piece in pieces if isinstance(piece, EventChunk)]
        assert cuts or not any(chunk.head or chunk.end.events for chunk in chunks)


def test_a_chunk_begins_where_the_one_before_ends() -> None:
    chunks = [piece for piece in Stream("transactions").split(300) if isinstance(piece, EventChunk)]
    assert len(chunks) > 5
    assert any(chunk.head for chunk in chunks)
    for chunk, following in pairwise(chunks):
        assert bool(following.head) == bool(following.events)
        if following.head:
            assert following.position == chunk.position + chunk.size
            assert (following.gtids, following.events) == chunk.end
        else:
            assert following.position == following.start.pos
            assert following.packets[0][4] in {EventType.GTID, EventType.ANONYMOUS_GTID}
