"""A blocking snapshot stops the stream, so it is refused while commits wait for what the stream acknowledges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from rowtide.connector.source.server_queries import commits_wait_for_all_replicas
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka


class Session:
    """A server with these variables of status, and others."""

    def __init__(self, **values: str | int) -> None:
        self.values = {f"rpl_semi_sync_{name}": value for name, value in values.items()}

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        status = [name for name in self.values if name.endswith(("status", "clients"))]
        names = status if "STATUS" in statement else [name for name in self.values if name not in status]
        return [(name.capitalize(), self.values[name]) for name in names]


@pytest.mark.parametrize(
    ("session", "wait"),
    [
        (Session(), False),
        (Session(source_status="OFF", source_clients=1), False),
        (Session(source_status="ON", source_clients=1, source_wait_for_replica_count=1), True),
        (Session(source_status="ON", source_clients=2, source_wait_for_replica_count=1), False),
        (Session(source_status="ON", source_clients=2, source_wait_for_replica_count=2), True),
        (Session(master_status="ON", master_clients=1, master_wait_for_slave_count=1), True),
        (Session(master_status="ON", master_clients="1"), True),  # MariaDB
        (Session(master_status="ON", master_clients="2"), False),
    ],
)
def test_whether_commits_wait_for_all_replicas(session: Session, *, wait: bool) -> None:
    assert commits_wait_for_all_replicas(cast("Any", session)) is wait


@pytest.fixture
def database(request: pytest.FixtureRequest, flavor: str) -> Iterator[Database]:
    """A database of a server on which commits wait, without a limit of time, for one semi-synchronous replica."""
    found: Database = request.getfixturevalue(f"{flavor}_db")
    server, side = found.server, "source" if flavor == "mysql" else "master"
    if flavor == "mysql" and not server.query("SHOW VARIABLES LIKE 'rpl_semi_sync_source_enabled'"):
        server.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    found.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    server.execute(f"SET GLOBAL rpl_semi_sync_{side}_timeout = 3600000")
    try:
        yield found
    finally:
        server.execute(f"SET GLOBAL rpl_semi_sync_{side}_enabled = OFF")


@pytest.mark.servers
@pytest.mark.parametrize(("flavor", "acknowledge"), [("mysql", "received"), ("mariadb", "delivered")])
def test_a_blocking_snapshot_makes_no_commit_hang(
    database: Database, kafka: Kafka, tmp_path: Path, flavor: str, acknowledge: str
) -> None:
    more = {
        "table.include.list": f"{database.name}.t",
        "rowtide.semi.sync": "true",
        "rowtide.semi.sync.acknowledge": acknowledge,
    }
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, more)
    side = "source" if flavor == "mysql" else "master"
    with Worker(config).streaming() as worker:
        notifications = f"/connectors/{config.name}/notifications?id="

        def types(signal_id: str) -> list[str]:
            data = {"type": "blocking", "data-collections": [f"{database.name}.t"]}
            body = json.dumps({"id": signal_id, "type": "execute-snapshot", "data": data})
            assert worker.send("POST", f"/connectors/{config.name}/signals", body)[0] == 202
            found: list[dict[str, Any]] = []

            def ended() -> bool:
                found[:] = json.loads(worker.get(notifications + signal_id)[1])
                return any(one["type"] == "FAILED" or one["aggregate_type"] == "Blocking Snapshot" for one in found)

            eventually(ended, "the end of the snapshot")
            return [one["type"] for one in found]

        database.server.execute(f"SET GLOBAL rpl_semi_sync_{side}_enabled = ON")
        database.execute("INSERT INTO t VALUES (3)")
        assert "FAILED" in types("refused")
        assert "would hang while the stream is paused. Send an incremental snapshot" in worker.log
        database.execute("INSERT INTO t VALUES (4)")
        database.server.execute(f"SET GLOBAL rpl_semi_sync_{side}_enabled = OFF")
        assert types("taken")[-1] == "COMPLETED"
        worker.stop()
