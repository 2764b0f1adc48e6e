"""The last change of each key in a batch.

It is the one with the highest offset: all records of a key are in one partition, in the order of commits. Binlog
positions are not comparable after a failover to another server. Only if partitions were added to the topic, records of
a key can be in two of them; then the binlog position decides between the last records of each partition.

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
_LAST = "max(offset)"
_DELETION = "max(IF(op = 'd', offset, NULL))"
_DELETION_OR_LAST = f"IF({_DELETION} = max(IF(op IS NULL, NULL, offset)), {_DELETION}, {_LAST})"
"""SQL of the offset of a key's last change: of the deletion if only tombstones follow it."""
_MOST_BROADCAST = 500_000
"""Words: 50 MB in each executor, and 32 million offsets."""


class LastChanges:
    """The offsets of the last change of each key, cached until the context ends.

    Args:
        changes: from :func:`rowtide.spark_consumers.rows.changes.keyed_changes`.
        soft: whether a deletion is wanted rather than the tombstone after it, which has no values.
    """

    def __init__(self, changes: DataFrame, *, soft: bool = False) -> None:
        last = _DELETION_OR_LAST if soft else _LAST
        found = _Found.of(_last_of_keys(changes, last))
        if found.moved:
            found.words.unpersist()
            found = _Found.of(_last_of_moved_keys(changes, last))
        self._found = found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._found.words.unpersist()

    def within(self, records: DataFrame) -> DataFrame:
        """Return the records with a key that are the last ones of their key."""
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
    def of(cls, last: DataFrame) -> Self:
        """Find them in ``last`` (partition and offset of the last change of a key), ``moved`` and ``records``."""
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


def _last_of_keys(changes: DataFrame, last: str) -> DataFrame:
    """Return the last change of each key that is in one partition."""
    return changes.groupBy("key").agg(
        # Maxima of numbers need no sorting, unlike max_by.
        F.expr(f"named_struct('partition', max(partition), 'offset', {last})").alias("last"),
        F.expr("min(partition) <> max(partition)").alias("moved"),
        F.count("*").alias("records"),
    )


def _last_of_moved_keys(changes: DataFrame, last: str) -> DataFrame:
    """Return the last change of each key, where keys may be in several partitions.

    A tombstone has no position except that of the record before it in its partition. Null is the smallest position, so
    a tombstone that is alone in its partition only counts if the key is in no other one.
    """
    ends = changes.groupBy("key", "partition").agg(
        F.expr(last).alias("offset"),
        F.expr("max_by(at, IF(at IS NULL, NULL, offset))").alias("at"),
        F.count("*").alias("records"),
    )
    return ends.groupBy("key").agg(
        F.expr("max_by(named_struct('partition', partition, 'offset', offset), struct(at, offset))").alias("last"),
        F.expr("min(partition) <> max(partition)").alias("moved"),
        F.sum("records").alias("records"),
    )
