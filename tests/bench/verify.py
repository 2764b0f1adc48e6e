"""Measures ``rowtide verify --topics``: equal tables and different ones, and the load on the source.

python -m tests.bench.verify [--rows 1000] [--differences 0 --differences 1000] [--per-second 500]
    [--mariadb] [--reladiff COMMAND] [--pt-table-checksum COMMAND]
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MariaDB, MySQL, SqlServer  # noqa: E402

from tests.bench.connectors import Rowtide  # noqa: E402
from tests.bench.latency import waited  # noqa: E402
from tests.bench.measure import cpu_seconds, servers_below  # noqa: E402
from tests.support.connector_properties import connector_properties, history_topic  # noqa: E402
from tests.support.mysql.binlog_readers import binlog_readers  # noqa: E402 - not installed

_SCHEMA, _COPY = "bench", "bench_copy"
_BATCH = 5000
_HEAD = """\
| program | differences | found | seconds | rows/s | CPU s | servers' CPU s | peak MB |
| --- | --: | --: | --: | --: | --: | --: | --: |"""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of a program.

    Attributes:
        program: its name.
        made: the differences that there were.
        found: those that it reported; ``None`` if it does not look for any.
        seconds: the time from its start to its end.
        cpu_s: its processor time.
        servers_cpu_s: that of the database and the broker.
        peak_bytes: its peak resident memory, at least that of the programs before it.
    """

    program: str
    made: int
    found: int | None
    seconds: float
    cpu_s: float
    servers_cpu_s: float
    peak_bytes: int

    def line(self, rows: int) -> str:
        """The figures as a row of a Markdown table."""
        found = "" if self.found is None else str(self.found)
        return (
            f"| {self.program} | {self.made} | {found} | {self.seconds:.1f} | {rows / self.seconds:.0f} | "
            f"{self.cpu_s:.1f} | {self.servers_cpu_s:.1f} | {self.peak_bytes / 1e6:.0f} |"
        )


def fill(database: SqlServer, rows: int) -> None:
    """Create the table, and a copy of it in another schema."""
    database.execute(f"CREATE DATABASE {_SCHEMA}", f"CREATE DATABASE {_COPY}")
    values = ", ".join(f"('item {number}', {number}.50, 'a note {number * 7}')" for number in range(_BATCH))
    database.execute(
        "CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), price DECIMAL(10,2), note VARCHAR(80), "
        "at DATETIME(3) DEFAULT '2026-01-01')",
        *[f"INSERT INTO big (name, price, note) VALUES {values}"] * (rows // _BATCH),
        "CREATE TABLE writes (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
        "SET SESSION sql_log_bin = 0",
        f"CREATE TABLE {_COPY}.big LIKE big",
        f"INSERT INTO {_COPY}.big SELECT * FROM big",
        database=_SCHEMA,
    )


@contextmanager
def damaged(database: SqlServer, rows: int, number: int) -> Iterator[None]:
    """Change some rows of the source, evenly spread, without the binlog, and change them back."""
    where = f"id % {rows * 9 // 10 // number} = 0 ORDER BY id LIMIT {number}" if number else "FALSE"
    unlogged = "SET SESSION sql_log_bin = 0"
    database.execute(unlogged, f"UPDATE big SET price = -price - 1 WHERE {where}", database=_SCHEMA)
    try:
        yield
    finally:
        database.execute(unlogged, f"UPDATE big SET price = -price - 1 WHERE {where}", database=_SCHEMA)


@contextmanager
def writes(database: SqlServer, rows: int, per_second: float) -> Iterator[None]:
    """Insert and update rows, in transactions of one row each: those of the last tenth, which is not damaged."""
    stop = threading.Event()

    def work() -> None:
        number, begun = 0, time.monotonic()
        while per_second and not stop.is_set():
            number += 1
            written = rows - number * 7919 % (rows // 10)
            database.execute(
                f"INSERT INTO writes (n) VALUES ({number})",
                f"UPDATE big SET name = 'written {number}' WHERE id = {written}",
                database=_SCHEMA,
            )
            time.sleep(max(0.0, begun + number * 2 / per_second - time.monotonic()))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measured(program: str, command: list[str], made: int) -> tuple[Measured, str]:
    """Run a command, and return its figures and its output, ``found`` excepted."""
    servers = servers_below(os.getpid())
    before, cpu = resource.getrusage(resource.RUSAGE_CHILDREN), sum(map(cpu_seconds, servers))
    begun = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 1, 16):  # 16 of pt-table-checksum: a difference
        raise click.ClickException(
            f"{program} ended with {ended.returncode}: {ended.stderr[-2000:]}{ended.stdout[-500:]}"
        )
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    servers_cpu = sum(map(cpu_seconds, servers)) - cpu
    if "ERROR - " in ended.stderr:  # reladiff has the exit code 0 even then
        raise click.ClickException(f"{program}: {ended.stderr.partition('ERROR - ')[2].strip()}")
    return Measured(program, made, None, seconds, used, servers_cpu, after.ru_maxrss * 1024), ended.stdout


def with_rowtide(config: Path, made: int) -> Measured:
    """Verify the table with its topic."""
    command = [sys.executable, "-m", "rowtide", "verify", "--config", str(config), "--topics", "--json"]
    command += ["--table", f"{_SCHEMA}.big", "--max-differences", "20000"]
    figures, output = measured("rowtide verify", command, made)
    (table,) = json.loads(output)["tables"]
    if table["outcome"] == "undecided":
        raise click.ClickException(table["reason"])
    return _found(figures, len(table["differences"]))


def with_reladiff(reladiff: str, database: SqlServer, made: int) -> Measured:
    """Compare the table with its copy, on the same server."""
    at = f"mysql://{database.user}:{database.password}@{database.host}:{database.port}"
    command = [reladiff, f"{at}/{_SCHEMA}", "big", f"{at}/{_COPY}", "big", "-k", "id"]
    command += [part for name in ("name", "price", "note", "at") for part in ("-c", name)]
    figures, output = measured("reladiff", command, made)
    return _found(figures, len({line.split(",")[0].lstrip("+- (") for line in output.splitlines() if line[:1] in "+-"}))


def with_checksums(command: str, database: SqlServer, rows: int, made: int) -> Measured:
    """Compute the checksums of the table, as pt-table-checksum does on the primary; replicas compute them, too."""
    account = f"h={database.host},P={database.port},u={database.user},p={database.password}"
    options = ["--tables", f"{_SCHEMA}.big", "--recursion-method=none", "--no-check-binlog-format"]
    figures, output = measured("pt-table-checksum (primary only)", [command, account, *options], made)
    if str(rows) not in output.split():
        raise click.ClickException(f"pt-table-checksum has not read {rows} rows: {output[-500:]}")
    return figures


def _found(figures: Measured, number: int) -> Measured:
    return Measured(
        figures.program,
        figures.made,
        number,
        figures.seconds,
        figures.cpu_s,
        figures.servers_cpu_s,
        figures.peak_bytes,
    )


def _line(run: Callable[[], Measured], program: str, rows: int) -> str:
    """Return the figures of another program, or why it has none."""
    try:
        return run().line(rows)
    except click.ClickException as error:
        return f"| {program} | {' '.join(error.message.split())} |"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", type=click.IntRange(min=5), default=1000, show_default=True, help="Thousands of rows.")
@click.option("--differences", type=click.IntRange(0, 20_000), multiple=True, default=(0, 1, 10_000), show_default=True)
@click.option("--per-second", default=0.0, show_default=True, help="Writes in a second while rowtide runs.")
@click.option("--mariadb", is_flag=True, help="MariaDB as the source, instead of MySQL.")
@click.option("--reladiff", metavar="COMMAND", help="Also run reladiff, between the table and a copy of it.")
@click.option("--pt-table-checksum", "checksum", metavar="COMMAND", help="Also run pt-table-checksum.")
def main(
    rows: int,
    differences: tuple[int, ...],
    per_second: float,
    *,
    mariadb: bool,
    reladiff: str | None,
    checksum: str | None,
) -> None:
    """Measure rowtide verify --topics, by default without other programs. Starts its own MySQL and Kafka."""
    number = rows * 1000 // _BATCH * _BATCH
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-")))
        database, kafka = stack.enter_context(MariaDB() if mariadb else MySQL()), stack.enter_context(Kafka())
        fill(database, number)
        own = connector_properties("verified", database, _SCHEMA, history_topic(kafka.bootstrap, "verified-history"))
        connector = Rowtide("verified", own | {"offset.flush.interval.ms": "1000"}, kafka.bootstrap)
        connector.start(folder)
        stack.callback(connector.stop)
        waited(lambda: binlog_readers(database), connector, "the connector streams")
        click.echo(_HEAD)
        for made in differences:
            with damaged(database, number, made):
                with writes(database, number, per_second):
                    click.echo(with_rowtide(folder / "verified.json", made).line(number))
                if reladiff:
                    click.echo(_line(partial(with_reladiff, reladiff, database, made), "reladiff", number))
                if checksum:
                    run = partial(with_checksums, checksum, database, number, made)
                    click.echo(_line(run, "pt-table-checksum", number))
        click.echo(f"load of the machine at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
