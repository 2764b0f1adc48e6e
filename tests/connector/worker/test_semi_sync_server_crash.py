"""What a client was told is committed is in Kafka, although the server is killed (``rowtide.semi.sync``)."""

from __future__ import annotations

import os
import random
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.topic_tools import Topics
from tests.support.mysql.semi_sync import FOREVER_MS, Writers, keys
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Kafka

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("ROWTIDE_CAMPAIGN", "2"))
OPTIONS: dict[str, dict[str, str | int | bool | None]] = {
    "mysql": {
        "plugin_load_add": "semisync_source.so",
        "rpl_semi_sync_source_enabled": "ON",
        "rpl_semi_sync_source_timeout": FOREVER_MS,
        "rpl_semi_sync_source_wait_point": "AFTER_SYNC",
        "rpl_semi_sync_source_wait_for_replica_count": 1,
    },
    "mariadb": {
        "rpl_semi_sync_master_enabled": "ON",
        "rpl_semi_sync_master_timeout": FOREVER_MS,
        "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
    },
}


@pytest.mark.parametrize(
    ("flavor", "also_worker"),
    [(flavor, also_worker) for flavor in OPTIONS for also_worker in (False, True)]
    if "ROWTIDE_CAMPAIGN" in os.environ
    else [("mysql", True)],
)
def test_what_is_committed_is_in_kafka_when_the_server_is_killed(
    flavor: str, kafka: Kafka, topics: Topics, tmp_path: Path, *, also_worker: bool
) -> None:
    from rowtide_stack import Database, MariaDB, MySQL

    chance = random.Random(13)
    with (MySQL if flavor == "mysql" else MariaDB)(OPTIONS[flavor]) as server:
        # Commits wait from the start, so what makes the table stays out of the binlog.
        server.execute("SET sql_log_bin=0", "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        more = {"table.include.list": "d.t", "rowtide.semi.sync": "true", "snapshot.mode": "no_data"}
        config = WorkerConfig(tmp_path, server, kafka.bootstrap, more | {"retriable.restart.connector.wait.ms": "500"})
        in_kafka = partial(keys, topics, config.topic("d.t"))
        writers = Writers(Database(server, "d"))
        worker = Worker(config, "--no-web").streaming()
        try:
            writers.start()
            told: set[int] = set()
            for _ in range(KILLS):
                eventually(partial(writers.further, len(told) + 20), "commits go on")
                time.sleep(chance.uniform(0, 0.5))
                server.kill()
                if killed := also_worker and chance.random() < 0.5:
                    worker.kill()
                told = writers.told()
                assert told <= set(in_kafka())
                server.start()
                if killed:
                    worker = Worker(config, "--no-web")
            eventually(partial(writers.further, len(told) + 20), "commits go on")
            writers.stop()
            assert writers.told() <= set(in_kafka())
            committed = {row[0] for row in server.query("SELECT id FROM d.t")}
            assert writers.told() <= committed
            eventually(lambda: set(in_kafka()) == committed, "all committed rows and no others")
            worker.stop()
        finally:
            server.kill()  # releases the writers
            writers.stop()
            worker.kill()
