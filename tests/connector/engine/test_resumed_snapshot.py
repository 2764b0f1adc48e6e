"""An initial snapshot that an engine reads on: what may happen between the interruption and the next start.

A program that applies the changes has the rows of the tables, whatever happened; or the start fails, and names the way
out.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtide
from rowtide.connector.delivery.file_offset_store import FileOffsetStore
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.read_tables import ReadTables
from rowtide.connector.snapshot.reading import table_rows
from tests.support.connector_properties import CONNECTORS, address
from tests.support.mysql.live_database import purge_binlogs
from tests.support.processes.worker_process import SOON, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

ROWS, PART, READ = 300, 20, 100

State = dict[str, dict[tuple[Any, ...], dict[str, Any]]]


class Program:
    """A program that applies the changes of a database to tables of its own.

    Args:
        database: the database.
        folder: for positions and the schema history.
    """

    def __init__(self, database: Database, folder: Path, **more: str) -> None:
        self.database = database
        self.offsets = folder / "offsets"
        self.tables: State = {}
        self.reads: dict[str, int] = {}
        self.properties = {
            "name": "resumed",
            "connector.class": CONNECTORS[database.server.name],
            "topic.prefix": "resumed",
            **address(database.server),
            "database.server.id": "184077",
            "database.include.list": database.name,
            "table.include.list": f"{database.name}.[tuz].*",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(self.offsets),
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(folder / "history"),
            "skipped.operations": "none",
            "rowtide.snapshot.resumable": "true",
            "incremental.snapshot.chunk.size": "50",
            **more,
        }

    def run(self, until: Callable[[rowtide.Engine], bool]) -> None:
        """Apply changes until the condition holds."""
        with rowtide.Engine(self.properties) as engine:

            def applied() -> bool:
                batch = engine.get(size=PART, timeout=0.1)
                for change in batch or ():
                    self._apply(change)
                if batch is not None:
                    batch.ack()
                return until(engine)

            eventually(applied, "the changes", SOON)

    def _apply(self, change: rowtide.Change) -> None:
        rows = self.tables.setdefault(change.table, {})
        key = () if change.key is None else tuple(change.key.values())
        if change.op == "t":
            rows.clear()
        elif change.after is None:
            rows.pop(key, None)
        else:
            rows[key] = dict(change.after)
            self.reads[change.table] = self.reads.get(change.table, 0) + (change.op == "r")

    def interrupted(self) -> None:
        """Read a part of the rows of ``t``."""
        self.run(lambda _: self.reads.get("t", 0) >= READ)
        assert self.reads["t"] < ROWS - PART
        assert '"lower"' in self.stored["rowtide_snapshot_state"]

    def resumed(self) -> None:
        """Read what is left, and everything that has happened since."""
        complete: list[bool] = []

        def ended(engine: rowtide.Engine) -> bool:
            kinds = {(one["aggregate_type"], one["type"]) for one in engine.notifications}
            if not complete and ("Initial Snapshot", "COMPLETED") in kinds:
                complete.append(True)
                self.database.execute("INSERT INTO z VALUES (-1, 'behind all rows')")
            if (-1,) not in self.tables.get("z", {}):
                return False
            unread = ReadTables.from_carried(self.stored)
            return unread is not None and not unread.unread

        self.run(ended)
        assert "rowtide_snapshot_state" not in self.stored

    @property
    def stored(self) -> dict[str, Any]:
        """The stored position."""
        found = FileOffsetStore(self.offsets, "resumed", "resumed").load()
        assert found is not None
        return json.loads(found.to_json())  # type: ignore[no-any-return]

    def check(self, *tables: str) -> None:
        """The tables have the rows of the database, in the columns that both have."""
        for table in tables:
            columns = [row[0] for row in self.database.query(f"SHOW COLUMNS FROM {table}")]
            keys = [row[4] for row in self.database.query(f"SHOW KEYS FROM {table} WHERE Key_name = 'PRIMARY'")]
            wanted = [dict(zip(columns, row, strict=True)) for row in self.database.query(f"SELECT * FROM {table}")]
            found = self.tables.get(table, {})
            assert len(found) == len(wanted), table
            for row in wanted:
                mine = found[tuple(row[key] for key in keys)]
                assert {name: value for name, value in row.items() if name in mine} == {
                    name: value for name, value in mine.items() if name in row
                }


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "RESUMABLE_PART_ROWS", PART)


@pytest.fixture
def database(request: pytest.FixtureRequest, flavor: str) -> Database:
    """A database of the server."""
    return request.getfixturevalue(f"{flavor}_db")  # type: ignore[no-any-return]


@pytest.fixture
def filled(database: Database) -> Database:
    """Tables that are captured, ``t``, ``u`` and ``z``, and one that is not."""
    numbers = f"WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS})"
    for table in ("t", "u", "other"):
        database.execute(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), w INT NOT NULL DEFAULT 0)",
            f"INSERT INTO {table} {numbers} SELECT n, CONCAT('{table}', n), n FROM s",
        )
    database.execute("CREATE TABLE z (id INT PRIMARY KEY, v VARCHAR(20))")
    return database


FIRST = ("UPDATE t SET v = 'changed' WHERE id IN (5, 250)", "DELETE FROM t WHERE id IN (6, 251)")
LAST = ("UPDATE t SET v = 'again' WHERE id IN (7, 252)", "INSERT INTO t (id, v) VALUES (1001, 'new')")
CHANGES = {
    "nothing": (("SELECT 1",), ("t", "u")),
    "a column is added": (("ALTER TABLE t ADD COLUMN x INT NOT NULL DEFAULT 7 FIRST", *LAST), ("t", "u")),
    "a column is dropped": (("ALTER TABLE t DROP COLUMN w", *LAST), ("t", "u")),
    "a column is renamed": (("ALTER TABLE t RENAME COLUMN w TO x", *LAST), ("t", "u")),
    "the key's type changes": (("ALTER TABLE t MODIFY id BIGINT NOT NULL", *LAST), ("t", "u")),
    "the key is another column": (
        (
            "ALTER TABLE t ADD COLUMN k INT",
            "UPDATE t SET k = 9000 - id",
            "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (k)",
        ),
        ("u",),
    ),
    "the table is dropped": (("DROP TABLE t",), ("u",)),
    "the table is made again": (
        (
            "DROP TABLE t",
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))",
            "INSERT INTO t VALUES (3, 'x'), (2000, 'y')",
        ),
        ("u",),
    ),
    "the table is emptied": (("TRUNCATE TABLE t", "INSERT INTO t VALUES (3, 'x', 1), (2000, 'y', 1)"), ("t", "u")),
    "the table is renamed": (("RENAME TABLE t TO t2", "UPDATE t2 SET v = 'again' WHERE id IN (7, 252)"), ("t2", "u")),
    "the table leaves the list": (("RENAME TABLE t TO gone", "DELETE FROM gone WHERE id < 200"), ("u",)),
    "the tables are swapped": (("RENAME TABLE t TO swap, u TO t, swap TO u", *LAST), ("t", "u")),
    "another one takes the name": (("RENAME TABLE t TO old, other TO t", "DELETE FROM t WHERE id = 8"), ("t", "u")),
}  # fmt: skip


SERVERS = "mysql", "mariadb"
BOTH = [(server, change) for change in CHANGES for server in SERVERS]
IN_TURNS = [(SERVERS[number % 2], change) for number, change in enumerate(CHANGES)]
CAMPAIGN = "ROWTIDE_CAMPAIGN" in os.environ


@pytest.mark.parametrize(("flavor", "change"), BOTH if CAMPAIGN else IN_TURNS)
def test_what_happens_to_a_table_that_is_read_in_part(filled: Database, tmp_path: Path, change: str) -> None:
    statements, tables = CHANGES[change]
    program = Program(filled, tmp_path)
    program.interrupted()
    filled.execute(*FIRST, *statements)
    program.resumed()
    program.check(*tables)


each_server = pytest.mark.parametrize("flavor", SERVERS if CAMPAIGN else SERVERS[:1])


@pytest.mark.parametrize("flavor", [f"purged_{server}" for server in (SERVERS if CAMPAIGN else SERVERS[:1])])
def test_the_position_is_purged(filled: Database, tmp_path: Path) -> None:
    """The rows that changed since then are gone, so it cannot be read on."""
    program = Program(filled, tmp_path)
    program.interrupted()
    filled.execute(*FIRST)
    purge_binlogs(filled.server)
    with pytest.raises(ConnectorError) as raised:
        program.resumed()
    assert "rowtide.snapshot.resumable=false" in str(raised.value)
    assert "snapshot.mode=when_needed" in str(raised.value)
    program.properties["snapshot.mode"] = "when_needed"
    program.tables.clear()
    program.resumed()
    program.check("t", "u")


@each_server
def test_the_offset_file_is_gone(filled: Database, tmp_path: Path) -> None:
    """The snapshot is taken again from its beginning."""
    program = Program(filled, tmp_path)
    program.interrupted()
    filled.execute(*FIRST)
    program.offsets.unlink()
    program.tables.clear()
    program.resumed()
    program.check("t", "u")


@each_server
def test_an_older_offset_file_is_put_back(filled: Database, tmp_path: Path) -> None:
    """More is read again, and nothing is lost, also if a table was altered in between."""
    program = Program(filled, tmp_path)
    program.interrupted()
    older = shutil.copy(program.offsets, tmp_path / "older")
    filled.execute(*FIRST, "ALTER TABLE t ADD COLUMN x INT NOT NULL DEFAULT 7 FIRST")
    program.resumed()
    filled.execute(*LAST)
    shutil.copy(older, program.offsets)
    program.tables.get("z", {}).clear()
    filled.execute("DELETE FROM z")
    program.resumed()
    program.check("t", "u")
