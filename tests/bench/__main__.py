"""The benchmark of rowtide, optionally beside Debezium: ``python -m tests.bench --help``, from the checkout's root."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MySQL, Registry  # noqa: E402

from tests.bench.connectors import DEFAULT, TUNED, Connector, Debezium, Rowtide  # noqa: E402
from tests.bench.load import AnyLoad  # noqa: E402
from tests.bench.measure import Figures, TopicWatch, medians, servers_below  # noqa: E402
from tests.bench.runs import prepare, snapshot_run, stream_run  # noqa: E402
from tests.bench.stages import LOADS  # noqa: E402
from tests.support.connector_properties import JSON_CONVERTER, connector_properties, history_topic  # noqa: E402 - not installed

SCHEMA = "bench"
_UNMEASURED = ", not measured"
_SHOWN_S = 0.01
"""Threads with less CPU time are not shown."""


class FastKafka(Kafka):
    """The broker of the stack with all Java compilers, as in production; it starts more slowly."""

    def _prepare(self, folder: Path) -> list[str]:
        command = [part for part in super()._prepare(folder) if not part.startswith("-XX:")]
        return ["-Xmx1g" if part.startswith("-Xmx") else part for part in command]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("modes", nargs=-1, type=click.Choice(["stream", "snapshot"]))
@click.option("--load", "load_name", type=click.Choice(sorted(LOADS)), show_default=True, default="repeating",
              help="Repeating or unique values, 61 columns, rows of 20 KB, or 1000 tables.")  # fmt: skip
@click.option("--rows", default=200, show_default=True,
              help="Thousands of rows: of each table with repeating values, else of all tables together.")  # fmt: skip
@click.option("--debezium", envvar="ROWTIDE_BENCH_DEBEZIUM", type=click.Path(exists=True, file_okay=False),
              help="Folder with kafka/*.jar and debezium-mysql/*.jar. Without it, only rowtide runs.")  # fmt: skip
@click.option("--schemas/--no-schemas", default=True, show_default=True, help="JSON with or without schemas.")
@click.option("--format", "form", type=click.Choice(["json", "avro", "protobuf"]), default="json", show_default=True,
              help="The converter; Debezium needs a folder confluent/*.jar with Confluent's.")  # fmt: skip
@click.option("--tuned/--defaults", default=True, show_default=True, help="lz4 and large batches, or the defaults.")
@click.option("--set", "extra", multiple=True, metavar="NAME=VALUE", help="A property of both connectors. Repeatable.")
@click.option("--runs", default=1, show_default=True, help="Measured runs of each connector. The median is shown.")
@click.option("--warm-up", is_flag=True, help="One more run before, with the same messages, which is not measured.")
@click.option("--threads", is_flag=True, help="Also show the CPU time of each of rowtide's threads.")
@click.option("--keep", type=click.Path(), help="Folder in which the logs are kept; by default they are removed.")
def main(
    modes: tuple[str, ...],
    load_name: str,
    rows: int,
    debezium: str | None,
    *,
    schemas: bool,
    form: str,
    tuned: bool,
    extra: tuple[str, ...],
    runs: int,
    warm_up: bool,
    threads: bool,
    keep: str | None,
) -> None:
    """Measure the speed of streaming and of snapshots (both if no mode is given).

    Starts its own MySQL and Kafka. The load is executed while the connectors are stopped. Each connector then runs
    alone, and is timed from the first to the last record that it writes. Debezium's worker runs until the end, so that
    its code remains compiled.
    """
    properties = dict(TUNED if tuned else DEFAULT) | dict(part.split("=", 1) for part in extra)
    if not schemas:
        for side in ("key", "value"):
            properties[f"{side}.converter"] = JSON_CONVERTER
            properties[f"{side}.converter.schemas.enable"] = "false"
    if threads:
        Rowtide.module = "tests.bench.named_threads"
    Debezium.programs = Path(debezium or "").absolute()
    kinds: list[type[Connector]] = [Rowtide, *([Debezium] if debezium else [])]
    with ExitStack() as stack:
        folder = Path(keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-bench-")))
        database = stack.enter_context(MySQL({"innodb_buffer_pool_size": "256M"}))
        kafka = stack.enter_context(FastKafka())
        if form != "json":
            properties |= converters(form, stack.enter_context(Registry()))
        bench = Bench(LOADS[load_name](rows), database, kafka, properties, folder, range(-warm_up, runs))
        figures = list(bench.figures(kinds, modes or ("stream", "snapshot")))
    show(figures)
    if threads:
        show_threads(figures)


def converters(form: str, registry: Registry) -> dict[str, str]:
    """The converters of a format with a schema registry."""
    kind = form.capitalize()
    sides = [f"{side}.converter" for side in ("key", "value")]
    return {
        **dict.fromkeys(sides, f"io.confluent.connect.{form}.{kind}Converter"),
        **{f"{side}.schema.registry.url": registry.url for side in sides},
        "schema.name.adjustment.mode": "avro",
    }


class Bench:
    """The runs of all connectors, which use the same servers one after the other.

    Args:
        load: the load.
        database: the database.
        kafka: the broker.
        properties: of both connectors.
        folder: for the logs.
        rounds: the numbers of the runs; negative ones are not measured.
    """

    def __init__(
        self, load: AnyLoad, database: MySQL, kafka: Kafka, properties: dict[str, str], folder: Path, rounds: range
    ) -> None:
        self._load = load
        self._database = database
        self._kafka = kafka
        self._properties = properties
        self._folder = folder
        self._rounds = rounds
        self._servers = servers_below(os.getpid())
        self._watch = TopicWatch(kafka.bootstrap)
        self._connectors: list[Connector] = []

    def figures(self, kinds: list[type[Connector]], modes: Sequence[str]) -> Iterator[Figures]:
        """Yield the figures of each measured run."""
        self._database.execute(f"CREATE DATABASE {SCHEMA}")
        self._database.execute(*self._load.setup(), database=SCHEMA)
        streaming = [self._create(kind, f"{kind.kind.lower()}-stream") for kind in kinds]
        self._connectors = list(streaming)
        try:
            if "stream" in modes:
                yield from self._streams(streaming)
            else:
                self._database.execute(*self._load.changes(), database=SCHEMA)
            if "snapshot" in modes:
                for connector in streaming:
                    yield from self._snapshots(connector)
        finally:
            for connector in self._connectors:
                connector.stop()
            self._watch.close()

    def _create(self, kind: type[Connector], name: str) -> Connector:
        return kind(name, self._properties_of(name) | {"snapshot.mode": "no_data"}, self._kafka.bootstrap)

    def _properties_of(self, name: str) -> dict[str, str]:
        history = history_topic(self._kafka.bootstrap, f"{name}-history")
        return connector_properties(name, self._database, SCHEMA, history) | self._properties

    def _streams(self, connectors: list[Connector]) -> Iterator[Figures]:
        for connector in connectors:
            click.echo(f"preparing {connector.kind}", err=True)
            prepare(connector, self._database, self._folder / connector.name)
        for number in self._rounds:
            click.echo("executing the load", err=True)
            if number != self._rounds.start:
                self._database.execute(*self._load.again(), database=SCHEMA)
            self._database.execute(*self._load.changes(), database=SCHEMA)
            for connector in connectors:
                click.echo(f"streaming with {connector.kind}{_UNMEASURED if number < 0 else ''}", err=True)
                folder = self._folder / connector.name
                figures = stream_run(connector, SCHEMA, self._load, self._watch, self._servers, folder)
                if number >= 0:
                    yield figures

    def _snapshots(self, connector: Connector) -> Iterator[Figures]:
        for number in self._rounds:
            click.echo(f"snapshot with {connector.kind}{_UNMEASURED if number < 0 else ''}", err=True)
            name = f"{connector.kind.lower()}-snapshot-{number - self._rounds.start}"
            connector = connector.successor(name, self._properties_of(name) | {"snapshot.mode": "initial"})
            self._connectors.append(connector)
            figures = snapshot_run(connector, SCHEMA, self._load, self._watch, self._servers, self._folder / name)
            if number >= 0:
                yield figures


def show(figures: list[Figures]) -> None:
    """Print the median run of each connector and mode as a Markdown table."""
    head = ("run", "messages", "seconds", "messages/s", "ratio", "CPU s", "µs/message", "servers' CPU s", "peak MB")
    rows = [head, ("---", *["--:"] * (len(head) - 1))]
    found = medians(figures)
    base = {figure.name.split()[1]: figure.rate for figure in found if figure.name.startswith("Debezium")}
    for figure in found:
        reference = base.get(figure.name.split()[1])
        rows.append(
            (
                figure.name,
                f"{figure.messages}",
                f"{figure.seconds:.1f}",
                f"{figure.rate:.0f}",
                f"{figure.rate / reference:.2f}" if reference else "",
                f"{figure.cpu_s:.1f}",
                f"{figure.cpu_s / figure.messages * 1e6:.1f}",
                f"{figure.servers_cpu_s:.1f}",
                f"{figure.peak_bytes / 1e6:.0f}",
            )
        )
    for row in rows:
        click.echo("| " + " | ".join(row) + " |")


def show_threads(figures: list[Figures]) -> None:
    """Print the CPU time of rowtide's threads in the median run of each mode, the largest first."""
    click.echo("\n| run | thread | CPU s | µs/message |\n| --- | --- | --: | --: |")
    for figure in medians(figures):
        ended = figure.cpu_s - sum(figure.threads.values())
        for name, seconds in sorted({**figure.threads, "ended": ended}.items(), key=lambda one: -one[1]):
            if figure.threads and seconds >= _SHOWN_S:
                click.echo(f"| {figure.name} | {name} | {seconds:.2f} | {seconds / figure.messages * 1e6:.2f} |")


if __name__ == "__main__":
    main(prog_name="python -m tests.bench")
