"""The view of a table, and its place in the binlog."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.reading.table_view import open_table_view
from rowtide.connector.snapshot.view.stream_order import has_executed, has_passed
from rowtide.connector.source.server_queries import end_of_binlog
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId
from tests.support.mysql.live_database import configured

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers


def without_gtids(position: SourceOffset) -> SourceOffset:
    return SourceOffset(position.file, position.pos, server=position.server)


@pytest.mark.parametrize("gtids", [True, False])
def test_a_view_has_what_is_before_its_position_and_nothing_behind_it(database: Database, *, gtids: bool) -> None:
    """Rows are counted: each transaction adds one, so their number says which transactions a view has."""
    database.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    config = configured(database)
    mariadb = database.server.name == "mariadb"
    connector, table = config.flavor.value, TableId(database.name, "t")
    with Session(config.database, mariadb=mariadb) as session, Session(config.database, mariadb=mariadb) as other:
        for _ in range(20):
            before = end_of_binlog(other)
            position = before if gtids else without_gtids(before)
            view = open_table_view(session, table, position, 10)
            (count,) = session.query(f"SELECT COUNT(*) FROM {database.name}.t")[0]
            other.execute(f"INSERT INTO {database.name}.t VALUES ()")
            behind = end_of_binlog(other)
            assert session.query(f"SELECT COUNT(*) FROM {database.name}.t")[0] == (count,), "the view is open"
            session.execute("ROLLBACK")
            assert session.query(f"SELECT COUNT(*) FROM {database.name}.t")[0] == (count + 1,)
            assert has_executed(view.seen, position, connector)
            assert has_passed(behind, view.end, connector)
            assert not has_passed(without_gtids(before), without_gtids(behind), connector)


def test_the_structure_of_the_table_cannot_change_while_the_view_is_open(database: Database) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    config = configured(database)
    altered = threading.Event()

    def alter() -> None:
        database.execute("ALTER TABLE t ADD COLUMN v INT")
        altered.set()

    thread = threading.Thread(target=alter)
    with Session(config.database, mariadb=database.server.name == "mariadb") as session:
        open_table_view(session, TableId(database.name, "t"), end_of_binlog(session), 10)
        thread.start()
        try:
            assert not altered.wait(0.3)
            assert session.query(f"SELECT * FROM {database.name}.t") == [(1,)]
        finally:
            session.execute("ROLLBACK")
            thread.join()
    assert altered.is_set()
