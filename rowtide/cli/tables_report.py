"""The report of ``rowtide tables`` on a terminal."""

from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from rowtide.spark_consumers.kafka.naming import TableName
from rowtide.spark_consumers.outcome import Outcome

_OPERATIONS = {
    "r": "snapshot", "c": "create", "u": "update", "d": "delete", "t": "truncate or drop", "tombstone": "tombstone",
}  # fmt: skip


class Bars:
    """A bar for each table that is being updated, on a terminal; nothing elsewhere.

    A table is updated in batches (``--max-records``), after each of which its bar moves.

    Args:
        console: the console to draw on.
    """

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[shown]}"),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def show(self, name: TableName, done: int, records: int) -> None:
        """Draw the progress of a table; any thread may call this."""
        task = self._tasks.get(str(name))
        if task is None:
            task = self._tasks[str(name)] = self._progress.add_task(escape(str(name)), total=None, shown="")
        # Before the first batch is applied, nothing is known about the speed.
        shown = f"{done:,} of {records:,} records" if done else f"{records:,} records"
        self._progress.update(task, completed=done, total=records if done else None, shown=shown)

    def remove(self, name: TableName) -> None:
        """Remove the bar of a table that is done."""
        task = self._tasks.pop(str(name), None)
        if task is not None:
            self._progress.remove_task(task)


def line(outcome: Outcome) -> str:
    """Return the line that is printed when a table is done."""
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
        for note in notes(outcome):
            console.print(f"[yellow]note[/yellow]  {escape(note)}", soft_wrap=True, highlight=False)
    for outcome in outcomes:
        if outcome.error:
            console.print(f"[red]error[/red]  {escape(outcome.error)}", soft_wrap=True, highlight=False)


def notes(outcome: Outcome) -> list[str]:
    """Return the notes for users on an update: new columns, and possible problems."""
    return [*_columns(outcome), *outcome.notes, *_unmatched(outcome), *_reread(outcome)]


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
    """Return the name of the table, with brackets escaped: rich would read them as markup."""
    return escape(str(outcome.name))


def _operations(outcome: Outcome) -> str:
    return ", ".join(f"{outcome.read[op]:,} {name}" for op, name in _OPERATIONS.items() if outcome.read[op])


def _columns(outcome: Outcome) -> list[str]:
    added = [f"{outcome.name}: new column {name} {kind}" for name, kind in outcome.added]
    added += [f"{outcome.name}: column {old} was renamed to {new}" for old, new in outcome.renamed]
    added += [f"{outcome.name}: column {name} was dropped" for name in outcome.dropped]
    return added + [f"{outcome.name}: column {name} is now {new}, was {old}" for name, old, new in outcome.widened]


def _unmatched(outcome: Outcome) -> list[str]:
    if not outcome.unmatched:
        return []
    note = (
        f"{outcome.name} has no key, and {outcome.unmatched} changes match no row by their before image: rows from "
        f"before the first record of the topic are missing, snapshot and stream format a value differently, or the "
        f"topic has several partitions, and a change was read before the one that wrote its row"
    )
    return [note]


def _reread(outcome: Outcome) -> list[str]:
    if not outcome.reread:
        return []
    note = (
        f"{outcome.name} has no key, and {outcome.reread:,} snapshot records (op r) were added to its existing rows. "
        "If a signal read the table again, its rows are now in it twice; see 'Tables without key' in docs/spark.md"
    )
    return [note]
