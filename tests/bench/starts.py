"""Measures the processor time of starts of connectors in one process: of rowtide and of the servers.

python -m tests.bench.starts [--connectors 12] [--offsets 20000] [--tables 100]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click
from confluent_kafka import Producer

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.engine.run import Checks
from rowtide.connector.engine.task import ConnectorTask

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MySQL  # noqa: E402

from tests.bench.measure import Usage, servers_below  # noqa: E402
from tests.support.connector_properties import connector_properties, history_topic  # noqa: E402

_SCHEMA = "bench"
_OFFSETS = "offsets"
_PATIENCE_S = 300.0
_LOOK_S = 0.01
_HEAD = "| start | rowtide ms | servers ms | s |\n| --- | --: | --: | --: |"


def configuration(number: int, database: MySQL, bootstrap: str) -> Configuration:
    """A connector of one table, as a fleet runs it."""
    name = f"c{number}"
    own = {
        "name": name,
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "exactly.once.source.support": "enabled",
        "offset.storage.topic": _OFFSETS,
        "offset.storage.replication.factor": "1",
        "database.server.id": str(20_000 + number),
        "table.include.list": f"{_SCHEMA}.t{number}",
        "snapshot.mode": "no_data",
    }
    shared = connector_properties(name, database, _SCHEMA, history_topic(bootstrap, f"{name}-history"))
    return from_properties(shared | own)


def fill(bootstrap: str, records: int) -> None:
    """Write offsets of other connectors."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(records):
        producer.produce(_OFFSETS, b'{"file":"binlog.000003","pos":%d}' % number, b'["o%d",{}]' % (number % 100))
        producer.poll(0)
    if producer.flush(_PATIENCE_S):
        raise click.ClickException("Kafka does not acknowledge offsets")


def started(configs: Sequence[Configuration], checks: Checks) -> list[ConnectorTask]:
    """Start connectors, and wait until they read."""
    tasks = [ConnectorTask(config, checks=checks) for config in configs]
    for task in tasks:
        task.start()
    end = time.monotonic() + _PATIENCE_S
    while not all(task.state == "RUNNING" and task.current.works for task in tasks):
        if time.monotonic() > end:
            raise click.ClickException(f"they do not run: {[str(task.error) for task in tasks]}")
        time.sleep(_LOOK_S)
    return tasks


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--connectors", type=click.IntRange(min=2), default=12, show_default=True)
@click.option("--offsets", type=click.IntRange(min=0), default=20_000, show_default=True,
              help="Records of other connectors in the offsets topic.")  # fmt: skip
@click.option("--tables", type=click.IntRange(min=1), default=100, show_default=True, help="Tables on the server.")
def main(connectors: int, offsets: int, tables: int) -> None:
    """Start connectors one by one, and print the processor time of a start in milliseconds.

    One connector runs already, as on a worker of a fleet. A hand-over is a start on another worker.
    """
    with ExitStack() as stack:
        database, kafka = stack.enter_context(MySQL()), stack.enter_context(Kafka())
        database.execute(f"CREATE DATABASE {_SCHEMA}")
        names = [f"t{number}" for number in range(max(tables, connectors))]
        database.execute(*(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in names), database=_SCHEMA)
        configs = [configuration(number, database, kafka.bootstrap) for number in range(connectors)]
        for task in started(configs, Checks.ALL):
            task.stop()
        fill(kafka.bootstrap, offsets)
        servers = servers_below(os.getpid())
        click.echo(_HEAD)
        for label, checks in (("with all checks", Checks.ALL), ("hand-over", Checks.SERVER)):
            first, *others = configs
            tasks = started([first], checks)
            time.sleep(1)
            of_servers, own, begin = Usage(*servers), time.process_time(), time.perf_counter()
            for config in others:
                tasks += started([config], checks)
            spent = time.process_time() - own, of_servers.seconds, time.perf_counter() - begin
            in_ms, of_servers_ms, took = (total / len(others) for total in spent)
            click.echo(f"| {label} | {in_ms * 1000:.0f} | {of_servers_ms * 1000:.0f} | {took:.2f} |")
            for task in tasks:
                task.stop()
        click.echo(f"load of the machine at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
