"""The promises on errors that a guide of Debezium's first releases made, row by row, with the envelope of that age.

=================================================  ===================================================================
fault                                              test
=================================================  ===================================================================
wrong configuration, MySQL or Kafka unreachable    ``test_all_errors_that_prevent_a_start_are_reported_together``;
at the start, wrong password                       each alone: ``test_check_servers``; configuration: ``test_bad_input``
MySQL fails while running                          ``test_mysql_fails``
the process dies                                   ``test_the_process_dies``; exactly once: ``test_killed_worker``
Kafka fails                                        ``test_kafka_fails``; memory: ``test_kafka_delivery``
orderly stop                                       ``test_an_orderly_stop``
normal operation                                   ``test_normal_operation``
=================================================  ===================================================================
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rowtide_stack.ports import free_port

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MySQL

pytestmark = pytest.mark.servers

V1 = {"source.struct.version": "v1", "exactly.once.source.support": "disabled", "offset.flush.interval.ms": "500"}
CUSTOMERS = (
    "CREATE TABLE customers (id INT PRIMARY KEY, first_name VARCHAR(50) NOT NULL, last_name VARCHAR(50) NOT NULL, "
    "email VARCHAR(50) NOT NULL)"
)


def of(database: Database, folder: Path, bootstrap: str, **more: str) -> WorkerConfig:
    """A configuration for a table of customers in the old envelope, at least once."""
    given = {"database.include.list": database.name, **V1}
    given |= {name.replace("_", "."): value for name, value in more.items()}
    return WorkerConfig(folder, database.server, bootstrap, given)


def insert(database: Database, first: int, last: int) -> None:
    rows = ", ".join(f"({key}, 'Anne', 'Kretchmar', 'annek@noanswer.org')" for key in range(first, last + 1))
    database.execute(f"INSERT INTO customers VALUES {rows}")


def records(topics: Topics, config: WorkerConfig, database: Database) -> list[tuple[int, dict[str, Any] | None]]:
    """Key and value of each committed record."""
    found = []
    for record in topics.read(config.topic(f"{database.name}.customers")):
        value = json.loads(record.value) if record.value else None
        assert value is None or list(value) == ["op", "before", "after", "source", "ts_ms"], "the old envelope"
        found.append((json.loads(record.key or b"{}")["id"], value))
    return found


def keys(topics: Topics, config: WorkerConfig, database: Database) -> list[int]:
    return [key for key, _ in records(topics, config, database)]


def failed(worker: Worker, config: WorkerConfig) -> str:
    """Wait until a worker has ended by itself, and return its report."""
    assert worker.wait() == 1, worker.log
    log = worker.log
    assert "Traceback" not in log
    return log[log.index(f"connector {config.name} has failed: ") :]


def test_all_errors_that_prevent_a_start_are_reported_together(mysql_db: Database, tmp_path: Path) -> None:
    config = of(mysql_db, tmp_path, f"127.0.0.1:{free_port()}", database_password="not-this-one")
    with Worker(config, "--no-web") as worker:
        report = failed(worker, config)
    assert "the connector cannot start:" in report
    assert "database.password: the server" in report
    assert "bootstrap.servers: no Kafka broker answers" in report
    assert "not-this-one" not in worker.log


def test_mysql_fails(own_mysql: MySQL, kafka: Kafka, tmp_path: Path) -> None:
    """The worker retries; with ``errors.max.retries=0`` it ends immediately, and resumes when it is started again."""
    topics = Topics(kafka.bootstrap)
    with own_mysql.database() as database:
        database.execute(CUSTOMERS)
        patient = of(database, tmp_path, kafka.bootstrap, retriable_restart_connector_wait_ms="500")
        strict = of(database, tmp_path, kafka.bootstrap, errors_max_retries="0")
        with Worker(patient).streaming() as waiting:
            with Worker(strict, "--no-web").streaming() as ending:
                insert(database, 1, 50)
                for config in (patient, strict):
                    eventually(lambda config=config: len(keys(topics, config, database)) == 50, "the first rows")
                own_mysql.kill()
                report = failed(ending, strict)
                assert f"{own_mysql.host}:{own_mysql.port}" in report
                assert "resuming from" not in ending.log
            eventually(lambda: waiting.health()["state"] == "RECONNECTING", "the loss is noticed")
            own_mysql.start()
            insert(database, 51, 100)
            with Worker(strict, "--no-web").streaming() as again:
                for config in (patient, strict):
                    eventually(lambda config=config: len(keys(topics, config, database)) >= 100, "the others")
                again.stop()
            waiting.stop()
        for config in (patient, strict):
            assert keys(topics, config, database) == list(range(1, 101))


def test_the_process_dies(mysql_db: Database, kafka: Kafka, topics: Topics, tmp_path: Path) -> None:
    mysql_db.execute(CUSTOMERS)
    config = of(mysql_db, tmp_path, kafka.bootstrap)
    with Worker(config, "--no-web").streaming() as worker:
        for piece in range(10):
            insert(mysql_db, piece * 50 + 1, piece * 50 + 50)
        eventually(lambda: keys(topics, config, mysql_db), "some rows")
        worker.kill()
    insert(mysql_db, 501, 1000)
    with Worker(config, "--no-web").streaming() as worker:
        eventually(lambda: len(set(keys(topics, config, mysql_db))) >= 1000, "all rows")
        worker.stop()
    assert list(dict.fromkeys(keys(topics, config, mysql_db))) == list(range(1, 1001)), "some may come twice"


def test_kafka_fails(mysql_db: Database, own_kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(own_kafka.bootstrap)
    mysql_db.execute(CUSTOMERS)
    config = of(mysql_db, tmp_path, own_kafka.bootstrap)
    with Worker(config).streaming() as worker:
        insert(mysql_db, 1, 300)
        own_kafka.kill()
        insert(mysql_db, 301, 600)
        time.sleep(2)
        own_kafka.start()
        insert(mysql_db, 601, 900)
        eventually(lambda: len(set(keys(topics, config, mysql_db))) >= 900, f"all rows; {worker.log}")
        worker.stop()
    # an idempotent producer may have to begin anew when its broker has lost its state
    assert list(dict.fromkeys(keys(topics, config, mysql_db))) == list(range(1, 901))


def test_an_orderly_stop(mysql_db: Database, kafka: Kafka, topics: Topics, tmp_path: Path) -> None:
    mysql_db.execute(CUSTOMERS)
    config = of(mysql_db, tmp_path, kafka.bootstrap, offset_flush_interval_ms="3600000")
    with Worker(config, "--no-web").streaming() as worker:
        for piece in range(10):
            insert(mysql_db, piece * 100 + 1, piece * 100 + 100)
        assert "everything that was read is delivered" in worker.stop()
    delivered = keys(topics, config, mysql_db)
    assert delivered == list(range(1, len(delivered) + 1))
    stored = json.loads(topics.read(f"{config.name}-offsets")[-1].value or b"{}")
    last = records(topics, config, mysql_db)[-1][1] if delivered else None
    if last is not None:
        assert int(re.split("[:-]", stored["gtids"])[-1]) >= int(last["source"]["gtid"].split(":")[1])
    with Worker(config, "--no-web").streaming() as worker:
        eventually(lambda: len(keys(topics, config, mysql_db)) >= 1000, "the others")
        worker.stop()
    assert keys(topics, config, mysql_db) == list(range(1, 1001)), "none twice"


def test_normal_operation(mysql_db: Database, kafka: Kafka, topics: Topics, tmp_path: Path) -> None:
    """Every change once, in the old envelope: snapshot, create, update, delete with tombstone, changed key."""
    mysql_db.execute(CUSTOMERS)
    insert(mysql_db, 1004, 1005)
    config = of(mysql_db, tmp_path, kafka.bootstrap)
    with Worker(config, "--no-web").streaming() as worker:
        insert(mysql_db, 1, 2)
        mysql_db.execute(
            "UPDATE customers SET first_name = 'Anne Marie' WHERE id = 1004",
            "DELETE FROM customers WHERE id = 1005",
            "UPDATE customers SET id = 9 WHERE id = 1",
        )
        eventually(lambda: len(keys(topics, config, mysql_db)) >= 10, "all changes")
        worker.stop()
    found = records(topics, config, mysql_db)
    assert [(key, value["op"] if value else None) for key, value in found] == [
        (1004, "r"), (1005, "r"), (1, "c"), (2, "c"), (1004, "u"), (1005, "d"), (1005, None),
        (1, "d"), (1, None), (9, "c"),
    ]  # fmt: skip
    anne = {"id": 1004, "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"}
    read, update, delete = (value for _, value in (found[0], found[4], found[5]))
    assert read is not None
    assert (read["before"], read["after"]) == (None, anne)
    source = read["source"]
    assert list(source) == ["name", "server_id", "ts_sec", "gtid", "file", "pos", "row", "snapshot"]
    assert (source["name"], source["server_id"], source["ts_sec"], source["row"]) == (config.name, 0, 0, 0)
    assert (source["gtid"], source["snapshot"]) == (None, True)
    assert update is not None
    assert (update["before"], update["after"]) == (anne, anne | {"first_name": "Anne Marie"})
    assert delete is not None
    assert (delete["before"], delete["after"]) == (anne | {"id": 1005}, None)
    server_id = mysql_db.query("SELECT @@server_id")[0][0]
    streamed = [value["source"] for _, value in found[2:] if value]
    assert {source["server_id"] for source in streamed} == {server_id}
    assert {source["snapshot"] for source in streamed} == {None}
    assert [source["row"] for source in streamed[:2]] == [0, 1]
    assert all(source["ts_sec"] > 0 and source["gtid"] for source in streamed)
