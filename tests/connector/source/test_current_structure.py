"""Tables changed without a trace in the binlog, on servers with minimal TABLE_MAP metadata."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import ColumnCountMismatch, UnknownTable
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.store.history_record import parse_record
from tests.support.mysql.live_database import configured, snapshot
from tests.support.received import received

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_db")
    return found


class Stream:
    """The records of a database's changes from now on; each row names its table."""

    def __init__(self, database: Database, *tables: str) -> None:
        self.database = database
        chosen = ",".join(f"{database.name}\\.{table}" for table in tables)
        self.config = configured(database, {"table.include.list": chosen, "snapshot.mode": "no_data"})
        taken = snapshot(self.config)
        self.history = [output.text for output in taken.outputs() if isinstance(output, HistoryEntry)]
        self.tables, self.start = taken.tables, taken.offset

    def outputs(self, *, ask: bool = True) -> Iterator[Output]:
        mariadb = self.config.flavor.value == "mariadb"
        current = CurrentStructure(self.config.database, mariadb=mariadb) if ask else None
        settings = pipeline_settings(self.config, "run")
        tables = self.tables.copy()
        captured = CapturedTables(settings, tables, time.time_ns, current)
        pipeline = Pipeline(settings, tables, self.start, time.time_ns, captured)
        stream = BinlogStream(self.config.database, self.start, mariadb=mariadb)
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                for packet in packets:
                    yield from received(pipeline, packet)
                if not packets:
                    return

    def rows(self) -> list[dict[str, object]]:
        found = []
        for output in self.outputs():
            if isinstance(output, HistoryEntry):
                self.history.append(output.text)
            elif isinstance(output, Batch):
                found += [json.loads(value)["after"] for _, value, _ in output.messages if b'"op"' in value]
        return found


def unlogged(*statements: str) -> list[str]:
    return ["SET sql_log_bin = 0", *statements, "SET sql_log_bin = 1"]


def test_the_structure_is_looked_up_on_the_server(database: Database) -> None:
    run = database.execute
    run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10))", "CREATE TABLE other (id INT)")
    stream = Stream(database, "t", "made", "other")
    run(
        "INSERT INTO t VALUES (1, 'one')",
        *unlogged("ALTER TABLE t ADD n DECIMAL(5,2) FIRST, CHANGE a b VARCHAR(20) CHARACTER SET latin1"),
        *unlogged("CREATE TABLE made (k INT UNSIGNED, e ENUM('x','ü') CHARACTER SET latin1)"),
        "BEGIN",
        "INSERT INTO t VALUES (1.5, 2, 'ü')",
        "INSERT INTO made VALUES (4000000000, 'ü')",
        "COMMIT",
        # The server continues: what follows is about other tables.
        "ALTER TABLE other ADD t INT",
        "INSERT INTO other VALUES (1, 2)",
        "CREATE VIEW v AS SELECT * FROM t",
    )
    assert stream.rows() == [
        {"id": 1, "a": "one"},
        {"n": "AJY=", "id": 2, "b": "ü"},
        {"k": 4000000000, "e": "ü"},
        {"id": 1, "t": 2},
    ]
    # And the next start knows it.
    recovered = recover(map(parse_record, stream.history), stream.tables.server, None)
    known = {table.id.table: [column.name for column in table.columns] for table in recovered}
    assert known == {"t": ["n", "id", "b"], "made": ["k", "e"], "other": ["id", "t"]}


def test_a_structure_that_may_have_changed_since_is_refused(database: Database) -> None:
    run = database.execute
    run("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    changed, later, unheard = Stream(database, "t"), Stream(database, "u"), Stream(database, "w")
    run(
        *unlogged("ALTER TABLE t ADD a INT", "ALTER TABLE u ADD a INT", "CREATE TABLE w (k INT)"),
        "INSERT INTO t VALUES (1, 2)",
        "INSERT INTO u VALUES (1, 2)",
        "INSERT INTO w VALUES (1)",
        f"ALTER TABLE {database.name}.`t` RENAME COLUMN a TO b",
    )
    with pytest.raises(ColumnCountMismatch, match=r"a statement after these rows may have changed it \(at .*:\d+\)"):
        changed.rows()
    with pytest.raises(UnknownTable, match=r"w, which is not in the schema history\. Restart with"):
        list(unheard.outputs(ask=False))
    time.sleep(1.1)  # what is altered in the same second cannot be told apart
    run(*unlogged("ALTER TABLE u RENAME COLUMN a TO b"))
    with pytest.raises(ColumnCountMismatch, match="it was altered after these rows were written"):
        later.rows()
