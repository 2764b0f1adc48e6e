"""What a running connector shows of itself: a progress bar for snapshots, and lines for the log."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rowtide.connector.engine.reader import place
from rowtide.connector.snapshot.status import SnapshotStatus
from rowtide.connector.worker.status import Status
from rowtide.schema_history.model import TableId

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

_SNAPSHOT_S = 10.0
_FIRST_S = 10.0
_LONGEST_S = 300.0


class SnapshotBar:
    """Draws a snapshot's progress on a terminal: one line for the tables, one for the rows of the one in hand.

    Args:
        console: the terminal.
    """

    def __init__(self, console: "Console") -> None:
        from rich.progress import (  # noqa: PLC0415 - only on a terminal, and it takes a tenth of the time to start
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._all: TaskID | None = None
        self._rows: dict[TableId, TaskID] = {}

    def __call__(self, status: SnapshotStatus) -> None:
        """Draw the bar as things are now."""
        if self._all is None:
            self._progress.start()
            self._all = self._progress.add_task("snapshot", total=len(status.table_rows), detail="")
        finished = status.finished_tables
        detail = f"table {finished} of {len(status.table_rows)}, {status.done:,} rows"
        self._progress.update(self._all, completed=finished, total=len(status.table_rows), detail=detail)
        for table, rows in status.table_rows.items():
            if rows.finished and table in self._rows:
                self._progress.remove_task(self._rows.pop(table))
            elif rows.done and not rows.finished:
                task = self._rows.get(table)
                if task is None:
                    task = self._rows[table] = self._progress.add_task(str(table), total=None, detail="")
                total = None if rows.estimated is None else max(rows.estimated, rows.done)
                self._progress.update(task, completed=rows.done, total=total, detail=f"{rows.done:,} rows")
        if status.complete:
            self.close()

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()
        self._all = None
        self._rows.clear()


class ProgressLog:
    """Says now and then how a connector goes on: often at first and in a snapshot, then every five minutes.

    Args:
        write: takes a line.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._interval = _FIRST_S
        self._said_at: float | None = None
        self._records = 0

    def tick(self, status: Status) -> None:
        """Write a line if it is time for one, and there is something to say."""
        if self._said_at is None:
            self._said_at = status.now
        waited = status.now - self._said_at
        if status.state == "SNAPSHOT" and waited >= _SNAPSHOT_S and status.snapshot:
            self._say(status, snapshot_line(status))
        elif status.state == "RUNNING" and waited >= self._interval and status.delivery is not None:
            records = status.delivery.messages
            if records != self._records or status.lag_s:
                self._say(status, streaming_line(status, records - self._records, waited))
                self._records = records
                self._interval = min(self._interval * 2, _LONGEST_S)

    def _say(self, status: Status, line: str) -> None:
        self._write(line)
        self._said_at = status.now


def snapshot_line(status: Status) -> str:
    """How a snapshot goes on."""
    tables = status.snapshot
    finished = sum(rows.finished for rows in tables.values())
    current = next((f", in {name} {rows.done:,} of about {rows.estimated or 0:,}" for name, rows in tables.items()
                    if rows.done and not rows.finished), "")  # fmt: skip
    done = sum(rows.done for rows in tables.values())
    return f"snapshot: {finished} of {len(tables)} tables, {done:,} rows{current}"


def streaming_line(status: Status, records: int, seconds: float) -> str:
    """How streaming goes on."""
    parts = [f"{records:,} records in {seconds:.0f} s"]
    if status.lag_s is not None:
        behind = "" if status.lag_bytes is None else f" ({status.lag_bytes:,} bytes of binlog)"
        parts.append(f"{status.lag_s:.1f} s behind{behind}")
    if status.queue is not None and status.queue.events:
        parts.append(f"{status.queue.events:,} of {status.queue.max_events:,} records wait in the queue")
    if status.stored is not None:
        parts.append(f"stored position {place(status.stored)}")
    return "; ".join(parts)
