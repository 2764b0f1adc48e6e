"""A commit is released although its acknowledgement was lost with the connection."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.config.choices import Acknowledge
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.server_queries import current_position
from rowtide.connector.source.session import Session
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from rowtide.topics.filters import EVERYTHING
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import address
from tests.support.mysql.semi_sync import FOREVER_MS, SemiSync

if TYPE_CHECKING:
    from rowtide_stack import Database, SqlServer

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]


class Replica:
    """Streams that acknowledge what they are told to."""

    def __init__(self, server: SqlServer) -> None:
        properties = {**PROPERTIES, **address(server), "database.flavor": server.name, "database.server.id": "6991"}
        self._config = from_properties(properties).database
        self._mariadb = server.name == "mariadb"

    def position(self) -> SourceOffset:
        """The end of the binlog."""
        with Session(self._config, mariadb=self._mariadb) as session:
            now = current_position(session)
        return SourceOffset(now.file, now.pos, now.gtids)

    @contextlib.contextmanager
    def stream(self, start: SourceOffset) -> Iterator[Callable[[], Callable[[], None] | None]]:
        """Reads the next events; returns what acknowledges them, if they are to be acknowledged."""
        stream = BinlogStream(
            self._config,
            start,
            mariadb=self._mariadb,
            checked_sources=EVERYTHING,
            semi_sync=Acknowledge.DELIVERED,
        )
        with contextlib.closing(stream.events()) as pieces:
            next(pieces)

            def read() -> Callable[[], None] | None:
                next(pieces)
                return stream.requested_acknowledgement()

            yield read


def with_one_more(gtids: str, connector: str) -> str:
    """The GTIDs with the next transaction of the server."""
    if connector == "mariadb":
        domain, server, last = gtids.split("-")
        return str(MariadbGtidPosition.parse(f"{domain}-{server}-{int(last) + 1}"))
    found = GtidSet.parse(gtids)
    ((uuid, _, _),) = found.items()
    found.add(uuid, max(stop for _, _, intervals in found.items() for _, stop in intervals))
    return str(found)


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_a_commit_whose_acknowledgement_was_lost_is_released_by_the_next_stream(
    flavor: str, request: pytest.FixtureRequest
) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    semi_sync, replica = SemiSync(database.server), Replica(database.server)
    semi_sync.set(wait_point="AFTER_SYNC", timeout=FOREVER_MS)
    start = replica.position()
    assert start.gtids is not None
    commit = threading.Thread(target=database.execute, args=("INSERT INTO t VALUES (1)",))
    try:
        with replica.stream(start) as read:
            semi_sync.set(enabled="ON")
            commit.start()
            while read() is None:
                pass
        assert commit.is_alive(), "nothing is acknowledged"
        behind = SourceOffset(start.file, start.pos, with_one_more(start.gtids, flavor))
        # MySQL has the transaction in its binlog, and not in gtid_executed.
        with replica.stream(behind) as read:  # by GTIDs: the server does not send the transaction again
            while commit.is_alive():
                if acknowledge := read():
                    acknowledge()
    finally:
        semi_sync.set(enabled="OFF")
        if commit.ident is not None:
            commit.join()
