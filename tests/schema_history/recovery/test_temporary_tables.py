"""Statements on temporary tables leave captured tables of the same name alone, also after a restart between them."""

from __future__ import annotations

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.compacting_history import save_summary
from rowtide.schema_history.compaction.history_reader import StoredHistory, read_history
from rowtide.schema_history.errors import UncertainDdl
from rowtide.schema_history.model import TableId
from rowtide.schema_history.recovery.recover import Recovery, recover
from rowtide.schema_history.recovery.session_settings import required_sessions
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import history_record, parse_record
from rowtide.schema_history.store.history_store import InMemorySchemaHistory
from tests.support.in_memory_summaries import InMemorySummaries

THREAD = 7
_LIKE = "CREATE TABLE w (id INT, x INT, y INT)"
T, U = TableId("d", "t"), TableId("d", "u")


class Stream:
    """The statements of a stream, and the history that it writes."""

    def __init__(self, flavor: str) -> None:
        self.server = Server(Flavor(flavor), "11.4.5-MariaDB" if flavor == "mariadb" else "9.7.0")
        self.tables = Tables(self.server)
        self.records: list[str] = []
        for sql in ("CREATE DATABASE d", "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", _LIKE):
            self.run(sql)

    def run(self, sql: str, thread: int = 0, xid: int | None = None) -> None:
        """Apply a statement of a session; 0 is one without temporary tables.

        ``xid`` is that of a statement on a captured table: MySQL marks it in a procedure, MariaDB does not.
        """
        real = sql.startswith("RENAME") or (xid is not None and self.server.flavor is Flavor.MARIADB)
        marked = bool(thread) and not real  # MariaDB marks RENAME in no case
        event = QueryEvent(sql, database="d", sql_mode=0, thread_specific=marked, thread_id=thread, xid=xid)
        result = self.tables.apply(event)
        sessions = required_sessions(self.tables, event, result)
        for change, session in zip(result.changes, sessions, strict=True):
            position = {"file": "b.1", "pos": len(self.records) + 1}
            self.records.append(history_record(change, "shop", position, 0, session=session))

    def restart(self) -> None:
        """Recover the tables from the history."""
        self.tables = recover(map(parse_record, self.records), self.server, None)

    def columns(self) -> list[str]:
        table = self.tables.table("d", "t")
        assert table is not None
        return [column.name for column in table.columns]

    def indexes(self) -> list[str]:
        table = self.tables.table("d", "t")
        assert table is not None
        return [index.name for index in table.indexes]


@pytest.fixture(params=["mysql", "mariadb"])
def stream(request: pytest.FixtureRequest) -> Stream:
    return Stream(request.param)


CREATE = "CREATE TEMPORARY TABLE t (id INT, x INT, y INT)"
ALTERS = (
    "ALTER TABLE t DROP COLUMN x",
    "ALTER TABLE t ADD COLUMN a INT FIRST",
    "ALTER TABLE t ADD INDEX i (y), RENAME TO u",
    "RENAME TABLE u TO t",
    "CREATE INDEX j ON t (y)",
    "DROP INDEX j ON t",
    "TRUNCATE TABLE t",
    "DROP TABLE t",
)


@pytest.mark.parametrize(
    "create", [CREATE, "CREATE TEMPORARY TABLE t SELECT 1 AS x", "CREATE TEMPORARY TABLE t LIKE w"]
)
@pytest.mark.parametrize("stop", range(len(ALTERS) + 1))
def test_a_captured_table_keeps_its_columns(stream: Stream, create: str, stop: int) -> None:
    stream.run(create, THREAD)
    renamed = "ALTER TABLE u RENAME TO t" if stream.server.flavor is Flavor.MYSQL else "RENAME TABLE u TO t"
    for number, sql in enumerate(one.replace("RENAME TABLE u TO t", renamed) for one in ALTERS):
        if number == stop:
            stream.restart()
            assert (THREAD, U if number == 3 else T) in stream.tables.temporary
        stream.run(sql, THREAD)
        assert stream.columns() == ["id", "a", "b"]
    stream.restart()
    assert stream.columns() == ["id", "a", "b"]
    assert not stream.tables.temporary
    stream.run("ALTER TABLE t DROP COLUMN a", THREAD, xid=9)  # of the captured table now
    stream.restart()
    assert stream.columns() == ["id", "b"]


@pytest.mark.parametrize("stop", range(3))
def test_mysql_alters_a_temporary_table_that_is_older_than_the_history(stop: int) -> None:
    stream = Stream("mysql")
    statements = ("ALTER TABLE t DROP COLUMN x", "ALTER TABLE t ADD COLUMN a INT FIRST", "CREATE INDEX j ON t (y)")
    for number, sql in enumerate(statements):
        if number == stop:
            stream.restart()
        stream.run(sql, THREAD)
    stream.restart()
    assert stream.columns() == ["id", "a", "b"]


@pytest.mark.parametrize("stop", range(2))
def test_mysql_changes_the_indexes_of_a_temporary_table_that_is_older_than_the_history(stop: int) -> None:
    """A unique index of columns that cannot be NULL is the key of the records of a table without a primary key."""
    stream = Stream("mysql")
    for sql in ("DROP TABLE t", "CREATE TABLE t (id INT NOT NULL, a INT NOT NULL, UNIQUE KEY i (id))"):
        stream.run(sql)
    for number, sql in enumerate(("CREATE UNIQUE INDEX j ON t (a)", "DROP INDEX i ON t")):
        if number == stop:
            stream.restart()
        stream.run(sql, THREAD)
    stream.restart()
    assert stream.indexes() == ["i"]
    stream.run("CREATE INDEX k ON t (a)", THREAD + 1, xid=9)  # in a procedure with temporary tables
    assert stream.indexes() == ["i", "k"]


@pytest.mark.parametrize(
    ("create", "alter", "xid"),
    [
        ("", "ALTER TABLE t DROP COLUMN a", 9),
        ("CREATE TABLE t (id INT, a INT, b INT) ENGINE=MyISAM", "ALTER TABLE t DROP COLUMN a", None),
        ("", "ALTER TABLE t DROP COLUMN a, ENGINE=MyISAM", None),
    ],
)
def test_mysql_alters_the_captured_table_in_a_procedure_with_temporary_tables(
    create: str, alter: str, xid: int | None
) -> None:
    stream = Stream("mysql")
    for sql in ("DROP TABLE t", create) if create else ():
        stream.run(sql)
    stream.run(alter, THREAD, xid)
    stream.restart()
    assert stream.columns() == ["id", "b"]


def test_mariadb_does_not_show_which_table_is_altered() -> None:
    stream = Stream("mariadb")
    with pytest.raises(UncertainDdl, match=r"its session may have had one called d\.t\. Set .* Statement: ALTER TABLE"):
        stream.run("ALTER TABLE t DROP COLUMN x", THREAD)
    with pytest.raises(UncertainDdl, match=r"Statement: CREATE INDEX"):
        stream.run("CREATE INDEX i ON t (a)", THREAD)
    stream.run("ALTER TABLE t ADD COLUMN c INT DEFAULT (CONNECTION_ID())", THREAD)
    stream.run("ALTER TABLE t DROP COLUMN a", THREAD)
    assert stream.columns() == ["id", "b", "c"]


def test_other_sessions_see_the_captured_table(stream: Stream) -> None:
    stream.run(CREATE, THREAD)
    stream.restart()
    stream.run("ALTER TABLE t DROP COLUMN a", THREAD + 1, xid=9)
    stream.run("ALTER TABLE t DROP COLUMN x", THREAD)
    stream.restart()
    assert stream.columns() == ["id", "b"]


def test_the_end_of_a_session_drops_its_table(stream: Stream) -> None:
    stream.run(CREATE, THREAD)
    stream.restart()
    stream.run("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", THREAD)
    stream.restart()
    assert stream.columns() == ["id", "a", "b"]
    assert not stream.tables.temporary


def test_a_temporary_table_that_exists_keeps_its_columns(stream: Stream) -> None:
    stream.run(CREATE, THREAD)
    stream.run("CREATE TEMPORARY TABLE IF NOT EXISTS t LIKE w", THREAD)
    stream.run("CREATE TEMPORARY TABLE IF NOT EXISTS t (z INT)", THREAD)
    stream.run("ALTER TABLE t DROP COLUMN y", THREAD)
    stream.run("CREATE TABLE like_t LIKE t", THREAD)
    found = stream.tables.table("d", "like_t")
    assert found is not None
    assert [column.name for column in found.columns] == ["id", "x"]


@pytest.mark.parametrize("stop", range(4))
def test_a_temporary_sequence_leaves_the_captured_one_alone(stop: int) -> None:
    stream = Stream("mariadb")
    stream.run("CREATE SEQUENCE s")
    before = stream.tables.table("d", "s")
    statements = ("CREATE TEMPORARY SEQUENCE s", "ALTER SEQUENCE s AS TINYINT", "DROP SEQUENCE s")
    for number, sql in enumerate(statements):
        if number == stop:
            stream.restart()
        stream.run(sql, THREAD)
        assert stream.tables.table("d", "s") == before
    stream.restart()
    assert stream.tables.table("d", "s") == before
    assert not stream.tables.temporary


def test_mysql_renames_the_captured_table_only() -> None:
    stream = Stream("mysql")
    stream.run(CREATE, THREAD)
    event = QueryEvent("RENAME TABLE t TO u", database="d", sql_mode=0, thread_specific=True, thread_id=THREAD)
    stream.tables.apply(event)  # marked, as it is in a procedure that has used the temporary table
    assert (stream.tables.exists("d", "t"), stream.tables.exists("d", "u")) == (False, True)
    assert (THREAD, T) in stream.tables.temporary


def test_a_failed_creation_of_a_temporary_table_drops_no_captured_one(stream: Stream) -> None:
    sql = "CREATE OR REPLACE TEMPORARY TABLE t SELECT 1 AS x"
    event = QueryEvent(sql, database="d", sql_mode=0, thread_specific=True, thread_id=THREAD, error_code=1062)
    stream.tables.apply(event)
    assert stream.columns() == ["id", "a", "b"]


@pytest.mark.parametrize("sql", ["DROP TEMPORARY TABLE IF EXISTS t", "DROP TEMPORARY TABLE t"])
def test_a_history_of_debezium_keeps_the_table(stream: Stream, sql: str) -> None:
    record = (
        '{"source":{"server":"shop"},"position":{"file":"b.1","pos":9},"ts_ms":0,"databaseName":"d",'
        f'"ddl":"{sql}","tableChanges":[]}}'
    )
    recovery = Recovery(stream.server)
    for one in map(parse_record, [*stream.records, record]):
        recovery.add(one)
    assert recovery.tables(prefer_ddl=False).exists("d", "t")


def test_a_summary_of_the_history_has_temporary_tables(stream: Stream) -> None:
    stream.run(CREATE, THREAD)
    store, summaries = InMemorySchemaHistory(*stream.records), InMemorySummaries()
    kept = StoredHistory(store, "shop", summaries)
    save_summary(kept, read_history(kept, stream.server, None), 0)
    assert summaries.summaries
    stream.tables = read_history(kept, stream.server, None).tables(prefer_ddl=False)
    stream.run("ALTER TABLE t DROP COLUMN x", THREAD)
    assert stream.columns() == ["id", "a", "b"]
