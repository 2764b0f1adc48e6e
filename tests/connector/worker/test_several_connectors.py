"""Several connectors in one process: each has its own state, and one that fails does not stop the others."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rowtide_stack.ports import free_port

from tests.support.kafka.topic_tools import Topics
from tests.support.network.tcp_proxy import TcpProxy
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers


class Several(Worker):
    """A worker with two connectors."""

    def __init__(self, one: WorkerConfig, other: WorkerConfig) -> None:
        command = [sys.executable, "-m", "rowtide", "run", "--web-port", "{port}"]
        super().__init__(one, command=[*command, "--connector", str(one.path), "--connector", str(other.path)])

    def states(self) -> dict[str, str]:
        """The states of the connectors by their names."""
        return {name: one["state"] for name, one in self.health()["connectors"].items()}


UNREACHABLE = {"errors.max.retries": "0", "connect.timeout.ms": "1000"}


def test_one_fails_alone_and_is_restarted(mysql_db: Database, topics: Topics, kafka: Kafka, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b LIKE a", "INSERT INTO a VALUES (1)")
    away = TcpProxy(mysql_db.server.host, mysql_db.server.port)  # it does not answer before it is entered
    ways = {"a": {}, "b": {**UNREACHABLE, "database.port": str(away.port)}}
    good, bad = (
        WorkerConfig(
            tmp_path, mysql_db.server, kafka.bootstrap, {"table.include.list": f"{mysql_db.name}.{name}", **way}
        )
        for name, way in ways.items()
    )
    count = {one.name: one.topic(f"{mysql_db.name}.{table}") for one, table in ((good, "a"), (bad, "b"))}

    with Several(good, bad) as worker:
        worker.wait_for_log(f"connector {bad.name} has failed: ")
        eventually(lambda: worker.states() == {good.name: "RUNNING", bad.name: "FAILED"}, "the first streams")
        mysql_db.execute("INSERT INTO a VALUES (2)")
        eventually(lambda: len(topics.read(count[good.name])) >= 2, "the first goes on")
        status, text = worker.get("/health")
        assert (status, json.loads(text)["status"]) == (503, "DOWN")
        assert str(away.port) in json.loads(text)["connectors"][bad.name]["error"]
        assert worker.get("/health/live")[0] == 200
        assert worker.get("/health/ready")[0] == 503
        worker.signal()
        assert worker.wait() == 1, "one has failed"
        assert worker.log.count(f"connector {bad.name} has failed: ") == 1
        assert f"connector {good.name}: stopped in" in worker.log

    with Several(good, bad) as worker, ExitStack() as reachable:
        worker.wait_for_log(f"connector {bad.name} has failed: ")
        mysql_db.execute("INSERT INTO b VALUES (1)")
        reachable.enter_context(away)
        assert json.loads(worker.get("/connectors")[1]) == [good.name, bad.name]
        assert worker.send("POST", f"/connectors/{bad.name}/restart")[0] == 204
        eventually(lambda: set(worker.states().values()) == {"RUNNING"}, "both stream")
        eventually(lambda: worker.get("/health")[0] == worker.get("/health/ready")[0] == 200, "both are ready")
        eventually(lambda: len(topics.read(count[bad.name])) >= 1, "the snapshot of the second")

        assert worker.send("PUT", f"/connectors/{good.name}/pause")[0] == 202
        eventually(lambda: worker.states() == {good.name: "PAUSED", bad.name: "RUNNING"}, "the first is paused")
        mysql_db.execute("INSERT INTO a VALUES (3)", "INSERT INTO b VALUES (2)")
        eventually(lambda: len(topics.read(count[bad.name])) >= 2, "the second goes on")
        assert len(topics.read(count[good.name])) == 2
        assert worker.send("PUT", f"/connectors/{good.name}/resume")[0] == 202
        eventually(lambda: len(topics.read(count[good.name])) >= 3, "the first continues")

        metrics = worker.get("/metrics")[1]
        for name, records in ((good.name, 1), (bad.name, 2)):
            assert f'rowtide_records_total{{connector="{name}",topic="{count[name]}"}} {records}' in metrics
        log = worker.stop()
    assert "second writer" not in log
    assert f" [{good.name}/reader] " in log
    assert f" [{bad.name}/reader] " in log


def test_the_process_ends_when_all_have_failed(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    one, other = (
        WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, {**UNREACHABLE, "database.port": str(free_port())})
        for _ in range(2)
    )
    with Several(one, other) as worker:
        assert worker.wait() == 1
        for config in (one, other):
            assert worker.log.count(f"connector {config.name} has failed: ") == 1
