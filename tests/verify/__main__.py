"""Campaigns against ``rowtide verify``: ``python -m tests.verify --help`` from the checkout's root."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))  # neither is installed

from rowtide_stack import Kafka, MariaDB, MySQL  # noqa: E402

from tests.support.kafka.topic_tools import Topics  # noqa: E402
from tests.verify.damages import campaign  # noqa: E402
from tests.verify.random_values import compared  # noqa: E402

_SERVERS = {"mysql": MySQL, "mariadb": MariaDB}
_ROUNDS = 20
"""The rounds with the same tables: their topics grow with each."""
_VALUES = 1_000_000
"""The values of a table."""

_server = click.option("--server", type=click.Choice([*_SERVERS, "both"]), default="both", show_default=True)
_seed = click.option("--seed", type=int, help="By default the current time.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Show that rowtide verify finds every damage, and accuses no healthy table. Starts its own servers."""


@main.command()
@_server
@_seed
@click.option("--rounds", default=170, show_default=True, help="Rounds with each server, of one to twelve damages.")
def damages(server: str, seed: int | None, rounds: int) -> None:
    """Damage the source and the topics at random under load, repair them, and print what was found.

    The exit code is 1 if a damage was not found or not repaired, or if anything else was reported.
    """
    problems, chosen = list[str](), int(time.time()) if seed is None else seed
    for name in _chosen(server):
        number = 0
        with _started(name) as (database_server, kafka):
            for first in range(0, rounds, _ROUNDS):
                click.echo(f"{name}, seed {chosen}, rounds from {first}")
                chance = random.Random(f"{name} {chosen} {first}")
                with database_server.database() as database, tempfile.TemporaryDirectory() as folder:
                    topics = Topics(kafka.bootstrap)
                    found = campaign(database, topics, Path(folder), min(_ROUNDS, rounds - first), chance, _indented)
                number += found[0]
                problems += found[1]
        click.echo(f"{name}: {number} damages in {rounds} rounds")
    _end(problems)


@main.command()
@_server
@_seed
@click.option("--count", default=10_000_000, show_default=True, help="Values of all servers and forms together.")
def values(server: str, seed: int | None, count: int) -> None:
    """Compare random values of every type, in both forms of values, and print those that are reported.

    The exit code is 1 if a value was reported as different, although nothing was damaged.
    """
    problems, first = list[str](), int(time.time()) if seed is None else seed
    runs = [(name, form) for name in _chosen(server) for form in ("exact", "debezium")]
    for name in _chosen(server):
        with _started(name) as (database_server, kafka):
            for form in ("exact", "debezium"):
                left, number = count // len(runs), 0
                while left > 0:
                    with database_server.database() as database, tempfile.TemporaryDirectory() as folder:
                        amount = min(left, _VALUES)
                        done, found = compared(database, kafka.bootstrap, Path(folder), amount, first + number, form)
                    click.echo(f"{name}, {form}, seed {first + number}: {done:,} values, {len(found)} problems")
                    problems += map(str, found)
                    left, number = left - amount, number + 1
    _end(problems)


def _chosen(server: str) -> list[str]:
    return [*_SERVERS] if server == "both" else [server]


@contextmanager
def _started(name: str) -> Iterator[tuple[MySQL | MariaDB, Kafka]]:
    with _SERVERS[name]() as server, Kafka() as kafka:
        yield server, kafka


def _indented(line: str) -> None:
    click.echo(f"  {line}")


def _end(problems: list[str]) -> None:
    for problem in problems:
        click.echo(f"PROBLEM {problem}")
    click.echo(f"{len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
