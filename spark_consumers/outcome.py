"""The result of a run for one table."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.spark_consumers.formats.base import RowCounts
from rowtide.spark_consumers.kafka.naming import TableName
from rowtide.spark_consumers.kafka.offsets import Ranges
from rowtide.spark_consumers.rows.evolution import Columns


@dataclass(slots=True)
class Outcome:
    """The result for one table, summed over its batches.

    Attributes:
        name: of the table.
        read: number of records by operation, and of tombstones.
        ranges: first offset read and the offset after the last, by partition.
        rows: rows changed in the table.
        added: columns added to the table.
        widened: name, old and new type of columns that got a wider type.
        renamed: old and new name of columns that were renamed, in the order of the renames.
        dropped: columns that were dropped.
        unmatched: deletions in a table without a key that matched no row.
        reread: snapshot records (op ``r``) that were added to a table without a key that had rows before the run.
        skipped: whether the topic is that of another connector.
        notes: messages for the user.
        seconds: duration.
        error: the reason why the table was not brought up to date.
    """

    name: TableName
    read: Counter[str] = field(default_factory=Counter)
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    rows: RowCounts = field(default_factory=RowCounts)
    added: Columns = ()
    widened: tuple[tuple[str, str, str], ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    unmatched: int = 0
    reread: int = 0
    skipped: bool = False
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str | None = None

    def add_ranges(self, ranges: Ranges) -> None:
        """Add the ranges of another batch."""
        for partition, (first, end) in ranges.items():
            self.ranges[partition] = (self.ranges.get(partition, (first, end))[0], end)

    @property
    def records(self) -> int:
        """The number of records read."""
        return sum(self.read.values())

    def as_dict(self) -> Mapping[str, object]:
        """Return the outcome as a JSON object."""
        return {
            "table": str(self.name),
            "topic": self.name.topic,
            "read": dict(self.read),
            "offsets": {str(partition): list(found) for partition, found in sorted(self.ranges.items())},
            "inserted": self.rows.inserted,
            "updated": self.rows.updated,
            "deleted": self.rows.deleted,
            "unmatched": self.unmatched,
            "reread": self.reread,
            "new_columns": dict(self.added),
            "widened_columns": {name: [old, new] for name, old, new in self.widened},
            "renamed_columns": [list(names) for names in self.renamed],
            "dropped_columns": list(self.dropped),
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
            "error": self.error,
        }
