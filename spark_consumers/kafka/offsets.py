"""Ranges of Kafka offsets: finds new ones, and checks whether they can still be read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from rowtide.spark_consumers.errors import OffsetsLostError

Range = tuple[int, int]
"""The first offset, and the offset after the last."""

Ranges = Mapping[int, Range]
"""Offset ranges by partition."""


def new_ranges(topic: str, bounds: Ranges, done: Mapping[int, int], limit: int | None = None) -> dict[int, Range]:
    """Return the offsets of each partition that were not read yet, without partitions that have none.

    Args:
        topic: for errors.
        bounds: the first offset that Kafka still has and the end of each partition.
        done: the next offset to read of each partition, as stored.
        limit: the most offsets of a partition to return.

    Raises:
        OffsetsLostError: records after the stored offset were deleted, or the topic was recreated.
    """
    ranges = {}
    for partition, (first, end) in sorted(bounds.items()):
        start = done.get(partition, first)
        if start < first:
            raise _deleted(topic, partition, start, first)
        if start > end:
            raise OffsetsLostError(
                f"topic {topic}, partition {partition}: the stored offset {start} is after the end, {end}. The "
                f"topic was recreated or truncated: build the table again (--restart)"
            )
        if start < end:
            ranges[partition] = (start, end if limit is None else min(end, start + limit))
    missing = sorted(set(done) - set(bounds))
    if missing:
        raise OffsetsLostError(
            f"topic {topic} no longer has partition {missing[0]}: it was recreated. Build the table again (--restart)"
        )
    return ranges


def require_topic(topic: str, stored: str | None, found: str | None) -> None:
    """Check that a topic is still the one whose offsets are stored: they would also be valid for another one.

    Raises:
        OffsetsLostError: the topic was deleted and re-created.
    """
    if None not in (stored, found) and stored != found:
        raise OffsetsLostError(
            f"topic {topic} was deleted and re-created: its id is {found}, and the stored offsets are those of "
            f"{stored}. The table has rows of the old topic: build it again from the new one (--restart)"
        )


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The last record that was read of a partition.

    Where brokers have no topic ids, it shows that a topic was re-created.

    Attributes:
        offset: of the record.
        timestamp: Kafka's, in ms since the epoch.
        digest: of its key and value.
    """

    offset: int
    timestamp: int
    digest: str

    @classmethod
    def of(cls, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> "LastRecord":
        """Return the description of a record."""
        parts = (b"-" if part is None else b"%d:" % len(part) + part for part in (key, value))
        return cls(offset, timestamp, blake2b(b"".join(parts), digest_size=8).hexdigest())


def require_records(topic: str, stored: Mapping[int, LastRecord], found: Mapping[int, LastRecord]) -> None:
    """Check that the last records that were read are still in the topic.

    One that is missing proves nothing: Kafka deletes old records, and those of a key that has a newer one.

    Raises:
        OffsetsLostError: another record has the offset: the topic was deleted and re-created.
    """
    for partition, now in found.items():
        if now != stored[partition]:
            raise OffsetsLostError(
                f"topic {topic} was deleted and re-created: partition {partition} has another record at the stored "
                f"offset {now.offset}. The table has rows of the old topic: build it again from the new one (--restart)"
            )


def require(topic: str, bounds: Ranges, ranges: Ranges) -> None:
    """Check that planned ranges can still be read.

    Raises:
        OffsetsLostError: records were deleted, or the topic was recreated.
    """
    for partition, (start, end) in ranges.items():
        first, last = bounds.get(partition, (0, 0))
        if end > last:
            raise OffsetsLostError(
                f"topic {topic}, partition {partition}: offset {end - 1} is part of a planned batch, but the topic "
                f"ends at {last}. The topic was recreated or truncated: build the table again (--restart)"
            )
        if start < first:
            raise _deleted(topic, partition, start, first)


def _deleted(topic: str, partition: int, start: int, first: int) -> OffsetsLostError:
    return OffsetsLostError(
        f"topic {topic}, partition {partition}: offsets {start} to {first - 1} were deleted by Kafka before they were "
        f"read (retention). The table cannot be completed from the remaining records: take a new snapshot and build "
        f"the table again (--restart)"
    )


def advanced(done: Mapping[int, int], ranges: Ranges) -> dict[int, int]:
    """Return the stored offsets after the ranges were read."""
    return {**done, **{partition: end for partition, (_, end) in ranges.items()}}


def before(bounds: Ranges, ranges: Ranges, done: Mapping[int, int]) -> dict[int, Range]:
    """Return the offsets that were read before some ranges and that Kafka still has.

    Args:
        bounds: of the topic.
        ranges: to read now.
        done: the next offset to read of each partition after them.
    """
    found = {p: (first, ranges[p][0] if p in ranges else done.get(p, first)) for p, (first, _) in bounds.items()}
    return {p: (first, end) for p, (first, end) in found.items() if first < end}


def count(ranges: Ranges) -> int:
    """Return the number of offsets, which is at least that of the records."""
    return sum(end - first for first, end in ranges.values())


def ends(ranges: Ranges, size: int) -> tuple[dict[int, Range], dict[int, Range]]:
    """Return the first and the last ``size`` offsets of each partition, which may overlap."""
    return (
        {partition: (first, min(first + size, end)) for partition, (first, end) in ranges.items()},
        {partition: (max(first, end - size), end) for partition, (first, end) in ranges.items()},
    )


def starting_offsets(topic: str, ranges: Ranges) -> str:
    """Return the value of Spark's option ``startingOffsets``."""
    return json.dumps({topic: {str(partition): first for partition, (first, _) in ranges.items()}})


def ending_offsets(topic: str, ranges: Ranges) -> str:
    """Return the value of Spark's option ``endingOffsets``."""
    return json.dumps({topic: {str(partition): end for partition, (_, end) in ranges.items()}})


def assignment(topic: str, ranges: Ranges) -> str:
    """Return the value of Spark's option ``assign``."""
    return json.dumps({topic: sorted(ranges)})
