"""Shows the progress of a connector: a bar for snapshots, and lines for the log."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rowtide.connector.engine.reader import describe
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
    """Draws the progress of a snapshot on a terminal: one line for all tables, one for the current table.

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
        """Draw the current state."""
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
        """Remove the bar."""
        self._progress.stop()
        self._all = None
        self._rows.clear()


class ProgressLog:
    """Logs the progress of a connector: often at first and during a snapshot, later every five minutes.

    Args:
        write: writes a line.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._interval = _FIRST_S
        self._written_at: float | None = None
        self._records = 0

    def tick(self, status: Status) -> None:
        """Write a line if one is due and there is progress."""
        if self._written_at is None:
            self._written_at = status.now
        waited = status.now - self._written_at
        if status.state == "SNAPSHOT" and waited >= _SNAPSHOT_S and status.snapshot:
            self._log(status, snapshot_line(status))
        elif status.state == "RUNNING" and waited >= self._interval and status.delivery is not None:
            records = status.delivery.messages
            if records != self._records or status.lag_s:
                self._log(status, streaming_line(status, records - self._records, waited))
                self._records = records
                self._interval = min(self._interval * 2, _LONGEST_S)

    def _log(self, status: Status, line: str) -> None:
        self._write(line)
        self._written_at = status.now


def snapshot_line(status: Status) -> str:
    """The log line about a snapshot's progress."""
    tables = status.snapshot
    finished = sum(rows.finished for rows in tables.values())
    current = next((f", in {name} {rows.done:,} of about {rows.estimated or 0:,}" for name, rows in tables.items()
                    if rows.done and not rows.finished), "")  # fmt: skip
    done = sum(rows.done for rows in tables.values())
    return f"snapshot: {finished} of {len(tables)} tables, {done:,} rows{current}"


def streaming_line(status: Status, records: int, seconds: float) -> str:
    """The log line about the stream's progress."""
    items = [f"{records:,} records in {seconds:.0f} s"]
    if status.lag_s is not None:
        behind = "" if status.lag_bytes is None else f" ({status.lag_bytes:,} bytes of binlog)"
        items.append(f"{status.lag_s:.1f} s behind{behind}")
    if status.queue is not None and status.queue.events:
        items.append(f"{status.queue.events:,} of {status.queue.max_events:,} records wait in the queue")
    if status.stored is not None:
        items.append(f"stored position {describe(status.stored)}")
    return "; ".join(items)
