"""The measurements of the steps, and the tables that show them at the end."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rowtide_demo.runtime.screen import Screen
from rowtide_demo.shop.schema import TABLES, Sizes

__all__ = ["Results"]


@dataclass(slots=True)
class Results:
    """The measurements of all steps.

    Attributes:
        sizes: initial number of rows of each table.
        load_seconds: time to load the rows into MySQL.
        start_seconds: time from the start of ``rowtide run`` to the first record in Kafka.
        snapshot_seconds: time from the first to the last record of the snapshot.
        transactions: number of transactions committed while streaming.
        changed_rows: number of rows that these transactions changed.
        changes_seconds: time from the first of these transactions to the last record in Kafka.
        streamed_records: number of records of these transactions.
        delays: seconds from commit to arrival in Kafka, for a sample of the records.
        behind: seconds from the last commit to the arrival of the last record.
        record_bytes: total size of all keys and values.
        tables_records: number of records read by Spark.
        tables_seconds: time of ``rowtide tables``, including the start of Spark.
        rows: numbers of rows of each table at the end, in MySQL, Kafka and Spark.
    """

    sizes: Sizes
    load_seconds: float = 0.0
    start_seconds: float = 0.0
    snapshot_seconds: float = 0.0
    transactions: int = 0
    changed_rows: int = 0
    changes_seconds: float = 0.0
    streamed_records: int = 0
    delays: Sequence[float] = ()
    behind: float = 0.0
    record_bytes: int = 0
    tables_records: int = 0
    tables_seconds: float = 0.0
    rows: dict[str, list[int]] = field(default_factory=dict)

    def show(self, screen: Screen) -> None:
        """Print the measurements and the result of the comparison."""
        first = self.sizes.total
        screen.table(
            "Throughput",
            ["", "count", "seconds", "per second"],
            [
                _row("rows loaded into MySQL", first, self.load_seconds),
                _row("records of the snapshot", first, self.snapshot_seconds),
                _row("rows changed while streaming", self.changed_rows, self.changes_seconds),
                _row("records of these changes", self.streamed_records, self.changes_seconds),
                _row("records read by Spark (with its start)", self.tables_records, self.tables_seconds),
            ],
        )
        screen.print(
            f"Delay from commit to Kafka: {_delays(self.delays)}; the last record arrived {self.behind:.2f} s after "
            f"the last commit. {self.record_bytes / 1e6:,.0f} MB of keys and values."
        )
        screen.print()
        rows = [
            [name, *(f"{count:,}" for count in (getattr(self.sizes, name), *self.rows[name])), "yes"] for name in TABLES
        ]
        screen.table("Proved equal", ["table", "initial rows", "MySQL", "Kafka", "Spark", "equal"], rows)


def _row(what: str, count: int, seconds: float) -> list[str]:
    return [what, f"{count:,}", f"{seconds:.1f}", f"{count / seconds:,.0f}" if seconds else "-"]


def _delays(delays: Sequence[float]) -> str:
    if not delays:
        return "not measured"
    return f"{statistics.median(delays):.2f} s (median), {max(delays):.2f} s (maximum)"
