"""Semi-synchronous replication: what a client was told is committed is in Kafka (``rowtide.semi.sync``)."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.topic_tools import Topics
from tests.support.mysql.semi_sync import FOREVER_MS, SemiSync, Writers, keys
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800 if "ROWTIDE_CAMPAIGN" in os.environ else 600)]

KILLS = int(os.environ.get("ROWTIDE_CAMPAIGN", "3"))
EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}
InKafka = Callable[[], list[int]]


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Database:
    """A database of each server."""
    return request.getfixturevalue(f"{request.param}_db")  # type: ignore[no-any-return]


@pytest.fixture
def semi_sync(database: Database) -> Iterator[SemiSync]:
    """Commits wait for one replica, until the end of the test."""
    found = SemiSync(database.server)
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE ignored (id INT PRIMARY KEY)")
    found.set(wait_point="AFTER_SYNC", timeout=FOREVER_MS)
    try:
        yield found
    finally:
        found.set(enabled="OFF")


@pytest.fixture
def config(tmp_path: Path, database: Database, kafka: Kafka) -> WorkerConfig:
    more = {"table.include.list": f"{database.name}.t", "rowtide.semi.sync": "true", "snapshot.mode": "no_data"}
    return WorkerConfig(tmp_path, database.server, kafka.bootstrap, more)


@pytest.fixture
def in_kafka(topics: Topics, config: WorkerConfig, database: Database) -> InKafka:
    """Reads the keys in Kafka."""
    return partial(keys, topics, config.topic(f"{database.name}.t"))


@contextlib.contextmanager
def streaming(config: WorkerConfig, semi_sync: SemiSync) -> Iterator[Worker]:
    """A worker for which commits wait."""
    environment = {name: value for name, value in os.environ.items() if name != "ROWTIDE_CAMPAIGN"}
    with Worker(config, "--no-web", environment=environment) as worker:
        eventually(lambda: semi_sync.status("clients") != "0" or not worker.running, "the server has the replica")
        assert worker.running, worker.log
        yield worker


@contextlib.contextmanager
def writing(database: Database, semi_sync: SemiSync) -> Iterator[Writers]:
    """Clients that are stopped at the end."""
    writers = Writers(database)
    try:
        yield writers
    finally:
        semi_sync.set(enabled="OFF")  # releases the writers
        writers.stop()


_ALL = [(flavor, exactly_once) for flavor in ("mysql", "mariadb") for exactly_once in (False, True)]
each_server = pytest.mark.parametrize(
    ("database", "exactly_once"),
    _ALL if "ROWTIDE_CAMPAIGN" in os.environ else [("mysql", False), ("mariadb", True)],
    indirect=["database"],
)


@each_server
def test_a_commit_returns_when_kafka_has_the_row(
    database: Database, semi_sync: SemiSync, config: WorkerConfig, in_kafka: InKafka, *, exactly_once: bool
) -> None:
    config.properties.update(EXACTLY_ONCE if exactly_once else {})
    timed_out = semi_sync.status("no_tx")
    with streaming(config, semi_sync) as worker:
        semi_sync.set(enabled="ON")
        for key in range(5):
            database.execute(f"INSERT INTO t VALUES ({key})")
            assert in_kafka() == list(range(key + 1))
        acknowledged = int(semi_sync.status("yes_tx"))
        database.execute("INSERT INTO ignored VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO ignored VALUES (2)")
        if database.server.name == "mysql":
            database.execute("SET binlog_transaction_compression=ON", "INSERT INTO t VALUES (5), (6)")
        else:
            database.execute("INSERT INTO t VALUES (5), (6)")
        assert in_kafka() == list(range(7))
        assert int(semi_sync.status("yes_tx")) >= acknowledged + 3
        assert semi_sync.status("no_tx") == timed_out
        worker.kill()
    # Without a worker, commits wait for the server's time-out. After it the server continues without waiting.
    semi_sync.set(timeout=1000)
    database.execute("INSERT INTO t VALUES (7)")
    assert int(semi_sync.status("no_tx")) > int(timed_out)
    assert in_kafka() == list(range(7))
    semi_sync.set(timeout=FOREVER_MS)
    with streaming(config, semi_sync) as worker:
        eventually(lambda: set(in_kafka()) >= set(range(8)), "the worker has caught up")
        eventually(lambda: semi_sync.status("status") == "ON", "commits wait again")
        database.execute("INSERT INTO t VALUES (8)")
        assert in_kafka()[-1] == 8
        semi_sync.set(enabled="OFF")
        worker.stop()


def kill_workers(
    config: WorkerConfig, semi_sync: SemiSync, writers: Writers, check: Callable[[set[int]], None]
) -> None:
    """Kill workers at random moments while clients commit, and call a function with the committed rows each time."""
    chance = random.Random(13)
    told: set[int] = set()
    for number in range(KILLS):
        with streaming(config, semi_sync):
            if number == 0:
                semi_sync.set(enabled="ON")
                writers.start()
            eventually(partial(writers.further, len(told) + 20), "commits go on")
            time.sleep(chance.uniform(0, 1))
        told = writers.told()  # the worker is dead: nothing is acknowledged now
        check(told)


@each_server
def test_what_is_committed_is_in_kafka_when_the_worker_is_killed(
    database: Database, semi_sync: SemiSync, config: WorkerConfig, in_kafka: InKafka, *, exactly_once: bool
) -> None:
    config.properties.update(EXACTLY_ONCE if exactly_once else {})
    timed_out = semi_sync.status("no_tx")
    with writing(database, semi_sync) as writers:

        def check(told: set[int]) -> None:
            assert told <= set(in_kafka())

        kill_workers(config, semi_sync, writers, check)
        with streaming(config, semi_sync) as worker:
            writers.stop()
            assert semi_sync.status("no_tx") == timed_out
            assert writers.told() <= set(in_kafka())
            semi_sync.set(enabled="OFF")
            worker.stop()


@pytest.mark.nightly
@each_server
def test_no_commit_is_lost_when_a_worker_that_acknowledges_on_receipt_is_killed(
    database: Database, semi_sync: SemiSync, config: WorkerConfig, in_kafka: InKafka, *, exactly_once: bool
) -> None:
    config.properties.update({"rowtide.semi.sync.acknowledge": "received", **(EXACTLY_ONCE if exactly_once else {})})
    timed_out = semi_sync.status("no_tx")
    with writing(database, semi_sync) as writers:
        kill_workers(config, semi_sync, writers, lambda _: None)
        with streaming(config, semi_sync) as worker:
            writers.stop()
            assert semi_sync.status("no_tx") == timed_out
            eventually(lambda: writers.told() <= set(in_kafka()), "all committed rows")
            semi_sync.set(enabled="OFF")
            worker.stop()
