"""Open batches: no message is lost or taken twice, and the limits hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.batches.builder import (
    BatchLimits,
    RecordBatchBuilder,
    RecordTooLarge,
)
from rowtide.connector.kafka_producer.batches.compression import NONE, CompressionRatio, codec
from rowtide.connector.kafka_producer.batches.python_records import estimated_size
from rowtide.connector.kafka_producer.batches.record_batch import RecordBatch
from rowtide.connector.kafka_producer.records import Record
from tests.support.kafka.record_batches import messages

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
LARGE = 1 << 30
SMALL: Record = (b"k", b"v", ())


def builder(
    batch_size: int = LARGE, raw_limit: int = LARGE, max_request_size: int = LARGE, name: str = "none"
) -> RecordBatchBuilder:
    return RecordBatchBuilder(BatchLimits(batch_size, raw_limit, max_request_size), codec(name), CompressionRatio())


def compressible(count: int) -> list[Record]:
    return [(None, b"%04d" % number + b"x" * 985, ()) for number in range(count)]


def batches_of(built: RecordBatchBuilder, given: list[Record]) -> list[RecordBatch]:
    """All messages in closed batches, as a producer makes them."""
    made, at = [], 0
    while (at := built.append(given, at, 1)) < len(given):
        made.append(built.close())
    if built.count:
        made.append(built.close())
    return made


@given(
    calls=st.lists(messages(), max_size=5),
    batch_size=st.integers(0, 3000),
    raw_limit=st.integers(0, 3000),
    name=st.sampled_from(CODECS),
)
def test_every_message_is_in_one_batch_and_in_order(
    calls: list[list[Record]], batch_size: int, raw_limit: int, name: str
) -> None:
    ratio = CompressionRatio()
    built = RecordBatchBuilder(BatchLimits(batch_size, raw_limit, LARGE), codec(name), ratio)
    made = []
    for number, given_messages in enumerate(calls):
        at = 0
        while (at := built.append(given_messages, at, number)) < len(given_messages):
            assert built.count, "a batch without records is never full"
            made.append(built.close())
    if built.count:
        made.append(built.close())
    assert [record for batch in made for record in batch.records()] == [
        (number, (key, value, tuple(headers)))
        for number, given_messages in enumerate(calls)
        for key, value, headers in given_messages
    ]
    for batch in made:
        assert batch.count == 1 or batch.raw_size <= raw_limit
        if name == "none":
            assert batch.count == 1 or batch.size <= batch_size


def test_batches_grow_as_the_estimate_of_their_compression_improves() -> None:
    built = builder(batch_size=10_000, name="zstd")
    sizes = [batch.count for batch in batches_of(built, compressible(2000))]
    assert sizes[0] == 9, "the first one as if nothing were compressed"
    assert max(sizes[-5:-1]) > 15
    assert sorted(sizes[:-1]) == sizes[:-1]


def test_the_memory_of_a_batch_is_limited_however_well_it_compresses() -> None:
    ratio = CompressionRatio()
    ratio.estimate = 0.001
    built = RecordBatchBuilder(BatchLimits(1 << 20, 50_000, LARGE), codec("zstd"), ratio)
    assert {batch.count for batch in batches_of(built, compressible(100))} == {50}


def test_an_estimate_does_not_apply_without_compression() -> None:
    ratio = CompressionRatio()
    ratio.estimate = 0.001
    built = RecordBatchBuilder(BatchLimits(10_000, LARGE, LARGE), NONE, ratio)
    assert all(batch.size <= 10_000 for batch in batches_of(built, compressible(100)))
    assert ratio.estimate == 0.001


def test_closing_corrects_the_estimate() -> None:
    ratio = CompressionRatio()
    built = RecordBatchBuilder(BatchLimits(LARGE, LARGE, LARGE), codec("lz4"), ratio)
    built.append(compressible(100), 0, 1)
    built.close()
    assert ratio.estimate == pytest.approx(0.995)


def test_sizes_of_an_open_batch() -> None:
    for name in CODECS:
        built = builder(name=name)
        assert (built.count, built.size, built.raw_size) == (0, 0, 0)
        built.append(compressible(10), 0, 1)
        assert (built.count, built.raw_size) == (10, 9980)
        assert built.size == 61 + (9980 if name == "none" else int(9980 * 1.05))
        built.close()
        assert (built.count, built.size, built.raw_size) == (0, 0, 0)


def test_a_large_record_has_a_batch_of_its_own() -> None:
    large: Record = (b"large", b"x" * 5000, ())
    made = batches_of(builder(batch_size=1000), [SMALL, SMALL, large, SMALL])
    assert [batch.count for batch in made] == [2, 1, 1]


def test_a_record_of_exactly_max_request_size_waits_for_the_next_batch() -> None:
    large: Record = (b"large", b"x" * 500, ())
    made = batches_of(builder(batch_size=100, max_request_size=estimated_size(large)), [SMALL, large, SMALL])
    assert [batch.count for batch in made] == [1, 1, 1]


def test_a_record_beyond_max_request_size_is_named_and_those_before_are_kept() -> None:
    large: Record = (b"large", b"x" * 500, (("h", b"1"),))
    limit = estimated_size(large) - 1
    built = builder(max_request_size=limit)
    with pytest.raises(RecordTooLarge, match=rf"{limit + 1} bytes, more than max\.request\.size={limit}") as refused:
        built.append([SMALL, SMALL, SMALL, large, SMALL], 1, 7)
    assert (refused.value.index, refused.value.size, refused.value.limit) == (3, limit + 1, limit)
    assert list(built.close().records()) == [(7, SMALL)] * 2
    assert builder(max_request_size=limit + 1).append([large], 0, 7) == 1


def test_a_message_of_the_wrong_type_leaves_the_batch_unchanged() -> None:
    built = builder()
    built.append([SMALL], 0, 1)
    with pytest.raises(TypeError, match="bytes or None"):
        built.append([SMALL, ("k", b"v", ())], 0, 2)  # type: ignore[list-item]
    assert list(built.close().records()) == [(1, SMALL)]


def test_a_batch_keeps_its_first_estimate_and_the_next_one_has_the_newest() -> None:
    ratio = CompressionRatio()
    built = RecordBatchBuilder(BatchLimits(10_000, LARGE, LARGE), codec("zstd"), ratio)
    built.append(compressible(1), 0, 1)
    ratio.estimate = 0.1
    assert built.append(compressible(100), 0, 1) == 8
    built.close()
    ratio.reset(0.1)
    assert built.append(compressible(100), 0, 1) == 9


def test_an_empty_batch_cannot_be_closed() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        builder().close()
