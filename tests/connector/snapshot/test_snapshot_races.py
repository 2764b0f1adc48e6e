"""Changes while a snapshot begins: no row is lost between the list of tables, the position and the view."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from pymysql.constants import ER

from rowtide.connector.config import Configuration
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.batch import Output
from rowtide.connector.snapshot.initial import Snapshot
from rowtide.connector.snapshot.view import consistent_view, opening, prepared_xa
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken
from rowtide.connector.source.connection import Client, DatabaseUnreachableError
from rowtide.connector.source.search import binlog_search
from rowtide.connector.source.session import Session
from tests.support.mysql.live_database import configured, markers, snapshot, streamed, user
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database, MySQL

pytestmark = pytest.mark.servers


@pytest.fixture
def filled(database: Database) -> Database:
    """Two tables; each row of the database has its own id."""
    database.execute(
        "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)",
        "CREATE TABLE b (id INT PRIMARY KEY)", "INSERT INTO b VALUES (11), (12)",
    )  # fmt: skip
    return database


@pytest.fixture(scope="module")
def without_gtids() -> Iterator[MySQL]:
    """MySQL without GTIDs."""
    from rowtide_stack import MySQL

    with MySQL({"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}) as server:
        yield server


def ids(outputs: Iterable[Output]) -> set[int]:
    """The ids of the rows that records have."""
    values = (json.loads(message.value or "{}") for message in written(outputs))
    return {value["after"]["id"] for value in values if value.get("after") is not None and "op" in value}


def with_stream(config: Configuration, taken: Snapshot, outputs: list[Output], database: Database) -> list[Output]:
    """The records of a snapshot and of the stream after it."""
    database.execute("CREATE TABLE IF NOT EXISTS last_statement (id INT)")  # there is something to stream
    steps = streamed(config, taken.tables, taken.offset, binlog_end(database.server))
    return [*outputs, *(output for step in steps for output in step.outputs)]


class Background:
    """Takes a snapshot in a thread."""

    def __init__(self, taken: Snapshot) -> None:
        self._taken = taken
        self._thread = threading.Thread(target=self._run)
        self._outputs: list[Output] = []
        self._error: BaseException | None = None
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outputs += self._taken.outputs()
        except BaseException as error:  # noqa: BLE001 - raised by `outputs`
            self._error = error

    def outputs(self) -> list[Output]:
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return self._outputs


def await_query(database: Database, text: str) -> None:
    """Wait until a session runs a query with this text."""
    for _ in range(600):
        if database.query(
            f"SELECT id FROM information_schema.processlist WHERE info LIKE '{text}%' AND id <> CONNECTION_ID()"
        ):
            return
        time.sleep(0.02)
    raise AssertionError(f"no session runs {text}")


@contextmanager
def prepared(database: Database, *statements: str, session: tuple[str, ...] = ()) -> Iterator[None]:
    """While an XA transaction is prepared."""
    database.execute(*session, "XA START 'x'", *statements, "XA END 'x'", "XA PREPARE 'x'")
    try:
        yield
    finally:
        with suppress(pymysql.MySQLError):  # the test has ended it
            database.server.execute("XA ROLLBACK 'x'")


def before(monkeypatch: pytest.MonkeyPatch, text: str, change: Callable[[], object]) -> None:
    """Have something happen on the server right before the first statement of a session that begins so."""
    query, execute = Session.query, Session.execute
    pending = [change]

    def happen(statement: str) -> None:
        if statement.startswith(text) and pending:
            pending.pop()()

    def queried(self: Session, statement: str) -> list[tuple[Any, ...]]:
        happen(statement)
        return query(self, statement)

    def executed(self: Session, statement: str) -> None:
        happen(statement)
        execute(self, statement)

    monkeypatch.setattr(Session, "query", queried)
    monkeypatch.setattr(Session, "execute", executed)


# --- tables ----------------------------------------------------------------------------------------------------------


def test_tables_that_are_created_while_a_prepared_transaction_is_waited_for(filled: Database) -> None:
    config = configured(filled)
    with prepared(filled, "INSERT INTO b VALUES (13)"):
        taken = snapshot(config)
        background = Background(taken)
        await_query(filled, "DO SLEEP")
        filled.execute(
            "CREATE TABLE late (id INT PRIMARY KEY)", "INSERT INTO late VALUES (21), (22)",
            "RENAME TABLE a TO a_old", "CREATE TABLE a LIKE a_old", "INSERT INTO a VALUES (3)",
        )  # fmt: skip
        outputs = background.outputs()
        filled.server.execute("XA COMMIT 'x'")
    assert ids(with_stream(config, taken, outputs, filled)) == {1, 2, 3, 11, 12, 13, 21, 22}


def test_tables_that_are_created_while_table_locks_are_waited_for(filled: Database) -> None:
    with user(filled, "LOCK TABLES") as limited:
        config = configured(filled, limited)
        with filled.connect() as connection, connection.cursor() as cursor:
            cursor.execute("LOCK TABLES a WRITE")
            taken = snapshot(config)
            background = Background(taken)
            await_query(filled, "LOCK TABLES")
            filled.execute("CREATE TABLE late (id INT PRIMARY KEY)", "INSERT INTO late VALUES (21), (22)")
            filled.execute("DROP TABLE IF EXISTS gone", "CREATE TABLE b_new LIKE b")
            cursor.execute("UNLOCK TABLES")
        outputs = background.outputs()
        assert ids(with_stream(config, taken, outputs, filled)) == {1, 2, 11, 12, 21, 22}


def test_a_table_that_is_renamed_while_table_locks_are_waited_for(filled: Database) -> None:
    with user(filled, "LOCK TABLES") as limited:
        config = configured(filled, limited)
        with filled.connect() as connection, connection.cursor() as cursor:
            cursor.execute("LOCK TABLES a WRITE")
            taken = snapshot(config)
            background = Background(taken)
            await_query(filled, "LOCK TABLES")
            cursor.execute("ALTER TABLE a RENAME TO a2")
            cursor.execute("UNLOCK TABLES")
        outputs = background.outputs()
        assert ids(with_stream(config, taken, outputs, filled)) == {1, 2, 11, 12}


@pytest.mark.parametrize("locking", ["minimal", "none"])
def test_a_table_that_takes_the_name_of_another_after_the_view(database: Database, locking: str) -> None:
    """What gh-ost does in the end: the view has the rows of the new table only as far as they were copied."""
    numbers = "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 100)"
    database.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v LONGTEXT)",
        f"INSERT INTO a {numbers} SELECT n, REPEAT('x', 50000) FROM s",
        "CREATE TABLE b (id INT PRIMARY KEY, x INT, y INT)", "INSERT INTO b VALUES (201, 1, 2), (202, 1, 2)",
        "CREATE TABLE ghost (id INT PRIMARY KEY, x INT, y INT)", "INSERT INTO ghost VALUES (201, 1, 2)",
    )  # fmt: skip
    include = f"{database.name}\\.(a|b)"
    config = configured(database, {"snapshot.locking.mode": locking, "table.include.list": include})
    taken = snapshot(config)
    with closing(taken.outputs()) as pieces:
        outputs: list[Output] = []
        for piece in pieces:
            outputs.append(piece)
            if markers([piece]):
                break
        for statement in (
            "RENAME TABLE b TO old, ghost TO b",
            "ALTER TABLE b RENAME COLUMN x TO y, RENAME COLUMN y TO x",
        ):
            with pytest.raises(pymysql.MySQLError) as refused:
                database.execute("SET SESSION lock_wait_timeout = 1", statement)
            assert refused.value.args[0] == ER.LOCK_WAIT_TIMEOUT
        outputs += pieces
    assert ids(outputs) == {*range(1, 101), 201, 202}
    database.execute("RENAME TABLE b TO old, ghost TO b")


def test_a_table_that_takes_the_name_of_another_between_position_and_view(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.execute("CREATE TABLE ghost LIKE b", "INSERT INTO ghost VALUES (13)")
    include = f"{filled.name}\\.(a|b)"
    config = configured(filled, {"snapshot.locking.mode": "none", "table.include.list": include})
    swap = "RENAME TABLE b TO old, ghost TO b"
    before(monkeypatch, "SELECT 1 FROM", lambda: filled.execute(swap))
    taken = snapshot(config)
    outputs = list(taken.outputs())
    assert ids(outputs) == {1, 2, 13}
    assert ids(with_stream(config, taken, [], filled)) == set()


def test_tables_that_change_all_the_time_stop_a_snapshot_without_locks(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = consistent_view._Opener._keep_structures

    def changed(self: Any, listed: Any) -> None:
        filled.execute("ALTER TABLE a COMMENT 'again'")
        keep(self, listed)

    monkeypatch.setattr(consistent_view._Opener, "_keep_structures", changed)
    monkeypatch.setattr(opening, "_VIEW_WAIT_S", 0)
    config = configured(filled, {"snapshot.locking.mode": "none"})
    with pytest.raises(SnapshotError, match=r"tables changed each of the 5 times .* a statement at .*minimal"):
        list(snapshot(config).outputs())


def test_a_list_of_tables_that_fails_is_not_an_empty_list(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Session.query

    def refused(self: Session, statement: str) -> list[tuple[Any, ...]]:
        if statement.startswith("SHOW FULL TABLES"):
            raise pymysql.err.OperationalError(ER.LOCK_WAIT_TIMEOUT, "Lock wait timeout exceeded")
        return query(self, statement)

    monkeypatch.setattr(Session, "query", refused)
    with pytest.raises(pymysql.MySQLError, match="Lock wait timeout"):
        list(snapshot(configured(filled)).outputs())


# --- position and view -----------------------------------------------------------------------------------------------


def test_a_commit_that_is_in_the_binlog_and_not_yet_visible(without_gtids: MySQL) -> None:
    with without_gtids.database() as database:
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        config = configured(database, {"snapshot.locking.mode": "none"})
        without_gtids.execute("SET GLOBAL binlog_group_commit_sync_delay = 1000000")
        try:
            for last in range(1, 21):
                begin = binlog_end(without_gtids)
                writer = threading.Thread(target=database.execute, args=(f"INSERT INTO t VALUES ({last})",))
                writer.start()
                while binlog_end(without_gtids) == begin:
                    time.sleep(0.01)
                if database.query("SELECT MAX(id) FROM t") != [(last,)]:
                    break
                writer.join()  # the server's longest delay, a second, was over before the query
            else:
                pytest.fail("each commit was visible at once")
            taken = snapshot(config)
            outputs = list(taken.outputs())
            writer.join()
        finally:
            without_gtids.execute("SET GLOBAL binlog_group_commit_sync_delay = 0")
        assert ids(with_stream(config, taken, outputs, database)) == set(range(1, last + 1))


def test_commits_that_cannot_be_listed(without_gtids: MySQL) -> None:
    """Without GTIDs, a snapshot without locks needs them."""
    with without_gtids.database() as database:
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        without_gtids.execute(
            "CREATE USER narrow IDENTIFIED BY 'pw'",
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT, XA_RECOVER_ADMIN ON *.* TO narrow",
            f"GRANT SELECT ON {database.name}.* TO narrow",
        )
        narrow = {"database.user": "narrow", "database.password": "pw", "snapshot.locking.mode": "none"}
        with pytest.raises(SnapshotError, match=r"SELECT on performance_schema.*gtid_mode=ON.*minimal"):
            list(snapshot(configured(database, narrow)).outputs())
        without_gtids.execute("GRANT SELECT ON performance_schema.* TO narrow")
        list(snapshot(configured(database, narrow)).outputs())
        without_gtids.execute("DROP USER narrow")


# --- XA transactions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["SHOW", "XA RECOVER", "START TRANSACTION"])
def test_a_transaction_that_is_committed_while_the_view_is_opened(
    filled: Database, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    config = configured(filled, {"snapshot.locking.mode": "none"})
    with prepared(filled, "INSERT INTO a VALUES (3)"):
        before(monkeypatch, place, lambda: filled.server.execute("XA COMMIT 'x'"))
        taken = snapshot(config)
        outputs = list(taken.outputs())
    assert ids(with_stream(config, taken, outputs, filled)) == {1, 2, 3, 11, 12}


@pytest.mark.usefixtures("stay_prepared")
def test_a_transaction_that_is_prepared_behind_the_position(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows come with the stream, once."""
    config = configured(filled, {"snapshot.locking.mode": "none"})
    filled.execute("XA START 'x'", "INSERT INTO a VALUES (3)", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'")
    with ExitStack() as stack:
        change = prepared(filled, "INSERT INTO a VALUES (4)")
        before(monkeypatch, "XA RECOVER", lambda: stack.enter_context(change))
        taken = snapshot(config)
        outputs = list(taken.outputs())
        filled.server.execute("XA COMMIT 'x'")
        found = with_stream(config, taken, outputs, filled)
    assert ids(found) == {1, 2, 4, 11, 12}
    assert sum('"id":4}' in str(message.value) for message in written(found)) == 1


@pytest.mark.usefixtures("stay_prepared")
def test_a_binlog_file_that_begins_while_a_prepared_transaction_is_searched_for(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = server_queries.binlog_files

    def before_another(client: Client) -> list[tuple[str, int]]:
        files = listed(client)
        filled.server.execute("FLUSH BINARY LOGS")
        return files

    config = configured(filled)
    with prepared(filled, "INSERT INTO a VALUES (3)"):
        monkeypatch.setattr(server_queries, "binlog_files", before_another)
        taken = snapshot(config)
        outputs = list(taken.outputs())
        monkeypatch.undo()
        filled.server.execute("XA COMMIT 'x'")
    assert ids(with_stream(config, taken, outputs, filled)) == {1, 2, 3, 11, 12}


@pytest.mark.usefixtures("stay_prepared")
def test_a_transaction_that_is_prepared_in_a_compressed_payload(mysql_db: Database) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
    config = configured(mysql_db)
    with prepared(
        mysql_db,
        "INSERT INTO t VALUES (1, REPEAT('x', 5000))",
        session=("SET SESSION binlog_transaction_compression = ON",),
    ):
        mysql_db.execute(
            "SET SESSION binlog_transaction_compression = ON", "INSERT INTO t VALUES (2, REPEAT('y', 5000))"
        )
        taken = snapshot(config)
        outputs = list(taken.outputs())
        assert ids(outputs) == {2}
        mysql_db.server.execute("XA COMMIT 'x'")
    assert ids(with_stream(config, taken, outputs, mysql_db)) == {1, 2}


@pytest.mark.usefixtures("stay_prepared")
@pytest.mark.parametrize("cuts", [1, 3])
def test_a_search_for_prepared_transactions_whose_connection_is_cut(
    filled: Database, monkeypatch: pytest.MonkeyPatch, cuts: int
) -> None:
    events = BinlogStream.events
    left = [cuts]

    def cut(self: BinlogStream) -> Generator[list[bytes], None, None]:
        for packets in events(self):
            yield packets[:2]
            if left[0]:
                left[0] -= 1
                raise StreamBroken("cut")
            yield packets[2:]

    config = configured(filled)
    with prepared(filled, "INSERT INTO a VALUES (3)"):
        taken = snapshot(config)
        with monkeypatch.context() as patch:
            patch.setattr(BinlogStream, "events", cut)
            patch.setattr(binlog_search, "_RETRY_WAIT_S", 0)
            if cuts == 3:
                with pytest.raises(DatabaseUnreachableError, match="cut"):
                    list(taken.outputs())
                return
            outputs = list(taken.outputs())
        assert left == [0]
        filled.server.execute("XA COMMIT 'x'")
    assert ids(with_stream(config, taken, outputs, filled)) == {1, 2, 3, 11, 12}


@pytest.mark.usefixtures("stay_prepared")
def test_a_search_for_prepared_transactions_that_takes_too_long(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binlog_search, "_LONGEST_S", -1.0)
    with prepared(filled, "INSERT INTO a VALUES (3)"):
        filled.server.execute("FLUSH BINARY LOGS")
        with pytest.raises(SnapshotError, match=r"X'78',X'',1: not found in .* s\. Commit or roll back"):
            list(snapshot(configured(filled)).outputs())


@pytest.mark.usefixtures("stay_prepared")
def test_a_prepared_transaction_after_a_file_without_gtids_stops_the_snapshot() -> None:
    from rowtide_stack import MySQL

    with MySQL() as server, server.database() as database:
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        with prepared(database, "INSERT INTO t VALUES (1)"):
            server.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE")
            database.execute("INSERT INTO t VALUES (2)")
            server.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = ON")
            with pytest.raises(SnapshotError, match=r"cannot be read: .*nonymous.* before .*gtid_mode=ON"):
                list(snapshot(configured(database)).outputs())
        assert ids(snapshot(configured(database)).outputs()) == {2}


def test_prepared_transactions_that_the_account_may_not_list(mysql_db: Database) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with prepared(mysql_db, "INSERT INTO t VALUES (1)"), user(mysql_db, "RELOAD") as limited:
        mysql_db.server.execute("REVOKE XA_RECOVER_ADMIN ON *.* FROM limited")
        with pytest.raises(SnapshotError, match=r"Com_xa_prepare is \d+.* GRANT XA_RECOVER_ADMIN"):
            list(snapshot(configured(mysql_db, limited)).outputs())
        no_stream = {**limited, "snapshot.mode": "initial_only"}
        assert ids(snapshot(configured(mysql_db, no_stream)).outputs()) == set()


def test_an_account_that_may_not_list_them_where_nobody_prepares_any(
    without_gtids: MySQL, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with without_gtids.database() as database, user(database, "RELOAD") as limited:
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        without_gtids.execute("REVOKE XA_RECOVER_ADMIN ON *.* FROM limited")
        assert ids(snapshot(configured(database, limited)).outputs()) == {1}
    assert caplog.text.count("XA_RECOVER_ADMIN") == 1
    assert "no XA transaction was prepared since the server was started" in caplog.text


@pytest.mark.parametrize("statement", ["SELECT * FROM a", "INSERT INTO a VALUES (3)"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_prepared_transaction_that_ends_after_the_view(
    filled: Database, monkeypatch: pytest.MonkeyPatch, statement: str, end: str
) -> None:
    """One that has changed nothing has no trace in the binlog."""
    config = configured(filled)

    def ends() -> None:
        with suppress(pymysql.err.OperationalError):  # MariaDB rolls back what has changed nothing
            filled.server.execute(f"XA {end} 'x'")

    monkeypatch.setattr(consistent_view, "_XA_WAIT_S", 0)
    monkeypatch.setattr(prepared_xa, "_END_WAIT_S", 0.01)
    before(monkeypatch, "DO SLEEP(0.01)", ends)  # the last view is open
    with prepared(filled, statement):
        taken = snapshot(config)
        outputs = list(taken.outputs())
    written_ids = {3} if end == "COMMIT" and statement.startswith("INSERT") else set()
    assert ids(with_stream(config, taken, outputs, filled)) == {1, 2, 11, 12} | written_ids


@pytest.mark.usefixtures("stay_prepared")
def test_a_transaction_without_a_trace_that_stays_prepared_stops_the_snapshot(filled: Database) -> None:
    with prepared(filled, "SELECT * FROM a"), pytest.raises(SnapshotError, match="no binlog file has them"):
        list(snapshot(configured(filled)).outputs())
