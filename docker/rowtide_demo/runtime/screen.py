"""The output of the demo: a line for each step, with a progress bar on a terminal, and tables of results."""

import contextlib
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["Screen", "Step"]

_INTERVAL = 15.0  # seconds between progress lines when the output is not a terminal


class Step:
    """A step that is in progress.

    Attributes:
        result: the text of the line that is printed when the step is done.
    """

    def __init__(self, console: Console, title: str, progress: Progress | None) -> None:
        self.result = ""
        self.started = time.monotonic()
        self._console = console
        self._title = title
        self._progress = progress
        self._task = progress.add_task(title, total=None, note="") if progress else None
        self._last_printed = self.started

    @property
    def seconds(self) -> float:
        """Seconds since the step started."""
        return time.monotonic() - self.started

    def update(self, note: str, done: float | None = None, total: float | None = None) -> None:
        """Show the progress: a text, and optionally the share that is done."""
        if self._progress and self._task is not None:
            self._progress.update(self._task, note=note, completed=done, total=total)
        elif time.monotonic() - self._last_printed >= _INTERVAL:
            self._last_printed = time.monotonic()
            self._console.print(f"     {self._title:<9} ... {note}", highlight=False, soft_wrap=True)


class Screen:
    """Writes the output of the demo.

    Args:
        console: the rich console.
        steps: the total number of steps.
    """

    def __init__(self, console: Console, steps: int) -> None:
        self.console = console
        self._steps = steps
        self._number = 0

    def print(self, text: str = "", style: str | None = None) -> None:
        """Print a paragraph."""
        self.console.print(text, style=style, highlight=False, soft_wrap=True, markup=False)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show a step while the block runs; the block sets `Step.result`."""
        self._number += 1
        count = f"{self._number}/{self._steps}"
        progress = self._bar(count) if self.console.is_terminal else None
        with progress or contextlib.nullcontext():
            step = Step(self.console, title, progress)
            yield step
        line = f"[dim]{count}[/dim]  [bold]{title:<9}[/bold] {step.result}"
        self.console.print(f"{line}  [dim]{step.seconds:.1f} s[/dim]", highlight=False, soft_wrap=True)

    def _bar(self, count: str) -> Progress:
        return Progress(
            TextColumn(f"[dim]{count}[/dim]  [bold]{{task.description:<9}}[/bold]"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
        )

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table. All columns but the first are numbers and right-aligned."""
        table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for number, column in enumerate(columns):
            table.add_column(column, justify="right" if number else "left")
        for row in rows:
            table.add_row(*row)
        self.console.print(table)
