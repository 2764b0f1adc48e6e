"""The state of the reader of a stream."""

from collections.abc import Generator, Iterator

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.stream_reader import StreamReader
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.header import EventType
from rowtide.connector.records.offset import SourceOffset
from tests.support.configurations import PROPERTIES
from tests.support.mysql.dumped_files import heartbeat
from tests.support.mysql.packets import event

START = SourceOffset("binlog.000001", 4)


class Stream:
    """Yields the given events once."""

    def __init__(self, packets: list[bytes]) -> None:
        self._packets = packets

    def events(self) -> Generator[list[bytes], None, None]:
        yield self._packets

    def yield_often(self, *, often: bool) -> None:
        raise AssertionError(often)

    def requested_acknowledgement(self) -> None:
        return None

    def taken_bytes(self) -> int:
        return 0


class Positions:
    """A pipeline that stays where it is."""

    progress = Progress(START)

    def offset(self) -> SourceOffset:
        return START


class Reader(StreamReader[Positions]):
    """Reads one list of events."""

    def _pipeline(self, start: SourceOffset) -> Positions:
        return Positions()

    def _written(self, packets: list[bytes], pipeline: Positions) -> Iterator[None]:
        self.stop()
        yield


@pytest.mark.parametrize(
    ("packets", "idle"),
    [
        ([], True),
        ([heartbeat("binlog.000001", 4)], True),
        ([heartbeat("binlog.000001", 4), event(EventType.XID, bytes(8), log_pos=100)], False),
    ],
)
def test_a_heartbeat_means_that_the_server_has_no_new_events(packets: list[bytes], *, idle: bool) -> None:
    reader = Reader(from_properties(PROPERTIES).failure, START, lambda _: Stream(packets))
    reader.run()
    assert reader.status.idle is idle
