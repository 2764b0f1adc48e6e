"""Semi-synchronous replication: what a client was told is committed is in Kafka (``rowtide.semi.sync``)."""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from topic_tools import Topics
from worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, SqlServer

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

KILLS = int(os.environ.get("ROWTIDE_CAMPAIGN", "3"))
FOREVER_MS = 3_600_000
EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}


class SemiSync:
    """Semi-synchronous replication of a server.

    Args:
        server: MySQL, whose plugin is installed, or MariaDB.
    """

    def __init__(self, server: SqlServer) -> None:
        self._server = server
        self._side = "source" if server.name == "mysql" else "master"
        if server.name == "mysql" and not server.query("SHOW VARIABLES LIKE 'rpl_semi_sync_source_enabled'"):
            server.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")

    def set(self, **variables: str | int) -> None:
        """Set global variables."""
        for name, value in variables.items():
            self._server.execute(f"SET GLOBAL rpl_semi_sync_{self._side}_{name} = {value}")

    def status(self, name: str) -> str:
        """The value of a status variable."""
        return str(self._server.query(f"SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_{self._side}_{name}'")[0][1])


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


def keys(topics: Topics, config: WorkerConfig, database: Database) -> list[int]:
    return [json.loads(seen.key or b"{}")["id"] for seen in topics.read(config.topic(f"{database.name}.t"))]


@contextlib.contextmanager
def streaming(config: WorkerConfig, semi_sync: SemiSync) -> Iterator[Worker]:
    """A worker for which commits wait."""
    environment = {name: value for name, value in os.environ.items() if name != "ROWTIDE_CAMPAIGN"}
    with Worker(config, "--no-web", environment=environment) as worker:
        eventually(lambda: semi_sync.status("clients") != "0" or not worker.running, "the server has the replica")
        assert worker.running, worker.log
        yield worker


_ALL = [(flavor, exactly_once) for flavor in ("mysql", "mariadb") for exactly_once in (False, True)]
each_server = pytest.mark.parametrize(
    ("database", "exactly_once"),
    _ALL if "ROWTIDE_CAMPAIGN" in os.environ else [("mysql", False), ("mariadb", True)],
    indirect=["database"],
)


@each_server
def test_a_commit_returns_when_kafka_has_the_row(
    database: Database, semi_sync: SemiSync, config: WorkerConfig, topics: Topics, *, exactly_once: bool
) -> None:
    config.properties.update(EXACTLY_ONCE if exactly_once else {})
    timed_out = semi_sync.status("no_tx")
    with streaming(config, semi_sync) as worker:
        semi_sync.set(enabled="ON")
        for key in range(5):
            database.execute(f"INSERT INTO t VALUES ({key})")
            assert keys(topics, config, database) == list(range(key + 1))
        acknowledged = int(semi_sync.status("yes_tx"))
        database.execute("INSERT INTO ignored VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO ignored VALUES (2)")
        if database.server.name == "mysql":
            database.execute("SET binlog_transaction_compression=ON", "INSERT INTO t VALUES (5), (6)")
        else:
            database.execute("INSERT INTO t VALUES (5), (6)")
        assert keys(topics, config, database) == list(range(7))
        assert int(semi_sync.status("yes_tx")) >= acknowledged + 3
        assert semi_sync.status("no_tx") == timed_out
        worker.kill()
    # Without a worker, commits wait for the server's time-out. Behind it the server goes on without waiting.
    semi_sync.set(timeout=1000)
    database.execute("INSERT INTO t VALUES (7)")
    assert int(semi_sync.status("no_tx")) > int(timed_out)
    assert keys(topics, config, database) == list(range(7))
    semi_sync.set(timeout=FOREVER_MS)
    with streaming(config, semi_sync) as worker:
        eventually(lambda: set(keys(topics, config, database)) >= set(range(8)), "the worker has caught up")
        eventually(lambda: semi_sync.status("status") == "ON", "commits wait again")
        database.execute("INSERT INTO t VALUES (8)")
        assert keys(topics, config, database)[-1] == 8
        semi_sync.set(enabled="OFF")
        worker.stop()


class Writers:
    """Clients that insert rows, and note those whose commit has succeeded."""

    def __init__(self, database: Database, count: int = 4) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._told: set[int] = set()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait for the last commits."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def further(self, count: int) -> bool:
        """Whether more rows than so many are committed."""
        return len(self.told()) > count

    def told(self) -> set[int]:
        """The rows of successful commits."""
        with self._lock:
            return set(self._told)

    def _write(self, number: int) -> None:
        key = number + 1
        with self._database.connect() as connection, connection.cursor() as cursor:
            while not self._stop.is_set():
                cursor.execute(f"INSERT INTO t VALUES ({key})")
                with self._lock:
                    self._told.add(key)
                key += len(self._threads)


@each_server
def test_what_is_committed_is_in_kafka_when_the_worker_is_killed(
    database: Database, semi_sync: SemiSync, config: WorkerConfig, topics: Topics, *, exactly_once: bool
) -> None:
    config.properties.update(EXACTLY_ONCE if exactly_once else {})
    chance = random.Random(13)
    writers = Writers(database)
    try:
        told: set[int] = set()
        for number in range(KILLS):
            with streaming(config, semi_sync):
                if number == 0:
                    semi_sync.set(enabled="ON")
                    timed_out = semi_sync.status("no_tx")
                    writers.start()
                eventually(partial(writers.further, len(told) + 20), "commits go on")
                time.sleep(chance.uniform(0, 1))
            told = writers.told()  # the worker is dead: nothing is acknowledged now
            assert told <= set(keys(topics, config, database))
        with streaming(config, semi_sync) as worker:
            writers.stop()
            assert semi_sync.status("no_tx") == timed_out
            assert writers.told() <= set(keys(topics, config, database))
            semi_sync.set(enabled="OFF")
            worker.stop()
    finally:
        semi_sync.set(enabled="OFF")  # releases the writers
        writers.stop()
