"""A table that is added to the filters later: the warning about its rows, and the documented way to read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from topic_tools import Topics
from worker_process import Worker, WorkerConfig, eventually

from rowtide.cli import main

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

WARNING = "no record was ever written for these tables, but they have rows"


def test_the_rows_of_an_added_table(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    name = mysql_db.name
    mysql_db.execute(
        "CREATE TABLE a (id INT PRIMARY KEY)",
        "CREATE TABLE unfilled (id INT PRIMARY KEY)",
        "CREATE TABLE added (id INT PRIMARY KEY, v INT)",
        "INSERT INTO added VALUES (1, 1), (2, 1)",
    )
    more = {"table.include.list": f"{name}.a", "offset.flush.interval.ms": "200"}
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, more)
    topics, topic = Topics(kafka.bootstrap), config.topic(f"{name}.added")
    with Worker(config) as worker:
        worker.streaming()
        mysql_db.execute("INSERT INTO a VALUES (1)")
        eventually(lambda: worker.health()["position"]["stored"], "a position is stored")
        assert WARNING not in worker.stop()

    mysql_db.execute("UPDATE added SET v = 2 WHERE id = 1")  # between the position and the second connector
    included = f"{name}.a,{name}.unfilled,{name}.added"
    config.properties["table.include.list"] = included
    result = CliRunner().invoke(main, ["check", str(config.path)])
    assert f"warning: table.include.list: {name}.added: {WARNING}" in result.output
    assert f"{name}.unfilled:" not in result.output

    once = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, {})
    once.properties = config.properties | {
        "name": once.name,
        "database.server.id": once.properties["database.server.id"],
        "table.include.list": f"{name}.added",
        "snapshot.mode": "initial_only",
        "include.schema.changes": "false",
        "schema.history.internal.kafka.topic": f"{once.name}-history",
    }
    with Worker(once) as reading:
        assert reading.wait() == 0, reading.log

    with Worker(config) as worker:
        worker.streaming()
        mysql_db.execute("DELETE FROM added WHERE id = 2")

        def rows() -> list[tuple[str, int, int | None]]:
            found = []
            for record in topics.read(topic):
                if record.value is not None:
                    value = json.loads(record.value)
                    after = value["after"]
                    found.append((value["op"], json.loads(record.key or b"")["id"], after and after["v"]))
            return found

        expected = [("r", 1, 2), ("r", 2, 1), ("u", 1, 2), ("d", 2, None)]
        eventually(lambda: len(rows()) >= len(expected), "all records of the added table")
        assert rows() == expected
        log = worker.stop()
        assert WARNING not in log
        assert "the snapshot is complete" not in log
