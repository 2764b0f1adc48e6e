"""A worker with real servers whose configuration files change: the connectors of other files are not disturbed."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers


def sessions(worker: Worker, connector: str) -> int:
    """How often a connector has begun to read the binlog."""
    lines = worker.log.splitlines()
    return sum(f"[{connector}/reader]" in line and "reading the binlog from" in line for line in lines)


def test_one_connector_is_added_one_changes_and_one_breaks(
    mysql_db: Database, topics: Topics, kafka: Kafka, tmp_path: Path
) -> None:
    folder = tmp_path / "connectors"
    folder.mkdir()
    tables = ("same", "changed", "broken", "added")
    mysql_db.execute(*(f"CREATE TABLE {table} (id INT PRIMARY KEY)" for table in tables))
    configs = {
        table: WorkerConfig(
            folder, mysql_db.server, kafka.bootstrap, {"table.include.list": f"{mysql_db.name}.{table}"}
        )
        for table in tables
    }

    def write(table: str, **more: str) -> str:
        configs[table].properties.update({name.replace("_", "."): text for name, text in more.items()})
        return str(configs[table].path)

    for table in tables[:3]:
        write(table)
    own = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, {})
    command = [sys.executable, "-m", "rowtide", "run", "--web-port", "{port}", "--connector", str(folder)]

    with Worker(own, command=command) as worker:

        def all_have(*keys: int) -> None:
            """Insert the last key everywhere, and wait until each connector has sent all keys once."""
            names = json.loads(worker.get("/connectors")[1])
            running = [table for table, config in configs.items() if config.name in names]
            mysql_db.execute(*(f"INSERT INTO {table} VALUES ({keys[-1]})" for table in running))
            for table in running:
                topic = configs[table].topic(f"{mysql_db.name}.{table}")
                wanted = [key for key in keys if table != "added" or key > 1]
                eventually(
                    lambda topic=topic, wanted=wanted: (
                        [json.loads(record.key or b"{}")["id"] for record in topics.read(topic)] == wanted
                    ),
                    f"the rows of {topic}",
                )

        worker.wait_for_log("reading the binlog from", 3)
        all_have(1)
        before = worker.health()["connectors"]

        write("changed", max_batch_size="1000")
        write("broken", snapshot_mode="sometimes")
        write("added")
        worker.signal(signal.SIGHUP)
        worker.wait_for_log("1 connectors started, 1 changed, 0 stopped, 1 as before, 1 rejected")
        worker.wait_for_log("reading the binlog from", 5)
        all_have(1, 2)
        after = worker.health()["connectors"]
        assert set(after) == {config.name for config in configs.values()}
        for table in ("same", "broken"):
            name = configs[table].name
            assert sessions(worker, name) == 1
            assert after[name]["uptime_seconds"] > before[name]["uptime_seconds"]
        problem = after[configs["broken"].name]["rejected_configuration"]
        assert "snapshot.mode" in problem
        assert after[configs["same"].name]["rejected_configuration"] is None
        assert f'rowtide_configuration_rejected{{connector="{configs["broken"].name}"}} 1' in worker.get("/metrics")[1]
        status, answer = worker.send("POST", f"/connectors/{configs['broken'].name}/restart")
        assert (status, "snapshot.mode" in answer) == (400, True)

        write("broken", snapshot_mode="initial", max_batch_size="900")
        assert worker.send("POST", f"/connectors/{configs['broken'].name}/restart")[0] == 204
        Path(write("changed")).unlink()
        worker.signal(signal.SIGHUP)
        worker.wait_for_log("0 connectors started, 0 changed, 1 stopped, 3 as before, 0 rejected")
        worker.wait_for_log("reading the binlog from", 6)
        all_have(1, 2, 3)
        assert sessions(worker, configs["same"].name) == 1
        assert sessions(worker, configs["broken"].name) == 2
        worker.stop()
