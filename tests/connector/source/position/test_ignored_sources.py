"""A server can be read that lacks the transactions of a source whose GTIDs do not count."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.errors import PositionPurged
from rowtide.connector.protocol.header import GTID_TYPES, HEADER
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.topics.filters import EVERYTHING, Patterns, Selection
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowtide_stack import MariaDB, SqlServer

pytestmark = pytest.mark.servers

ABSENT = {"mysql": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7", "mariadb": "7-99-7"}
"""Transactions that the server does not have."""


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_transactions_of_an_ignored_source_need_not_be_there(request: pytest.FixtureRequest, flavor: str) -> None:
    server: SqlServer = request.getfixturevalue(flavor)
    mariadb, absent = flavor == "mariadb", ABSENT[flavor]
    executed = str(server.query(f"SELECT @@GLOBAL.{'gtid_binlog_pos' if mariadb else 'gtid_executed'}")[0][0])
    stored = f"{executed},{absent}".strip(",").replace("\n", "")
    config = from_properties({**PROPERTIES, **address(server), "database.flavor": flavor}).database
    start = SourceOffset("binlog.000001", 4, stored)

    with pytest.raises(PositionPurged, match=absent[:5]):
        next(BinlogStream(config, start, mariadb=mariadb, checked_sources=EVERYTHING).events())
    others = Selection(exclude=Patterns.parse(absent.partition(":")[0].removesuffix("-7")))
    with closing(BinlogStream(config, start, mariadb=mariadb, checked_sources=others).events()) as pieces:
        server.execute("CREATE DATABASE ignored_sources", "DROP DATABASE ignored_sources")
        assert any(b"DROP DATABASE ignored_sources" in event for piece in pieces for event in piece)


@pytest.fixture(scope="module")
def mariadb_alone() -> Iterator[MariaDB]:
    """A server whose binlog nobody purges."""
    from rowtide_stack import MariaDB

    with MariaDB() as server:
        yield server


@pytest.fixture(scope="module")
def mysql_alone() -> Iterator[SqlServer]:
    """The same."""
    from rowtide_stack import MySQL

    with MySQL() as server:
        yield server


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_a_stream_begins_with_the_first_transaction_if_none_of_the_position_counts(
    request: pytest.FixtureRequest, flavor: str
) -> None:
    server: SqlServer = request.getfixturevalue(f"{flavor}_alone")
    server.execute("CREATE DATABASE ignored_sources", "DROP DATABASE ignored_sources")
    absent = ABSENT[flavor]
    config = from_properties({**PROPERTIES, **address(server), "database.flavor": flavor}).database
    others = Selection(exclude=Patterns.parse(absent.partition(":")[0].removesuffix("-7")))
    start = SourceOffset("of_another_server.000001", 4, absent)
    stream = BinlogStream(config, start, mariadb=flavor == "mariadb", checked_sources=others)
    with closing(stream.events()) as pieces:
        packets = (packet for piece in pieces for packet in piece)
        first = next(packet for packet in packets if packet[4] in GTID_TYPES)
    assert HEADER.unpack_from(first)[4] < 1000, "the file begins with it"


def test_mariadb_need_not_have_an_ignored_transaction_in_a_domain_of_its_own(mariadb_alone: MariaDB) -> None:
    """MariaDB refuses such a GTID as one of a diverged replica, also if its sequence number is an old one."""
    for _ in range(2):
        mariadb_alone.execute("CREATE DATABASE ignored_sources", "DROP DATABASE ignored_sources")
    config = from_properties({**PROPERTIES, **address(mariadb_alone), "database.flavor": "mariadb"}).database
    others = Selection(exclude=Patterns.parse("0-99"))
    stream = BinlogStream(config, SourceOffset("b.1", 4, "0-99-3"), mariadb=True, checked_sources=others)
    with closing(stream.events()) as pieces:
        packets = (packet for piece in pieces for packet in piece)
        assert next(packet for packet in packets if packet[4] in GTID_TYPES)
