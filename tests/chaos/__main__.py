"""Random faults under load: ``python -m tests.chaos --help`` from the checkout's root."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))  # neither is installed

from tests.chaos.campaign import SERVERS, Round  # noqa: E402
from tests.chaos.scenario import Scenario  # noqa: E402


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--flavor", type=click.Choice([*sorted(SERVERS), "both"]), default="both", show_default=True)
@click.option("--seed", type=int, help="Seed of the first round; by default the current time.")
@click.option("--minutes", type=float, default=10, show_default=True, help="How long to start new rounds.")
@click.option("--faults", default=20, show_default=True, help="Faults in a round.")
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Folder for logs, records and binlogs of rounds with problems."
)
def main(flavor: str, seed: int | None, minutes: float, faults: int, keep: Path | None) -> None:
    """Write continuously while worker, network, database and Kafka fail, then account for every change.

    The seed of a round determines its scenario and its faults; the next round has the next seed. The exit code is 1 if
    a record was lost, out of order, or repeated with exactly-once delivery, or if a worker failed with a traceback.
    """
    first = int(time.time()) if seed is None else seed
    end = time.monotonic() + minutes * 60
    number, failed, records, total = 0, 0, 0, Counter[str]()
    while time.monotonic() < end:
        chosen = sorted(SERVERS)[(first + number) // 2 % 2] if flavor == "both" else flavor
        scenario = Scenario.of(chosen, first + number)
        click.echo(f"seed {scenario.seed}: {scenario}")
        outcome = Round(scenario, faults, keep).run()
        click.echo(f"  {outcome.records} records, {outcome.repeated} repeated; {_counts(outcome.faults)}")
        for reason, count in Counter(outcome.ends).items():
            click.echo(f"  ended by itself, {count} times: {reason}")
        for problem in outcome.problems[:20]:
            click.echo(f"  PROBLEM {problem}")
        if outcome.problems:
            failed += 1
            command = f"python -m tests.chaos --flavor {chosen} --seed {scenario.seed} --faults {faults}"
            click.echo(f"  the same faults again: {command} --minutes 0.1 --keep kept")
        total += outcome.faults
        records += outcome.records
        number += 1
    click.echo(f"{number} rounds, {sum(total.values())} faults, {records} records, {failed} rounds with problems")
    click.echo(_counts(total))
    sys.exit(bool(failed))


def _counts(faults: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(faults.items()))


if __name__ == "__main__":
    main()
