"""Feeds damaged input to every reader: ``python -m tests.fuzz --help`` from the checkout's root."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from tests.fuzz.campaign import Failure, Target, minimised, search  # noqa: E402
from tests.fuzz.targets import TARGETS  # noqa: E402

_PORTION = 2000
_made: dict[str, Target] = {}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--target", "names", type=click.Choice(sorted(TARGETS)), multiple=True, help="Default: all of them.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--count", default=10_000, show_default=True, help="Inputs of each target.")
@click.option("--first", default=0, show_default=True, help="Number of the first input.")
@click.option("--minutes", type=float, help="Stop after this time; then --count is a limit.")
@click.option("--processes", default=1, show_default=True)
def main(names: tuple[str, ...], seed: int, count: int, first: int, minutes: float | None, processes: int) -> None:
    """Make inputs, run them, and print one shortened input of each kind of failure. The exit code is 1 if there is one.

    An input depends on seed, target and number only: --first N --count 1 runs input N again.
    """
    end = None if minutes is None else time.monotonic() + minutes * 60
    done, kinds = Counter[str](), Counter[tuple[str, str]]()
    began = time.monotonic()
    with Pool(processes, initializer=_quiet) as pool:
        portions = _portions(names or tuple(TARGETS), seed, first, count, end)
        for name, number, failures in pool.imap_unordered(_run, portions):
            done[name] += number
            for failure in failures:
                kind = failure.target, failure.kind
                if not kinds[kind]:
                    click.echo(f"{minimised(_target(failure.target), failure)}\n")
                kinds[kind] += 1
    seconds = time.monotonic() - began
    for name, number in done.items():
        click.echo(f"{name}: {number} inputs, {sum(n for (of, _), n in kinds.items() if of == name)} failures")
    click.echo(f"{sum(done.values())} inputs in {seconds:.0f} s, {len(kinds)} kinds of failures")
    sys.exit(bool(kinds))


def _portions(
    names: tuple[str, ...], seed: int, first: int, count: int, end: float | None
) -> Iterator[tuple[str, int, range, float | None]]:
    for start in range(first, first + count, _PORTION):
        for name in names:
            yield name, seed, range(start, min(start + _PORTION, first + count)), end


def _run(portion: tuple[str, int, range, float | None]) -> tuple[str, int, list[Failure]]:
    name, seed, numbers, end = portion
    if end is not None and time.monotonic() > end:
        return name, 0, []
    return name, len(numbers), [failure for failure in search(name, _target(name), seed, numbers) if failure]


def _target(name: str) -> Target:
    if name not in _made:
        _made[name] = TARGETS[name]()
    return _made[name]


def _quiet() -> None:
    """Warnings of the code under test say nothing here."""
    import logging

    logging.disable(logging.CRITICAL)
    os.nice(0)


if __name__ == "__main__":
    main()
