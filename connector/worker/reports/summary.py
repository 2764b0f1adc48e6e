"""A line about each connector for the log, at a fixed interval; pure."""

from collections.abc import Callable

from rowtide.connector.records.offset import describe
from rowtide.connector.worker.status import Status

INTERVAL_S = 60.0


class SummaryLog:
    """Logs the progress of a connector since the last line.

    Args:
        write: writes a line.
        interval: seconds between two lines.
    """

    def __init__(self, write: Callable[[str], None], interval: float = INTERVAL_S) -> None:
        self._write = write
        self._interval = interval
        self._written_at: float | None = None
        self._records = 0

    def tick(self, status: Status) -> None:
        """Write a line if one is due."""
        if self._written_at is None:
            self._written_at = status.now
        waited = status.now - self._written_at
        if waited < self._interval:
            return
        records = 0 if status.delivery is None else status.delivery.messages
        since = records - self._records if records >= self._records else records  # a new run counts from 0
        self._write(f"{status.name}: {summary(status, since, waited)}")
        self._written_at, self._records = status.now, records


def summary(status: Status, records: int, seconds: float) -> str:
    """Return the summary of a connector.

    Args:
        status: its status.
        records: records delivered in the interval.
        seconds: length of the interval.
    """
    if status.state == "SNAPSHOT" and status.snapshot and status.healthy:
        return _snapshot(status)
    items = [] if status.state == "RUNNING" else [status.state]
    if status.problem:
        items.append(status.problem)
    items.append(f"{counted(records, 'record')} in {seconds:.0f} s")
    if status.lag_s is not None:
        behind = "" if status.lag_bytes is None else f" ({status.lag_bytes:,} bytes of binlog)"
        items.append(f"{status.lag_s:.1f} s behind{behind}")
    if status.queue is not None and status.queue.events:
        items.append(f"{status.queue.events:,} of {status.queue.max_events:,} records wait in the queue")
    if status.runway is not None and status.runway.short:
        items.append(f"warning: {status.runway.text}")
    if status.stored is not None:
        items.append(f"stored position {describe(status.stored)}")
    return "; ".join(items)


def _snapshot(status: Status) -> str:
    tables = status.snapshot
    finished = sum(rows.finished for rows in tables.values())
    done = sum(rows.done for rows in tables.values())
    current = ""
    for name, rows in tables.items():
        if rows.done and not rows.finished:
            estimated = f" of about {rows.estimated:,}" if rows.estimated and rows.estimated > rows.done else ""
            current = f", in {name} {rows.done:,}{estimated}"
    rate = "" if status.delivery is None else f", {status.delivery.messages_per_second:,.0f} rows/s"
    return f"snapshot: {finished} of {counted(len(tables), 'table')}, {counted(done, 'row')}{current}{rate}"


def counted(number: int, noun: str) -> str:
    """Return a number and a noun: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
