"""The report of ``rowtide tables`` on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rowtide.spark_consumers.outcome import Outcome

_OPERATIONS = {"r": "snapshot", "c": "create", "u": "update", "d": "delete", "t": "truncate", "tombstone": "tombstone"}


def line(outcome: Outcome) -> str:
    """The line that is printed when a table is done."""
    if outcome.error:
        return f"[red]failed[/red]  {_name(outcome)}"
    if not outcome.ranges:
        return f"no new records  {_name(outcome)}"
    return f"[green]done[/green]  {_name(outcome)}: {outcome.records:,} records in {outcome.seconds:.1f} s"


def print_report(console: Console, outcomes: Sequence[Outcome]) -> None:
    """Print the counts of all tables that had new records, then notes, then errors."""
    busy = [outcome for outcome in outcomes if outcome.ranges]
    if busy:
        console.print(_table(busy))
    quiet = sum(not outcome.ranges and not outcome.error for outcome in outcomes)
    if quiet:
        console.print(f"{quiet} table{'s' if quiet > 1 else ''} had no new records.")
    for outcome in outcomes:
        for note in [*_columns(outcome), *outcome.notes, *_unmatched(outcome)]:
            console.print(f"[yellow]note[/yellow]  {escape(note)}", soft_wrap=True, highlight=False)
    for outcome in outcomes:
        if outcome.error:
            console.print(f"[red]error[/red]  {escape(outcome.error)}", soft_wrap=True, highlight=False)


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("table", overflow="fold")
    for name in ("records", "inserted", "updated", "deleted", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("operations")
    for outcome in outcomes:
        rows = outcome.rows
        numbers = (f"{n:,}" for n in (outcome.records, rows.inserted, rows.updated, rows.deleted))
        table.add_row(_name(outcome), *numbers, f"{outcome.seconds:.1f}", _operations(outcome))
    return table


def _name(outcome: Outcome) -> str:
    """The name of the table, with brackets escaped: rich would read them as markup."""
    return escape(str(outcome.name))


def _operations(outcome: Outcome) -> str:
    return ", ".join(f"{outcome.read[op]:,} {name}" for op, name in _OPERATIONS.items() if outcome.read[op])


def _columns(outcome: Outcome) -> list[str]:
    added = [f"{outcome.name}: new column {name} {kind}" for name, kind in outcome.added]
    return added + [f"{outcome.name}: column {name} is now {new}, was {old}" for name, old, new in outcome.widened]


def _unmatched(outcome: Outcome) -> list[str]:
    if not outcome.unmatched:
        return []
    note = (
        f"{outcome.name} has no key, and {outcome.unmatched} changes match no row by their before image: rows from "
        f"before the first record of the topic are missing, or snapshot and stream format a value differently"
    )
    return [note]
