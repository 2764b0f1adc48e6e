"""Measures the time from a commit to its record at a consumer, the cost of an idle connector, and a start.

python -m tests.bench.latency [--commits 1000] [--per-second 50] [--set NAME=VALUE] [--debezium FOLDER]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import click
import pymysql
from confluent_kafka import OFFSET_END, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MySQL  # noqa: E402

from tests.bench.connectors import Connector, Debezium, Rowtide  # noqa: E402
from tests.bench.measure import cpu_seconds  # noqa: E402
from tests.support.connector_properties import connector_properties, history_topic  # noqa: E402
from tests.support.mysql.binlog_readers import binlog_readers  # noqa: E402 - not installed

SCHEMA = "bench"
WARM_UP = 100
IDLE_S = 30.0
_PATIENCE_S = 240.0
_SETTLED_S = 2.0
_HEAD = """\
| connector | p50 ms | p99 ms | max ms | CPU ms per commit | idle % | resident MB | start s (CPU s) |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""
_EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}


@dataclass(frozen=True, slots=True)
class Latency:
    """The figures of one connector.

    Attributes:
        connector: its name and mode of delivery.
        latencies: seconds from the end of each commit to the record at the consumer.
        cpu_ms: processor time of the connector for each commit, in milliseconds.
        idle: the part of a core that it uses while nothing changes.
        resident: resident memory in bytes.
        start: seconds from the start of the process to the first record at the consumer, and the processor time until
            then; ``None`` for Debezium, whose worker keeps running.
    """

    connector: str
    latencies: list[float]
    cpu_ms: float
    idle: float
    resident: int
    start: tuple[float, float] | None

    def percentile(self, percent: int) -> float:
        """A percentile of the latencies, in milliseconds."""
        return statistics.quantiles(self.latencies, n=100)[percent - 1] * 1000

    def line(self) -> str:
        """The figures as a row of a Markdown table."""
        start = "" if self.start is None else f"{self.start[0]:.2f} ({self.start[1]:.2f})"
        figures = [
            *(f"{figure:.1f}" for figure in (self.percentile(50), self.percentile(99), max(self.latencies) * 1000)),
            f"{self.cpu_ms:.2f}",
            f"{self.idle * 100:.2f}",
            f"{self.resident / 1e6:.0f}",
            start,
        ]
        return f"| {self.connector} | {' | '.join(figures)} |"


class Arrivals:
    """Notes when each row's record arrives at a consumer.

    Args:
        bootstrap: the addresses of Kafka.
        topic: the topic, which has one partition.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "latency", "isolation.level": "read_committed"}
        self._consumer = Consumer({**settings, "enable.auto.commit": False, "fetch.wait.max.ms": 10})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.times: list[float] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.times.append(time.perf_counter())

    def forget(self) -> None:
        """Forget the records that have arrived."""
        self.times = []

    def settled(self) -> bool:
        """Whether no record arrives any more."""
        before = len(self.times)
        time.sleep(_SETTLED_S)
        return len(self.times) == before


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def commit(database: MySQL, number: int, per_second: float) -> Iterator[float]:
    """Insert rows, each in a transaction of its own, at a steady rate; yields the end of each commit."""
    connection = pymysql.connect(
        host=database.host, port=database.port, user=database.user, password=database.password, autocommit=True
    )
    with connection, connection.cursor() as cursor:
        begin = time.perf_counter()
        for row in range(number):
            time.sleep(max(0.0, begin + row / per_second - time.perf_counter()))
            cursor.execute(f"INSERT INTO {SCHEMA}.t (name) VALUES ('{row}')")
            yield time.perf_counter()


def measure(
    connector: Connector, label: str, database: MySQL, bootstrap: str, folder: Path, commits: int, per_second: float
) -> Latency:
    """Measure a new connector."""
    topic = f"{connector.name}.{SCHEMA}.t"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    connector.start(folder)
    waited(lambda: binlog_readers(database), connector, "the connector streams")
    with Arrivals(bootstrap, topic) as arrivals:
        waited(lambda: list(commit(database, 1, per_second)) and arrivals.times, connector, "the first record")
        waited(arrivals.settled, connector, "the records of the warm-up")
        arrivals.forget()
        list(commit(database, WARM_UP, per_second))
        waited(lambda: len(arrivals.times) >= WARM_UP, connector, "the records of the warm-up")
        arrivals.forget()
        begin = cpu_seconds(connector.pid)
        sent = list(commit(database, commits, per_second))
        waited(lambda: len(arrivals.times) >= commits, connector, "all records")
        cpu_ms = (cpu_seconds(connector.pid) - begin) / commits * 1000
        latencies = [max(0.0, there - here) for here, there in zip(sent, arrivals.times, strict=True)]
        begin = cpu_seconds(connector.pid)
        time.sleep(IDLE_S)
        idle = (cpu_seconds(connector.pid) - begin) / IDLE_S
        memory = resident_bytes(connector.pid)
        start = started(connector, database, arrivals, folder) if isinstance(connector, Rowtide) else None
    connector.stop()
    return Latency(label, latencies, cpu_ms, idle, memory, start)


def started(connector: Rowtide, database: MySQL, arrivals: Arrivals, folder: Path) -> tuple[float, float]:
    """Start a connector that has a row to deliver: seconds to its record, and processor time until then."""
    connector.stop()
    list(commit(database, 1, 1))
    arrivals.forget()
    begin = time.perf_counter()
    connector.start(folder)
    waited(lambda: arrivals.times, connector, "the record after the start")
    return arrivals.times[0] - begin, cpu_seconds(connector.pid)


def waited(condition: Callable[[], object], connector: Connector, what: str) -> None:
    """Wait until a condition holds, as long as the connector is alive."""
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        if not connector.alive() or time.monotonic() > end:
            raise RuntimeError(f"{connector.kind}: waited in vain for {what}")
        time.sleep(0.005)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--commits", type=click.IntRange(min=100), default=1000, show_default=True, help="Commits to measure.")
@click.option("--per-second", default=50.0, show_default=True, help="Commits in a second.")
@click.option("--debezium", envvar="ROWTIDE_BENCH_DEBEZIUM", type=click.Path(exists=True, file_okay=False),
              help="Folder with kafka/*.jar and debezium-mysql/*.jar. Without it, only rowtide runs.")  # fmt: skip
@click.option("--set", "extra", multiple=True, metavar="NAME=VALUE", help="A property of both connectors. Repeatable.")
def main(commits: int, per_second: float, debezium: str | None, extra: tuple[str, ...]) -> None:
    """Measure latency, idle cost and start, at least once and exactly once. Each connector runs alone."""
    Debezium.programs = Path(debezium or "").absolute()
    kinds: list[type[Connector]] = [Rowtide, *([Debezium] if debezium else [])]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-")))
        database, kafka = stack.enter_context(MySQL()), stack.enter_context(Kafka())
        database.execute(f"CREATE DATABASE {SCHEMA}")
        database.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20))", database=SCHEMA)
        click.echo(_HEAD)
        for kind in kinds:
            for mode, properties in (("at least once", {}), ("exactly once", _EXACTLY_ONCE)):
                name = f"{kind.kind.lower()}-{mode.partition(' ')[0]}"
                own = {**properties, "snapshot.mode": "no_data", **dict(part.split("=", 1) for part in extra)}
                own |= connector_properties(name, database, SCHEMA, history_topic(kafka.bootstrap, f"{name}-history"))
                connector = kind(name, own, kafka.bootstrap)
                try:
                    figures = measure(
                        connector, f"{kind.kind} {mode}", database, kafka.bootstrap, folder / name, commits, per_second
                    )
                finally:
                    connector.stop()
                click.echo(figures.line())
        click.echo(f"load of the machine at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
