"""Ranges of Kafka offsets: what is new, and whether it is still there."""

import json
from collections.abc import Mapping

from rowtide.spark_consumers.errors import OffsetsLostError

Range = tuple[int, int]
"""First offset, and the offset after the last."""

Ranges = Mapping[int, Range]
"""By partition."""


def new_ranges(topic: str, bounds: Ranges, done: Mapping[int, int], limit: int | None = None) -> dict[int, Range]:
    """What each partition holds beyond the remembered offsets; partitions without news are left out.

    Args:
        topic: for errors.
        bounds: the first offset that Kafka still has and the end of each partition.
        done: the remembered offset of each partition: the next one to read.
        limit: at most so many offsets of a partition.

    Raises:
        OffsetsLostError: records between the remembered offset and the first one were deleted, or the topic is
            another one than before.
    """
    ranges = {}
    for partition, (first, end) in sorted(bounds.items()):
        start = done.get(partition, first)
        if start < first:
            raise _deleted(topic, partition, start, first)
        if start > end:
            raise OffsetsLostError(
                f"topic {topic}, partition {partition}: the remembered offset {start} lies behind the end, {end}. The "
                f"topic was created anew or shortened: build the table again (--restart)"
            )
        if start < end:
            ranges[partition] = (start, end if limit is None else min(end, start + limit))
    missing = sorted(set(done) - set(bounds))
    if missing:
        raise OffsetsLostError(
            f"topic {topic} no longer has partition {missing[0]}: it was created anew: build it again (--restart)"
        )
    return ranges


def require(topic: str, bounds: Ranges, ranges: Ranges) -> None:
    """Check that planned ranges can still be read.

    Raises:
        OffsetsLostError: they cannot.
    """
    for partition, (start, end) in ranges.items():
        first, last = bounds.get(partition, (0, 0))
        if end > last:
            raise OffsetsLostError(
                f"topic {topic}, partition {partition}: offset {end - 1} was planned to be read, and the topic ends at "
                f"{last}. The topic was created anew or shortened: build the table again (--restart)"
            )
        if start < first:
            raise _deleted(topic, partition, start, first)


def _deleted(topic: str, partition: int, start: int, first: int) -> OffsetsLostError:
    return OffsetsLostError(
        f"topic {topic}, partition {partition}: offsets {start} to {first - 1} were deleted by Kafka before they were "
        f"read (retention). The table cannot be brought up to date from what is left: take a new snapshot and build "
        f"the table again (--restart)"
    )


def advanced(done: Mapping[int, int], ranges: Ranges) -> dict[int, int]:
    """The remembered offsets after the ranges were read."""
    return {**done, **{partition: end for partition, (_, end) in ranges.items()}}


def count(ranges: Ranges) -> int:
    """How many offsets there are: no less than records."""
    return sum(end - first for first, end in ranges.values())


def ends(ranges: Ranges, size: int) -> tuple[dict[int, Range], dict[int, Range]]:
    """The first and the last ``size`` offsets of each partition, which may overlap."""
    return (
        {partition: (first, min(first + size, end)) for partition, (first, end) in ranges.items()},
        {partition: (max(first, end - size), end) for partition, (first, end) in ranges.items()},
    )


def starting_offsets(topic: str, ranges: Ranges) -> str:
    """Spark's ``startingOffsets``."""
    return json.dumps({topic: {str(partition): first for partition, (first, _) in ranges.items()}})


def ending_offsets(topic: str, ranges: Ranges) -> str:
    """Spark's ``endingOffsets``."""
    return json.dumps({topic: {str(partition): end for partition, (_, end) in ranges.items()}})


def assignment(topic: str, ranges: Ranges) -> str:
    """Spark's ``assign``."""
    return json.dumps({topic: sorted(ranges)})
