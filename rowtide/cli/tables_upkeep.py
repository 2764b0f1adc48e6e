"""``rowtide tables --optimize``, ``--vacuum`` and ``--expire``: their options, the run on demand, and the report."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from rowtide.spark_consumers.errors import SettingsError

if TYPE_CHECKING:
    from rowtide.spark_consumers.upkeep import Upkeep, UpkeepOutcome, UpkeepSchedule

_STEPS = ("optimize", "vacuum", "expire")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(\d+) *(s|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)")
_LONGEST = timedelta(days=36_500)
_BATCHES = re.compile(r"(\d+) *batch(es)?")


def is_only_upkeep(options: Mapping[str, Any], restart: Collection[str]) -> bool:
    """Return whether the run does only upkeep of the tables, and applies no records.

    Raises:
        SettingsError: options contradict each other.
    """
    wanted = any(options[step] not in (None, False) for step in _STEPS)
    if options["upkeep_every"] is not None and not (wanted and options["follow"]):
        raise SettingsError("--upkeep-every needs --follow, and --optimize, --vacuum or --expire")
    only = wanted and not (options["follow"] or options["available_now"])
    if only and restart:
        raise SettingsError(
            "--restart builds a table again, and --optimize, --vacuum and --expire apply no records: run the command "
            "twice"
        )
    return only


def upkeep_of(options: Mapping[str, Any]) -> "tuple[Upkeep, UpkeepSchedule]":
    """Return the upkeep that the options demand, and its schedule.

    Raises:
        SettingsError: an option is wrong.
        UnsafeRetentionError: an age is too short.
    """
    from rowtide.spark_consumers.upkeep import Upkeep, UpkeepSchedule  # noqa: PLC0415 - imports PySpark

    ages = {
        step: duration(f"--{step}", options[step], "7d or 168h")
        for step in ("vacuum", "expire")
        if options[step] is not None
    }
    upkeep = Upkeep(optimize=options["optimize"], **ages)
    upkeep.require_safe(options["table_format"])
    text = options["upkeep_every"]
    if text is None:
        return upkeep, UpkeepSchedule()
    if found := _BATCHES.fullmatch(text.strip()):
        return upkeep, UpkeepSchedule(batches=max(int(found[1]), 1))
    every = duration("--upkeep-every", text, "1h or '100 batches'")
    return upkeep, UpkeepSchedule(batches=None, seconds=every.total_seconds())


def duration(option: str, text: str, example: str) -> timedelta:
    """Return a duration such as ``7d`` or ``12 hours``.

    Raises:
        SettingsError: it is not a duration.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise SettingsError(f"{option} {text}: expected a duration with its unit, such as {example}")
    try:
        given = timedelta(**{_UNITS[found[2][0]]: int(found[1])})
    except OverflowError:
        given = timedelta.max
    if given > _LONGEST:
        raise SettingsError(f"{option} {text}: the duration is longer than a hundred years; give at most 36500d")
    return given


def keep(console: Console, outcomes: "Iterable[UpkeepOutcome]", *, as_json: bool) -> bool:
    """Show the progress of upkeep on demand, and return whether it failed for a table."""
    failed = False
    for outcome in outcomes:
        failed |= outcome.error is not None
        if as_json:
            click.echo(json.dumps({"event": "upkeep", **outcome.as_dict()}, ensure_ascii=False))
        else:
            console.print(upkeep_line(outcome), soft_wrap=True, highlight=False)
    return failed


def upkeep_line(outcome: "UpkeepOutcome") -> str:
    """Return the line that is printed when upkeep of a table has ended."""
    if outcome.error:
        return f"[red]error[/red]  upkeep: {escape(outcome.error)}"
    parts = []
    if (merged := outcome.merged) is not None:
        parts.append(
            f"{merged.before:,} files became {merged.after:,} ({merged.written:,} bytes)"
            if merged.before
            else "no files to merge"
        )
    if (expired := outcome.expired) is not None:
        parts.append(
            f"{expired.versions:,} versions expired ({expired.files:,} files, {expired.bytes:,} bytes)"
            if expired.versions
            else "no versions expired"
        )
    if (vacuumed := outcome.vacuumed) is not None:
        parts.append(f"{vacuumed.files:,} unneeded files removed ({vacuumed.bytes:,} bytes)")
    if outcome.given_up:
        parts.append(f"[yellow]given up[/yellow]: {escape(outcome.given_up)}")
    return f"[green]upkeep[/green]  {escape(str(outcome.name))}: {', '.join(parts)} in {outcome.seconds:.1f} s"
