"""The benchmark of rowtide, optionally beside Debezium: ``python -m tests.bench --help``, from the checkout's root."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docker"), str(ROOT / "tests/support")]

from connector_properties import JSON_CONVERTER, connector_properties, history_topic  # noqa: E402 - not installed
from rowtide_stack import Kafka, MySQL  # noqa: E402

from tests.bench.connectors import DEFAULT, TUNED, Connector, Debezium, Rowtide  # noqa: E402
from tests.bench.load import Load  # noqa: E402
from tests.bench.measure import Figures, TopicWatch, servers_below  # noqa: E402
from tests.bench.runs import prepare, snapshot_run, stream_run  # noqa: E402

SCHEMA = "bench"


class FastKafka(Kafka):
    """The broker of the stack with all Java compilers, as in production; it starts more slowly."""

    def _prepare(self, folder: Path) -> list[str]:
        command = [part for part in super()._prepare(folder) if not part.startswith("-XX:")]
        return ["-Xmx1g" if part.startswith("-Xmx") else part for part in command]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("modes", nargs=-1, type=click.Choice(["stream", "snapshot"]))
@click.option("--rows", default=200, show_default=True, help="Thousands of rows in each table.")
@click.option("--debezium", envvar="ROWTIDE_BENCH_DEBEZIUM", type=click.Path(exists=True, file_okay=False),
              help="Folder with kafka/*.jar and debezium-mysql/*.jar. Without it, only rowtide runs.")  # fmt: skip
@click.option("--schemas/--no-schemas", default=True, show_default=True, help="JSON with or without schemas.")
@click.option("--tuned/--defaults", default=True, show_default=True, help="lz4 and large batches, or the defaults.")
@click.option("--set", "extra", multiple=True, metavar="NAME=VALUE", help="A property of both connectors. Repeatable.")
@click.option("--keep", type=click.Path(), help="Folder in which the logs are kept; by default they are removed.")
def main(
    modes: tuple[str, ...],
    rows: int,
    debezium: str | None,
    *,
    schemas: bool,
    tuned: bool,
    extra: tuple[str, ...],
    keep: str | None,
) -> None:
    """Measure the speed of streaming and of snapshots (both if no mode is given).

    Starts its own MySQL and Kafka. The load is executed while the connectors are stopped. Each connector then runs
    alone, and is timed from the first to the last record that it writes.
    """
    properties = dict(TUNED if tuned else DEFAULT) | dict(part.split("=", 1) for part in extra)
    if not schemas:
        for side in ("key", "value"):
            properties[f"{side}.converter"] = JSON_CONVERTER
            properties[f"{side}.converter.schemas.enable"] = "false"
    Debezium.programs = Path(debezium or "").absolute()
    kinds: list[type[Connector]] = [Rowtide, *([Debezium] if debezium else [])]
    with ExitStack() as stack:
        folder = Path(keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-")))
        database = stack.enter_context(MySQL({"innodb_buffer_pool_size": "256M"}))
        kafka = stack.enter_context(FastKafka())
        figures = _all(modes or ("stream", "snapshot"), kinds, Load(rows), database, kafka, properties, folder)
        show(list(figures))


def _all(
    modes: tuple[str, ...],
    kinds: list[type[Connector]],
    load: Load,
    database: MySQL,
    kafka: Kafka,
    properties: dict[str, str],
    folder: Path,
) -> Iterator[Figures]:
    servers = servers_below(os.getpid())
    watch = TopicWatch(kafka.bootstrap)

    def create(kind: type[Connector], mode: str, snapshot_mode: str) -> Connector:
        name = f"{kind.kind.lower()}-{mode}"
        history = history_topic(kafka.bootstrap, f"{name}-history")
        own = {**properties, "snapshot.mode": snapshot_mode}
        return kind(name, connector_properties(name, database, SCHEMA, history) | own, kafka.bootstrap)

    database.execute(f"CREATE DATABASE {SCHEMA}")
    database.execute(*load.setup(), database=SCHEMA)
    streaming = [create(kind, "stream", "no_data") for kind in kinds] if "stream" in modes else []
    try:
        for connector in streaming:
            click.echo(f"preparing {connector.kind}", err=True)
            prepare(connector, database, folder / connector.name)
        click.echo("executing the load", err=True)
        database.execute(*load.changes(), database=SCHEMA)
        for connector in streaming:
            click.echo(f"streaming with {connector.kind}", err=True)
            yield stream_run(connector, SCHEMA, load, watch, servers, folder / connector.name)
        if "snapshot" in modes:
            for kind in kinds:
                click.echo(f"snapshot with {kind.kind}", err=True)
                connector = create(kind, "snapshot", "initial")
                streaming.append(connector)
                yield snapshot_run(connector, SCHEMA, load, watch, servers, folder / connector.name)
    finally:
        for connector in streaming:
            connector.stop()
        watch.close()


def show(figures: list[Figures]) -> None:
    """Print the figures as a Markdown table."""
    head = ("run", "messages", "seconds", "messages/s", "CPU s", "µs/message", "servers' CPU s", "peak MB", "ratio")
    rows = [head, ("---", *["--:"] * (len(head) - 1))]
    base = {figure.name.split()[1]: figure.rate for figure in figures if figure.name.startswith("Debezium")}
    for figure in figures:
        reference = base.get(figure.name.split()[1])
        rows.append(
            (
                figure.name,
                f"{figure.messages}",
                f"{figure.seconds:.1f}",
                f"{figure.rate:.0f}",
                f"{figure.cpu_s:.1f}",
                f"{figure.cpu_s / figure.messages * 1e6:.1f}",
                f"{figure.servers_cpu_s:.1f}",
                f"{figure.peak_bytes / 1e6:.0f}",
                f"{figure.rate / reference:.2f}" if reference else "",
            )
        )
    for row in rows:
        click.echo("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main(prog_name="python -m tests.bench")
