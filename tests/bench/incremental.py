"""Measures an incremental snapshot alongside the stream: rows per second, and the latency of commits meanwhile.

python -m tests.bench.incremental [--rows 200] [--per-second 50] [--threads 1 --threads 4] [--debezium FOLDER]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MySQL  # noqa: E402

from tests.bench.connectors import TUNED, Connector, Debezium, Rowtide  # noqa: E402
from tests.bench.latency import SCHEMA, Arrivals, commit, waited  # noqa: E402
from tests.bench.measure import cpu_seconds  # noqa: E402
from tests.support.connector_properties import connector_properties, history_topic  # noqa: E402
from tests.support.mysql.binlog_readers import binlog_readers  # noqa: E402 - not installed

_SIGNALS = f"{SCHEMA}.signals"
_BATCH = 5000
_HEAD = """\
| connector | rows/s | CPU µs/row | p50 ms before | p50 ms meanwhile | p99 ms meanwhile |
| --- | ---: | ---: | ---: | ---: | ---: |"""


@dataclass(frozen=True, slots=True)
class Load:
    """The load: the number of rows to read, and commits in a second."""

    rows: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Beside:
    """The figures of one snapshot.

    Attributes:
        connector: its name.
        rows_per_s: rows of the snapshot, by the arrival of the last one.
        cpu_us: processor time of the connector for each row and its share of the stream, in microseconds.
        before: seconds from the end of each commit to its record before the snapshot.
        meanwhile: the same while the snapshot runs.
    """

    connector: str
    rows_per_s: float
    cpu_us: float
    before: list[float]
    meanwhile: list[float]

    def line(self) -> str:
        """The figures as a row of a Markdown table."""
        p99 = statistics.quantiles(self.meanwhile, n=100)[98]
        latencies = (statistics.median(self.before), statistics.median(self.meanwhile), p99)
        shown = " | ".join(f"{seconds * 1000:.1f}" for seconds in latencies)
        return f"| {self.connector} | {self.rows_per_s:.0f} | {self.cpu_us:.1f} | {shown} |"


def fill(database: MySQL, rows: int) -> None:
    """Create the tables: one to read, one for commits, and that of signals."""
    database.execute(f"CREATE DATABASE {SCHEMA}")
    for statement in (
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20))",
        "CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), price DECIMAL(10,2), at DATETIME)",
        "CREATE TABLE signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048))",
    ):
        database.execute(statement, database=SCHEMA)
    values = ",".join(f"('item {number}', {number}.50, '2026-01-01 00:00:00')" for number in range(_BATCH))
    for _ in range(rows // _BATCH):
        database.execute(f"INSERT INTO big (name, price, at) VALUES {values}", database=SCHEMA)


def measure(connector: Connector, label: str, database: MySQL, bootstrap: str, folder: Path, options: Load) -> Beside:
    """Measure a new connector."""
    topics = [f"{connector.name}.{SCHEMA}.{table}" for table in ("t", "big")]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        created.result()
    connector.start(folder)
    waited(lambda: binlog_readers(database), connector, "the connector streams")
    with Arrivals(bootstrap, topics[0]) as arrivals, Arrivals(bootstrap, topics[1]) as rows:
        waited(lambda: list(commit(database, 1, options.per_second)) and arrivals.times, connector, "the first record")
        waited(arrivals.settled, connector, "the records of the warm-up")
        arrivals.forget()
        count = int(options.per_second * 5)
        sent = list(commit(database, count, options.per_second))
        waited(lambda: len(arrivals.times) >= count, connector, "all records")
        before = [there - here for here, there in zip(sent, arrivals.times, strict=True)]
        arrivals.forget()
        sent = []
        stop = threading.Event()

        def write() -> None:
            for at in commit(database, 1_000_000, options.per_second):
                sent.append(at)
                if stop.is_set():
                    return

        writer = threading.Thread(target=write)
        cpu, begin = cpu_seconds(connector.pid), time.perf_counter()
        writer.start()
        database.execute(
            f"INSERT INTO {_SIGNALS} VALUES ('{connector.name}', 'execute-snapshot', "
            f'\'{{"data-collections": ["{SCHEMA}.big"], "type": "incremental"}}\')'
        )
        waited(lambda: len(rows.times) >= options.rows, connector, "all rows of the snapshot")
        seconds, cpu = rows.times[options.rows - 1] - begin, cpu_seconds(connector.pid) - cpu
        stop.set()
        writer.join()
        waited(lambda: len(arrivals.times) >= len(sent), connector, "all records")
    connector.stop()
    meanwhile = [there - here for here, there in zip(sent, arrivals.times, strict=True)]
    return Beside(label, options.rows / seconds, cpu / options.rows * 1e6, before, meanwhile)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", type=click.IntRange(min=5), default=200, show_default=True, help="Thousands of rows to read.")
@click.option("--per-second", default=50.0, show_default=True, help="Commits in a second.")
@click.option("--threads", type=click.IntRange(min=1), multiple=True, default=(1, 2, 4), show_default=True,
              help="rowtide.incremental.snapshot.threads. Debezium has one.")  # fmt: skip
@click.option("--debezium", envvar="ROWTIDE_BENCH_DEBEZIUM", type=click.Path(exists=True, file_okay=False),
              help="Folder with kafka/*.jar and debezium-mysql/*.jar. Without it, only rowtide runs.")  # fmt: skip
def main(rows: int, per_second: float, threads: tuple[int, ...], debezium: str | None) -> None:
    """Measure incremental snapshots alongside the stream. Each connector runs alone, with its own chunk sizes."""
    Debezium.programs = Path(debezium or "").absolute()
    load = Load(rows * 1000 // _BATCH * _BATCH, per_second)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-")))
        database, kafka = stack.enter_context(MySQL()), stack.enter_context(Kafka())
        fill(database, load.rows)
        click.echo(_HEAD)
        kinds: list[tuple[type[Connector], int]] = [(Rowtide, number) for number in threads]
        for kind, number in [*kinds, *([(Debezium, 1)] if debezium else [])]:
            name = f"{kind.kind.lower()}-{number}"
            own = {**TUNED, "snapshot.mode": "no_data", "signal.data.collection": _SIGNALS}
            own |= connector_properties(name, database, SCHEMA, history_topic(kafka.bootstrap, f"{name}-history"))
            if kind is Rowtide:
                own |= {"rowtide.incremental.snapshot.threads": str(number)}
            connector = kind(name, own, kafka.bootstrap)
            label = f"{kind.kind}, threads={number}" if kind is Rowtide else kind.kind
            try:
                figures = measure(connector, label, database, kafka.bootstrap, folder / name, load)
            finally:
                connector.stop()
            click.echo(figures.line())
        click.echo(f"load of the machine at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
