"""Which row events a chunk has certainly seen that was read in a view."""

from dataclasses import replace

from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.read_chunks.pending import PendingChunks
from rowtide.connector.snapshot.incremental.scan import Chunk, ReadChunk

UUID = "70506b22-e621-11f1-b9cd-02fc00000001"
END = SourceOffset("b.000001", 900, server="1")


def since(seen: SourceOffset | None, *events: tuple[int, str | None], before: int = 0, server: str = "1") -> int:
    """How many of these events a chunk has seen, each with its position and GTID.

    Args:
        seen: a position of which the chunk has seen all.
        events: what the stream emits.
        before: events that were emitted while the chunk was read.
        server: the server of the stream.
    """
    pending, progress = PendingChunks("mysql"), Progress(SourceOffset("b.000001", 4))
    for _ in range(before):
        pending.journal.record(["key"], replaces=False)
    read = ReadChunk(Chunk(0, None, ("1",)), 0, [], ["id"], END, None, seen)
    pending.add(read, server)
    for pos, gtid in events:
        progress.pos, progress.gtid = pos, gtid
        pending.journal.record(["key"], replaces=False)
        pending.recorded(progress)
    return pending.since(read)


SEEN = SourceOffset("b.000001", 500, server="1")
BY_GTIDS = SourceOffset("", 0, f"{UUID}:1-5:7")


def test_events_before_the_position_are_seen() -> None:
    assert since(SEEN, (100, None), (499, None), (500, None), (700, None)) == 2


def test_gtids_are_compared_if_there_are_any() -> None:
    assert since(BY_GTIDS, (100, f"{UUID}:4"), (200, f"{UUID}:5"), (300, f"{UUID}:8")) == 2


def test_nothing_is_seen_behind_a_transaction_that_is_not() -> None:
    """A transaction that becomes visible later than the one after it in the binlog."""
    assert since(BY_GTIDS, (100, f"{UUID}:5"), (200, f"{UUID}:6"), (300, f"{UUID}:7")) == 1


def test_nothing_is_seen_if_positions_cannot_be_compared() -> None:
    assert since(SEEN, (100, None), server="2") == 0
    assert since(replace(SEEN, server="2"), (100, None)) == 0
    assert since(None, (100, None)) == 0


def test_nothing_is_seen_if_the_stream_did_not_wait() -> None:
    assert since(SEEN, (100, None), before=1) == 0
