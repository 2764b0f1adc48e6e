"""Tables that ``rowtide run`` keeps in DuckDB or Delta Lake, killed at random moments, next to those of the server."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pytest

from tests.support.connector_properties import CONNECTORS, address
from tests.support.processes.worker_process import STREAMING, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

SEED = 20261128


class Running:
    """``rowtide run`` with a sink that keeps tables, started again after each kill.

    Args:
        folder: of its files.
        database: the captured database.
        sink: ``duckdb`` or ``delta``.
    """

    def __init__(self, folder: Path, database: Database, sink: str) -> None:
        self.path = folder / "tables"
        self.sink = sink
        self.log = folder / "log"
        self._config = folder / "tables.properties"
        properties = {
            "name": "tables",
            "connector.class": CONNECTORS[database.server.name],
            "topic.prefix": "tables",
            "database.server.id": "7001",
            "database.include.list": database.name,
            "rowtide.sink.commit.interval.ms": "50",
            **address(database.server),
        }
        self._config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._logged = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the connector."""
        command = [sys.executable, "-m", "rowtide", "run", str(self._config), "--sink", f"{self.sink}:{self.path}"]
        self._logged = len(self.log.read_text()) if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*command, "--no-web", "--no-progress"], stdout=log, stderr=log)

    def end(self, how: signal.Signals) -> int:
        """End the connector by a signal; returns its status."""
        assert self.process is not None
        self.process.send_signal(how)
        status = self.process.wait(60)
        self.process = None
        return status

    def tables(self, database: Database) -> list[str]:
        """The names of the tables."""
        if self.sink == "delta":
            return sorted(folder.parent.name for folder in self.path.glob(f"{database.name}/*/_delta_log"))
        sql = f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{database.name}' ORDER BY 1"
        return [row[0] for row in self.query(sql)]

    def select(self, listed: str, database: Database, table: str) -> list[tuple[Any, ...]]:
        """Read a table while the connector does not run."""
        if self.sink == "delta":
            rows = deltalake.DeltaTable(self.path / database.name / table).to_pyarrow_dataset()
            with duckdb.connect() as connection:
                return connection.register("rows", rows).execute(f"SELECT {listed} FROM rows").fetchall()
        return self.query(f'SELECT {listed} FROM "{database.name}".{table}')

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Read the DuckDB file."""
        with duckdb.connect(self.path, read_only=True) as connection:
            return connection.execute(sql).fetchall()

    def stopped_at(self, database: Database, marker: int) -> None:
        """Wait until the file has a row, and stop."""
        database.execute(f"INSERT INTO marks VALUES ({marker})")

        def there() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            if STREAMING not in self.log.read_text()[self._logged :]:
                return False
            time.sleep(1)
            self.end(signal.SIGTERM)
            try:
                found = (marker,) in self.select("id", database, "marks")
            except (duckdb.Error, deltalake.exceptions.DeltaError):  # it has not begun
                found = False
            if not found:
                self.start()
            return found

        eventually(there, f"mark {marker}")


@contextmanager
def running(folder: Path, database: Database, sink: str) -> Iterator[Running]:
    made = Running(folder, database, sink)
    try:
        yield made
    finally:
        if made.process is not None:
            made.end(signal.SIGKILL)


def change(database: Database, chance: random.Random, stop: threading.Event) -> None:
    """Change rows, keys and structures until told to stop."""
    number = columns = 0
    while not stop.is_set():
        number += 1
        one, other = chance.randrange(200), chance.randrange(200)
        statements = [
            f"REPLACE INTO keyed (id, name) VALUES ({one}, 'n{number}')",
            f"UPDATE IGNORE keyed SET id = {other} WHERE id = {one}",
            f"DELETE FROM keyed WHERE id = {other}",
            f"INSERT INTO plain VALUES ({one % 5}, NULL), ({one % 5}, NULL)",
            f"DELETE FROM plain WHERE a = {one % 5} LIMIT 1",
            f"UPDATE plain SET b = '{other % 3}' WHERE a = {one % 5} LIMIT 1",
        ]
        database.execute(chance.choice(statements))
        if number % 40 == 0:
            columns += 1
            database.execute(f"ALTER TABLE keyed ADD c{columns} INT NOT NULL DEFAULT {columns}")
        elif number % 40 == 20 and columns:
            database.execute(f"ALTER TABLE keyed RENAME COLUMN c{columns} TO d{columns}")
        elif number % 333 == 0:
            database.execute("TRUNCATE TABLE plain")


def require_same(run: Running, database: Database) -> None:
    """Compare both tables with those of the server."""
    for table in ("keyed", "plain"):
        names = [row[0] for row in database.query(f"SHOW COLUMNS FROM {table}")]
        listed = ", ".join(names)
        expected = [tuple(row) for row in database.query(f"SELECT {listed} FROM {table}")]
        found = run.select(listed, database, table)
        assert sorted(map(str, found)) == sorted(map(str, expected)), table


def killed_again_and_again(folder: Path, database: Database, sink: str, kills: int) -> None:
    chance = random.Random(SEED)
    database.execute("CREATE TABLE keyed (id INT PRIMARY KEY, name VARCHAR(20))")
    database.execute("CREATE TABLE plain (a INT, b VARCHAR(20))")
    database.execute("CREATE TABLE marks (id INT PRIMARY KEY)")
    database.execute("INSERT INTO plain VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    database.execute("INSERT INTO keyed VALUES " + ", ".join(f"({number}, 'old')" for number in range(0, 200, 2)))
    stop, failures = threading.Event(), list[BaseException]()

    def write() -> None:
        try:
            change(database, chance, stop)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    writer = threading.Thread(target=write)
    moments = random.Random(SEED + 1)
    with running(folder, database, sink) as run:
        writer.start()
        try:
            for _ in range(kills):
                run.start()
                time.sleep(moments.uniform(1.0, 5.0))
                assert run.process is not None
                assert run.process.poll() is None, run.log.read_text()[-3000:]
                run.end(signal.SIGKILL)
        finally:
            stop.set()
            writer.join()
        assert not failures, failures
        run.start()
        run.stopped_at(database, 1)
        require_same(run, database)


@pytest.mark.parametrize("sink", [pytest.param("duckdb", marks=pytest.mark.nightly), "delta"])
def test_kills_lose_and_double_nothing(sink: str, tmp_path: Path, mysql_db: Database) -> None:
    killed_again_and_again(tmp_path, mysql_db, sink, 3)


STATEMENTS = [
    "CREATE TABLE more (id INT PRIMARY KEY) AS SELECT 1 AS id, 'one' AS word",
    "ALTER TABLE types ADD added DECIMAL(6,2) NOT NULL DEFAULT 1.25, ADD stamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
    "ALTER TABLE types CHANGE d renamed DECIMAL(12,3), ADD d INT NOT NULL",
    "INSERT INTO types (id, renamed, d) VALUES (4, 1.5, 9)",
    "UPDATE types SET id = id + 10 WHERE id > 1",
    "CREATE TABLE first_name (id INT PRIMARY KEY)",
    "INSERT INTO first_name VALUES (1), (2)",
    "RENAME TABLE first_name TO last_name",
    "INSERT INTO last_name VALUES (3)",
    "ALTER TABLE last_name ADD e ENUM('x','y') NOT NULL, ADD n BIGINT UNSIGNED DEFAULT 18446744073709551615",
    "CREATE TABLE gone (id INT)",
    "INSERT INTO gone VALUES (1)",
    "DROP TABLE gone",
    "CREATE TABLE gone (word VARCHAR(5))",
    "INSERT INTO gone VALUES ('a'), ('a')",
    "TRUNCATE TABLE gone",
    "INSERT INTO gone VALUES ('b')",
]


@pytest.mark.parametrize(("kind", "sink"), [("mysql", "duckdb"), ("mariadb", "delta")])
def test_values_and_statements_of_a_server(
    kind: str, sink: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    database: Database = request.getfixturevalue(f"{kind}_db")
    columns = {
        "d": ("DECIMAL(10,3)", "12.500"),
        "f": ("FLOAT", "1.1"),
        "e": ("ENUM('a','ü')", "'ü'"),
        "s": ("SET('a','b')", "'a,b'"),
        "b": ("BIT(10)", "b'1000000001'"),
        "y": ("YEAR", "1999"),
        "day": ("DATE", "'2024-02-29'"),
        "made": ("DATETIME(3)", "'2024-02-29 01:02:03.456'"),
        "t": ("TIME(6)", "'-01:02:03.5'"),
        "bin": ("BINARY(4)", "'x'"),
        "big": ("BIGINT UNSIGNED", "18446744073709551615"),
        "j": ("JSON", """'{"a": [1, 1.50, null]}'"""),
        "nothing": ("TEXT", "''"),
    }
    listed = ", ".join(f"{one} {kind}" for one, (kind, _) in columns.items())
    values = ", ".join(value for _, value in columns.values())
    database.execute(f"CREATE TABLE types (id INT PRIMARY KEY, {listed})", "CREATE TABLE marks (id INT PRIMARY KEY)")
    database.execute(f"INSERT INTO types VALUES (1, {values})")
    with running(tmp_path, database, sink) as run:
        run.start()
        run.stopped_at(database, 1)
        database.execute(f"INSERT INTO types VALUES (2, {values})", "INSERT INTO types (id) VALUES (3)", *STATEMENTS)
        run.start()
        run.stopped_at(database, 2)
        tables = sorted(row[0] for row in database.query("SHOW TABLES"))
        assert run.tables(database) == tables
        assert tables == ["gone", "last_name", "marks", "more", "types"]
        for table in tables:
            names = [row[0] for row in database.query(f"SHOW COLUMNS FROM {table}")]
            server = {"b": "b + 0", "stamp": "UNIX_TIMESTAMP(stamp)"}
            if sink == "delta":  # which has no type for TIME
                server["t"] = "CAST(TIME_TO_SEC(t) * 1000000 AS SIGNED)"
            file = {"stamp": "epoch(stamp)::BIGINT", "f": "f::DECIMAL(5,2)::DOUBLE"}
            file |= {one: f"{one}::UBIGINT" for one in ("b", "big", "n")}
            expected = database.query(f"SELECT {', '.join(server.get(one, one) for one in names)} FROM {table}")
            listed = ", ".join(file.get(one, one) for one in names)
            found = run.select(listed, database, table)
            assert sorted(map(str, found)) == sorted(map(str, map(tuple, expected))), table
        (tmp_path / "tables.history").unlink()
        run.start()
        assert run.process is not None
        assert run.process.wait(60) == 1
        run.process = None
        assert "it is lost or from an older backup. Restore it, or delete the " in run.log.read_text()


@pytest.mark.nightly
@pytest.mark.parametrize("sink", ["duckdb", "delta"])
def test_twenty_kills_on_mariadb(sink: str, tmp_path: Path, mariadb_db: Database) -> None:
    killed_again_and_again(tmp_path, mariadb_db, sink, 20)
