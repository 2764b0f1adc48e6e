"""A live view of the connectors on a terminal: state, position, lag, rates, and the busiest topics.

It is drawn in place, below the lines of the log, and removed at the end. ::

    shop  RUNNING  binlog.000007:81524  0.2 s behind  1,240 records/s  records in total
      shop.shop.orders                                                        1,240,113
      shop.shop.customers                                                        20,481

During a snapshot, including one alongside the stream, the tables being read have a bar. The server's estimate of a
table's rows may be far off in both directions, so a bar never shows 100 % before the table is read, and has no
percentage once the estimate is exceeded.
"""

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rowtide.connector.snapshot.status import TableProgress
from rowtide.connector.worker.reports.summary import counted
from rowtide.connector.worker.status import Status

_BAR_WIDTH = 24
_MOST_LINES = 8
"""Topics or tables shown of each connector; fewer if the terminal is small."""
_OTHER_LINES = 4
"""Lines of the terminal that stay free for the log."""
_MOST_PERCENT = 99
_COLOURS = {"RUNNING": "green", "SNAPSHOT": "cyan", "FAILED": "red"}


class Terminal:
    """Draws the view.

    Args:
        console: the terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True, auto_refresh=False, redirect_stdout=False)

    def show(self, statuses: Sequence[Status]) -> None:
        """Draw the current state in place of the previous one."""
        self._live.start()
        lines = max(1, (self._console.height - _OTHER_LINES) // max(1, len(statuses)) - 1)
        self._live.update(view(statuses, min(lines, _MOST_LINES)), refresh=True)

    def close(self) -> None:
        """Remove the view."""
        self._live.stop()


def view(statuses: Sequence[Status], lines: int) -> RenderableType:
    """Return the view of some connectors.

    Args:
        statuses: their statuses.
        lines: the number of topics or tables to show for each connector.
    """
    parts: list[RenderableType] = []
    for status in statuses:
        parts.append(_headline(status))
        if status.problem:
            parts.append(Text(f"  {status.problem}", style="red", no_wrap=True, overflow="ellipsis"))
        if status.takes_snapshot:
            parts.append(_tables(status, lines if status.state == "SNAPSHOT" else max(1, lines // 2)))
        if status.state != "SNAPSHOT":
            parts.append(_topics(status, max(1, lines // 2) if status.takes_snapshot else lines))
    return Group(*parts)


def _headline(status: Status) -> Text:
    state = Text(status.state, style=_COLOURS.get(status.state, "yellow") if status.healthy else "red")
    words = [Text(status.name, style="bold"), state, *_figures(status)]
    return Text("  ", no_wrap=True, overflow="ellipsis").join(words)


def _figures(status: Status) -> Iterator[Text]:
    if status.state == "SNAPSHOT":
        tables = status.snapshot.values()
        yield Text(f"{sum(rows.finished for rows in tables)} of {counted(len(tables), 'table')}")
        yield Text(counted(sum(rows.done for rows in tables), "row"))
    elif status.reader is not None:
        yield Text(f"{status.reader.file}:{status.reader.pos}")
        if status.lag_s is not None:
            yield Text(f"{status.lag_s:,.1f} s behind")
    if status.delivery is not None:
        yield Text(f"{status.delivery.messages_per_second:,.0f} records/s")
    if status.queue is not None and status.queue.events:
        yield Text(f"queue {status.queue.events:,} of {status.queue.max_events:,}")


def _topics(status: Status, lines: int) -> RenderableType:
    counts = {} if status.delivery is None else {name: count for name, (count, _) in status.delivery.topics.items()}
    table = _grid("left", "right")
    for name in _busiest(counts, lines):
        table.add_row(f"  {name}", counted(counts[name], "record"))
    return _with_rest(table, len(counts) - lines, "topics")


def _busiest(counts: dict[str, int], lines: int) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))[:lines]


def _tables(status: Status, lines: int) -> RenderableType:
    begun = [(name, rows) for name, rows in status.snapshot.items() if rows.done or rows.finished]
    shown = begun[: -lines - 1 : -1]  # the table that is being read first, then those read before it
    table = _grid("left", "left", "right", "left")
    for name, rows in shown:
        table.add_row(f"  {name}", _bar(rows), *progress(rows))
    return _with_rest(table, len(status.snapshot) - len(shown), "tables")


def progress(rows: TableProgress) -> tuple[str, str]:
    """Return the progress of a table as a percentage and as rows."""
    if rows.finished:
        return "100 %", counted(rows.done, "row")
    if not rows.estimated:
        return "", counted(rows.done, "row")
    if rows.done >= rows.estimated:
        return "", f"{counted(rows.done, 'row')}, more than the server's estimate"
    percent = min(_MOST_PERCENT, rows.done * 100 // rows.estimated)
    return f"{percent} %", f"{rows.done:,} of about {counted(rows.estimated, 'row')}"


def _bar(rows: TableProgress) -> ProgressBar:
    if rows.finished:
        return ProgressBar(total=1, completed=1, width=_BAR_WIDTH)
    total = rows.estimated if rows.estimated and rows.done < rows.estimated else None
    return ProgressBar(total=total, completed=rows.done, width=_BAR_WIDTH)


def _grid(*columns: str) -> Table:
    grid = Table.grid(padding=(0, 2))
    for justify in columns:
        grid.add_column(justify="right" if justify == "right" else "left", no_wrap=True, overflow="ellipsis")
    return grid


def _with_rest(table: Table, rest: int, what: str) -> RenderableType:
    return Group(table, Text(f"  and {rest:,} more {what}", style="dim")) if rest > 0 else table
