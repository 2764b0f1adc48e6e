"""``rowtide verify --against``: tables of two servers, with and without replication between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rowtide.cli import main
from tests.chaos.primary import Primary
from tests.support.connector_properties import address
from tests.support.mysql.random_values import LOOSE, RandomRows
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually
from tests.verify.damages import MORE, found, inserts, load, report
from tests.verify.damages import TABLES as LOADED

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, SqlServer

pytestmark = pytest.mark.servers

TABLES = (
    "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, n INT, note VARCHAR(40), doc JSON, at TIMESTAMP(3))",
    "CREATE TABLE parts (code VARCHAR(20) COLLATE utf8mb4_general_ci, made DATE, n FLOAT, PRIMARY KEY (code, made))",
    "CREATE TABLE visits (n INT, note TEXT)",
)
ROWS = (
    "INSERT INTO orders VALUES (1, 1, 'ä', '{\"b\": 1, \"a\": [1.0, null]}', '2024-01-01 12:00:00.5')",
    "INSERT INTO orders VALUES (2, 2, NULL, NULL, NULL)",
    "INSERT INTO parts VALUES ('x', '2024-01-01', 0.1), ('Y', '2024-01-01', 16777216), ('z', '2024-01-02', NULL)",
    "INSERT INTO visits VALUES (1, 'a'), (1, 'a'), (2, NULL)",
)


def configuration(folder: Path, server: SqlServer, database: str) -> Path:
    """The configuration of a connector whose Kafka does not exist: nothing is read from it."""
    return WorkerConfig(folder, server, "127.0.0.1:1", {"database.include.list": database}).path


def run(source: Path, other: Path, *options: str) -> Result:
    command = ["verify", "--config", str(source), "--against", str(other), "--timeout", "30", *options]
    return CliRunner().invoke(main, command)


def compare(source: Path, other: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the tables of the report by name."""
    result = run(source, other, "--json", *options)
    return result.exit_code, {one["table"].partition(".")[2]: one for one in json.loads(result.stdout)["tables"]}


def kinds(table: dict[str, Any]) -> list[tuple[str, Any, str]]:
    return sorted(
        (one["kind"], next(iter(one["key"].values())), ",".join(one["columns"])) for one in table["differences"]
    )


def test_tables_of_mysql_and_mariadb_are_compared(
    mysql_db: Database, mariadb: SqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server replicates the other one. MariaDB has JSON as text, and sorts keys in another order."""
    monkeypatch.setattr("rowtide.verify.servers._PAUSE_S", 0.01)
    mysql_db.execute(*TABLES, *ROWS)
    mariadb.execute(f"CREATE DATABASE {mysql_db.name}")
    try:
        with mariadb.connect(mysql_db.name) as connection, connection.cursor() as cursor:
            for statement in (*TABLES, *ROWS):
                cursor.execute(statement.replace('{"b": 1, "a": [1.0, null]}', '{"a":[1,null],"b":1}'))
            connection.commit()
            sides = [configuration(tmp_path, server, mysql_db.name) for server in (mysql_db.server, mariadb)]
            status, tables = compare(*sides, "--parallel", "2")
            assert status == 0, tables
            assert {name: one["outcome"] for name, one in tables.items()} == dict.fromkeys(
                ("orders", "parts", "visits"), "equal"
            )
            cursor.execute("UPDATE orders SET note = 'a', doc = '{\"a\": [1.0, 0], \"b\": 1}' WHERE id = 1")
            cursor.execute("INSERT INTO orders (id) VALUES (3)")
            cursor.execute("DELETE FROM parts WHERE code = 'y'")
            cursor.execute("DELETE FROM visits WHERE n = 1 LIMIT 1")
            connection.commit()
            status, tables = compare(*sides)
            assert status == 1
            assert kinds(tables["orders"]) == [("extra", "3", ""), ("stale", "1", "note,doc")]
            assert tables["orders"]["differences"][0]["other_server"]["note"] == "a"
            assert kinds(tables["parts"]) == [("lost", "Y", "")]
            assert kinds(tables["visits"]) == [("lost", "1", "")]
            shown = run(*sides, "--table", f"{mysql_db.name}.orders").output
            assert "orders: different, 2 differences, 2 rows in the source, 3 on the other server" in shown
            assert "stale: id=1: the other server has other values of note, doc" in shown
            status, tables = compare(*sides, "--table", f"{mysql_db.name}.orders", "--where", "id = 2")
            assert (status, tables["orders"]["source_rows"]) == (0, 1)
            cursor.execute("ALTER TABLE orders ADD more INT")
            cursor.execute("DROP TABLE parts")
            cursor.execute("CREATE TABLE own (id INT PRIMARY KEY)")
            status, tables = compare(*sides, "--sample", "50")
            assert {name: one["reason"].partition(".")[0] for name, one in tables.items()} == {
                "orders": "only one of the servers has the columns more",
                "parts": "the other server does not have the table, or the user lacks SELECT on it",
                "visits": "a table without a key can only be compared as a whole: omit --where and --sample",
                "own": "only the other server has the table",
            }
            assert status == 2
            assert compare(*sides, "--table", f"{mysql_db.name}.orders", "--columns", "n")[0] == 1  # row 3
    finally:
        mariadb.execute(f"DROP DATABASE {mysql_db.name}")
    assert run(sides[0], sides[0]).output.startswith("Error: both configurations name the server")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_a_replica_under_load_is_equal_and_its_damages_are_found(name: str, tmp_path: Path) -> None:
    """The replica is up to a second late. Rows in flight are not differences; damaged rows are."""
    import rowtide_stack

    kind: type[SqlServer] = {"mysql": rowtide_stack.MySQL, "mariadb": rowtide_stack.MariaDB}[name]
    with kind() as source, kind({"server_id": 2}) as replica, source.database() as database:
        Primary(source, replica)
        database.execute(*LOADED)
        for number in range(40):
            database.execute(*inserts(number))
        random_rows = RandomRows(name, "mixed", seed=7)
        database.execute(LOOSE, random_rows.table, *random_rows.inserts(200))
        sides = [configuration(tmp_path, server, database.name) for server in (source, replica)]
        eventually(
            lambda: replica.query(f"SHOW TABLES FROM {database.name} LIKE 'visits'"), "the tables are replicated"
        )
        with load(database):
            status, tables = compare(*sides, "--table", f"{database.name}.orders")
            assert status == 0, tables
            status, tables = compare(*sides)
            outcomes = {table: one["outcome"] for table, one in tables.items()}
            assert outcomes.pop("visits") in ("equal", "undecided"), (
                tables
            )  # without a key, it changes while it is read
            assert {*outcomes.values()} == {"equal"}, tables
            damages = (
                "UPDATE orders SET price = price + 1 WHERE id = 7",
                "DELETE FROM orders WHERE id = 8",
                "INSERT INTO parts (code, made) VALUES ('only here', '2024-01-01')",
            )
            with replica.connect(database.name) as connection, connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_log_bin = 0")
                for damage in damages:
                    cursor.execute(damage)
                connection.commit()
            status, tables = compare(*sides, "--table", f"{database.name}.orders")
            assert status == 1
            assert kinds(tables["orders"]) == [("lost", "8", ""), ("stale", "7", "price")], tables
            status, tables = compare(*sides, "--table", f"{database.name}.parts")
            assert kinds(tables["parts"]) == [("extra", "only here", "")], tables
        replica.execute("STOP REPLICA" if name == "mysql" else "STOP ALL SLAVES")
        database.execute("UPDATE orders SET n = 0 WHERE id = 1")
        status, tables = compare(*sides, "--table", f"{database.name}.orders")
        assert status == 2
        assert "its replication has ended: it was stopped (STOP REPLICA)" in tables["orders"]["reason"]


@pytest.mark.nightly
def test_a_replica_that_lags_is_not_different_from_the_topics(tmp_path: Path, kafka: Kafka) -> None:
    """The command reads the replica, and the connector its source: the topics have changes that the replica lacks."""
    from rowtide_stack import MySQL

    with MySQL() as source, MySQL({"server_id": 2}) as replica, source.database() as database:
        Primary(source, replica)
        config = WorkerConfig(tmp_path, source, kafka.bootstrap, MORE | {"database.include.list": database.name})
        database.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        database.execute("CREATE TABLE k (n INT)", "INSERT INTO k VALUES (1)")
        with Worker(config).streaming() as worker:
            eventually(lambda: replica.query(f"SHOW TABLES FROM {database.name} LIKE 'k'"), "the tables are replicated")
            config.properties |= address(replica)
            assert report(config)[0] == 0
            replica.execute("STOP REPLICA")
            database.execute(
                "UPDATE t SET n = 9 WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (4, 4)"
            )
            database.execute("INSERT INTO k VALUES (2)")
            eventually(lambda: json.loads(worker.get("/health")[1])["lag"]["seconds"] == 0, "the changes are sent")
            status, document = report(config, "--timeout", "3")
            assert (status, found(document)) == (2, set()), document
            for table in document["tables"]:
                assert "is a replica, and has not executed changes" in table["reason"]
            replica.execute("START REPLICA")
            assert report(config)[0] == 0
            worker.stop()
