"""Closed batches: read back by aiokafka, numbered in place, and divided."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.batches import record_batch
from rowtide.connector.kafka_producer.batches.compression import NONE, codec
from rowtide.connector.kafka_producer.batches.python_records import PythonRecords
from rowtide.connector.kafka_producer.batches.record_batch import RecordBatch
from rowtide.connector.kafka_producer.records import Record
from tests.support.kafka.record_batches import IMPLEMENTATIONS, messages

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
LARGE = 2**31 - 100
TIME = 1_700_000_000_000
CALLS = st.lists(st.tuples(messages(least=1), st.integers(0, 2**40)), min_size=1, max_size=4)
Stamped = list[tuple[int, Record]]


def records_of(calls: list[tuple[list[Record], int]], new: Any = record_batch.Records) -> tuple[PythonRecords, Stamped]:
    """Records, and the timestamps and messages that they should have."""
    records = new(LARGE, LARGE, LARGE)
    for batch, timestamp in calls:
        assert records.append(batch, 0, timestamp, 1.0) == len(batch)
    return records, [
        (timestamp, (key, value, tuple(headers))) for batch, timestamp in calls for key, value, headers in batch
    ]


def batch_of(count: int, name: str = "none") -> RecordBatch:
    values = [(b"%d" % number, b"value " * 20, ()) for number in range(count)]
    return RecordBatch(records_of([(list(values), TIME)])[0], codec(name))


def read(data: Any) -> tuple[Any, Stamped]:
    """A batch as aiokafka reads it."""
    batch: Any = DefaultRecordBatch(bytes(data))
    assert batch.validate_crc()
    rows = list(batch)
    assert [row.offset for row in rows] == list(range(len(rows)))
    assert all(row.timestamp_type == 0 for row in rows)
    return batch, [(row.timestamp, (row.key, row.value, tuple(row.headers))) for row in rows]


@given(
    calls=CALLS,
    name=st.sampled_from(CODECS),
    producer_id=st.integers(-1, 2**63 - 1),
    epoch=st.integers(-1, 2**15 - 1),
    base_sequence=st.integers(-1, 2**31 - 1),
    transactional=st.booleans(),
)
def test_aiokafka_reads_what_was_appended(
    calls: list[tuple[list[Record], int]],
    name: str,
    producer_id: int,
    epoch: int,
    base_sequence: int,
    transactional: bool,
) -> None:
    records, expected = records_of(calls)
    raw_size = records.size
    batch = RecordBatch(records, codec(name))
    found, rows = read(batch.numbered(producer_id, epoch, base_sequence, transactional=transactional))
    assert rows == expected
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (producer_id, epoch, base_sequence)
    assert found.is_transactional is transactional
    assert not found.is_control_batch
    assert (found.base_offset, found.magic, found.last_offset_delta) == (0, 2, len(expected) - 1)
    assert found.compression_type == batch.codec.number
    assert batch.codec.number in {0, codec(name).number}
    assert (found.first_timestamp, found.max_timestamp) == (batch.first_timestamp, batch.max_timestamp)
    assert (batch.first_timestamp, batch.max_timestamp) == (expected[0][0], max(timestamp for timestamp, _ in expected))
    assert batch.count == len(expected)
    assert batch.raw_size == raw_size
    assert list(batch.records()) == expected


@given(calls=CALLS, name=st.sampled_from(CODECS))
def test_all_implementations_give_the_same_batch(calls: list[tuple[list[Record], int]], name: str) -> None:
    made = set()
    for module in IMPLEMENTATIONS.values():
        batch = RecordBatch(records_of(calls, module.Records)[0], codec(name))
        made.add(bytes(batch.numbered(1, 2, 3, transactional=False)))
    assert len(made) == 1


def test_a_header_is_as_documented() -> None:
    batch = RecordBatch(records_of([([(None, b"v", ())], 1)])[0], NONE)
    data = batch.numbered(0x0102030405060708, 0x0910, 0x11121314, transactional=True)
    assert (
        bytes(data).hex(" ")
        == " ".join(
            (
                "00 00 00 00 00 00 00 00",  # base offset
                "00 00 00 39 ff ff ff ff 02",  # bytes that follow, leader epoch, format
                bytes(data[17:21]).hex(" "),  # compared by aiokafka, see above
                "00 10 00 00 00 00",  # attributes, number of the last record
                "00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 01",  # timestamps
                "01 02 03 04 05 06 07 08 09 10 11 12 13 14",  # producer id, epoch, base sequence
                "00 00 00 01",  # number of records
                "0e 00 00 00 01 02 76 00",
            )
        )
    )


def test_the_same_numbers_give_the_same_bytes_and_others_replace_them() -> None:
    batch = batch_of(3, "lz4")
    first = bytes(batch.numbered(7, 1, 100, transactional=True))
    assert bytes(batch.numbered(7, 1, 100, transactional=True)) == first
    after_epoch_change, rows = read(batch.numbered(7, 2, 0, transactional=False))
    assert (after_epoch_change.producer_epoch, after_epoch_change.base_sequence) == (2, 0)
    assert not after_epoch_change.is_transactional
    assert len(rows) == 3
    assert bytes(batch.numbered(7, 1, 100, transactional=True)) == first


@pytest.mark.parametrize("numbers", [(2**63, 0, 0), (0, 2**15, 0), (0, 0, 2**31), (0, 0, -(2**31) - 1)])
def test_numbers_out_of_range_leave_the_batch_unchanged(numbers: tuple[int, int, int]) -> None:
    batch = batch_of(1)
    data = batch.numbered(7, 1, 100, transactional=True)
    before = bytes(data)
    with pytest.raises(struct.error):
        batch.numbered(*numbers, transactional=False)
    assert bytes(data) == before


def test_the_bytes_to_send_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        batch_of(1).numbered(7, 1, 100, transactional=True)[0] = 1


def test_a_closed_batch_does_not_change_with_its_records() -> None:
    for name in CODECS:
        records, expected = records_of([([(b"k", b"value" * 50, ())], TIME)])
        batch = RecordBatch(records, codec(name))
        records.clear()
        records.append([(b"other", b"other" * 50, ())], 0, 5, 1.0)
        assert list(batch.records()) == expected


def test_records_that_compression_makes_larger_are_not_compressed() -> None:
    """As in librdkafka: consumers read them faster, and they need less room."""
    batch = RecordBatch(records_of([([(None, b"v", ())], TIME)])[0], codec("gzip"))
    assert batch.codec is NONE
    assert batch.ratio == 1
    assert read(batch.numbered(1, 1, 1, transactional=False))[1] == [(TIME, (None, b"v", ()))]


def test_sizes_and_ratio() -> None:
    batch = batch_of(100, "zstd")
    assert batch.size == len(batch.numbered(1, 1, 1, transactional=False)) < batch.raw_size
    assert batch.ratio == (batch.size - 61) / batch.raw_size


def test_a_batch_without_records_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        RecordBatch(record_batch.Records(LARGE, LARGE, LARGE), NONE)


def test_a_failed_compression_leaves_the_records_unchanged() -> None:
    def fail(_data: memoryview) -> bytes:
        raise MemoryError

    records, expected = records_of([([(b"k", b"v", ())], TIME)])
    with pytest.raises(MemoryError):
        RecordBatch(records, replace(codec("gzip"), compress=fail))
    records.append([(b"k", b"v", ())], 0, TIME, 1.0)
    assert list(RecordBatch(records, NONE).records()) == expected * 2


@given(calls=CALLS, name=st.sampled_from(CODECS))
def test_halves_have_the_records_in_their_order(calls: list[tuple[list[Record], int]], name: str) -> None:
    records, expected = records_of(calls)
    batch = RecordBatch(records, codec(name))
    if batch.count == 1:
        with pytest.raises(ValueError, match="at least one record"):
            batch.halves(codec(name))
        return
    first, second = batch.halves(codec(name))
    assert abs(first.count - second.count) <= 1
    assert read(first.numbered(1, 2, 3, transactional=True))[1] == expected[: first.count]
    assert read(second.numbered(1, 2, 3 + first.count, transactional=True))[1] == expected[first.count :]


def test_halving_ends_at_single_records() -> None:
    pending, single = [batch_of(13, "lz4")], []
    while pending:
        batch = pending.pop(0)
        if batch.count > 1:
            pending[:0] = batch.halves(codec("lz4"))
        else:
            single += [message[0] for _timestamp, message in batch.records()]
    assert single == [b"%d" % number for number in range(13)]
