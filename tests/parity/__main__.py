"""Compares rowtide with the real Debezium: ``python -m tests.parity --help``, from the root of the checkout."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MariaDB, MySQL  # noqa: E402

from tests.parity.compare import compare  # noqa: E402
from tests.parity.report import column_of, describe, keep, missed, signature  # noqa: E402
from tests.parity.rounds import RoundResult, run_round  # noqa: E402
from tests.parity.rules import LOST, is_lost, rule_for, stop_for  # noqa: E402
from tests.support.kafka.connect import KafkaConnect  # noqa: E402 - it is not installed

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Java options for many connectors with little load each."""
SERVERS = {"mysql": MySQL, "mariadb": MariaDB}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debezium", envvar="ROWTIDE_PARITY_DEBEZIUM", required=True,
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder with kafka/*.jar, debezium-mysql/*.jar and debezium-mariadb/*.jar.")  # fmt: skip
@click.option("--flavor", type=click.Choice(sorted(SERVERS)), default="mysql", show_default=True)
@click.option("--seed", type=int, help="Of the first round; by default it is the time.")
@click.option("--rounds", type=int, help="How many; by default as many as there is time for.")
@click.option("--minutes", type=float, default=10, show_default=True, help="For how long new rounds are begun.")
@click.option("--statements", default=250, show_default=True, help="Statements (or groups of them) of a round.")
@click.option("--options", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A JSON file with connector properties for every round, instead of random ones.")  # fmt: skip
@click.option("--keep", "kept", type=click.Path(path_type=Path), help="Where rounds with differences are kept.")
def main(
    debezium: Path,
    flavor: str,
    seed: int | None,
    rounds: int | None,
    minutes: float,
    statements: int,
    options: Path | None,
    kept: Path | None,
) -> None:
    """Run Debezium and rowtide over the same random statements, and report the differences between their records.

    Starts its own database, Kafka and Kafka Connect. Each round uses the next seed: equal seeds produce equal tables,
    statements and configurations.
    """
    seed = int(time.time()) if seed is None else seed
    given = None if options is None else json.loads(options.read_text())
    end = time.monotonic() + minutes * 60
    seen: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-parity-")))
        server = stack.enter_context(SERVERS[flavor]({"max_connections": 200}))
        kafka = stack.enter_context(Kafka())
        worker = KafkaConnect("parity", debezium.absolute(), [f"debezium-{flavor}"], kafka.bootstrap, QUICK)
        stack.callback(worker.stop)
        worker.start(folder)
        number = 0
        while time.monotonic() < end and number != rounds:
            began = time.monotonic()
            result = run_round(seed + number, server, kafka, worker, folder, given, statements)
            news = judge(result, seen, totals)
            number += 1
            totals["rounds"] += 1
            taken = time.monotonic() - began
            messages = sum(map(len, result.records[0].values()))
            totals["messages"] += messages
            click.echo(
                f"seed {result.seed}: {messages} messages in {taken:.0f} s, {len(news)} differences {result.seconds}"
            )
            for line in news:
                click.echo(line.encode(errors="backslashreplace"))
            if news:
                click.echo(
                    f"  repeat    --flavor {flavor} --seed {result.seed} --rounds 1 {json.dumps(result.options)}"
                )
                if kept is not None:
                    keep(result, kept / f"{flavor}-{result.seed}")
    click.echo(f"{dict(totals)}")
    for text, count in seen.most_common():
        click.echo(f"{count:7} {text}")


def judge(result: RoundResult, seen: Counter[str], totals: Counter[str]) -> list[str]:
    """The report of a round: the first difference of each kind that no rule explains."""
    news = []
    debezium, rowtide = result.stopped
    if debezium is not None:
        reason = stop_for(debezium, result.hashed)
        seen[f"stop: {reason or 'unknown'}"] += 1
        if reason is None:
            news.append(f"Debezium stopped:\n{_causes(debezium)}\n{missed(result)}")
    if rowtide is not None:
        news.append(f"rowtide stopped:\n{rowtide[-3000:]}")
    topics: set[str] = set()
    expected, found = result.records
    lost = {topic: [m for m in messages if is_lost(m, result.options)] for topic, messages in found.items()}
    if number := sum(map(len, lost.values())):
        seen[f"known: {LOST}"] += number
        totals["known"] += number
        found = {topic: [m for m in messages if m not in lost[topic]] for topic, messages in found.items()}
    for difference in compare(expected, found, more=debezium is not None):
        _, kind = column_of(difference, result)
        rule = rule_for(difference, kind)
        text = f"known: {rule.reason}" if rule else signature(difference, result)
        seen[text] += 1
        totals["known" if rule else "differences"] += 1
        if rule is None and (seen[text] == 1 or difference.topic not in topics):
            topics.add(difference.topic)
            news.append(describe(difference, result))
    return news[:30]


def _causes(trace: str) -> str:
    lines = [line for line in trace.splitlines() if not line.startswith("\t")]
    return "\n".join(line[:1500] for line in lines[:8])


if __name__ == "__main__":
    main(prog_name="python -m tests.parity")
