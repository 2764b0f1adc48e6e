"""A databus server with MySQL, MariaDB and Kafka: its client rebuilds the tables, also after kills."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from rowtide_stack.ports import free_port

from rowtide.cli import main
from rowtide.databus.client import Client, ClientSettings
from rowtide.databus.events import Event, KafkaKey, QueryEvent, RowsEvent, decode_message
from rowtide.databus.sql import statements
from tests.support.kafka.topic_tools import Topics
from tests.support.mysql.write_load import Change, WriteLoad
from tests.support.network.tcp_proxy import TcpProxy
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, ZooKeeper

pytestmark = pytest.mark.servers

KILLS = int(os.environ.get("ROWTIDE_CAMPAIGN", "3"))
SERVERS = ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)]
WAIT_S = 180.0
OPERATIONS = {"insert": "c", "update": "u", "delete": "d"}


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Database:
    """A database of each server."""
    return request.getfixturevalue(f"{request.param}_db")  # type: ignore[no-any-return]


@pytest.fixture
def copy(database: Database) -> Iterator[Database]:
    """Another database of the same server."""
    with database.server.database() as found:
        yield found


@pytest.fixture
def config(tmp_path: Path, database: Database, kafka: Kafka) -> WorkerConfig:
    more = {
        "database.include.list": database.name,
        "exactly.once.source.support": "enabled",
        "exactly.once.support": "required",
    }
    made = WorkerConfig(tmp_path, database.server, kafka.bootstrap, more)
    made.properties["databus.topic"] = f"{made.name}-databus"
    return made


def server(config: WorkerConfig) -> Worker:
    command = [sys.executable, "-m", "rowtide", "databus", str(config.path), "--web-port", "{port}"]
    return Worker(config, command=command)


def drain(config: WorkerConfig) -> None:
    """Run a server until everything is delivered."""
    with server(config).streaming() as worker:
        eventually(lambda: worker.health()["lag"] == {"seconds": 0.0, "bytes": 0}, "everything is read")
        worker.stop()


def events(topics: Topics, config: WorkerConfig) -> list[tuple[KafkaKey, RowsEvent | QueryEvent]]:
    """All messages, whose positions must ascend."""
    name = config.properties["databus.topic"]
    found = [decode_message(name, seen.offset, seen.key, seen.value) for seen in topics.read(name)]
    positions = [(key.position.number, key.position.pos) for key, _ in found]
    assert positions == sorted(set(positions))
    return found


TYPES = """
    id BIGINT UNSIGNED PRIMARY KEY, t TINYINT, y YEAR, dec1 DECIMAL(30, 10), f FLOAT, d DOUBLE, bits BIT(12),
    text1 VARCHAR(40) CHARACTER SET latin1, text2 TEXT, bin BINARY(4), var VARBINARY(10), blob1 BLOB,
    e ENUM('a', 'b''c', '2'), s SET('x', 'y', 'z'), day DATE, moment DATETIME(3), stamp TIMESTAMP(6) NULL,
    clock TIME(2), doc JSON, place POINT
"""
FULL_ROW = (
    "18446744073709551615, -128, 2024, -12345678901234567890.0123456789, 1.1, 1e300, b'101010101010', 'Käse', "
    r"'€ \\ \'', X'00FF', X'FF00', X'00010203', '2', 'x,z', '2024-02-29', '2024-01-02 03:04:05.678', "
    "'2024-01-02 03:04:05.678901', '-838:59:59.00', '{\"a\": [1, 2.5, null, \"ä\"]}', ST_GeomFromText('POINT(1 2)')"
)
EMPTY_ROW = "0" + ", NULL" * 19


@pytest.mark.parametrize("database", SERVERS, indirect=True)
def test_the_client_rebuilds_the_tables(
    database: Database, copy: Database, config: WorkerConfig, topics: Topics, kafka: Kafka, tmp_path: Path
) -> None:
    with server(config).streaming() as worker:
        database.execute(
            "SET time_zone = '+00:00'",
            f"CREATE TABLE types ({TYPES})",
            f"INSERT INTO types VALUES ({FULL_ROW}), ({EMPTY_ROW})",
            "CREATE TABLE plain (n INT, u INT)",
            "INSERT INTO plain VALUES (1, 1), (1, 1), (NULL, 2)",
            "DELETE FROM plain WHERE n IS NULL",
            "UPDATE types SET f = 2.5, e = 'b''c' WHERE id = 0",
            "ALTER TABLE types ADD COLUMN more INT DEFAULT 7",
            "RENAME TABLE plain TO renamed",
            "CREATE INDEX i ON renamed (n)",
            "INSERT INTO types (id) VALUES (5), (6)",
            "UPDATE types SET id = 7 WHERE id = 6",
            "CREATE TABLE keyless (t VARCHAR(9), f FLOAT, d DOUBLE)",
            "INSERT INTO keyless VALUES ('A', 1.1, 0.1), ('a', 1.1, 0.1), ('a ', 1.1, 0.1), ('é', 16777215, 1e-7)",
            "DELETE FROM keyless WHERE HEX(t) = '6120'",
            "UPDATE keyless SET f = 0.3 WHERE HEX(t) = '61'",
            "DELETE FROM keyless WHERE t = 'é'",
            "CREATE TABLE made (id INT PRIMARY KEY, v INT AS (id + 1) VIRTUAL, s INT AS (id + 2) STORED)",
            "INSERT INTO made (id) VALUES (1), (2)",
            "UPDATE made SET id = 3 WHERE id = 2",
            "CREATE TABLE gone (n INT)",
            "DROP TABLE gone",
            "CREATE TABLE truncated (n INT)",
            "INSERT INTO truncated VALUES (1)",
            "TRUNCATE TABLE truncated",
            "INSERT INTO truncated VALUES (2)",
            "XA START 'x'",
            "INSERT INTO truncated VALUES (3)",
            "XA END 'x'",
            "XA PREPARE 'x'",
            "XA COMMIT 'x'",
        )
        if database.server.name == "mysql":
            values = ",".join(f"({number}, {number % 7})" for number in range(20_000))
            database.execute(
                "SET SESSION binlog_transaction_compression = ON",
                f"INSERT INTO renamed VALUES {values}",
                "DELETE FROM truncated WHERE n = 2",
                "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
                "UPDATE types SET doc = JSON_SET(doc, '$.a[1]', 'x') WHERE t IS NOT NULL",
            )
        database.execute("CREATE TABLE the_end (n INT)")
        eventually(lambda: any("the_end" in event.table.name for _, event in events(topics, config)), "the end")
        worker.stop()
    first = events(topics, config)[0][0].position
    settings = ClientSettings(
        (kafka.bootstrap,),
        config.properties["databus.topic"],
        tmp_path / "Repl.info",
        master_name=first.file,
        master_pos=first.pos,
    )
    found: list[Event] = []
    with copy.connect() as connection, Client(settings) as client, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for event in client:
            found.append(event)
            for statement in statements(event.event):
                cursor.execute(statement.replace(f"`{database.name}`", f"`{copy.name}`"))
            connection.commit()
            client.ack(event)
            if event.event.table.name == "the_end":
                break
    assert len(found) == len(events(topics, config))
    tables = {name for (name,) in database.query("SHOW TABLES")}
    expected = {"types", "renamed", "truncated", "keyless", "made", "the_end"}
    assert tables == {name for (name,) in copy.query("SHOW TABLES")} == expected
    indexes = "SELECT table_name, index_name, column_name FROM information_schema.statistics WHERE table_schema = '{}'"
    assert sorted(copy.query(indexes.format(copy.name))) == sorted(database.query(indexes.format(database.name)))
    for table in tables:
        assert sorted(map(str, copy.query(f"SELECT * FROM {table}"))) == sorted(
            map(str, database.query(f"SELECT * FROM {table}"))
        ), table


STATEMENTS = [
    ("", "CREATE TABLE source (id INT PRIMARY KEY, label VARCHAR(20) DEFAULT 'x')"),
    ("", "INSERT INTO source VALUES (1, 'a'), (2, 'b')"),
    ("", "CREATE TABLE selected AS SELECT * FROM source"),
    (
        "ANSI_QUOTES",
        'CREATE TABLE "copied" ("own id" INT PRIMARY KEY, t VARCHAR(9) DEFAULT \'"\') SELECT 1 AS "own id"',
    ),
    ("ANSI_QUOTES", 'CREATE TABLE "ansi" ("a`b" INT, "c""d" VARCHAR(9) DEFAULT \'it\'\'s "so"\', KEY "k k" ("a`b"))'),
    ("ANSI_QUOTES", 'ALTER TABLE "ansi" ADD "select" INT COMMENT \'x\', RENAME TO "ansi 2"'),
    (
        "NO_BACKSLASH_ESCAPES",
        "CREATE TABLE slashes (a VARCHAR(9) DEFAULT '\\', b ENUM('\\n', 'c:\\') COMMENT \"\\\", c CHAR(3))",
    ),
    ("ANSI", 'CREATE TABLE "pipes" ("a" VARCHAR(5), "b" VARCHAR(20) AS ("a" || \'\\\\\' || \'z\') STORED, "r" REAL)'),
    ("REAL_AS_FLOAT", "CREATE TABLE reals (r REAL)"),
    ("ALLOW_INVALID_DATES", "CREATE TABLE days (d DATE DEFAULT '2024-02-31')"),
    (
        "",
        "CREATE TABLE zeros (d DATE NOT NULL DEFAULT '0000-00-00', t TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00')",
    ),
    ("", "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES source (id))"),
]


@pytest.mark.parametrize("database", SERVERS, indirect=True)
def test_every_statement_can_be_executed(
    database: Database, copy: Database, config: WorkerConfig, topics: Topics
) -> None:
    with server(config).streaming() as worker:
        for mode, statement in STATEMENTS:
            database.execute(f"SET sql_mode = '{mode}'", statement)
        database.execute("SET NAMES latin1", "CREATE TABLE marks (e ENUM('ä', '§') CHARACTER SET utf8mb4 COMMENT 'ö')")
        database.execute("CREATE TABLE the_end (n INT)")
        eventually(lambda: any("the_end" in event.table.name for _, event in events(topics, config)), "the end")
        worker.stop()
    found = [event for _, event in events(topics, config) if isinstance(event, QueryEvent)]
    with copy.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET foreign_key_checks = 0")
        for event in found:
            cursor.execute(f"SET sql_mode = '{event.sql_mode}'")
            cursor.execute(event.query.replace(f"`{database.name}`", f"`{copy.name}`"))
    tables = {str(name) for (name,) in database.query("SHOW TABLES")}
    assert tables == {str(name) for (name,) in copy.query("SHOW TABLES")}
    for table in tables:
        assert shown(copy, table) == shown(database, table)


def shown(database: Database, table: str) -> str:
    """Its structure; AUTO_INCREMENT and the like are not in the tests."""
    (row,) = database.query(f"SHOW CREATE TABLE `{table}`")
    return str(row[1])


def changes(found: list[tuple[KafkaKey, RowsEvent | QueryEvent]], table: str) -> list[Change]:
    """The changes of a table, as a load has recorded them."""
    made: list[Change] = []
    for _, event in found:
        if isinstance(event, RowsEvent) and event.table.name == table:
            for before, after in event.changes():
                row = event.table.columns and (after or before)
                assert row
                number = int((after or (b"0", b"0"))[1] or b"0")
                made.append((OPERATIONS[event.action], int(row[0] or b"0"), number))
    return made


@pytest.mark.parametrize("database", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)], indirect=True)
def test_every_change_is_published_once_behind_kills(database: Database, config: WorkerConfig, topics: Topics) -> None:
    load, chance = WriteLoad(database, seed=7), random.Random(3)
    with server(config).streaming() as worker:
        worker.stop()
    with load:
        for _ in range(KILLS):
            with server(config).streaming() as worker:
                time.sleep(chance.uniform(0, 1.0))
                worker.kill()
    drain(config)
    found = events(topics, config)
    for table, wanted in load.changes.items():
        assert changes(found, table) == wanted
    assert len([event for _, event in found if isinstance(event, QueryEvent)]) == len(load.statements)


def first_cells(event: RowsEvent | QueryEvent) -> list[int]:
    """The first column of the rows."""
    assert isinstance(event, RowsEvent)
    return [int(row[0] or b"") for row in event.rows]


def test_a_client_begins_with_a_dump_and_another_server_takes_over(
    mysql_db: Database, kafka: Kafka, zookeeper: ZooKeeper, topics: Topics, tmp_path: Path
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    more = {"database.include.list": mysql_db.name, "databus.zkpath": zookeeper.address, "databus.zkroot": "/live"}
    more |= {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, more)
    topic = config.properties["databus.topic"] = f"{config.name}-databus"
    settings = ClientSettings(
        (kafka.bootstrap,),
        topic,
        tmp_path / "Repl.info",
        first_load=True,
        zookeeper=(zookeeper.address,),
        zookeeper_root="/live",
        node_name="DumpMeta",
        keep_alive_path="KeepAliveNode",
        discover_server=True,
    )
    config.properties["databus.data_dir"] = str(tmp_path / "first")
    with server(config).streaming().wait_for_log("is complete: 2 rows") as first:
        mysql_db.execute("INSERT INTO t VALUES (3)")
        checked = CliRunner().invoke(main, ["check", str(config.path)])
        assert checked.exit_code == 0, checked.output
        assert f"-> topic {topic}\n" in checked.output
        assert re.search(rf"databus\.zkpath: the server at 127\.0\.0\.1:\d+ runs topic {topic}", checked.output)
        with Client(settings) as client:
            begin = [client.get_event(WAIT_S), client.get_event(WAIT_S)]
            assert [(event.header.action, first_cells(event.event)) for event in begin] == [
                ("Dump", [1, 2]),
                ("DML", [3]),
            ]
            config.properties["databus.data_dir"] = str(tmp_path / "second")
            with server(config).wait_for_log("standing by") as second:
                eventually(lambda: second.health()["state"] == "STANDBY", "the second server")
                assert second.health()["status"] == "UP"
                first.kill()
                mysql_db.execute("INSERT INTO t VALUES (4)")
                second.streaming()
                mysql_db.execute("INSERT INTO t VALUES (5)")
                assert [first_cells(client.get_event(WAIT_S).event) for _ in range(2)] == [[4], [5]]
                second.wait_for_log("is complete:")
                with Client(replace(settings, offset_file=tmp_path / "other.info")) as other:
                    assert first_cells(other.get_event(WAIT_S).event)[:4] == [1, 2, 3, 4]
                second.stop()
    assert [first_cells(event) for _, event in events(topics, config)] == [[3], [4], [5]]


def test_a_server_that_loses_zookeeper_ends_before_another_may_run(
    mysql_db: Database, kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        more = {"database.include.list": mysql_db.name, "databus.zkpath": f"127.0.0.1:{proxy.port}"}
        config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, more)
        config.properties["databus.topic"] = f"{config.name}-databus"
        with server(config).streaming() as worker:
            proxy.frozen.set()
            assert worker.wait() == 1
            assert f"connector {config.name} has failed: ZooKeeper has ended the session of this server" in worker.log
            assert "Traceback" not in worker.log


def without_zookeeper(folder: Path, database: Database, kafka: Kafka, port: int, retries: int) -> WorkerConfig:
    more = {
        "database.include.list": database.name,
        "databus.zkpath": f"127.0.0.1:{port}",
        "errors.max.retries": str(retries),
    }
    config = WorkerConfig(folder, database.server, kafka.bootstrap, more)
    config.properties["databus.topic"] = f"{config.name}-databus"
    return config


def test_a_server_is_down_until_zookeeper_answers(
    mysql_db: Database, kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        proxy.frozen.set()
        with server(without_zookeeper(tmp_path, mysql_db, kafka, proxy.port, -1)).wait_for_log("standing by") as worker:
            eventually(lambda: worker.health()["status"] == "DOWN", "the status")
            health = worker.health()
            assert health["state"] == "RECONNECTING"
            assert health["error"] == f"no connection to ZooKeeper at 127.0.0.1:{proxy.port} (databus.zkpath)"
            proxy.frozen.clear()
            worker.streaming()
            assert (worker.health()["status"], worker.health()["error"]) == ("UP", None)
            worker.stop()


def test_a_server_without_zookeeper_ends_after_its_retries(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    port = free_port()
    with server(without_zookeeper(tmp_path, mysql_db, kafka, port, 2)) as worker:
        assert worker.wait() == 1
        reason = f"no connection to ZooKeeper at 127.0.0.1:{port} (databus.zkpath), after"
        assert reason in worker.log
        assert "Traceback" not in worker.log
