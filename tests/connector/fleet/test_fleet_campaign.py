"""Workers of a fleet are killed, stopped and woken at random while all tables change: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests.connector.fleet.test_fleet_live import Cluster, eventually
from tests.support.processes.worker_process import Worker, WorkerConfig

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

CONNECTORS = 20
WORKERS = 4


class Load:
    """Inserts the next key into every table, ten times a second."""

    def __init__(self, cluster: Cluster, configs: list[WorkerConfig]) -> None:
        self._cluster, self._configs = cluster, configs
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.last = 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            self.last += 1
            self._cluster.database.execute(*(f"INSERT INTO {one.name} VALUES ({self.last})" for one in self._configs))


def delays(cluster: Cluster, config: WorkerConfig) -> list[float]:
    """The time between the commit of each row and its record, in seconds."""
    topic = config.topic(f"{cluster.database.name}.{config.name}")
    found = []
    for record in cluster.topics.read(topic):
        value = json.loads(record.value or b"{}")
        if value["op"] != "r":
            found.append((value["ts_ms"] - value["source"]["ts_ms"]) / 1000)
    return found


@pytest.mark.servers
@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("balance_ms", [0, 3000])
def test_workers_end_and_sleep_at_random(tmp_path: Path, kafka: Kafka, mysql_db: Database, balance_ms: int) -> None:
    rounds = int(os.environ.get("ROWTIDE_CAMPAIGN", "10"))
    cluster = Cluster(tmp_path, kafka, mysql_db, partitions=32, balance_ms=balance_ms)
    chance = random.Random(rounds)
    workers: list[Worker] = []
    try:
        workers += [cluster.worker() for _ in range(WORKERS)]
        workers[0].wait_for_log("the fleet has 0 connectors")
        configs = [cluster.add() for _ in range(CONNECTORS)]
        eventually(lambda: all(cluster.keys(one) == [1] for one in configs), "the snapshots")
        with Load(cluster, configs) as load:
            for _ in range(rounds):
                victim = chance.choice(workers)
                how = chance.choice(["kill", "kill", "stop", "sleep"])
                if how == "sleep":
                    victim.signal(signal.SIGSTOP)
                    time.sleep(chance.uniform(1, 15))
                    victim.signal(signal.SIGCONT)
                elif how == "kill":
                    victim.kill()
                else:
                    victim.stop()
                if how != "sleep":
                    workers.remove(victim)
                    time.sleep(chance.uniform(0, 8))
                    workers.append(cluster.worker())
                time.sleep(chance.uniform(5, 12))
        wanted = list(range(1, load.last + 1))
        for one in configs:
            eventually(lambda one=one: len(cluster.keys(one)) >= len(wanted), f"all rows of {one.name}")
            assert cluster.keys(one) == wanted
        moves = sum(path.read_text().count(" moves to partition ") for path in tmp_path.glob("*.log"))
        assert bool(moves) is bool(balance_ms)
        late = sorted(delay for one in configs for delay in delays(cluster, one))
        print(
            f"{len(late)} rows, delays in s: p50 {late[len(late) // 2]:.2f}, p99 {late[-len(late) // 100]:.2f}, ",
            end="",
        )
        print(f"longest {late[-1]:.2f}, {moves} moves for balance")
    finally:
        for worker in workers:
            worker.kill()
