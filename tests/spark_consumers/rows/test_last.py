"""The last change of each key, as a bit set of offsets."""

import random

import pytest

pytestmark = pytest.mark.spark

SCHEMA = "partition int, offset bigint, at bigint, key string"


def last(spark, rows: list[tuple[int, int, int | None, str]]) -> list[tuple[int, int]]:
    from rowtide.spark_consumers.rows.last import LastChanges

    changes = spark.createDataFrame(rows, SCHEMA)
    with LastChanges(changes) as found:
        return sorted((row["partition"], row["offset"]) for row in found.within(changes).collect())


def test_the_highest_offset_of_each_key_remains(spark) -> None:
    pick = random.Random(7)
    # Each key stays in its partition; 64 offsets are a word, and the range begins and ends within one.
    keys = {f"k{number}": number % 2 for number in range(40)}
    rows, expected = [], {}
    for offset in range(50, 400):
        key = pick.choice(list(keys))
        rows.append((keys[key], offset, 1000 - offset, key))
        expected[key] = (keys[key], offset)
    pick.shuffle(rows)
    assert last(spark, rows) == sorted(expected.values())


def test_every_record_remains_if_all_keys_differ(spark) -> None:
    rows = [(0, offset, offset, f"k{offset}") for offset in range(60, 140)]
    assert last(spark, rows) == [(0, offset) for offset in range(60, 140)]


def test_the_position_decides_between_the_partitions_of_a_key_that_moved(spark) -> None:
    rows = [
        (0, 900, 10, "moved"), (1, 3, 20, "moved"), (1, 4, None, "moved"),  # a tombstone has no position
        (0, 901, 10, "back"), (0, 902, None, "back"), (1, 5, 5, "back"),
        (0, 903, None, "compacted"), (1, 6, 1, "compacted"),
    ]  # fmt: skip
    assert last(spark, rows) == [(0, 902), (1, 4), (1, 6)]


def test_offsets_decide_within_a_partition_though_another_key_moved(spark) -> None:
    rows = [
        (0, 900, 10, "moved"), (1, 3, 20, "moved"),
        (0, 901, 30, "other"), (0, 902, 5, "other"),  # positions start again after a failover
        (0, 903, 7, "moved later"), (0, 904, 3, "moved later"), (1, 4, 4, "moved later"),
    ]  # fmt: skip
    assert last(spark, rows) == [(0, 902), (1, 3), (1, 4)]
