"""A closed record batch: bytes that are ready to be sent, except for the producer's numbers. Pure.

The header in front of the records, as `Kafka's documentation
<https://kafka.apache.org/documentation/#recordbatch>`_ describes it, with the offsets of its fields::

     0 base offset: 0 (8)           23 number of the last record (4)   51 producer epoch (2)
     8 bytes that follow (4)        27 first timestamp (8)             53 base sequence (4)
    12 leader epoch: -1 (4)         35 latest timestamp (8)            57 number of records (4)
    16 format: 2 (1)                43 producer id (8)                 61 records
    17 CRC-32C from here on (4)
    21 attributes (2): the codec, and 16 in a transaction
"""

import struct
from collections.abc import Iterator
from itertools import groupby
from typing import Self

from rowtide.connector.kafka_producer.batches.compression import NONE, Codec
from rowtide.connector.kafka_producer.batches.native.implementation import native
from rowtide.connector.kafka_producer.batches.python_records import (
    BATCH_OVERHEAD,
    LARGEST_BATCH,
    PythonRecords,
)
from rowtide.connector.kafka_producer.records import Record

Records = PythonRecords if native is None else native.Records

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CHECKSUM = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
_LENGTH_FROM = 12
_CHECKSUM_AT = 17
_CHECKED_FROM = _ATTRIBUTES_AT = 21
_PRODUCER_AT = 43
_FORMAT = 2
_NONE = -1
_TRANSACTIONAL = 0x10
_REVERSED_POLYNOMIAL = 0x82F63B78
"""Of CRC-32C (RFC 3720, appendix B.4)."""


def _after_byte(byte: int) -> int:
    for _bit in range(8):
        byte = byte >> 1 ^ (_REVERSED_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = [_after_byte(byte) for byte in range(256)]


def python_crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C of bytes."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in memoryview(data):
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


crc32c = python_crc32c if native is None else native.crc32c


class RecordBatch:
    """The records of one partition as they are sent.

    Attributes:
        count: the number of records.
        first_timestamp: the timestamp of the first one (milliseconds since the epoch).
        max_timestamp: the latest timestamp.
        raw_size: bytes of the records before compression.
        codec: the codec that compressed them; ``NONE`` if compression would have made them larger.
    """

    __slots__ = ("_data", "codec", "count", "first_timestamp", "max_timestamp", "raw_size")

    def __init__(self, records: PythonRecords, codec: Codec) -> None:
        """Close records.

        Args:
            records: at least one. They may be changed afterwards.
            codec: compresses them.

        Raises:
            ValueError: there are no records.
        """
        if not records.count:
            raise ValueError("a batch has at least one record")
        self.count = records.count
        self.first_timestamp = records.first_timestamp
        self.max_timestamp = records.max_timestamp
        self.raw_size = records.size
        self.codec = codec
        self._data = bytearray(BATCH_OVERHEAD)
        with records.view() as raw:
            compressed: memoryview | bytes = raw if codec is NONE else codec.compress(raw)
            if len(compressed) > len(raw):
                self.codec, compressed = NONE, raw
            self._data += compressed
        _HEADER.pack_into(
            self._data,
            0,
            0,
            len(self._data) - _LENGTH_FROM,
            _NONE,
            _FORMAT,
            0,
            self.codec.number,
            self.count - 1,
            self.first_timestamp,
            self.max_timestamp,
            _NONE,
            _NONE,
            _NONE,
            self.count,
        )

    @property
    def size(self) -> int:
        """Bytes of the batch."""
        return len(self._data)

    @property
    def ratio(self) -> float:
        """The bytes of the records after compression by those before."""
        return (self.size - BATCH_OVERHEAD) / self.raw_size

    def numbered(self, producer_id: int, epoch: int, base_sequence: int, *, transactional: bool) -> memoryview:
        """Return the bytes to send, with the producer's numbers and the checksum.

        The same numbers give the same bytes. They are written in place, so that other numbers change the bytes of
        earlier calls: a request with these bytes must not be under way.

        Args:
            producer_id: from ``InitProducerId``; -1 for none.
            epoch: the producer's epoch; -1 for none.
            base_sequence: the sequence number of the first record, from 0 to 2^31-1; -1 for none.
            transactional: whether the records belong to a transaction.

        Raises:
            struct.error: a number is outside its range; nothing was written.
        """
        producer = _PRODUCER.pack(producer_id, epoch, base_sequence)
        data = self._data
        data[_PRODUCER_AT : _PRODUCER_AT + _PRODUCER.size] = producer
        _ATTRIBUTES.pack_into(data, _ATTRIBUTES_AT, self.codec.number | (_TRANSACTIONAL if transactional else 0))
        _CHECKSUM.pack_into(data, _CHECKSUM_AT, crc32c(memoryview(data)[_CHECKED_FROM:]))
        return memoryview(data).toreadonly()

    def records(self) -> Iterator[tuple[int, Record]]:
        """Yield the timestamp and the message of each record, in order: for error messages, and to divide the batch."""
        with memoryview(self._data) as data, data[BATCH_OVERHEAD:] as stored:
            reader = _Reader(self.codec.decompress(stored))
        for _record in range(self.count):
            reader.skip_number()  # the size
            reader.at += 1  # the attributes
            timestamp = self.first_timestamp + reader.number()
            reader.skip_number()  # the number in the batch
            key, value = reader.field(), reader.field()
            headers = tuple(((reader.field() or b"").decode(), reader.field()) for _header in range(reader.number()))
            yield timestamp, (key, value, headers)

    def halves(self, codec: Codec) -> tuple[Self, Self]:
        """Return two batches of its records in their order, for a broker that has refused it because it is too large.

        Args:
            codec: compresses them; not necessarily the object that compressed this batch.

        Raises:
            ValueError: it has only one record.
        """
        records = list(self.records())
        middle = len(records) // 2
        first, second = (type(self)(_joined(half), codec) for half in (records[:middle], records[middle:]))
        assert first.count + second.count == self.count
        return first, second


def _joined(records: list[tuple[int, Record]]) -> PythonRecords:
    joined: PythonRecords = Records(LARGEST_BATCH, LARGEST_BATCH - BATCH_OVERHEAD, LARGEST_BATCH)
    for timestamp, group in groupby(records, key=lambda record: record[0]):
        joined.append([message for _timestamp, message in group], 0, timestamp, 1.0)
    return joined


class _Reader:
    """Reads the fields of records written by this program."""

    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data

    def number(self) -> int:
        raw = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            raw |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return raw >> 1 ^ -(raw & 1)

    skip_number = number

    def field(self) -> bytes | None:
        size = self.number()
        if size < 0:
            return None
        self.at += size
        return self._data[self.at - size : self.at]
