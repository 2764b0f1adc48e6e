"""Partitions: those of Java's producer, from every implementation."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.batches.partitions import StickyPartition, murmur2
from rowtide.connector.kafka_producer.records import Record
from tests.support.kafka.record_batches import IMPLEMENTATIONS, messages


@pytest.mark.parametrize(
    ("key", "java"),
    [  # from UtilsTest.testMurmur2
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_those_of_the_java_client(key: bytes, java: int) -> None:
    assert murmur2(key) == java & 0xFFFFFFFF


@given(key=st.binary(max_size=40), partitions=st.integers(1, 5000))
def test_a_key_has_the_same_partition_everywhere(key: bytes, partitions: int) -> None:
    expected = (aiokafka_murmur2(key) & 0x7FFFFFFF) % partitions
    message: Record = (key, None, ())
    for module in IMPLEMENTATIONS.values():
        assert module.split_by_key([message], partitions, 0) == {expected: [message]}


@given(batch=messages(), partitions=st.integers(1, 5), unkeyed=st.integers(0, 4))
def test_each_message_is_in_one_partition_and_in_order(batch: list[Record], partitions: int, unkeyed: int) -> None:
    found = [
        list(module.split_by_key(batch, partitions, unkeyed % partitions).items())
        for module in IMPLEMENTATIONS.values()
    ]
    assert all(each == found[0] for each in found)
    split = dict(found[0])
    for partition, some in split.items():
        expected = [
            message
            for message in batch
            if partition == (unkeyed if message[0] is None else murmur2(message[0]) & 0x7FFFFFFF) % partitions
        ]
        assert [id(message) for message in some] == [id(message) for message in expected]
    assert sum(map(len, split.values())) == len(batch)


@pytest.mark.parametrize("module", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
def test_an_empty_key_is_a_key(module: Any) -> None:
    # Java: toPositive(murmur2(new byte[0])) is 275646681
    assert module.split_by_key([(b"", None, ()), (None, None, ())], 1000, 7) == {
        681: [(b"", None, ())],
        7: [(None, None, ())],
    }


@pytest.mark.parametrize("module", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
@pytest.mark.parametrize(
    "arguments", [([], 0, 0), ([], 3, 3), ([], 3, -1), ([], -1, -2), ([], 2**31, 0), ([(b"k", b"v", ())], 0, 0)]
)
def test_partitions_that_do_not_exist_are_refused(module: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="one of the topic's partitions"):
        module.split_by_key(*arguments)


@pytest.mark.parametrize("module", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
@pytest.mark.parametrize("wrong", [None, (b"k", b"v"), ("k", b"v", ()), (b"k", "v", ()), [b"k", b"v", ()]])
def test_other_objects_are_refused(module: Any, wrong: Any) -> None:
    with pytest.raises(TypeError):
        module.split_by_key([(b"k", b"v", ()), wrong], 3, 0)
    with pytest.raises(TypeError):
        module.split_by_key(iter([(b"k", b"v", ())]), 3, 0)


def sticky(*choices: int, batch_size: int = 100) -> StickyPartition:
    """A partition whose random numbers are given; another one is an error."""
    numbers = list(choices)

    def randrange(below: int) -> int:
        number = numbers.pop(0)
        assert number < below
        return number

    return StickyPartition(batch_size, randrange)


def test_messages_without_a_key_stay_in_a_partition_until_a_batch_is_complete() -> None:
    partition = sticky(2, 0)
    assert partition.choose(3, lambda: [0, 1, 2]) == 2
    partition.sent(99, batch_complete=True)
    assert partition.choose(3, lambda: [0, 1, 2]) == 2
    partition.sent(1, batch_complete=False)
    assert partition.choose(3, lambda: [0, 1, 2]) == 2
    partition.sent(0, batch_complete=True)
    assert partition.choose(3, lambda: [0, 1, 2]) == 0


def test_a_partition_is_left_after_two_batches_at_the_latest() -> None:
    partition = sticky(1, 0)
    assert partition.choose(2, lambda: [0, 1]) == 1
    partition.sent(199, batch_complete=False)
    assert partition.choose(2, lambda: [0, 1]) == 1
    partition.sent(1, batch_complete=False)
    assert partition.choose(2, lambda: [0, 1]) == 0
    partition.sent(99, batch_complete=True)
    assert partition.choose(2, lambda: [0, 1]) == 0, "the bytes of a partition count from zero"


def test_partitions_without_a_leader_are_chosen_only_if_none_has_one() -> None:
    assert sticky(1).choose(5, lambda: [0, 4]) == 4
    assert sticky(3).choose(5, list) == 3


def test_a_partition_that_was_added_a_moment_ago_is_not_chosen_yet() -> None:
    assert sticky(0).choose(2, lambda: [2, 1]) == 1
    assert sticky(1).choose(2, lambda: [2]) == 1


def test_a_partition_that_no_longer_exists_is_left() -> None:
    partition = sticky(4, 1)
    assert partition.choose(5, lambda: range(5)) == 4
    partition.sent(90, batch_complete=False)
    assert partition.choose(2, lambda: [0, 1]) == 1
    partition.sent(99, batch_complete=True)
    assert partition.choose(2, lambda: [0, 1]) == 1
