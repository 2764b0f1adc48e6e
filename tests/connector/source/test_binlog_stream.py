"""The replication stream on real servers."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream, StreamRefused
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import address
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import MariaDB, MySQL

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_second_stream_of_the_same_connector_is_named(kind: str, request: pytest.FixtureRequest) -> None:
    server: MySQL | MariaDB = request.getfixturevalue(kind)
    config = from_properties({**PROPERTIES, **address(server), "database.server.id": "184077"}).database
    start = SourceOffset(*binlog_end(server))

    def stream() -> BinlogStream:
        return BinlogStream(config, start, mariadb=kind == "mariadb")

    with closing(stream()) as first, closing(stream()) as second:
        events, others = first.events(), second.events()
        next(events)
        next(others)

        def read_both() -> None:
            for _ in events:
                next(others)

        with pytest.raises(StreamRefused) as refused:
            read_both()
    assert "now reads the binlog as replica 184077, from " in str(refused.value)
    assert "If it is this connector, started a second time, stop one of the two" in str(refused.value)
