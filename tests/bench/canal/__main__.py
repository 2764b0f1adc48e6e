"""``rowtide canal`` beside the real Canal: both read one binlog of MariaDB 11.4, and one client reads each over TCP.

    python -m tests.bench.canal [--canal FOLDER] [--rows THOUSANDS] [--rounds N] [--heap 1g]

FOLDER has the jars of Canal 1.1.7 (``canal.server``, ``canal.instance.spring`` and what they need); without it, only
rowtide runs. The servers run one after the other, in turn, each as a new process that begins where the load does. Its
processor time is that of the process and all its threads, until the client has acknowledged the last row.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import MariaDB  # noqa: E402

from tests.bench.load import Load  # noqa: E402
from tests.bench.measure import cpu_seconds, peak_bytes  # noqa: E402
from tests.support.canal.client import CanalClient  # noqa: E402 - after the path
from tests.support.canal.real_server import real_canal  # noqa: E402

_DATABASE = "bench"
_DESTINATION = "example"
_FETCH = 1000
_START_S = 120.0
_IDLE_S = 60.0
_ROWS = re.compile(rb"\x0a\x09rowsCount\x12.([0-9]+)", re.DOTALL)
_SINGLE = """BEGIN NOT ATOMIC
    DECLARE done INT DEFAULT 0;
    WHILE done < {count} DO SET done = done + 1; UPDATE orders SET qty = qty + 1 WHERE id = done; END WHILE;
    END"""
_HEAD = """\
| load | server | rows | rows/s | CPU µs/row | CPU s, with the start | peak MB |
| --- | --- | --: | --: | --: | --: | --: |"""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the binlog: the name of its load, where it begins, and its rows."""

    name: str
    file: str
    pos: int
    rows: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run.

    Attributes:
        rows: the rows that the client has got.
        seconds: from its first request to the last row.
        cpu_s: processor time of the server meanwhile.
        whole_cpu_s: the same with the start of the server.
        peak: peak resident memory in bytes.
    """

    rows: int
    seconds: float
    cpu_s: float
    whole_cpu_s: float
    peak: int

    def line(self, load: str, server: str) -> str:
        """A row of a Markdown table."""
        rate, cost = self.rows / self.seconds, self.cpu_s / self.rows * 1e6
        values = f"{self.rows} | {rate:.0f} | {cost:.2f} | {self.whole_cpu_s:.1f} | {self.peak / 1e6:.0f}"
        return f"| {load} | {server} | {values} |"


def parts(database: MariaDB, rows: int) -> Iterator[Part]:
    """Write one load after the other; the binlog ends with the part that is yielded."""
    load = Load(rows)
    singles = load.rows // 4
    database.execute(f"CREATE DATABASE {_DATABASE}")
    database.execute(*load.setup()[1:], database=_DATABASE)
    large = load.rows * 2 + load.rows // 2 + load.rows // 4
    loads = [
        ("large transactions", load.changes(), large),
        ("one row in a transaction", [_SINGLE.format(count=singles)], singles),
    ]
    for name, statements, count in loads:
        database.execute("FLUSH BINARY LOGS")
        file, pos = database.query("SHOW MASTER STATUS")[0][:2]
        database.execute(*statements, database=_DATABASE)
        yield Part(name, file, pos, count)


def configured(folder: Path, database: MariaDB, part: Part, port: int) -> Path:
    """A folder of Canal's that begins at a part of the binlog."""
    (folder / _DESTINATION).mkdir(parents=True)
    (folder / "canal.properties").write_text(f"canal.ip=127.0.0.1\ncanal.port={port}\n")
    (folder / _DESTINATION / "instance.properties").write_text(
        f"canal.instance.master.address={database.host}:{database.port}\n"
        f"canal.instance.master.journal.name={part.file}\ncanal.instance.master.position={part.pos}\n"
        f"canal.instance.dbUsername={database.user}\ncanal.instance.dbPassword={database.password}\n"
        f"canal.instance.filter.regex={_DATABASE}\\\\..*\n"
    )
    return folder


def connected(port: int, server: subprocess.Popen[str]) -> CanalClient:
    """A client, as soon as the server has its destination.

    Raises:
        click.ClickException: the server has ended, or does not come up.
    """
    end = time.monotonic() + _START_S
    while server.poll() is None and time.monotonic() < end:
        try:
            return CanalClient(("127.0.0.1", port), _DESTINATION)
        except (OSError, AssertionError):
            time.sleep(0.1)
    raise click.ClickException(f"{server.args!r} does not come up")


def measured(command: list[str], port: int, wanted: int, log: Path) -> Figures:
    """Run a server, and read from it until all rows have come."""
    with log.open("w") as output:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, cwd=ROOT)
    try:
        client = connected(port, server)
        begin, before = time.monotonic(), cpu_seconds(server.pid)
        rows, last = 0, begin
        while rows < wanted:
            number, found = client.get_raw(_FETCH, 1000)
            if number != -1:
                rows += sum(map(int, _ROWS.findall(found)))
                client.ack(number)
                last = time.monotonic()
            elif time.monotonic() - last > _IDLE_S:
                raise click.ClickException(f"{rows} of {wanted} rows have come; see {log.read_text()[-2000:]}")
        client.get(1, -1)  # the server has handled the acknowledgement
        seconds, whole = time.monotonic() - begin, cpu_seconds(server.pid)
        client.close()
        return Figures(rows, seconds, whole - before, whole, peak_bytes(server.pid))
    finally:
        server.kill()
        server.wait()


def free_port() -> int:
    """A port that is not in use."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--canal", "jars", envvar="ROWTIDE_CANAL_SERVER", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--rows", default=100, show_default=True, help="Thousands of rows in each table.")
@click.option("--rounds", default=2, show_default=True, help="How often each server runs.")
@click.option("--heap", default="1g", show_default=True, help="Canal's heap (-Xmx).")
def main(jars: Path | None, rows: int, rounds: int, heap: str) -> None:
    """Measure rowtide beside the real Canal on MariaDB."""
    with ExitStack() as stack:
        made = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-")))
        # Canal takes positions from events, and since 11.4 row events have none.
        database = stack.enter_context(MariaDB({"binlog_legacy_event_pos": 1}))
        rowtide = [str(Path(sys.executable).parent / "rowtide"), "canal"]
        servers = {"rowtide": lambda folder, _port: [*rowtide, folder]}
        if jars is not None:
            real = real_canal(jars, made, heap)
            servers[f"Canal, -Xmx{heap}"] = lambda folder, port: [*real, folder, _DESTINATION, str(port)]
        click.echo(_HEAD)
        for part in parts(database, rows):
            for number in range(rounds):
                for name, command in servers.items():
                    port = free_port()
                    folder = configured(made / f"{name}-{part.file}-{number}", database, part, port)
                    found = measured(command(str(folder), port), port, part.rows, made / "log")
                    click.echo(found.line(part.name, name))
        click.echo(f"load of the machine at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
