"""A position without GTIDs counts only where an event begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.errors import PositionPurged
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.position.check import check_position
from rowtide.connector.source.session import Session
from rowtide.topics.filters import EVERYTHING
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import CONNECTORS, address
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

NO_GTIDS = "00000000 23 01000000 1F000000 00000000 0000" + "0100000000000000" + "00000000"
"""A value that looks like an event of MySQL: PREVIOUS_GTIDS, with an invalid set."""


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_only_the_beginning_of_an_event_is_a_position(kind: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{kind}_db")
    server, mariadb = database.server, kind == "mariadb"
    properties = {"connector.class": CONNECTORS[kind], **address(server), "database.server.id": "184081"}
    config = from_properties({**PROPERTIES, **properties}).database
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
    file, begin = binlog_end(server)
    with database.connect(charset="latin1") as latin1, latin1.cursor() as cursor:
        cursor.execute("CREATE TABLE été (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO t VALUES (1, 'some text'), (2, X'{NO_GTIDS.replace(' ', '')}')")
        latin1.commit()
    _, end = binlog_end(server)
    with database.connect(use_unicode=False) as undecoded, undecoded.cursor() as cursor:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")
        begins = {int(row[1]) for row in cursor.fetchall()}
    with Session(config, mariadb=mariadb) as session:
        found = {
            pos: check_position(session.client, SourceOffset(file, pos), mariadb=mariadb) for pos in (*begins, end)
        }
        inside = {
            pos: check_position(session.client, SourceOffset(file, pos), mariadb=mariadb)
            for pos in range(begin, end)
            if pos not in begins
        }
    assert len(begins) > 3
    assert all(check.available for check in found.values())
    assert [pos for pos, check in inside.items() if check.available] == []
    assert inside[begin + 1].reason.startswith(f"no event begins at {file}:{begin + 1} (SHOW BINLOG EVENTS IN")

    stream = BinlogStream(config, SourceOffset(file, begin + 1), mariadb=mariadb, checked_sources=EVERYTHING)
    with pytest.raises(PositionPurged, match=rf"cannot resume at {file}:{begin + 1}: no event begins at") as refused:
        next(stream.events())
    assert not refused.value.purged
