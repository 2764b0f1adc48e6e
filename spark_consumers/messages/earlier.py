"""Records of earlier batches that follow, in the binlog, records of the current one.

A topic with several partitions can be read unevenly: a partition lags in Kafka, or ``--max-records`` ends a batch. The
rows of a table do not show their position, so the effect of an older record is known only together with the newer
records of the other partitions. These are read again.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.errors import OffsetsLostError
from rowtide.spark_consumers.jvm.session import is_small
from rowtide.spark_consumers.kafka.offsets import Ranges, count, ends
from rowtide.spark_consumers.messages.records import split_messages
from rowtide.spark_consumers.messages.segments import POSITION
from rowtide.spark_consumers.state import Truncation

_FIRST_WINDOW, _GROWTH = 16, 16
"""Offsets that are searched first, and how many times as many next."""
_LONGEST_TRANSACTION_MS = 3_600_000
_HAS_PLACE = "place.at.file IS NOT NULL AND place.at.pos IS NOT NULL"
_NOWHERE = Truncation(0, 0)
_PLACE = f"named_struct('at', {POSITION}, 'ts_ms', CAST(get_json_object(value, '$.source.ts_ms') AS bigint))"


@dataclass(frozen=True, slots=True)
class _Place:
    """Offset, position in the binlog and time of a record. A tombstone has no position."""

    offset: int
    at: Truncation
    ts_ms: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """The records of a topic that earlier batches have read.

    Attributes:
        topic: for errors.
        read: reads ranges of offsets, as :class:`rowtide.spark_consumers.kafka.source.RecordSource` does.
        ranges: the offsets that Kafka still has of them.
    """

    topic: str
    read: Callable[[Ranges], DataFrame]
    ranges: Ranges

    def following(self, batch: Ranges) -> Ranges:
        """Return the offsets of earlier records that do not precede all records of the batch.

        There are none if the positions in a partition go back: a connector repeats its last records after a crash, and
        positions are not comparable after a failover to another server.
        """
        if not self.ranges:
            return {}
        tails = places(self.read, self.ranges, last=True)
        first = places(self.read, batch, last=False, where=f"value IS NULL OR {_HAS_PLACE}")
        # A tombstone has no place. It belongs to the record before it, which an earlier batch has read.
        heads = {p: found for p, place in first.items() if (found := tails.get(p) if place.at == _NOWHERE else place)}
        if not heads or any(tail.at > heads[p].at for p, tail in tails.items() if p in heads):
            return {}
        oldest = min(heads.values(), key=lambda place: place.at)
        later = {p: self.ranges[p] for p, tail in tails.items() if tail.at > oldest.at}
        # A record that is much older by its time has the position of another server, from before a failover.
        precedes = (
            f"place.at <= named_struct('file', {oldest.at.file}L, 'pos', {oldest.at.pos}L) "
            f"OR place.ts_ms < {oldest.ts_ms - _LONGEST_TRANSACTION_MS}L"
        )
        preceding = places(self.read, later, last=True, where=f"{_HAS_PLACE} AND ({precedes})")
        starts = {p: preceding[p].offset + 1 if p in preceding else first for p, (first, _) in later.items()}
        return {p: (starts[p], end) for p, (_, end) in later.items() if starts[p] < end}

    def require(self, again: Ranges, truncation: Truncation) -> None:
        """Check that all records after a TRUNCATE can be read again.

        Args:
            again: from :meth:`following`.
            truncation: the newest one.

        Raises:
            OffsetsLostError: Kafka may have deleted some.
        """
        cut = {p: found for p, found in again.items() if 0 < found[0] == self.ranges[p][0]}
        for partition, place in places(self.read, cut, last=False).items():
            if place.at > truncation:
                raise OffsetsLostError(
                    f"topic {self.topic}: a TRUNCATE was read after newer records of partition {partition}, of which "
                    f"Kafka has deleted those before offset {place.offset}: it is unknown which rows remain after it. "
                    "Take a new snapshot and build the table again (--restart)"
                )


def level(read: Callable[[Ranges], DataFrame], ranges: Ranges, cut: Collection[int]) -> Ranges:
    """Skip partitions that would be read ahead of others: all their records would be read again with each batch.

    Args:
        read: reads ranges of offsets.
        ranges: the next offsets of each partition.
        cut: the partitions that have more.

    Returns:
        The ranges that begin before the first end of a partition that is cut; at least one of them.
    """
    if len(ranges) < 2 or not cut:
        return ranges
    tails = places(read, {partition: ranges[partition] for partition in cut}, last=True)
    heads = places(read, ranges, last=False)
    end = min((place.at for place in tails.values()), default=None)
    found = {p: r for p, r in ranges.items() if end is None or p not in heads or heads[p].at <= end}
    return found or ranges


def places(
    read: Callable[[Ranges], DataFrame], ranges: Ranges, *, last: bool, where: str = _HAS_PLACE
) -> dict[int, _Place]:
    """Return the place of the first or last record of each partition, without partitions that have none.

    Offsets may belong to markers, or have no records after compaction.

    Args:
        read: reads ranges of offsets.
        ranges: to search.
        last: whether the last record is wanted.
        where: SQL of a condition; by default the record is not a tombstone.
    """
    found: dict[int, _Place] = {}
    left, size = dict(ranges), _FIRST_WINDOW
    while left:
        window = ends(left, size)[last]
        raw = read(window)
        rows = (
            split_messages(raw.coalesce(1) if is_small(count(window)) else raw)  # without a shuffle
            .selectExpr("partition", "offset", "value", f"{_PLACE} AS place")
            .where(where)
            .groupBy("partition")
            .agg(F.expr(f"{'max' if last else 'min'}_by(struct(offset, place), offset)").alias("edge"))
            .collect()
        )
        for row in rows:
            offset, (at, ts_ms) = row["edge"]
            position = _NOWHERE if at["pos"] is None else Truncation(at["file"], at["pos"])
            found[row["partition"]] = _Place(offset, position, ts_ms or 0)
        left = {p: r for p, r in left.items() if p not in found and r[1] - r[0] > size}
        size *= _GROWTH
    return found
