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


def test_the_position_decides_if_a_key_moved_to_another_partition(spark) -> None:
    rows = [
        (0, 900, 10, "moved"), (1, 3, 20, "moved"), (1, 4, None, "moved"),  # a tombstone has no position
        (0, 901, 30, "other"), (0, 902, 5, "other"),
    ]  # fmt: skip
    assert last(spark, rows) == [(0, 901), (1, 3)]
