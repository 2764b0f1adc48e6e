"""Runs Debezium and rowtide in turn as one connector: ``python -m tests.interop --help``, from the checkout's root."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide_stack import Kafka, MariaDB, MySQL  # noqa: E402

from tests.interop.runs import Environment, Outcome, run_scenarios  # noqa: E402
from tests.interop.scenarios import SCENARIOS, SERVERS, Scenario, ServerKind  # noqa: E402
from tests.support.kafka.connect import KafkaConnect  # noqa: E402 - not installed as a package


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debezium", required=True, envvar="ROWTIDE_BENCH_DEBEZIUM",
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder with kafka/*.jar, debezium-mysql/*.jar and debezium-mariadb/*.jar.")  # fmt: skip
@click.option("--server", "servers", multiple=True, type=click.Choice([kind.name for kind in SERVERS]),
              help="Use only this server. Repeatable.")  # fmt: skip
@click.option("--only", "names", multiple=True, type=click.Choice([scenario.name for scenario in SCENARIOS]),
              help="Run only this scenario. Repeatable.")  # fmt: skip
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Folder in which the logs are kept; by default they are removed."
)
def main(debezium: Path, servers: tuple[str, ...], names: tuple[str, ...], keep: Path | None) -> None:
    """Run Debezium and rowtide in turn with the same offsets and schema history.

    Every scenario must produce what Debezium alone produces for the same statements: the same records in the same
    order, without gaps and duplicates, and the same schema history. The exit code is 1 if one does not.
    """
    failed = 0
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-interop-")))
        for kind in SERVERS:
            if not servers or kind.name in servers:
                failed += _show(kind, _run(kind, list(_chosen(names)), debezium.absolute(), folder / kind.name))
    sys.exit(1 if failed else 0)


def _chosen(names: tuple[str, ...]) -> Iterable[Scenario]:
    references = {scenario.reference for scenario in SCENARIOS if not names or scenario.name in names}
    return (scenario for scenario in SCENARIOS if not names or scenario.name in names or scenario.name in references)


def _run(kind: ServerKind, scenarios: list[Scenario], programs: Path, folder: Path) -> Iterable[Outcome]:
    folder.mkdir(parents=True, exist_ok=True)
    server = (MariaDB if "mariadb" in kind.name else MySQL)(dict(kind.options))
    plugins = [name for name in ("debezium-mysql", "debezium-mariadb") if (programs / name).is_dir()]
    with ExitStack() as stack:
        database, kafka = stack.enter_context(server), stack.enter_context(Kafka())
        worker = KafkaConnect("connect", programs, plugins, kafka.bootstrap)
        stack.callback(worker.stop)
        worker.start(folder)
        yield from run_scenarios(
            kind, scenarios, Environment(database, kafka, worker, folder), lambda text: click.echo(text, err=True)
        )


def _show(kind: ServerKind, outcomes: Iterable[Outcome]) -> int:
    failed, started = 0, time.monotonic()
    for outcome in outcomes:
        sides = outcome.scenario.sides + (", switched inside a transaction" if outcome.split else "")
        verdict = "differs" if outcome.problems else "equal"
        click.echo(f"{kind.name}: {outcome.scenario.name} ({sides}): {outcome.records} records, {verdict}")
        for problem in outcome.problems:
            click.echo(f"    {problem}")
        failed += bool(outcome.problems)
    click.echo(f"{kind.name}: {time.monotonic() - started:.0f} s", err=True)
    return failed


if __name__ == "__main__":
    main(prog_name="python -m tests.interop")
