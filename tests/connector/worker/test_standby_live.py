"""Two copies of a connector with real servers: one runs, the other stands by and takes over."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.proxied_broker import proxied_kafka
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]

STANDS_BY = "stands by: "


class Pair:
    """Copies of one connector, whose table gets one row after the other."""

    def __init__(self, config: WorkerConfig, database: Database, topics: Topics) -> None:
        self.config, self.database, self.topics = config, database, topics
        self.inserted = 0
        config.properties["rowtide.standby"] = "true"
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)")

    def insert(self) -> None:
        """Insert the next row, and wait until consumers of committed records have all rows once and in order."""
        self.inserted += 1
        self.database.execute(f"INSERT INTO t VALUES ({self.inserted})")
        eventually(lambda: len(self.keys()) >= self.inserted, f"row {self.inserted}")
        assert self.keys() == list(range(1, self.inserted + 1))

    def keys(self, *, committed: bool = True) -> list[int]:
        """The keys in the topic."""
        seen = self.topics.read(self.config.topic(f"{self.database.name}.t"), committed=committed)
        return [json.loads(record.key or b"{}")["id"] for record in seen]

    def standby(self) -> Worker:
        """Start another copy, which stands by."""
        return Worker(self.config).wait_for_log(STANDS_BY)


def state(worker: Worker) -> str:
    return str(worker.health()["state"])


@pytest.fixture
def pair(configured: Configured, mysql_db: Database, topics: Topics) -> Pair:
    return Pair(configured(), mysql_db, topics)


def test_a_copy_takes_over_and_the_other_stands_by_when_it_returns(pair: Pair) -> None:
    with Worker(pair.config).streaming() as first:
        pair.insert()
        pair.config.properties["max.batch.size"] = "1000"
        with pair.standby() as second:
            assert "runs it, with another configuration than this copy has" in second.log
            eventually(lambda: state(second) == "STANDBY", "the second copy has looked at the database")
            assert (second.get("/health")[0], second.get("/health/ready")[0]) == (200, 200)
            path = f"/connectors/{pair.config.name}"
            shown = json.loads(second.get(f"{path}/status")[1])
            assert [shown["connector"]["state"], *[task["state"] for task in shown["tasks"]]] == ["UNASSIGNED"] * 2
            assert second.send("PUT", f"{path}/pause")[0] == 409
            assert second.send("POST", f"{path}/restart")[0] == 204
            password = pair.config.properties["database.password"]
            pair.config.properties["database.password"] = "wrong"
            with pair.standby() as unfit:
                unfit.wait_for_log("it could not take over: database.password")
                assert unfit.get("/health")[0] == 503
                assert "it could not take over" in unfit.health()["error"]
                unfit.stop()
            pair.config.properties["database.password"] = password
            pair.insert()
            first.kill()
            pair.insert()
            assert state(second) == "RUNNING"
            with pair.standby() as third:
                assert "with another configuration" not in third.log
                pair.insert()
                second.stop()
                pair.insert()
                third.stop()


def test_a_copy_that_sleeps_stands_by_when_it_wakes(pair: Pair) -> None:
    with Worker(pair.config).streaming() as first, pair.standby() as second:
        pair.insert()
        first.signal(signal.SIGSTOP)
        pair.insert()
        first.signal(signal.SIGCONT)
        eventually(lambda: state(first) == "STANDBY", "the first copy stands by")
        pair.insert()
        assert "this process did not run for" in first.log
        assert pair.keys(committed=False) == pair.keys(), "the first copy wrote nothing"
        second.stop()
        pair.insert()
        first.stop()


@pytest.mark.nightly
def test_a_copy_that_does_not_stand_by_ends_the_other_which_says_why(pair: Pair) -> None:
    with Worker(pair.config).streaming() as first:
        pair.insert()
        pair.config.properties |= {"rowtide.standby": "false", "exactly.once.source.support": "enabled"}
        with Worker(pair.config).streaming() as second:
            pair.insert()
            assert first.wait() == 1
            assert "set rowtide.standby=true for it, too" in first.log
            pair.insert()
            second.stop()


BLOCKED_S = 12
BLOCKED = f"""
import signal, sys, time
from rowtide.cli import main
from rowtide.connector.worker.process import Worker

install = Worker.install_signal_handlers

def with_another(worker):
    install(worker)
    worker.loop.add_signal_handler(signal.SIGUSR1, time.sleep, {BLOCKED_S})

Worker.install_signal_handlers = with_another
main()
"""
"""A worker whose event loop SIGUSR1 blocks for longer than the session."""


@pytest.mark.nightly
def test_a_copy_whose_event_loop_is_blocked_continues(pair: Pair) -> None:
    command = [sys.executable, "-c", BLOCKED, "run", str(pair.config.path), "--web-port", "{port}"]
    with Worker(pair.config, command=command).streaming() as first, pair.standby() as second:
        pair.insert()
        first.signal(signal.SIGUSR1)
        end = time.monotonic() + BLOCKED_S
        while time.monotonic() < end:
            pair.insert()
            time.sleep(0.5)
            eventually(lambda: state(second) == "STANDBY", "the other copy does not begin")
        assert state(first) == "RUNNING"
        assert "no other process runs it" not in second.log
        second.stop()
        first.stop()


@pytest.mark.nightly
def test_each_connector_of_two_processes_is_taken_over(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    folder, topics = tmp_path / "connectors", Topics(kafka.bootstrap)
    folder.mkdir()
    configs = []
    for table in ("a", "b"):
        mysql_db.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
        more = {"table.include.list": f"{mysql_db.name}.{table}", "rowtide.standby": "true"}
        configs.append(WorkerConfig(folder, mysql_db.server, kafka.bootstrap, more))
        assert configs[-1].path.exists()
    command = [sys.executable, "-m", "rowtide", "run", "--web-port", "{port}", "--connector", str(folder)]

    def worker() -> Worker:
        found = Worker(WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, {}), command=command)
        return found.wait_for_log("the state of the connector is at")

    def states(one: Worker) -> set[str]:
        return {connector["state"] for connector in one.health()["connectors"].values()}

    def all_have(*keys: int) -> None:
        for table, config in zip(("a", "b"), configs, strict=True):
            mysql_db.execute(f"INSERT INTO {table} VALUES ({keys[-1]})")
            topic = config.topic(f"{mysql_db.name}.{table}")
            eventually(
                lambda topic=topic: [json.loads(one.key or b"{}")["id"] for one in topics.read(topic)] == [*keys],
                f"the rows of {table}",
            )

    with worker() as first, worker() as second:
        eventually(lambda: states(first) | states(second) == {"RUNNING", "STANDBY"}, "each has one that runs")
        all_have(1)
        first.kill()
        all_have(1, 2)
        assert states(second) == {"RUNNING"}
        with worker() as third:
            eventually(lambda: states(third) == {"STANDBY"}, "it stands by")
            configs[0].properties["max.batch.size"] = "1000"
            assert configs[0].path.exists()
            second.signal(signal.SIGHUP)
            second.wait_for_log("0 connectors started, 1 changed, 0 stopped, 1 as before, 0 rejected")
            all_have(1, 2, 3)
            assert (states(second), states(third)) == ({"RUNNING"}, {"STANDBY"}), "it has kept the lock"
            second.stop()
            all_have(1, 2, 3, 4)
            third.stop()


@pytest.mark.nightly
def test_a_copy_whose_network_is_cut_stands_by_afterwards(mysql_db: Database, tmp_path: Path) -> None:
    with proxied_kafka() as kafka:
        more = {"database.include.list": mysql_db.name}
        config = WorkerConfig(tmp_path, mysql_db.server, kafka.kafka.bootstrap, more)
        pair = Pair(config, mysql_db, Topics(kafka.kafka.bootstrap))
        config.properties["bootstrap.servers"] = kafka.bootstrap
        with Worker(config).streaming() as first:
            pair.insert()
            config.properties["bootstrap.servers"] = kafka.kafka.bootstrap
            with pair.standby() as second:
                kafka.proxy.frozen.set()
                pair.insert()
                assert state(second) == "RUNNING"
                eventually(lambda: first.get("/health")[0] == 503, "the first copy says that it does not work")
                kafka.proxy.frozen.clear()
                eventually(lambda: state(first) == "STANDBY", "the first copy stands by")
                pair.insert()
                assert (first.get("/health")[0], state(second)) == (200, "RUNNING")
                assert pair.keys(committed=False) == pair.keys()
                second.stop()
                pair.insert()
                first.stop()


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["pause", "restart"])
def test_both_wait_while_kafka_is_away(mysql_db: Database, own_kafka: Kafka, tmp_path: Path, how: str) -> None:
    more = {"database.include.list": mysql_db.name}
    pair = Pair(
        WorkerConfig(tmp_path, mysql_db.server, own_kafka.bootstrap, more), mysql_db, Topics(own_kafka.bootstrap)
    )
    with Worker(pair.config).streaming() as first, pair.standby() as second:
        pair.insert()
        if how == "pause":
            own_kafka.pause()
        else:
            own_kafka.kill()
        time.sleep(15)  # longer than the session
        if how == "pause":
            own_kafka.resume()
        else:
            own_kafka.start()
        pair.insert()
        eventually(lambda: sorted([state(first), state(second)]) == ["RUNNING", "STANDBY"], "one runs")
        begun = first.log.count("reading the binlog from") + second.log.count("reading the binlog from")
        for _ in range(5):
            pair.insert()
            time.sleep(2)
        assert begun == first.log.count("reading the binlog from") + second.log.count("reading the binlog from")
        assert sorted([state(first), state(second)]) == ["RUNNING", "STANDBY"], "they do not fight"
        first.stop()
        second.stop()


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_copies_end_and_sleep_at_random(pair: Pair) -> None:
    rounds = int(os.environ.get("ROWTIDE_CAMPAIGN", "10"))
    chance = random.Random(rounds)
    gaps: dict[str, list[float]] = {}
    stop = threading.Event()

    def load() -> None:
        while not stop.wait(0.02):
            pair.inserted += 1
            pair.database.execute(f"INSERT INTO t VALUES ({pair.inserted})")

    def records() -> list[tuple[int, float, float]]:
        """The key of each record, when its row was committed, and when it was processed, in seconds."""
        found = []
        for record in pair.topics.read(pair.config.topic(f"{pair.database.name}.t")):
            value = json.loads(record.value or b"{}")
            found.append((value["after"]["id"], value["source"]["ts_ms"] / 1000, value["ts_ms"] / 1000))
        return found

    ends: list[tuple[str, float]] = []
    loading = threading.Thread(target=load)
    copies = [Worker(pair.config).streaming(), pair.standby(), pair.standby()]
    loading.start()
    try:
        for _ in range(rounds):
            time.sleep(chance.uniform(4, 8))
            (runs,) = (one for one in copies if state(one) == "RUNNING")
            how = chance.choice(["kill", "stop", "sleep"])
            ends.append((how, time.time()))
            if how == "sleep":
                runs.signal(signal.SIGSTOP)
                time.sleep(chance.uniform(8, 12))
                runs.signal(signal.SIGCONT)
                eventually(lambda runs=runs: state(runs) == "STANDBY", "it stands by")
            else:
                runs.kill() if how == "kill" else runs.stop()
                copies.remove(runs)
                eventually(lambda: any(state(one) == "RUNNING" for one in copies), "another copy runs")
                copies.append(pair.standby())
        time.sleep(2)
        stop.set()
        loading.join()
        eventually(lambda: len(pair.keys()) >= pair.inserted, "all rows")
        found = records()
        assert [key for key, *_ in found] == list(range(1, pair.inserted + 1))
        times = [processed for _, _, processed in found]
        for how, when in ends:
            before = max(one for one in times if one <= when + 0.5)
            gaps.setdefault(how, []).append(min(one for one in times if one > before + 0.5) - when)
        late = sorted(processed - committed for _, committed, processed in found)
        print(f"{len(late)} rows, delays in s: p50 {late[len(late) // 2]:.2f}, p99 {late[-len(late) // 100]:.2f}")
        for how, seconds in gaps.items():
            seconds.sort()
            print(f"{how}: {len(seconds)}, until the next record {seconds[len(seconds) // 2]:.2f}, {seconds[-1]:.2f} s")
    finally:
        stop.set()
        loading.join()
        for one in copies:
            one.kill()
