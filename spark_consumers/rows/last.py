"""The last change of each key in a batch.

It is the one with the highest offset: all records of a key are in one partition, in the order of commits. Binlog
positions are not comparable after a failover to another server. Only if partitions were added to the topic, records of
a key can be in two of them; then the binlog position decides.

Keys and offsets are enough to find it, so the rows are neither parsed nor shuffled for that. The offsets that remain
are a bit set, one word for 64 offsets: two million words for a hundred million records.
"""

from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

_WORD = "offset div 64"
_BIT = "CAST(offset % 64 AS int)"
_MOST_BROADCAST = 500_000
"""Words: 50 MB in each executor, and 32 million offsets."""


class LastChanges:
    """The offsets of the last change of each key, cached until the context ends.

    Args:
        changes: from :func:`rowtide.spark_consumers.rows.changes.keyed_changes`.
    """

    def __init__(self, changes: DataFrame) -> None:
        found = _Found.of(changes, "offset")
        if found.moved:
            found.words.unpersist()
            # A tombstone has no position. Null is the smallest value, so a tombstone only counts if it is alone.
            found = _Found.of(changes, "struct(at, offset)")
        self._found = found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._found.words.unpersist()

    def within(self, records: DataFrame) -> DataFrame:
        """Return those of the records with a key that are the last of their key."""
        if self._found.last == self._found.records:
            return records
        words = F.broadcast(self._found.words) if self._found.size <= _MOST_BROADCAST else self._found.words
        return (
            records.withColumn("word", F.expr(_WORD))
            .join(words, ["partition", "word"])
            .where(f"getbit(bits, {_BIT}) = 1")
            .select(*records.columns)
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """The bit set, and totals.

    Attributes:
        words: ``partition``, ``word`` (number of the word) and ``bits``; cached.
        size: number of words.
        last: number of keys.
        records: number of changes.
        moved: whether a key has records in two partitions.
    """

    words: DataFrame
    size: int
    last: int
    records: int
    moved: bool

    @classmethod
    def of(cls, changes: DataFrame, order: str) -> Self:
        last = changes.groupBy("key").agg(
            F.expr(_last(order)).alias("last"),
            F.expr("min(partition) <> max(partition)").alias("moved"),
            F.count("*").alias("records"),
        )
        words = (
            last.select("last.*", "moved", "records")
            .groupBy("partition", F.expr(_WORD).alias("word"))
            .agg(
                F.expr(f"bit_or(shiftleft(1L, {_BIT}))").alias("bits"),
                F.expr("bool_or(moved)").alias("moved"),
                F.sum("records").alias("records"),
            )
            .persist()
        )
        totals = words.selectExpr(
            "count(*) AS size", "sum(bit_count(bits)) AS last", "sum(records) AS records", "bool_or(moved) AS moved"
        ).collect()[0]
        return cls(words, totals["size"], totals["last"] or 0, totals["records"] or 0, bool(totals["moved"]))


def _last(order: str) -> str:
    """Return SQL of partition and offset of the last of some changes."""
    if order == "offset":  # a maximum of numbers needs no sorting, unlike max_by
        return "named_struct('partition', max(partition), 'offset', max(offset))"
    return f"max_by(named_struct('partition', partition, 'offset', offset), {order})"
