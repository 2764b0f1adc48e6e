"""Snapshots of real servers: modes, locks, selection of tables, and failures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, cast

import pymysql
import pytest
from pymysql.constants import ER

from rowtide.connector.config import Configuration
from rowtide.connector.engine.start.written_snapshot import write_snapshot
from rowtide.connector.errors import PositionPurged, SnapshotError
from rowtide.connector.records.batch import Batch, HistoryEntry
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot import Decision, decide
from rowtide.connector.snapshot.initial import Snapshot
from rowtide.connector.snapshot.reading import table_rows
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.position.check import check_position
from rowtide.connector.source.session import Session
from tests.support.mysql.live_database import configured, markers, offsets, purge_binlogs, snapshot, user
from tests.support.recordings.golden import written

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

_PAYLOAD = 50_000
"""Bytes of a row of the large table: two rows do not fit into one batch."""


@pytest.fixture
def small(database: Database) -> Database:
    """Three tables, of three, two and one rows."""
    for table, rows in (("a", 3), ("b", 2), ("c", 1)):
        values = ", ".join(f"({n}, 'r{n}')" for n in range(1, rows + 1))
        database.execute(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9))", f"INSERT INTO {table} VALUES {values}"
        )
    return database


@pytest.fixture
def large(database: Database) -> Database:
    """A table that is larger than the buffers of a socket."""
    numbers = "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 400)"
    database.execute(
        "CREATE TABLE big (id INT PRIMARY KEY, v LONGTEXT)",
        f"INSERT INTO big {numbers} SELECT n, REPEAT('x', {_PAYLOAD}) FROM s",
    )
    return database


def read_tables(taken: Snapshot) -> list[str]:
    """The tables with rows, in the order of reading."""
    return list(dict.fromkeys(table for table, _, _ in markers(taken.outputs())))


def availability(config: Configuration, offset: SourceOffset) -> Decision:
    """The decision of a start with a stored offset and a schema history."""
    mariadb = config.flavor.value == "mariadb"
    with Session(config.database, mariadb=mariadb) as session:
        position = check_position(session.client, offset, mariadb=mariadb)
    return decide(config.snapshot.mode, offset, history_exists=True, position=position)


# --- modes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["initial", "initial_only", "when_needed", "always"])
def test_modes_with_rows_read_them_at_the_first_start(small: Database, mode: str) -> None:
    taken = snapshot(configured(small, {"snapshot.mode": mode}))
    outputs = list(taken.outputs())
    assert [marker for _, _, marker in markers(outputs)] == [
        "first", "true", "last_in_data_collection", "first_in_data_collection", "last_in_data_collection", "last",
    ]  # fmt: skip
    *running, completed = offsets(outputs)
    assert {offset.snapshot for offset in running} == {"INITIAL"}
    assert completed.snapshot is None
    assert completed == taken.offset


def test_no_data_reads_structures_only_and_completes_with_the_last_statement(small: Database) -> None:
    taken = snapshot(configured(small, {"snapshot.mode": "no_data"}))
    outputs = list(taken.outputs())
    assert markers(outputs) == []
    assert sum(isinstance(output, HistoryEntry) for output in outputs) == 1 + 3 + 3 + 3
    assert offsets(outputs)[-1] == taken.offset
    assert taken.offset.snapshot is None
    assert {table.id.table for table in taken.tables} == {"a", "b", "c"}


def test_a_complete_snapshot_is_taken_again_in_mode_always_only(small: Database) -> None:
    first = snapshot(configured(small))
    list(first.outputs())
    for mode, again in (("initial", False), ("when_needed", False), ("no_data", False), ("always", True)):
        decision = availability(configured(small, {"snapshot.mode": mode}), first.offset)
        assert (decision.snapshot, decision.rows, decision.stream) == (again, again, True)
        assert decision.position == (None if again else first.offset)
    done = availability(configured(small, {"snapshot.mode": "initial_only"}), first.offset)
    assert not done.snapshot
    assert not done.stream


@pytest.mark.parametrize("database", ["purged_mysql", "purged_mariadb"], indirect=True)
def test_a_purged_position_leads_to_a_snapshot_or_stops_the_start(small: Database) -> None:
    first = snapshot(configured(small))
    list(first.outputs())
    small.execute("INSERT INTO a VALUES (4, 'later')")
    purge_binlogs(small.server)
    for known in (first.offset, SourceOffset(first.offset.file, first.offset.pos)):
        with pytest.raises(PositionPurged, match="when_needed"):
            availability(configured(small), known)
        decision = availability(configured(small, {"snapshot.mode": "when_needed"}), known)
        assert (decision.structure, decision.rows, decision.position) == (True, True, None)


def test_recovery_reads_the_structure_and_keeps_the_stored_position(small: Database) -> None:
    first = snapshot(configured(small))
    list(first.outputs())
    small.execute("INSERT INTO a VALUES (4, 'later')")
    taken = snapshot(configured(small, {"snapshot.mode": "recovery"}), first.offset)
    outputs = list(taken.outputs())
    assert markers(outputs) == []
    assert any(isinstance(output, HistoryEntry) for output in outputs)
    assert taken.offset == first.offset
    assert offsets(outputs)[-1] == first.offset
    assert taken.tables.table(small.name, "a") is not None


def test_an_interrupted_snapshot_starts_again_from_the_beginning(large: Database) -> None:
    config = configured(large)
    first = snapshot(config)
    with closing(first.outputs()) as outputs:
        begun = [next(outputs) for _ in range(20)]
    seen = markers(begun)
    assert 0 < len(seen) < 400
    stored = offsets(begun)[-1]
    assert stored.snapshot == "INITIAL"
    # A lock or a session that the snapshot left would block this.
    large.execute("SET SESSION lock_wait_timeout = 5", "ALTER TABLE big COMMENT = 'changed'")
    again = markers(snapshot(config, stored).outputs())
    assert [key for _, key, _ in again] == list(range(1, 401))
    assert again[0][2], again[-1][2] == ("first", "last")


class Stopping:
    """A store that keeps batches, and a history that keeps nothing; the stop is set with the batch of a number."""

    def __init__(self, last: int) -> None:
        self.batches: list[Batch] = []
        self.stop = threading.Event()
        self._last = last

    @contextmanager
    def buffered(self) -> Iterator[None]:
        yield

    def append(self, text: str) -> None:
        """Keep nothing."""

    def put(self, batches: list[Batch]) -> None:
        self.batches += batches
        if len(self.batches) >= self._last:
            self.stop.set()


def test_the_notification_of_an_abort_repeats_nothing(small: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the last record of the run, so its offset is the one from which the next start continues."""
    monkeypatch.setattr(table_rows, "RESUMABLE_PART_ROWS", 1)
    properties = {
        "rowtide.snapshot.resumable": "true",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": "notes",
    }
    reading_on = set()
    for last in range(1, 100):
        taken, seen = snapshot(configured(small, properties)), Stopping(last)
        with closing(taken.outputs()) as outputs:
            if write_snapshot(outputs, cast("Any", seen), cast("Any", seen), seen.stop):
                break
        (aborted,) = taken.aborted()
        assert aborted.topic == "notes"
        assert aborted.offset == seen.batches[-1].offset
        reading_on.add(str(aborted.offset.carried))
    assert len(reading_on) > 3


# --- locks -----------------------------------------------------------------------------------------------------------


@contextmanager
def reading(config: Configuration) -> Iterator[None]:
    """Read the first rows, run the body, and close the snapshot."""
    with closing(snapshot(config).outputs()) as outputs:
        for output in outputs:
            if markers([output]):
                break
        yield


def must_wait(database: Database, statement: str) -> bool:
    """Whether a statement must wait for a lock."""
    try:
        database.execute("SET SESSION lock_wait_timeout = 1", statement)
    except pymysql.MySQLError as error:
        return bool(error.args[0] == ER.LOCK_WAIT_TIMEOUT)
    return False


def test_what_is_locked_while_rows_are_read(large: Database) -> None:
    large.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    into_big, into_other = "INSERT INTO big VALUES (1000, '')", "INSERT INTO other VALUES (1)"
    with reading(configured(large, {"snapshot.locking.mode": "extended"})):
        assert must_wait(large, into_big)
        assert must_wait(large, into_other)
    with (
        user(large, "LOCK TABLES") as limited,
        reading(configured(large, {**limited, "table.include.list": f"{large.name}\\.big"})),
    ):
        assert must_wait(large, into_big)
        assert not must_wait(large, into_other)
    with user(large) as limited, reading(configured(large, {**limited, "snapshot.locking.mode": "none"})):
        assert not must_wait(large, into_big)
    with reading(configured(large, {"snapshot.locking.mode": "minimal"})):
        assert not must_wait(large, "UPDATE big SET v = 'y' WHERE id = 1000")


def test_the_message_for_an_account_without_lock_privileges_has_the_way_out(small: Database) -> None:
    with (
        user(small) as limited,
        pytest.raises(SnapshotError, match=r"'LOCK TABLES' privilege.*snapshot\.locking\.mode=none"),
    ):
        list(snapshot(configured(small, limited)).outputs())


def test_a_lock_that_is_not_granted_in_time_names_the_property(small: Database) -> None:
    with small.connect() as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES a WRITE")
        with pytest.raises(SnapshotError, match=r"not granted within 1 s.*snapshot\.lock\.timeout\.ms"):
            list(snapshot(configured(small, {"snapshot.lock.timeout.ms": "1000"})).outputs())


# --- selection -------------------------------------------------------------------------------------------------------


def test_rows_of_included_tables_and_structures_of_all_tables_are_read(small: Database) -> None:
    taken = snapshot(configured(small, {"snapshot.include.collection.list": f"{small.name}\\.(a|c)"}))
    assert read_tables(taken) == ["a", "c"]
    assert {table.id.table for table in taken.tables} == {"a", "b", "c"}


def test_tables_are_read_in_the_configured_order(small: Database) -> None:
    small.execute("ANALYZE TABLE a, b, c")
    include = ",".join(f"{small.name}\\.{table}" for table in "bca")
    for properties, order in (
        ({}, "abc"),
        ({"table.include.list": include}, "bca"),
        ({"snapshot.tables.order.by.row.count": "ascending"}, "cba"),
        ({"snapshot.tables.order.by.row.count": "descending", "table.include.list": include}, "abc"),
    ):
        assert "".join(read_tables(snapshot(configured(small, properties)))) == order


def test_a_select_override_replaces_the_query_of_a_table(small: Database) -> None:
    table = f"{small.name}.a"
    own = {
        "snapshot.select.statement.overrides": table,
        f"snapshot.select.statement.overrides.{table}": f"SELECT 7 AS x, ID FROM {table} WHERE id < 3 ORDER BY id DESC",
    }
    messages = [message for message in written(snapshot(configured(small, own)).outputs()) if message.key]
    rows = [m.value[: m.value.index(',"source"')] for m in messages if m.topic == f"live.{table}" and m.value]
    assert rows == ['{"before":null,"after":{"id":2,"v":null}', '{"before":null,"after":{"id":1,"v":null}']


def test_the_message_for_a_refused_query_has_the_query(small: Database) -> None:
    table = f"{small.name}.a"
    own = {
        "snapshot.select.statement.overrides": table,
        f"snapshot.select.statement.overrides.{table}": f"SELECT nosuch FROM {table}",
    }
    with pytest.raises(SnapshotError, match=rf"table {table} cannot be read with 'SELECT nosuch .*nosuch"):
        list(snapshot(configured(small, own)).outputs())
    own[f"snapshot.select.statement.overrides.{table}"] = "SELECT * FROM a"  # no default database, as in Debezium
    with pytest.raises(SnapshotError, match=rf"No database selected\. Write the name with its database: {table}"):
        list(snapshot(configured(small, own)).outputs())


@pytest.mark.parametrize("selected", ["id, CONCAT('se', 'cret-1-1') AS day", "CONCAT('se', 'cret') AS id, day"])
def test_a_query_whose_values_do_not_match_the_columns_is_named_without_the_values(
    small: Database, selected: str
) -> None:
    small.execute("CREATE TABLE d (id INT PRIMARY KEY, day DATE)", "INSERT INTO d VALUES (1, '2024-01-01')")
    table = f"{small.name}.d"
    own = {
        "snapshot.select.statement.overrides": table,
        f"snapshot.select.statement.overrides.{table}": f"SELECT {selected} FROM {table}",
    }
    with pytest.raises(SnapshotError, match=rf"table {table} cannot be read .*does not match the type") as caught:
        list(snapshot(configured(small, own)).outputs())
    assert "secret" not in str(caught.value)


def test_initial_statements_run_in_every_session(small: Database) -> None:
    small.execute("CREATE TABLE seen (id BIGINT PRIMARY KEY, text VARCHAR(20))")
    statements = f"INSERT INTO {small.name}.seen VALUES (CONNECTION_ID(), 'a;;b'); SET SESSION sql_mode = 'ANSI_QUOTES'"
    taken = snapshot(configured(small, {"database.initial.statements": statements}))
    assert read_tables(taken) == ["a", "b", "c", "seen"]
    assert [row[0] for row in small.query("SELECT text FROM seen")] == ["a;b"]
    with pytest.raises(DatabaseUnreachableError, match=r"database\.initial\.statements.*SET SESSION nosuch"):
        list(snapshot(configured(small, {"database.initial.statements": "SET SESSION nosuch = 1"})).outputs())


# --- reading ---------------------------------------------------------------------------------------------------------


def test_rows_arrive_in_batches_while_the_server_still_sends(large: Database) -> None:
    with closing(snapshot(configured(large)).outputs()) as outputs:
        first = next(output for output in outputs if isinstance(output, Batch) and markers([output]))
        running = large.query(
            "SELECT info FROM information_schema.processlist WHERE info LIKE 'SELECT `id`, `v` FROM%'"
        )
        assert len(running) == 1, "the query is still running: its rows are not buffered"
        sizes = [first.size, *(output.size for output in outputs if isinstance(output, Batch))]
    assert sum(sizes) > 400 * _PAYLOAD
    assert max(sizes) < 4 * _PAYLOAD


def test_rows_of_any_size_are_read(database: Database) -> None:
    largest = (1 << 24) - 1  # of a packet: the row with the last size but one fills it
    sizes = [0, 1, 250, 251, 65_535, 65_536, 131_072, 131_073, 1 << 20, largest - 10, 17 << 20]
    if database.server.name == "mariadb":
        sizes = sizes[:-2]  # max_allowed_packet
    database.execute("CREATE TABLE wide (id INT PRIMARY KEY, v LONGTEXT, w VARCHAR(9))")
    for place, size in enumerate(sizes):
        database.execute(f"INSERT INTO wide VALUES ({place}, REPEAT('x', {size}), 'end')")
    messages = written(snapshot(configured(database, {"include.schema.changes": "false"})).outputs())
    rows = [str(message.value).split('"', 10) for message in messages]
    assert [len(row[9]) for row in rows] == sizes
    assert all(row[10].startswith(',"w":"end"}') for row in rows)


def test_the_message_for_a_broken_connection_has_the_table(large: Database) -> None:
    with closing(snapshot(configured(large)).outputs()) as outputs:
        next(output for output in outputs if markers([output]))
        session = large.query("SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT `id`, `v` FROM%'")
        large.server.execute(f"KILL {session[0][0]}")
        with pytest.raises(DatabaseUnreachableError, match=rf"table {large.name}\.big was not read completely: .*lost"):
            list(outputs)
