"""What happened, in numbers, and the table that tells it."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rowtide_demo.runtime.screen import Screen
from rowtide_demo.shop.schema import Sizes

__all__ = ["Facts"]


@dataclass(slots=True)
class Facts:
    """The numbers that the steps found; seconds and counts.

    Attributes:
        sizes: rows of each table at first.
        load_seconds: of the rows into MySQL.
        start_seconds: from the start of ``rowtide run`` to the first record in Kafka.
        snapshot_seconds: from the first record of the snapshot in Kafka to the last.
        transactions: committed while streaming.
        changed_rows: rows that these changed.
        changes_seconds: from the first of them to the last record in Kafka.
        streamed_records: records that they gave.
        delays: between commit and arrival in Kafka, of some records.
        behind: from the last commit to the arrival of the last record.
        record_bytes: of all keys and values.
        tables_records: read by Spark.
        tables_seconds: of ``rowtide tables``, Spark's start included.
        rows: of each table in the end.
        columns: of each table that are equal.
        values: compared by their checksums.
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
    rows: dict[str, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)

    def show(self, screen: Screen) -> None:
        """The tables at the end."""
        first = self.sizes.total
        screen.table(
            "What happened",
            ["", "count", "seconds", "per second"],
            [
                _row("rows loaded into MySQL", first, self.load_seconds),
                _row("records of the snapshot", first, self.snapshot_seconds),
                _row("rows changed while streaming", self.changed_rows, self.changes_seconds),
                _row("records of these changes", self.streamed_records, self.changes_seconds),
                _row("records read by Spark (with its start)", self.tables_records, self.tables_seconds),
            ],
        )
        screen.say(
            f"Delay from commit to Kafka: {_delays(self.delays)}; the last record came {self.behind:.2f} s after the "
            f"last commit. {self.record_bytes / 1e6:,.0f} MB of keys and values."
        )
        screen.say()
        rows = [
            [name, f"{getattr(self.sizes, name):,}", f"{count:,}", f"{self.columns[name]}", "yes"]
            for name, count in self.rows.items()
        ]
        screen.table(
            "Proved equal in MySQL and Spark", ["table", "rows at first", "rows now", "columns", "equal"], rows
        )


def _row(what: str, count: int, seconds: float) -> list[str]:
    return [what, f"{count:,}", f"{seconds:.1f}", f"{count / seconds:,.0f}" if seconds else "-"]


def _delays(delays: Sequence[float]) -> str:
    if not delays:
        return "not measured"
    return f"{statistics.median(delays):.2f} s (median), {max(delays):.2f} s (longest)"
