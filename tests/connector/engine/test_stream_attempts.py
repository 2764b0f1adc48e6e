"""The positions at which a reader opens its streams, and its state."""

import contextlib
from collections.abc import Callable, Generator

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine import stream_attempts
from rowtide.connector.engine.stream_attempts import StreamAttempts
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.header import EventType
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import StreamBroken
from tests.support.configurations import PROPERTIES
from tests.support.mysql.dumped_files import heartbeat
from tests.support.mysql.packets import event


def at(pos: int) -> SourceOffset:
    return SourceOffset("binlog.000001", pos)


class Stream:
    """A stream of 100 bytes."""

    def events(self) -> Generator[list[bytes], None, None]:
        yield []

    def yield_often(self, *, often: bool) -> None:
        raise AssertionError(often)

    def requested_acknowledgement(self) -> Callable[[], None] | None:
        return None

    def taken_bytes(self) -> int:
        return 100


class Positions:
    """A pipeline at some position."""

    def __init__(self, pos: int) -> None:
        self.progress = Progress(at(pos))
        self._offset = at(pos)

    def offset(self) -> SourceOffset:
        return self._offset


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_attempts, "_FIRST_WAIT_S", 0.0)


def attempts(retries: int = 2) -> StreamAttempts:
    properties = PROPERTIES | {"errors.max.retries": str(retries)}
    return StreamAttempts(from_properties(properties).failure, at(4))


@pytest.mark.parametrize(
    ("packets", "idle"),
    [
        ([], True),
        ([heartbeat("binlog.000001", 4)], True),
        ([heartbeat("binlog.000001", 4), event(EventType.XID, bytes(8), log_pos=100)], False),
    ],
)
def test_a_heartbeat_means_that_the_server_has_no_new_events(packets: list[bytes], *, idle: bool) -> None:
    found = attempts()
    found.received(packets)
    assert not found.status.idle, "nothing is written yet"
    found.written(Positions(4), Stream())
    assert found.status.idle is idle


def broken(found: StreamAttempts, connections: int, events: int) -> list[int]:
    """Read through so many connections, which all break; returns where they began."""
    starts: list[int] = []
    for start in found:
        starts.append(start.pos)
        if len(starts) == connections:
            found.stop()
        with found.reading(Positions(start.pos + 10)):
            found.received([])
            assert found.status.connected
            found.status.events += events
            raise StreamBroken("the connection broke")
        assert not found.status.connected
    return starts


def test_a_broken_stream_continues_at_the_position_of_its_pipeline() -> None:
    found = attempts(retries=1)
    assert broken(found, 3, events=1) == [4, 14, 24], "an attempt with events is a new beginning"
    assert (found.status.reconnects, found.status.error) == (3, "the connection broke")


def test_attempts_without_events_exhaust_the_retries() -> None:
    found = attempts(retries=2)
    with pytest.raises(StreamBroken):
        broken(found, 9, events=0)
    assert found.status.reconnects == 2


@pytest.mark.parametrize(("seconds", "reconnects"), [(10.0, 2), (10.1, 8)])
def test_an_idle_connection_that_has_lasted_counts_as_an_attempt_that_worked(
    monkeypatch: pytest.MonkeyPatch, seconds: float, reconnects: int
) -> None:
    """Proxies end connections after a time; the default of retriable.restart.connector.wait.ms is ten seconds."""
    found, now = attempts(retries=2), 0.0
    monkeypatch.setattr(stream_attempts.time, "monotonic", lambda: now)
    with contextlib.suppress(StreamBroken):
        for start in found:
            with found.reading(Positions(start.pos)):
                found.received([])
                found.status.events += 1
                now += seconds
                if found.status.reconnects == 7:
                    found.stop()
                raise StreamBroken("the connection broke")
    assert found.status.reconnects == reconnects


def test_the_time_in_which_the_server_has_nothing_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(stream_attempts.time, "monotonic", lambda: now)
    found = attempts()
    with found.reading(Positions(4)):
        now = 3.0
        found.received([])
        now = 10.0  # decoding
        found.waiting()
        now = 12.0
        found.received([])
    assert found.status.waited_s == 5.0
