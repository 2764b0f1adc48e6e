"""A dump is announced when the topic has all events that it has, of one server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.databus.errors import DumpDiscarded
from rowtide.databus.server.dumps.publication import Publication, PublishedPosition

AT = SourceOffset("binlog.000003", 500, server="1")
FIRST = PublishedPosition("stream", replace(AT, pos=400), 7, 7)


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def publication(clock: _Clock) -> Publication:
    made = Publication(FIRST, clock)
    made.begin(AT)
    return made


def read_to(pos: int, sequence: int, delivered: int) -> PublishedPosition:
    return PublishedPosition("stream", replace(AT, pos=pos), sequence, delivered)


def test_what_was_read_before_the_dump_is_published_first(clock: _Clock) -> None:
    publication = Publication(replace(FIRST, delivered=5), clock)
    assert not publication.is_complete(read_to(900, 9, 6), "mysql")
    assert publication.is_complete(read_to(900, 9, 7), "mysql")


def test_an_idle_source_at_the_position_delays_nothing(publication: Publication) -> None:
    assert publication.is_complete(read_to(500, 7, 7), "mysql")


def test_events_that_were_read_must_be_delivered(publication: Publication) -> None:
    assert not publication.is_complete(read_to(499, 7, 7), "mysql")
    assert not publication.is_complete(read_to(500, 9, 8), "mysql")
    assert not publication.is_complete(read_to(600, 12, 8), "mysql")
    assert publication.is_complete(read_to(700, 15, 9), "mysql")  # what is read after the position does not count


def test_gtids_tell_that_the_position_is_passed(clock: _Clock) -> None:
    publication = Publication(FIRST, clock)
    source = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    publication.begin(replace(AT, gtids=f"{source}:1-5"))
    behind = replace(AT, pos=4, gtids=f"{source}:1-4")
    assert not publication.is_complete(PublishedPosition("stream", behind, 7, 7), "mysql")
    assert publication.is_complete(PublishedPosition("stream", replace(behind, gtids=f"{source}:1-6"), 7, 7), "mysql")


def test_a_dump_of_another_server_than_the_stream_is_discarded(clock: _Clock) -> None:
    with pytest.raises(DumpDiscarded, match=r"its rows come from server_id 2, and .* binlog of server_id 1"):
        Publication(FIRST, clock).begin(replace(AT, server="2"))


def test_a_dump_is_discarded_if_the_stream_is_another_one(publication: Publication) -> None:
    other = PublishedPosition("other", SourceOffset("binlog.000001", 200, server="2"), 8, 8)
    publication.verify(None)
    for check in (publication.verify, lambda reading: publication.is_complete(reading, "mysql")):
        with pytest.raises(DumpDiscarded, match=r"reads from another server. .*000003:400 .* is at binlog.000001:200"):
            check(other)


def test_without_a_stream_nothing_is_complete(publication: Publication) -> None:
    assert publication.is_complete(read_to(500, 7, 7), "mysql")
    assert not publication.is_complete(None, "mysql")  # the next stream may be one of another server
    assert publication.is_complete(read_to(500, 7, 7), "mysql")


def test_a_connector_that_lags_is_waited_for_while_it_comes_further(
    publication: Publication, clock: _Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for pos in range(400, 500, 10):
        assert not publication.is_complete(read_to(pos, 9, 8), "mysql")
        clock.now += 290
    (record,) = caplog.records
    assert record.message == (
        "a dump waits until the connector has published everything before binlog.000003:500 of server_id 1. The "
        "connector has read to binlog.000003:410 of server_id 1; batches that are not in Kafka: 1"
    )
    clock.now += 11
    with pytest.raises(DumpDiscarded, match=r"has read to binlog.000003:490 .* Neither has changed for 300 s"):
        publication.is_complete(read_to(490, 9, 8), "mysql")


def test_a_stream_that_does_not_come_back_ends_the_wait(publication: Publication, clock: _Clock) -> None:
    clock.now = 301
    with pytest.raises(DumpDiscarded, match="Neither has changed"):
        publication.is_complete(None, "mysql")
