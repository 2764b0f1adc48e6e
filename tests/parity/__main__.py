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
sys.path[:0] = [str(ROOT / "docker"), str(ROOT / "tests/support")]

from kafka_connect import KafkaConnect  # noqa: E402 - it is not installed
from rowtide_stack import Kafka, MariaDB, MySQL  # noqa: E402

from tests.parity.compare import compare  # noqa: E402
from tests.parity.report import column_of, keep, missed, signature, told  # noqa: E402
from tests.parity.rounds import Played, play  # noqa: E402
from tests.parity.rules import LOST, is_lost, rule_for, stop_for  # noqa: E402

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Java's options for many connectors that each do little."""
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
    """Run Debezium and rowtide over the same random statements, and tell where their records differ.

    Starts a database, Kafka and Kafka Connect of its own. Round after round has the next seed: the same seed makes the
    same tables, statements and configuration.
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
            played = play(seed + number, server, kafka, worker, folder, given, statements)
            news = judge(played, seen, totals)
            number += 1
            totals["rounds"] += 1
            taken = time.monotonic() - began
            messages = sum(map(len, played.records[0].values()))
            totals["messages"] += messages
            click.echo(
                f"seed {played.seed}: {messages} messages in {taken:.0f} s, {len(news)} differences {played.seconds}"
            )
            for line in news:
                click.echo(line.encode(errors="backslashreplace"))
            if news:
                click.echo(
                    f"  repeat    --flavor {flavor} --seed {played.seed} --rounds 1 {json.dumps(played.options)}"
                )
                if kept is not None:
                    keep(played, kept / f"{flavor}-{played.seed}")
    click.echo(f"{dict(totals)}")
    for text, count in seen.most_common():
        click.echo(f"{count:7} {text}")


def judge(played: Played, seen: Counter[str], totals: Counter[str]) -> list[str]:
    """What is to be told of a round: the first difference of each kind that no rule explains."""
    news = []
    debezium, rowtide = played.stopped
    if debezium is not None:
        reason = stop_for(debezium, played.hashed)
        seen[f"stop: {reason or 'unknown'}"] += 1
        if reason is None:
            news.append(f"Debezium stopped:\n{_causes(debezium)}\n{missed(played)}")
    if rowtide is not None:
        news.append(f"rowtide stopped:\n{rowtide[-3000:]}")
    topics: set[str] = set()
    wanted, found = played.records
    told_more = {t: [m for m in messages if is_lost(m, played.options)] for t, messages in found.items()}
    if lost := sum(map(len, told_more.values())):
        seen[f"known: {LOST}"] += lost
        totals["known"] += lost
        found = {t: [m for m in messages if m not in told_more[t]] for t, messages in found.items()}
    for difference in compare(wanted, found, more=debezium is not None):
        _, kind = column_of(difference, played)
        rule = rule_for(difference, kind)
        text = f"known: {rule.reason}" if rule else signature(difference, played)
        seen[text] += 1
        totals["known" if rule else "differences"] += 1
        if rule is None and (seen[text] == 1 or difference.topic not in topics):
            topics.add(difference.topic)
            news.append(told(difference, played))
    return news[:30]


def _causes(trace: str) -> str:
    lines = [line for line in trace.splitlines() if not line.startswith("\t")]
    return "\n".join(line[:1500] for line in lines[:8])


if __name__ == "__main__":
    main(prog_name="python -m tests.parity")
