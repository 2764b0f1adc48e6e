"""What the demo shows: a line for each step, with a moving bar on a terminal, and the table at the end."""

import contextlib
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["Screen", "Step"]

_EVERY = 15.0  # seconds between lines of progress where there is no terminal


class Step:
    """One step while it goes on.

    Attributes:
        result: what the step's line says in the end.
    """

    def __init__(self, console: Console, title: str, progress: Progress | None) -> None:
        self.result = ""
        self.began = time.monotonic()
        self._console = console
        self._title = title
        self._progress = progress
        self._task = progress.add_task(title, total=None, note="") if progress else None
        self._told = self.began

    @property
    def seconds(self) -> float:
        """Since its beginning."""
        return time.monotonic() - self.began

    def update(self, note: str, done: float | None = None, total: float | None = None) -> None:
        """Show how far it is."""
        if self._progress and self._task is not None:
            self._progress.update(self._task, note=note, completed=done, total=total)
        elif time.monotonic() - self._told >= _EVERY:
            self._told = time.monotonic()
            self._console.print(f"     {self._title:<9} ... {note}", highlight=False, soft_wrap=True)


class Screen:
    """Where the demo shows what it does.

    Args:
        console: rich's.
        steps: how many steps there will be.
    """

    def __init__(self, console: Console, steps: int) -> None:
        self.console = console
        self._steps = steps
        self._number = 0

    def say(self, text: str = "", style: str | None = None) -> None:
        """A paragraph."""
        self.console.print(text, style=style, highlight=False, soft_wrap=True, markup=False)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """A step: the block does it, and sets `Step.result`."""
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
        """A small table; numbers, which are every column but the first, stand on the right."""
        table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for number, column in enumerate(columns):
            table.add_column(column, justify="right" if number else "left")
        for row in rows:
            table.add_row(*row)
        self.console.print(table)
