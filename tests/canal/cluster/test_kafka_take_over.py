"""Canal's Kafka mode in a cluster: another server takes over from one that is killed, and from one that stops."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rowtide_stack.ports import free_port

from tests.support.canal.kafka_mode import ROWS, CanalProcess, assert_every_value_in_order, configured, rows, writing
from tests.support.canal.server import until

if TYPE_CHECKING:
    from rowtide_stack import Database, ZooKeeper

    from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers

TRANSACTIONS = 300
SOON = "from rowtide.cluster import candidate, session; session.SESSION_S = 3.0; candidate.WAIT_S = 1.0"
"""Waits as short as in the other tests of clusters, in place of 8 and 5 s."""


def reading(process: CanalProcess) -> int:
    """How often it has begun to read the binlog."""
    assert not process.ended(), process.output()
    return process.output().count("reading the binlog")


@pytest.mark.parametrize(
    ("flavor", "exactly_once"),
    [
        ("mysql", True),
        pytest.param("mariadb", False, marks=pytest.mark.nightly),
    ],
)
def test_another_server_continues_in_order(
    request: pytest.FixtureRequest,
    topics: Topics,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    flavor: str,
    *,
    exactly_once: bool,
) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    topic = topics.name()
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    database.execute(f"INSERT INTO t VALUES {', '.join(f'({key}, 0)' for key in range(ROWS))}")
    first, second = CanalProcess(SOON), CanalProcess(SOON)
    folders = {}
    for name, process in (("first", first), ("second", second)):
        own = {
            "canal.ip": "127.0.0.1",
            "canal.port": str(free_port()),
            "canal.zkServers": f"{zookeeper.host}:{zookeeper.port}",
            "canal.mq.exactlyOnce": str(exactly_once).lower(),
        }
        folders[process] = configured(tmp_path / name, database, topics, topic, database.name, **own)
    try:
        first.start(folders[first])
        until(lambda: reading(first) == 1)
        second.start(folders[second])
        with writing(database, TRANSACTIONS):
            time.sleep(1)
            first.kill()
            until(lambda: reading(second) == 1)
            first.start(folders[first])
            time.sleep(1)
            second.stop()
            until(lambda: reading(first) == 2)
        wanted = {(key, value) for key in range(ROWS) for value in range(1, TRANSACTIONS + 1)}
        until(lambda: {row for part in rows(topics, topic).values() for row in part} >= wanted)
    finally:
        first.stop()
        second.stop()
    assert_every_value_in_order(rows(topics, topic), TRANSACTIONS, exactly_once=exactly_once)
    logs = first.output() + second.output()
    assert "CancelledError" not in logs
    assert not list(tmp_path.glob("*/*/meta.dat"))
