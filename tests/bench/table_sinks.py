"""The sinks that keep tables without Kafka and Spark: a snapshot of the load, then the load as a stream.

    python -m tests.bench.table_sinks [duckdb] [delta] [--rows THOUSANDS] [--rounds N]

Each run is a process of ``rowtide run``, timed from its start until it has stored the position of the last change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import MySQL  # noqa: E402
from rowtide_stack.ports import free_port  # noqa: E402

from tests.bench.load import Load  # noqa: E402
from tests.bench.measure import Figures, cpu_seconds, medians, peak_bytes  # noqa: E402
from tests.support.connector_properties import address  # noqa: E402 - after the path

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEMA = "bench"
_SINKS = ("duckdb", "delta")
_PATIENCE_S = 900.0


class SinkRun:
    """A connector whose sink keeps tables.

    Args:
        sink: ``duckdb`` or ``delta``.
        database: the server.
        folder: for its files, empty.
    """

    def __init__(self, sink: str, database: MySQL, folder: Path) -> None:
        self._sink = sink
        self._database = database
        self._folder = folder
        folder.mkdir()
        properties = {
            "name": sink,
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "topic.prefix": sink,
            "database.server.id": "7100",
            "database.include.list": _SCHEMA,
            **address(database),
        }
        self._config = folder / "connector.properties"
        self._config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def caught_up(self, mode: str, messages: int) -> Figures:
        """Run until everything that is in the server now is stored."""
        file, position = self._database.query("SHOW BINARY LOG STATUS")[0][:2]
        # The stored position stays within a transaction until the next one.
        self._database.execute("INSERT INTO sbtest (k) VALUES (0)", database=_SCHEMA)
        port = free_port()
        command = [sys.executable, "-m", "rowtide", "run", str(self._config), "--no-progress", "--web-port", str(port)]
        command += ["--sink", f"{self._sink}:{self._folder / 'tables'}"]
        started = time.monotonic()
        with (self._folder / "log").open("ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            while not self._stored(port, str(file), int(position)):
                if process.poll() is not None or time.monotonic() > started + _PATIENCE_S:
                    log = (self._folder / "log").read_text()
                    raise RuntimeError(f"the sink {self._sink} does not catch up: {log[-3000:]}")
                time.sleep(0.05)
            seconds = time.monotonic() - started
            name = f"{self._sink} {mode}"
            return Figures(name, messages, seconds, cpu_seconds(process.pid), 0.0, peak_bytes(process.pid))
        finally:
            process.terminate()
            process.wait()

    def _stored(self, port: int, file: str, position: int) -> bool:
        with suppress(OSError, ValueError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                stored = json.load(answer)["position"]["stored"] or {}
            return "snapshot" not in stored and (stored.get("file", ""), stored.get("pos", 0)) >= (file, position)
        return False


def runs(sinks: tuple[str, ...], load: Load, rounds: int, folder: Path) -> Iterator[Figures]:
    """Measure sinks in turns: each reads the rows of a load in a snapshot, and then the same load once more."""
    with MySQL({"innodb_buffer_pool_size": "256M"}) as database:
        for number in range(rounds):
            database.execute(f"DROP DATABASE IF EXISTS {_SCHEMA}", f"CREATE DATABASE {_SCHEMA}")
            database.execute(*load.setup(), *load.changes(), database=_SCHEMA)
            connectors = {sink: SinkRun(sink, database, folder / f"{sink}-{number}") for sink in sinks}
            for connector in connectors.values():
                yield connector.caught_up("snapshot", sum(load.snapshot_rows.values()))
            database.execute(*load.again(), *load.changes(), database=_SCHEMA)
            changes = load.rows * 2 + load.rows // 2 + load.rows // 4
            for connector in connectors.values():
                yield connector.caught_up("stream", changes)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("sinks", nargs=-1, type=click.Choice(_SINKS))
@click.option("--rows", default=200, show_default=True, help="Thousands of rows of each table of the load.")
@click.option("--rounds", default=3, show_default=True, help="The figures are those of the run with the median rate.")
def main(sinks: tuple[str, ...], rows: int, rounds: int) -> None:
    """Measure the sinks that keep tables."""
    with tempfile.TemporaryDirectory(prefix="rowtide-bench-") as folder:
        figures = []
        for one in runs(sinks or _SINKS, Load(rows), rounds, Path(folder)):
            click.echo(f"{one.name}: {one.seconds:.1f} s", err=True)
            figures.append(one)
    click.echo("| run | changes | seconds | changes/s | CPU s | peak MB |\n| --- | --: | --: | --: | --: | --: |")
    for one in medians(figures):
        cells = f"{one.messages} | {one.seconds:.1f} | {one.rate:.0f} | {one.cpu_s:.1f} | {one.peak_bytes / 1e6:.0f}"
        click.echo(f"| {one.name} | {cells} |")
    click.echo(f"load average {os.getloadavg()[0]:.0f}", err=True)


if __name__ == "__main__":
    main(prog_name="python -m tests.bench.table_sinks")
