"""Open batches: when they are full, what they count, and the parts of those that are too large."""

from __future__ import annotations

import pytest

from rowtide.connector.kafka_producer.batches.builder import BatchLimits, RecordTooLarge
from rowtide.connector.kafka_producer.batches.compression import codec
from rowtide.connector.kafka_producer.machine.messages import TopicPartition
from rowtide.connector.kafka_producer.open_batches import ClosedBatch, OpenBatches
from rowtide.connector.kafka_producer.records import Record

A, B = TopicPartition("a", 0), TopicPartition("b", 3)


def batches(size: int = 1000, compression: str = "none") -> OpenBatches:
    return OpenBatches(BatchLimits(size, 1 << 20, 4000), lambda: codec(compression))


def messages(count: int, size: int = 100) -> list[Record]:
    return [(b"k%d" % number, b"%0*d" % (size, number), ()) for number in range(count)]


def test_full_batches_are_closed_and_the_rest_stays_open() -> None:
    found = batches()
    closed = list(found.append(A, messages(20), 1, 0.0))
    assert [each.count for each in closed] == [8, 8]
    assert all((each.topic, each.partition) == A for each in closed)
    assert found.count == 4
    assert list(found.append(A, messages(1), 1, 1.0)) == []
    (rest,) = found.close()
    assert rest.count == 5


def test_what_is_open_is_counted() -> None:
    found = batches()
    assert not found
    assert (found.size, found.count, found.opened_at) == (0, 0, None)
    list(found.append(A, messages(2), 1, 5.0))
    list(found.append(B, messages(3), 1, 6.0))
    assert found
    assert (found.count, found.opened_at) == (5, 5.0)
    size = found.size
    closed = list(found.close())
    assert [(each.topic, each.count) for each in closed] == [("a", 2), ("b", 3)]
    assert sum(each.raw_size for each in closed) == size
    assert (found.size, found.count, found.opened_at, bool(found)) == (0, 0, None, False)


def test_dropped_records_are_gone() -> None:
    found = batches()
    list(found.append(A, messages(2), 1, 5.0))
    found.drop()
    assert (found.size, found.count, found.opened_at, list(found.close())) == (0, 0, None, [])


def test_a_record_that_is_too_large_is_not_added_and_those_before_are() -> None:
    found = batches()
    given = [*messages(2), (None, bytes(4000), ())]
    with pytest.raises(RecordTooLarge) as caught:
        list(found.append(A, given, 1, 0.0))
    assert caught.value.index == 2
    assert found.count == 2
    assert [each.count for each in found.close()] == [2]


def test_a_record_that_is_too_large_alone_leaves_no_batch() -> None:
    found = batches()
    with pytest.raises(RecordTooLarge):
        list(found.append(A, [(None, bytes(4000), ())], 1, 0.0))
    assert list(found.close()) == []
    assert not found


def closed(count: int, compression: str = "none") -> ClosedBatch:
    found = batches(1 << 20, compression)
    list(found.append(A, messages(count), 1, 0.0))
    (made,) = found.close()
    return made


def test_the_parts_of_a_batch_have_its_records_and_its_size() -> None:
    whole = closed(201, "lz4")
    first, second = whole.split()
    assert (first.count, second.count) == (100, 101)
    assert first.raw_size + second.raw_size == whole.raw_size
    assert [part.record(0)[0] for part in (first, second)] == [b"k0", b"k100"]
    assert {(part.topic, part.partition) for part in (first, second)} == {A}


def test_records_are_named_by_key_and_size() -> None:
    found = batches()
    list(found.append(A, [(b"key", b"12345", ()), (None, b"1234567890", ()), (b"k", None, ())], 1, 0.0))
    (made,) = found.close()
    assert made.record(0) == (b"key", 8)
    assert made.record(2) == (b"k", 1)
    assert made.record(None) == (None, 10), "the largest"


def test_a_batch_that_was_too_large_makes_the_next_ones_smaller() -> None:
    """The broker counts other bytes than expected, so that the estimated compression is not trusted any more."""
    found = batches(1000, "zstd")
    largest = max([*found.append(A, messages(3000), 1, 0.0), *found.close()], key=lambda batch: batch.count)
    assert largest.count > 12
    largest.split()
    assert next(found.append(A, messages(3000), 1, 0.0)).count <= 8


def test_a_batch_keeps_its_records_while_later_ones_of_any_topics_are_made() -> None:
    found = batches()
    closed: list[ClosedBatch] = []
    for number in range(20):
        places = [TopicPartition(f"t{topic}", partition) for topic in range(6) for partition in range(2)]
        for place in places[number % 3 :]:
            message = (b"%s %d" % (str(place).encode(), number), b"v", ())
            closed += found.append(place, [message], 1, 0.0)
        closed += found.close()
    seen = [closed_batch.record(0)[0] for closed_batch in closed]
    expected = [
        b"%s %d" % (str(place).encode(), number)
        for number in range(20)
        for place in [TopicPartition(f"t{topic}", partition) for topic in range(6) for partition in range(2)][
            number % 3 :
        ]
    ]
    assert seen == expected
    assert all(closed_batch.count == 1 for closed_batch in closed)
