"""Kills the worker and its servers at random under load: ``python -m tests.chaos --help`` from the checkout's root."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docker"), str(ROOT / "tests/support")]

from rowtide_stack import Database, Kafka, MariaDB, MySQL  # noqa: E402 - it is not installed
from topic_tools import Topics  # noqa: E402
from worker_process import Worker, WorkerConfig, eventually  # noqa: E402

from tests.chaos.accounts import account  # noqa: E402
from tests.chaos.workload import TABLES, Reshaper, Writer  # noqa: E402

SERVERS = {"mysql": MySQL, "mariadb": MariaDB}
WRITERS = 4
EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--flavor", type=click.Choice(sorted(SERVERS)), default="mysql", show_default=True)
@click.option("--seed", type=int, help="Seed of the first round; by default the current time.")
@click.option("--minutes", type=float, default=10, show_default=True, help="How long to start new rounds.")
@click.option("--incidents", default=12, show_default=True, help="Failures of worker and servers in a round.")
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Folder for logs, records and binlogs of rounds with problems."
)
def main(flavor: str, seed: int | None, minutes: float, incidents: int, keep: Path | None) -> None:
    """Write continuously while worker, database and Kafka are killed, stopped and paused, then look for lost rows.

    Every second round delivers exactly once, every second pair of rounds reads without GTIDs. The exit code is 1 if a
    record was lost, out of order, or repeated with exactly-once delivery.
    """
    seed = int(time.time()) if seed is None else seed
    end, failed = time.monotonic() + minutes * 60, 0
    number = 0
    while time.monotonic() < end:
        failed += not _round(flavor, seed + number, incidents, keep)
        number += 1
    click.echo(f"{number} rounds, {failed} with problems")
    sys.exit(bool(failed))


def _round(flavor: str, seed: int, incidents: int, keep: Path | None) -> bool:
    decide = random.Random(seed)
    exactly_once, gtids = bool(seed % 2), not (flavor == "mysql" and seed // 2 % 2)
    options = {} if gtids else {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-chaos-")))
        server = stack.enter_context(SERVERS[flavor](options))
        kafka = stack.enter_context(Kafka())
        database = stack.enter_context(server.database())
        server.execute(*TABLES, database=database.name)
        clients = [Writer(server, database.name, number, seed + number, xa=number == 0) for number in range(WRITERS)]
        reshaper = Reshaper(server, database.name, seed)
        config = WorkerConfig(folder, server, kafka.bootstrap, _properties(database, exactly_once=exactly_once))
        for client in (*clients, reshaper):
            client.start()
        happened = _disturb(decide, config, _incidents(server, kafka), incidents)
        for client in (*clients, reshaper):
            client.end()
        clients[0].finish()
        _catch_up(config)
        topics, tables = Topics(kafka.bootstrap), (f"{database.name}.accounts", f"{database.name}.entries")
        records = [[seen.value for seen in topics.read(config.topic(table))] for table in tables]
        table = dict(server.query("SELECT id, v FROM accounts", database=database.name))
        numbers = dict(server.query("SELECT writer, COUNT(*) FROM entries GROUP BY writer", database=database.name))
        problems, repeated = account(*records, table, numbers, exactly_once=exactly_once)
        if problems and keep:
            _keep(keep / f"{flavor}-{seed}", folder, server, dict(zip(tables, records, strict=True)))
    mode = f"{'exactly' if exactly_once else 'at least'} once, {'with' if gtids else 'without'} GTIDs"
    click.echo(f"seed {seed}, {mode}: {sum(map(len, records))} records, {repeated} repeated; {_summary(happened)}")
    for problem in problems[:20]:
        click.echo(f"  {problem}")
    return not problems


def _properties(database: Database, *, exactly_once: bool) -> dict[str, str]:
    return {
        "database.include.list": database.name,
        "offset.flush.interval.ms": "300",
        "retriable.restart.connector.wait.ms": "500",
        "max.queue.size": "600",
        "max.batch.size": "200",
        "schema.history.internal.compact.interval": "10",
        **(EXACTLY_ONCE if exactly_once else {}),
    }


def _incidents(server: MySQL | MariaDB, kafka: Kafka) -> Mapping[str, Callable[[], object]]:
    def paused(which: MySQL | MariaDB | Kafka) -> None:
        which.pause()
        time.sleep(2)
        which.resume()

    def restart(which: MySQL | MariaDB | Kafka, end: Callable[[], object]) -> None:
        end()
        time.sleep(1)
        which.start()

    def cut() -> None:
        for number, command in server.query("SELECT ID, COMMAND FROM information_schema.PROCESSLIST"):
            if command.startswith("Binlog Dump"):
                server.execute(f"KILL {number}")

    return {
        "database killed": lambda: restart(server, server.kill),
        "database restarted": lambda: restart(server, server.stop),
        "database paused": lambda: paused(server),
        "binlog connection killed": cut,
        "kafka killed": lambda: restart(kafka, kafka.kill),
        "kafka restarted": lambda: restart(kafka, kafka.stop),
        "kafka paused": lambda: paused(kafka),
    }


def _disturb(
    decide: random.Random, config: WorkerConfig, others: Mapping[str, Callable[[], object]], incidents: int
) -> Counter[str]:
    """Cause incidents one after the other, with a running worker after each."""
    happened = Counter[str]()
    worker = Worker(config)
    try:
        for _ in range(incidents):
            time.sleep(decide.random() * 8)
            what = decide.choice(("worker killed", "worker killed", "worker stopped", *others))
            happened[what] += 1
            if what == "worker killed":
                worker.kill()
            elif what == "worker stopped":
                worker.signal()
                worker.wait()
            else:
                others[what]()
            if not worker.running:
                worker = Worker(config)
    finally:
        worker.kill()
    return happened


def _catch_up(config: WorkerConfig) -> None:
    """Run a last worker until it has read the whole binlog."""
    with Worker(config).streaming() as worker:
        idle = {"seconds": 0.0, "bytes": 0}
        eventually(lambda: worker.health()["lag"] == idle, f"the lag is zero; {worker.log}")
        worker.stop()


def _keep(folder: Path, logs: Path, server: MySQL | MariaDB, records: Mapping[str, list[bytes | None]]) -> None:
    """Keep what explains a problem: the logs of the workers, the records, and the events of the binlog."""
    shutil.copytree(logs, folder, dirs_exist_ok=True)
    for table, values in records.items():
        (folder / f"{table}.jsonl").write_bytes(b"\n".join(value or b"null" for value in values))
    with (folder / "binlog.txt").open("w") as text:
        for file, *_ in server.query("SHOW BINARY LOGS"):
            for event in server.query(f"SHOW BINLOG EVENTS IN '{file}'"):
                text.write("\t".join(map(str, event)) + "\n")


def _summary(happened: Counter[str]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(happened.items()))


if __name__ == "__main__":
    main()
