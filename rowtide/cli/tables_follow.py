"""``rowtide tables --follow``: the run, its output, and its metrics."""

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import click
from pyspark.sql import SparkSession
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from rowtide.cli.metrics_server import Labels, metric, served
from rowtide.cli.tables_report import line, notes
from rowtide.cli.tables_upkeep import upkeep_line
from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.follow import MicroBatch, TableStream
from rowtide.spark_consumers.kafka.naming import table_name
from rowtide.spark_consumers.kafka.source import KafkaSource
from rowtide.spark_consumers.lag import Lag
from rowtide.spark_consumers.settings import Settings
from rowtide.spark_consumers.upkeep import ScheduledUpkeep, UpkeepOutcome

_SHOWN_TABLES = 20


def follow(
    console: Console,
    spark: SparkSession,
    source: KafkaSource,
    settings: Settings,
    topics: str | None,
    trigger: Mapping[str, Any],
    address: tuple[str, int] | None,
    *,
    as_json: bool,
    upkeep: Callable[[Callable[[UpkeepOutcome], None]], ScheduledUpkeep] | None = None,
) -> bool:
    """Follow the topics until a signal stops it, and return whether a table has failed at its last attempt.

    Args:
        console: the console for people.
        spark: the session.
        source: the cluster.
        settings: the settings of the run.
        topics: regular expression of topic names.
        trigger: arguments of Spark's trigger.
        address: the address for metrics; ``None`` for no metrics.
        as_json: print a JSON object for each table of a micro-batch, and one for the micro-batch.
        upkeep: creates the upkeep that runs alongside the stream, from the function that receives its outcomes.

    Raises:
        TablesError: Kafka does not answer at the start, or the query fails repeatedly.
        SettingsError: the address cannot be used.
    """
    stop = threading.Event()
    view = _View(console, settings.prefix, as_json=as_json)
    kept = None if upkeep is None else upkeep(view.add_upkeep)
    view.stream = stream = TableStream(spark, source, settings, topics, view.add, upkeep=kept)

    def handle(number: int, _frame: object) -> None:
        if stop.is_set():
            os.write(2, b"\nInterrupted. Run the command again: no record is lost or applied twice.\n")
            os._exit(128 + number)
        stop.set()
        os.write(2, b"\nStops after this micro-batch; a second signal ends it immediately.\n")

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)
    live = console.is_terminal and not as_json
    with (
        _served(address, view, console),
        Live(get_renderable=view.table, console=console, refresh_per_second=1) if live else nullcontext(),
    ):
        stream.run(trigger, stop)
    return bool(stream.failures)


class _View:
    """The state of the tables, for a terminal, for ``--json`` and for Prometheus."""

    stream: TableStream

    def __init__(self, console: Console, prefix: str | None, *, as_json: bool) -> None:
        self._console, self._prefix, self._as_json = console, prefix, as_json
        self._records: Counter[str] = Counter()
        self._rates: dict[str, float] = {}
        self._notes: set[str] = set()
        self._upkeep = Counter(dict.fromkeys(("done", "given_up", "failed"), 0))
        self._batches = 0
        self._last = 0.0
        self._restarts = 0

    def add(self, batch: MicroBatch) -> None:
        """Show a micro-batch."""
        if batch.error is not None:
            self._restarts += 1
            if self._as_json:
                click.echo(json.dumps({"event": "error", "error": batch.error}, ensure_ascii=False))
            else:
                self._print(f"[red]error[/red]  {escape(batch.error)}; starts again")
            return
        self._batches, self._last = batch.number, batch.seconds
        for outcome in batch.outcomes:
            topic = outcome.name.topic
            self._records[topic] += outcome.records
            self._rates[topic] = outcome.records / outcome.seconds if outcome.seconds else 0.0
            if self._as_json:
                click.echo(json.dumps({"event": "table", **outcome.as_dict()}, ensure_ascii=False))
                continue
            news = [f"[red]error[/red]  {escape(outcome.error)}"] if outcome.error else []
            news += [f"[yellow]note[/yellow]  {escape(note)}" for note in notes(outcome)]
            for text in news:
                if text not in self._notes:
                    self._notes.add(text)
                    self._print(text)
            if not outcome.error:
                self._notes = {text for text in self._notes if str(outcome.name) not in text}
                if outcome.ranges and not self._console.is_terminal:
                    self._print(line(outcome))
        if self._as_json:
            click.echo(json.dumps(self._event(batch), ensure_ascii=False))

    def add_upkeep(self, outcome: UpkeepOutcome) -> None:
        """Show the upkeep of a table."""
        self._upkeep["failed" if outcome.error else "given_up" if outcome.given_up else "done"] += 1
        if self._as_json:
            click.echo(json.dumps({"event": "upkeep", **outcome.as_dict()}, ensure_ascii=False))
        else:
            self._print(upkeep_line(outcome))

    def _event(self, batch: MicroBatch) -> dict[str, Any]:
        lags = {self._name(topic): lag for topic, lag in self._lags() if lag.records}
        return {
            "event": "batch",
            "batch": batch.number,
            "records": sum(outcome.records for outcome in batch.outcomes),
            "tables": sum(bool(outcome.ranges) for outcome in batch.outcomes),
            "seconds": round(batch.seconds, 3),
            "lag": {name: {"records": lag.records, "seconds": round(lag.seconds, 3)} for name, lag in lags.items()},
        }

    def table(self) -> Table:
        """Return the tables with the longest lags, and a summary of the others."""
        lags = sorted(self._lags(), key=lambda found: (-found[1].seconds, -found[1].records, found[0]))
        failed = self.stream.failures
        shown = Table(box=None, pad_edge=False)
        shown.add_column("table", overflow="fold")
        for name in ("records", "records/s", "lag", "seconds"):
            shown.add_column(name, justify="right")
        shown.add_column("")
        for topic, lag in lags[:_SHOWN_TABLES]:
            rate = self._rates.get(topic)
            shown.add_row(
                escape(self._name(topic)),
                f"{self._records[topic]:,}",
                f"{rate:,.0f}" if rate else "",
                f"{lag.records:,}",
                f"{lag.seconds:,.0f}",
                "[red]failed[/red]" if topic in failed else "",
            )
        more = f"{len(lags) - _SHOWN_TABLES} more tables; " if len(lags) > _SHOWN_TABLES else ""
        shown.caption = f"{more}micro-batch {self._batches}, {self._last:.1f} s"
        return shown

    def metrics(self) -> str:
        """Return the metrics in Prometheus' text format."""
        failed, lags = self.stream.failures, self._lags()
        return "".join(
            [
                *_metric("micro_batches_total", "counter", "Micro-batches since the start.", {"": self._batches}),
                *_metric("micro_batch_seconds", "gauge", "Duration of the last micro-batch.", {"": self._last}),
                *_metric("query_restarts_total", "counter", "Restarts of a query that failed.", {"": self._restarts}),
                *_metric("upkeep_total", "counter", "Tables that upkeep has taken care of.", self._upkeep, "result"),
                *_metric("records_total", "counter", "Records applied since the start.",
                         {self._name(topic): self._records[topic] for topic, _ in lags}),
                *_metric("lag_records", "gauge", "Offsets that are not in the table.",
                         {self._name(topic): lag.records for topic, lag in lags}),
                *_metric("lag_seconds", "gauge", "Time since the oldest of them was seen in Kafka.",
                         {self._name(topic): lag.seconds for topic, lag in lags}),
                *_metric("failed", "gauge", "1 if the table could not be updated at the last attempt.",
                         {self._name(topic): int(topic in failed) for topic, _ in lags}),
            ]
        )  # fmt: skip

    def health(self) -> tuple[int, str]:
        """Return the status code and the JSON text of /health: 503 while a table is failing."""
        failed = {self._name(topic): text for topic, text in self.stream.failures.items()}
        found = {"status": "DOWN" if failed else "UP", "failed": failed}
        return 503 if failed else 200, json.dumps(found, ensure_ascii=False)

    def _lags(self) -> list[tuple[str, Lag]]:
        return [(topic, self.stream.lags.of(topic)) for topic in self.stream.lags.topics()]

    def _name(self, topic: str) -> str:
        return str(table_name(topic, self._prefix))

    def _print(self, text: str) -> None:
        self._console.print(f"{time.strftime('%H:%M:%S')}  {text}", soft_wrap=True, highlight=False)


def _metric(name: str, kind: str, text: str, values: Mapping[str, float], label: str = "table") -> Iterator[str]:
    """Return the lines of a metric, with its values by table or another label, or one value under the empty name."""
    by_labels: dict[Labels, float] = {((label, one),) if one else (): value for one, value in values.items()}
    return metric(f"rowtide_tables_{name}", kind, text, by_labels)


@contextmanager
def _served(address: tuple[str, int] | None, view: _View, console: Console) -> Iterator[None]:
    """Serve /metrics and /health while the context is open."""
    if address is None:
        yield
        return
    with ExitStack() as stack:
        try:
            url = stack.enter_context(served(address, view.metrics, view.health))
        except OSError as error:
            raise SettingsError(
                f"--web-bind {address[0]} --web-port {address[1]}: {error.strerror or error}"
            ) from error
        console.print(f"metrics: {url}", highlight=False)
        yield
