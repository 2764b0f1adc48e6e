"""Tables that enter the captured tables later: their rows are read by an incremental snapshot, once and completely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.connector.config import from_properties
from rowtide.connector.engine.wiring import offset_store
from tests.support.changing_rows import ChangingRows
from tests.support.processes.worker_process import Worker, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

ROWS = 500  # also the first version of a row under load: what the tests write before is older
READ = "the incremental snapshot has read"
NEW = "new among the captured tables"
MARIADB = pytest.param("mariadb", marks=pytest.mark.nightly)


class Connector(ChangingRows):
    """A connector whose list of captured tables changes.

    Args:
        database: its database.
        kafka: the broker.
        folder: for the configuration.
        more: further properties.
    """

    def __init__(self, database: Database, kafka: Kafka, folder: Path, **more: str) -> None:
        properties = {name.replace("_", "."): value for name, value in more.items()}
        super().__init__(database, kafka, folder, ROWS, 0.02, properties)

    def captures(self, *tables: str) -> None:
        """Set the list of captured tables."""
        self.config.properties["table.include.list"] = ",".join(f"{self.database.name}.{table}" for table in tables)

    def check(self) -> str:
        """What ``rowtide check`` prints."""
        return CliRunner(env={"ROWTIDE_CAMPAIGN": None}).invoke(main, ["check", str(self.config.path)]).output

    def run_once(self) -> str:
        """Stream until a change has been delivered; returns the log."""
        with Worker(self.config).streaming() as worker:
            self.marker()
            return worker.stop()

    def marker(self) -> None:
        """Change a row of the first table, and wait for its record."""
        self.database.execute("INSERT INTO a VALUES (NULL, 0)")
        (last,) = self.database.query("SELECT MAX(id) FROM a")[0]
        eventually(lambda: any(key == last for key, _ in self.records("a")), "the last change")

    def next_second(self) -> None:
        """Wait until a table's time of creation, which has no fractions, is after the stored position."""
        now = "SELECT UNIX_TIMESTAMP()"
        before = self.database.query(now)
        eventually(lambda: self.database.query(now) != before, "the next second")

    def create(self, *tables: str, rows: int = 2) -> None:
        """Create tables with rows."""
        values = ", ".join(f"({key}, {key})" for key in range(1, rows + 1))
        for table in tables:
            key = "id INT AUTO_INCREMENT PRIMARY KEY"
            self.database.execute(f"CREATE TABLE {table} ({key}, ver INT)", f"INSERT INTO {table} VALUES {values}")


@pytest.fixture
def database(request: pytest.FixtureRequest, flavor: str) -> Database:
    """A database of the server."""
    return request.getfixturevalue(f"{flavor}_db")  # type: ignore[no-any-return]


@pytest.mark.parametrize("flavor", ["mysql", MARIADB])
def test_the_list_grows_under_load(database: Database, kafka: Kafka, tmp_path: Path) -> None:
    """The worker is killed while it reads the new table; a table that was created meanwhile is complete without."""
    connector = Connector(database, kafka, tmp_path)
    connector.create("a", "bare")
    connector.create("added", rows=ROWS)
    connector.captures("a", "later.*")
    assert NEW not in connector.run_once()

    database.execute("UPDATE added SET ver = 499 WHERE id = 1", "DELETE FROM bare")
    connector.next_second()
    connector.create("created")  # after the stored position: the stream has all of it
    connector.captures("a", "added", "created", "bare", "later.*")
    expected = f"rowtide.snapshot.new.tables: {database.name}.added, {database.name}.bare: {NEW}. An incremental"
    assert expected in connector.check()
    with connector.load("added"):
        with Worker(connector.config).wait_for_log(NEW) as worker:
            connector.create("later1")
            connector.chunk_stored(worker)
            worker.kill()
        with Worker(connector.config).wait_for_log("continues after its last chunk") as worker:
            log = worker.wait_for_log(f"{READ} ").stop()
    assert NEW not in log, "it is being read"
    assert NEW not in connector.run_once(), "it was read"
    for table in ("added", "created", "later1", "bare"):
        connector.check_rows(table)
    assert ROWS * 0.5 < connector.reads("added") < ROWS * 1.5
    assert [connector.reads(table) for table in ("created", "later1")] == [0, 0]


@pytest.mark.parametrize("flavor", ["mysql", MARIADB])
def test_a_table_leaves_and_comes_back(database: Database, kafka: Kafka, tmp_path: Path) -> None:
    connector = Connector(database, kafka, tmp_path, snapshot_max_threads="2")
    connector.create("a")
    connector.create("b", rows=50)
    connector.captures("a", "b")
    connector.run_once()
    connector.captures("a")
    assert NEW not in connector.run_once()
    database.execute("DELETE FROM b WHERE id = 1", "UPDATE b SET ver = 60 WHERE id = 2")
    connector.run_once()  # these changes are not captured
    connector.captures("a", "b")
    with Worker(connector.config).wait_for_log(NEW) as worker:
        worker.wait_for_log(f"{READ} 49 rows of table {database.name}.b")
        worker.stop()
    after = [value["after"] for _, value in connector.records("b") if value is not None][-49:]
    assert sorted(row["id"] for row in after) == list(range(2, 51))
    assert {"id": 2, "ver": 60} in after


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_a_table_that_the_schema_history_lacks(database: Database, kafka: Kafka, tmp_path: Path) -> None:
    """It is altered after the stored position: only its structure at the end of the binlog is known."""
    only = "schema.history.internal.store.only.captured.tables.ddl"
    connector = Connector(database, kafka, tmp_path, **{only: "true"})
    connector.create("a")
    connector.create("added", rows=50)
    connector.captures("a")
    connector.run_once()
    database.execute(
        "UPDATE added SET ver = 60 WHERE id = 2",
        "ALTER TABLE added ADD COLUMN more INT NOT NULL DEFAULT 7 FIRST",
        "DELETE FROM added WHERE id = 1",
    )
    connector.captures("a", "added")
    with Worker(connector.config).wait_for_log(f"table {database.name}.added is captured starting at") as worker:
        database.execute("UPDATE added SET ver = 70 WHERE id = 3", "ALTER TABLE added DROP COLUMN more")
        worker.wait_for_log(f"rows of table {database.name}.added")
        database.execute("UPDATE added SET ver = 80 WHERE id = 4")
        connector.marker()
        worker.stop()
    database.execute("UPDATE added SET ver = 90 WHERE id = 5")
    assert NEW not in connector.run_once()
    connector.check_rows("added")
    # Of the 49 rows, the one that was updated while they were read may have come from the stream alone.
    assert connector.reads("added") >= 48


def test_a_position_of_an_earlier_version(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    """Nothing is read again, but a table that was added and never had a record is read."""
    connector = Connector(mysql_db, kafka, tmp_path)
    connector.create("a", "b", "added")
    connector.captures("a", "b")
    connector.run_once()
    store = offset_store(from_properties(connector.config.properties))
    stored = store.load()
    assert stored is not None
    name = "rowtide_snapshot_lists"
    assert name in (stored.carried or ())
    store.save(
        type(stored).from_map({key: value for key, value in json.loads(stored.to_json()).items() if key != name})
    )
    connector.captures("a", "b", "added")
    assert f"{mysql_db.name}.added: {NEW}" in connector.check()
    with Worker(connector.config).wait_for_log(f"{READ} 2 rows of table {mysql_db.name}.added") as worker:
        worker.stop()
    connector.run_once()
    for table in ("b", "added"):
        connector.check_rows(table)
        assert connector.reads(table) == 2


def test_tables_that_are_not_read_are_named_at_each_start(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    connector = Connector(mysql_db, kafka, tmp_path)
    connector.create("a", "added")
    mysql_db.execute("CREATE TABLE keyless (id INT, ver INT)", "INSERT INTO keyless VALUES (1, 1), (2, 1)")
    connector.captures("a")
    connector.run_once()
    connector.captures("a", "added", "keyless")
    connector.config.properties["rowtide.snapshot.new.tables"] = "none"
    for _ in range(2):
        assert f"{mysql_db.name}.added, {mysql_db.name}.keyless: {NEW}, but only their" in connector.run_once()
    del connector.config.properties["rowtide.snapshot.new.tables"]
    with Worker(connector.config).wait_for_log(f"{READ} 2 rows of table {mysql_db.name}.added") as worker:
        worker.wait_for_log(f"{mysql_db.name}.keyless: {NEW}, but its existing rows are not read: it has no primary")
        data = {"data-collections": [f"{mysql_db.name}.keyless"], "surrogate-key": "id"}
        body = json.dumps({"type": "execute-snapshot", "data": data})
        assert worker.send("POST", f"/connectors/{connector.config.name}/signals", body)[0] < 300
        worker.wait_for_log(f"{READ} 2 rows of table {mysql_db.name}.keyless")
        worker.stop()
    assert NEW not in connector.run_once()
    assert connector.reads("added") == 2


@pytest.mark.parametrize("flavor", ["mysql", MARIADB])
def test_a_signal_changes_the_list_without_a_restart(database: Database, kafka: Kafka, tmp_path: Path) -> None:
    """The list outlives a crash, until that of the configuration is changed."""
    connector = Connector(database, kafka, tmp_path)
    connector.create("a", "b", "added")
    connector.captures("a", "b")
    with Worker(connector.config).streaming() as worker:
        connector.marker()
        lists = ",".join(f"{database.name}.{table}" for table in ("a", "added"))
        data = {"table.include.list": lists}
        body = json.dumps({"id": "grow", "type": "rowtide-set-table-include-list", "data": data})
        assert worker.send("POST", f"/connectors/{connector.config.name}/signals", body)[0] < 300
        worker.wait_for_log(f"{READ} 2 rows of table {database.name}.added")
        database.execute("UPDATE b SET ver = 60 WHERE id = 2", "UPDATE added SET ver = 60 WHERE id = 2")
        connector.marker()
        assert worker.health()["restarts"] == 0
        worker.kill()
    assert "signal 'grow' has replaced table.include.list" in connector.check()
    database.execute("UPDATE added SET ver = 70 WHERE id = 2")
    log = connector.run_once()
    assert "signal 'grow' has replaced table.include.list" in log
    assert NEW not in log
    connector.check_rows("added")
    assert connector.reads("added") == 2
    connector.captures("a", "b", "added")
    with Worker(connector.config).wait_for_log(f"{READ} 2 rows of table {database.name}.b") as worker:
        assert "'grow'" not in worker.stop()
    connector.check_rows("b")


@pytest.mark.parametrize("flavor", ["mysql", MARIADB])
def test_a_table_gets_a_captured_name_by_a_rename(database: Database, kafka: Kafka, tmp_path: Path) -> None:
    """Its rows are read alongside the stream, also after a crash; those without a key are named as missing."""
    connector = Connector(database, kafka, tmp_path)
    connector.create("a", "staged_away")
    connector.create("staging", rows=ROWS)
    database.execute("CREATE TABLE staging_log (id INT, ver INT)", "INSERT INTO staging_log VALUES (1, 1)")
    connector.captures("a", "orders.*")
    with Worker(connector.config).streaming() as worker:
        connector.marker()
        database.execute(
            "UPDATE staging SET ver = 498 WHERE id = 1",
            "RENAME TABLE staging_log TO orders_log, staging TO orders",
            "UPDATE orders SET ver = 499 WHERE id = 2",
        )
        with connector.load("orders"):
            worker.wait_for_log(f"{database.name}.orders: {NEW}. An incremental snapshot reads their existing rows")
            connector.chunk_stored(worker)
            unread = [f"{database.name}.orders_log", f"{database.name}.orders"]
            eventually(lambda: worker.health()["unread_tables"] == unread, "/health names them")
            worker.kill()
            missing = f"{database.name}.orders_log: {NEW}, but its existing rows are not read: it has no primary key"
            assert missing in worker.log
            with Worker(connector.config).wait_for_log("continues after its last chunk") as next_one:
                log = next_one.wait_for_log(f"{READ} ").wait_for_log("rows of table").stop()
                assert missing in log
            # Before, it waits until the broker has aborted the transaction of the killed worker.
            assert missing in connector.check()
    with Worker(connector.config).streaming() as worker:
        connector.marker()
        eventually(lambda: worker.health()["unread_tables"] == unread[:1], "only the one without a key is left")
        worker.stop()
    connector.check_rows("orders")
    assert ROWS * 0.5 < connector.reads("orders") < ROWS * 1.5
