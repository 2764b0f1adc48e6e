"""Converts messages to records of format 2, in Python, like ``native/records.c`` in C. Pure.

A record, as `Kafka's documentation <https://kafka.apache.org/documentation/#record>`_ describes it; sizes and numbers
are variable-length integers, and -1 is the size of ``None``::

    size | attributes (one byte, 0) | timestamp - that of the first record | number in the batch
         | size, key | size, value | number of headers | for each: size, name in UTF-8 | size, value
"""

from collections.abc import Sequence
from typing import Any

from rowtide.connector.kafka_producer.records import Record

BATCH_OVERHEAD = 61
"""The bytes of a batch before its records."""

MOST_RECORD_OVERHEAD = 21
"""The most bytes of a record in addition to its key, value and headers (``DefaultRecord.MAX_RECORD_OVERHEAD``)."""

LARGEST_BATCH = 2**31 - 1
_LATEST = 2**63 - 1
_LARGEST_FACTOR = 1000.0


def varint(number: int) -> bytes:
    """Return a number in the zigzag encoding of Protocol Buffers."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def check_items(sequence: object, what: str) -> None:
    """Refuse everything except lists and tuples.

    Raises:
        TypeError: it is something else; the message is ``what``.
    """
    if not isinstance(sequence, list | tuple):
        raise TypeError(what)


def message_fields(message: Any) -> Record:
    """Return the key, the value and the headers of a message.

    Raises:
        TypeError: it is not a tuple of them, or the key or the value is neither bytes nor ``None``.
    """
    if not isinstance(message, tuple) or len(message) != 3:
        raise TypeError("a message is a tuple of key, value and headers")
    key, value, headers = message
    if not isinstance(key, bytes | None) or not isinstance(value, bytes | None):
        raise TypeError("the key and the value of a message are bytes or None")
    return key, value, headers


def encoded_parts(message: Record) -> tuple[bytes, ...]:
    """Return the key, the value and the headers of a message in the form of a record.

    Raises:
        TypeError: it is not a message.
        UnicodeEncodeError: the name of a header is not Unicode text.
    """
    key, value, headers = message_fields(message)
    check_items(headers, "the headers of a message are a list or a tuple")
    return (*_field(key), *_field(value), varint(len(headers)), *(part for each in headers for part in _header(each)))


def _header(header: Any) -> tuple[bytes, bytes, bytes, bytes]:
    if (
        not isinstance(header, tuple)
        or len(header) != 2
        or not isinstance(header[0], str)
        or not isinstance(header[1], bytes | None)
    ):
        raise TypeError("a header is a tuple of a str, and bytes or None")
    return *_field(header[0].encode()), *_field(header[1])


def _field(data: bytes | None) -> tuple[bytes, bytes]:
    return (varint(-1), b"") if data is None else (varint(len(data)), data)


def estimated_size(message: Record) -> int:
    """Return the maximum size of a batch of one uncompressed message, limited by ``max.request.size`` as in Java."""
    return BATCH_OVERHEAD + MOST_RECORD_OVERHEAD + sum(map(len, encoded_parts(message)))


class PythonRecords:
    """The records of one batch.

    Args:
        batch_size: the most bytes of the batch, estimated by the factor of the compression. One record may exceed it.
        raw_limit: the most bytes of all records. One record may exceed it.
        record_limit: the most bytes of a record, see ``estimated_size``. Larger ones are never taken.

    Attributes:
        count: the number of records.
        size: their bytes.
        first_timestamp: the timestamp of the first one (milliseconds since the epoch); 0 if there is none.
        max_timestamp: the latest timestamp; 0 if there is none.

    Raises:
        ValueError: a limit is negative, or would allow 2 GiB.
    """

    def __init__(self, batch_size: int, raw_limit: int, record_limit: int) -> None:
        limits_fit = raw_limit <= LARGEST_BATCH - BATCH_OVERHEAD and record_limit <= LARGEST_BATCH
        if min(batch_size, raw_limit, record_limit) < 0 or not limits_fit:
            raise ValueError("a limit is not negative, and a batch is smaller than 2 GiB")
        self._batch_size = batch_size
        self._raw_limit = raw_limit
        self._record_limit = record_limit
        self._data = bytearray()
        self.clear()

    @property
    def size(self) -> int:
        """The bytes of all records."""
        return len(self._data)

    def clear(self) -> None:
        """Remove all records.

        Raises:
            BufferError: a view is open.
        """
        self._data.clear()
        self.count = self.first_timestamp = self.max_timestamp = 0

    def view(self) -> memoryview:
        """Return the bytes of the records. Release it before the next change."""
        return memoryview(self._data)

    def append(self, messages: Sequence[Record], start: int, timestamp_ms: int, factor: float) -> int:
        """Add messages while there is space for them.

        Args:
            messages: a list or a tuple.
            start: the index of the first one to add.
            timestamp_ms: the timestamp of them all (milliseconds since the epoch).
            factor: the compressed by the uncompressed bytes, as estimated. A record is first counted in full, as in
                Java's ``MemoryRecordsBuilder.hasRoomFor``.

        Returns:
            The index of the first message that was not added.

        Raises:
            TypeError: a message is not a tuple of key, value and headers; none was added.
            ValueError: an argument is outside its limits; none was added.
            BufferError: a view is open; none was added.
        """
        check_items(messages, "messages are a list or a tuple")
        if not 0 <= start <= len(messages):
            raise ValueError("the first message is not one of the messages")
        if timestamp_ms > _LATEST:
            raise OverflowError("a timestamp has 64 bits")
        if timestamp_ms < 0:
            raise ValueError("a timestamp is not negative")
        if not 0 < factor <= _LARGEST_FACTOR:
            raise ValueError("the factor of the compression is positive, and at most 1000")
        added = bytearray()
        count, at = self.count, start
        first_timestamp = self.first_timestamp if count else timestamp_ms
        delta = varint(timestamp_ms - first_timestamp)
        for at in range(start, len(messages)):
            parts = encoded_parts(messages[at])
            content = sum(map(len, parts))
            if BATCH_OVERHEAD + MOST_RECORD_OVERHEAD + content > self._record_limit:
                break
            number = varint(count)
            body = 1 + len(delta) + len(number) + content
            size = varint(body)
            if count and not self._has_room(len(self._data) + len(added), len(size) + body, factor):
                break
            for part in (size, b"\0", delta, number, *parts):
                added += part
            count += 1
        else:
            at = len(messages)
        self._data += added
        if count > self.count:
            self.first_timestamp, self.max_timestamp = first_timestamp, max(self.max_timestamp, timestamp_ms)
        self.count = count
        return at

    def _has_room(self, raw: int, more: int, factor: float) -> bool:
        return BATCH_OVERHEAD + int(raw * factor) + more <= self._batch_size and raw + more <= self._raw_limit
