"""Measures how long connectors pause when their worker is killed: a fleet of rowtide, and one of Kafka Connect.

python -m tests.bench.fleet [--connectors 100] [--workers 5] [--kills 100] [--debezium FOLDER]
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import click
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MySQL  # noqa: E402
from rowtide_stack.ports import free_port  # noqa: E402

from tests.support.connector_properties import JSON_CONVERTER, connector_properties, history_topic  # noqa: E402
from tests.support.processes.child_process import ChildProcess  # noqa: E402 - not installed

_SCHEMA = "bench"
_PATIENCE_S = 900.0
_HEAD = """\
| fleet | kills | hand-overs | p50 s | p99 s | longest s | others: p99 s | longest s | rows | lost | twice |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |"""


class Worker(ChildProcess):
    """A worker with Kafka Connect's REST interface."""

    def __init__(self, command: Callable[[int], Sequence[str]], log: Path) -> None:
        super().__init__()
        self.port = free_port()
        self._run(command(self.port), log)

    def kill(self) -> None:
        """End it without notice."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request; returns the JSON of the response."""
        data = None if body is None else json.dumps(body).encode()
        url, headers = f"http://127.0.0.1:{self.port}{path}", {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as response:
            text = response.read()
        return json.loads(text) if text else None


class Fleet:
    """Workers of one kind, with their topics.

    Args:
        kind: the name of the product.
        command: the command of a worker, from a port.
        folder: the folder of the logs.
        number: how many workers there are.
    """

    def __init__(self, kind: str, command: Callable[[int], Sequence[str]], folder: Path, number: int) -> None:
        self.kind, self._command, self._folder, self._number = kind, command, folder, number
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        for _ in range(self._number):
            self.add()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()

    def add(self) -> None:
        """Start a worker."""
        self.workers.append(Worker(self._command, self._folder / f"{self.kind}-{time.monotonic_ns()}.log"))

    def owners(self) -> dict[str, int]:
        """The port of the worker that runs the task of each connector."""
        answer = _patiently(lambda: self.workers[-1].ask("GET", "/connectors?expand=status"))
        tasks = {name: item["status"]["tasks"] for name, item in answer.items()}
        return {
            name: int(task["worker_id"].rpartition(":")[2])
            for name, (task, *_) in ((name, found) for name, found in tasks.items() if found)
            if task["state"] == "RUNNING"
        }

    def create(self, name: str, config: dict[str, str]) -> None:
        """Create a connector."""
        _patiently(lambda: self.workers[0].ask("PUT", f"/connectors/{name}/config", config))


class Load:
    """Inserts a row into every table at an interval, in one transaction, and remembers when it was committed."""

    def __init__(self, database: MySQL, tables: Sequence[str], interval_s: float) -> None:
        self._database, self._tables, self._interval_s = database, tables, interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.committed = [0.0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Insert no more rows."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            number = len(self.committed)
            inserts = [f"INSERT INTO {table} VALUES ({number})" for table in self._tables]
            self._database.execute("BEGIN", *inserts, "COMMIT", database=_SCHEMA)
            self.committed.append(time.time())


class Arrivals:
    """When a consumer of committed records received each row of each topic for the first time, and how often it did."""

    def __init__(self, bootstrap: str, topics: dict[str, str]) -> None:
        self._topics, self._stop = {topic: name for name, topic in topics.items()}, threading.Event()
        self.times: dict[str, dict[int, float]] = {name: {} for name in topics}
        self.records = dict.fromkeys(topics, 0)
        settings = {"bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_committed"}
        self._consumer = Consumer({**settings, "enable.auto.commit": False, "fetch.wait.max.ms": 50})
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in self._topics])
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(1000, 0.1):
                if message.error() is None:
                    name, key = self._topics[str(message.topic())], json.loads(message.key() or b"{}")["id"]
                    self.times[name].setdefault(key, time.time())
                    self.records[name] += 1

    def all_have(self, number: int) -> bool:
        """Whether a row has arrived in every topic."""
        return all(number in times for times in self.times.values())


def _patiently(action: Callable[[], Any]) -> Any:
    """Repeat a request until it is answered; workers refuse requests while connectors move."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return action()
        except (OSError, urllib.error.HTTPError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise click.ClickException(f"waited in vain: {what}")
        time.sleep(0.2)


def rowtide_fleet(folder: Path, bootstrap: str, number: int, session_ms: int) -> Fleet:
    """Workers of rowtide."""
    file = folder / "fleet.properties"
    _write(file, _shared("rowtide", bootstrap, session_ms) | {"rest.advertised.host.name": "127.0.0.1"})
    start = [sys.executable, "-m", "rowtide", "worker", str(file), "--web-port"]
    return Fleet("rowtide", lambda port: [*start, str(port)], folder, number)


def connect_fleet(
    folder: Path, bootstrap: str, number: int, session_ms: int, programs: Path, delay_ms: int | None
) -> Fleet:
    """Workers of Kafka Connect, with exactly-once delivery, as rowtide's fleets always have it."""
    plugins = folder / "plugins"
    plugins.mkdir()
    (plugins / "debezium-mysql").symlink_to(programs / "debezium-mysql")
    delay = {} if delay_ms is None else {"scheduled.rebalance.max.delay.ms": str(delay_ms)}
    properties = _shared("connect", bootstrap, session_ms) | delay
    properties |= {"plugin.path": str(plugins), "exactly.once.source.support": "enabled"}

    def command(port: int) -> list[str]:
        file = folder / f"connect-{port}.properties"
        _write(file, properties | {"listeners": f"http://127.0.0.1:{port}"})
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        return ["java", "-Xmx1g", "-cp", f"{programs}/kafka/*", main, str(file)]

    return Fleet("Kafka Connect", command, folder, number)


def _shared(group: str, bootstrap: str, session_ms: int) -> dict[str, str]:
    topics = ("config", "offset", "status")
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        **{f"{part}.storage.topic": f"{group}-{part}" for part in topics},
        **{f"{part}.storage.replication.factor": "1" for part in topics},
        "session.timeout.ms": str(session_ms),
        "heartbeat.interval.ms": str(session_ms // 4),
        **{f"{part}.converter": JSON_CONVERTER for part in ("key", "value")},
        **{f"{part}.converter.schemas.enable": "false" for part in ("key", "value")},
    }


def _write(file: Path, properties: dict[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def measured(
    fleet: Fleet, database: MySQL, bootstrap: str, tables: Sequence[str], kills: int, interval_s: float
) -> str:
    """Kill workers at random while rows are inserted, and replace them; returns a row of the table of results."""
    group, chance = fleet.kind.replace(" ", ""), random.Random(kills)
    names = {table: f"{group}-{table}" for table in tables}
    for number, (table, name) in enumerate(names.items()):
        history = history_topic(bootstrap, f"{name}-history")
        config = connector_properties(name, database, _SCHEMA, history) | {"database.server.id": str(20_000 + number)}
        fleet.create(name, config | {"table.include.list": f"{_SCHEMA}.{table}", "snapshot.mode": "no_data"})
    _until(lambda: len(fleet.owners()) == len(names), "all connectors run")
    topics = {name: f"{name}.{_SCHEMA}.{table}" for table, name in names.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    handed_over: list[float] = []
    others: list[float] = []
    with Load(database, tables, interval_s) as load:
        # With the first rows. A consumer finds later ones only when it asks for all topics again, after minutes.
        _until(lambda: admin.list_topics(timeout=30).topics.keys() >= set(topics.values()), "all topics exist")
        with Arrivals(bootstrap, topics) as arrivals:
            for _ in range(kills):
                newest = len(load.committed)
                _until(lambda newest=newest: arrivals.all_have(newest), "rows of all connectors arrive")
                owners = _whole(fleet, names)
                victim = chance.choice([one for one in fleet.workers if one.port in owners.values()])
                fleet.workers.remove(victim)
                victim.kill()
                killed = time.time()
                time.sleep(chance.uniform(0, 8))
                fleet.add()
                time.sleep(chance.uniform(4, 8))
                newest = len(load.committed)
                _until(lambda newest=newest: arrivals.all_have(newest), "rows of all connectors arrive")
                for name, times in arrivals.times.items():
                    late = [
                        (at, times[n] - at) for n, at in enumerate(load.committed[:newest]) if n and at >= killed - 1
                    ]
                    if owners[name] == victim.port:
                        handed_over.append(next(at - killed + delay for at, delay in late if at >= killed))
                    else:
                        others.append(max(delay for _, delay in late))
            load.end()
            last = len(load.committed) - 1
            _until(lambda: arrivals.all_have(last), "the last rows arrive")
            time.sleep(3)
    rows = last * len(names)
    # Without a snapshot, a connector begins with the first row after its start, which its state does not tell exactly.
    lost = sum(last - min(times) + 1 - len(times) for times in arrivals.times.values())
    twice = sum(arrivals.records.values()) - sum(len(times) for times in arrivals.times.values())
    figures = " | ".join(f"{seconds:.1f}" for seconds in (*_quantiles(handed_over), *_quantiles(others)[1:]))
    return f"| {fleet.kind} | {kills} | {len(handed_over)} | {figures} | {rows} | {lost} | {twice} |"


def _whole(fleet: Fleet, names: dict[str, str]) -> dict[str, int]:
    """The owners of all connectors, all of which run on workers that are alive."""
    found: dict[str, int] = {}

    def known() -> bool:
        found.clear()
        found.update(fleet.owners())
        return len(found) == len(names) and set(found.values()) <= {worker.port for worker in fleet.workers}

    _until(known, "all connectors run")
    return found


def _quantiles(values: list[float]) -> tuple[float, float, float]:
    """The median, the 99th percentile, and the largest; not a number if there is no value."""
    ordered = sorted(values) or [math.nan]
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100], ordered[-1]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--connectors", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--workers", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--kills", type=click.IntRange(min=1), default=100, show_default=True, help="Kills of rowtide's workers.")
@click.option("--interval", default=0.5, show_default=True, help="Seconds between two rows of a table.")
@click.option("--session", default=6000, show_default=True, help="session.timeout.ms of both.")
@click.option("--debezium", envvar="ROWTIDE_BENCH_DEBEZIUM", type=click.Path(exists=True, file_okay=False),
              help="Folder with kafka/*.jar and debezium-mysql/*.jar. Without it, only rowtide runs.")  # fmt: skip
@click.option("--connect-kills", default=3, show_default=True, help="Kills of Kafka Connect's workers.")
@click.option("--connect-delay", type=int, help="Its scheduled.rebalance.max.delay.ms.  [default: its default]")
@click.option("--keep", type=click.Path(file_okay=False), help="Folder in which the logs are kept.")
def main(
    connectors: int,
    workers: int,
    kills: int,
    interval: float,
    session: int,
    debezium: str | None,
    connect_kills: int,
    connect_delay: int | None,
    keep: str | None,
) -> None:
    """Kill workers at random while every connector delivers rows, and measure how long connectors pause.

    A hand-over is the time from a kill to the next row of a connector that ran on the killed worker. All other
    connectors are measured too: the longest time from a commit to its record around each kill.
    """
    with ExitStack() as stack:
        folder = Path(keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-"))).absolute()
        folder.mkdir(exist_ok=True, parents=True)
        # A connector holds one connection, or two in Debezium, and needs others for its start.
        options = {"max_connections": 100 + 5 * connectors}
        database, kafka = stack.enter_context(MySQL(options)), stack.enter_context(Kafka())
        database.execute(f"CREATE DATABASE {_SCHEMA}")
        tables = [f"t{number}" for number in range(connectors)]
        database.execute(*(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in tables), database=_SCHEMA)
        click.echo(_HEAD)
        bootstrap = kafka.bootstrap
        with rowtide_fleet(folder, bootstrap, workers, session) as fleet:
            click.echo(measured(fleet, database, bootstrap, tables, kills, interval))
        if debezium:
            database.execute(*(f"TRUNCATE TABLE {name}" for name in tables), database=_SCHEMA)
            programs = Path(debezium).absolute()
            with connect_fleet(folder, bootstrap, workers, session, programs, connect_delay) as fleet:
                click.echo(measured(fleet, database, bootstrap, tables, connect_kills, interval))
        click.echo(f"load of the machine at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
