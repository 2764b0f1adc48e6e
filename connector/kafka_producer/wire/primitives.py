"""The primitive types of Kafka's protocol, and the reader and writer of their bytes.

Every read checks its bounds before it allocates, so an answer takes memory in proportion to its bytes.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer, NotEncodable

Bytes = bytes | bytearray | memoryview

NO_TOPIC_ID = bytes(16)
"""The topic id that stands for none. Topic ids are UUIDs, kept as 16 bytes."""

_LONGEST_STRING = 0x7FFF
"""Kafka's limit of strings in all versions, although compact strings can be longer."""


class Reader:
    """Reads values from the bytes of one answer."""

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: Bytes) -> None:
        self._data = memoryview(data)
        self._at = 0
        self._end = len(self._data)

    @property
    def left(self) -> int:
        """The number of bytes that were not read."""
        return self._end - self._at

    def take(self, size: int) -> memoryview:
        """Return the next bytes.

        Raises:
            MalformedAnswer: there are fewer.
        """
        start, end = self._at, self._at + size
        if end > self._end or size < 0:
            raise MalformedAnswer(f"{size} bytes are needed at offset {start}, but the data ends at {self._end}")
        self._at = end
        return self._data[start:end]

    def number(self, form: struct.Struct) -> Any:
        """Return the next number, in a form of fixed size."""
        start, end = self._at, self._at + form.size
        if end > self._end:
            raise MalformedAnswer(
                f"a number of {form.size} bytes is needed at offset {start}, but the data ends at {self._end}"
            )
        self._at = end
        return form.unpack_from(self._data, start)[0]

    def uvarint(self) -> int:
        """Return the next unsigned number of variable length, of 32 bits at most."""
        value, start = 0, self._at
        for shift in (0, 7, 14, 21, 28):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value
        raise MalformedAnswer(f"the number of variable length at {start} has more than 32 bits")


class Writer:
    """Collects the bytes of one request. Large values are kept as they are, so that sending them needs no copy."""

    __slots__ = ("_open", "_parts")

    def __init__(self) -> None:
        self._parts: list[Bytes] = []
        self._open = bytearray()

    def add(self, data: Bytes) -> None:
        """Append bytes by copying them."""
        self._open += data

    def add_uncopied(self, data: Bytes) -> None:
        """Append bytes as a separate part; they must not change before they are sent."""
        self._parts += (self._open, data)
        self._open = bytearray()

    def uvarint(self, value: int) -> None:
        """Append an unsigned number of variable length."""
        while value > 0x7F:
            self._open.append(value & 0x7F | 0x80)
            value >>= 7
        self._open.append(value)

    def parts(self) -> list[Bytes]:
        """Return all bytes, in order."""
        return [part for part in (*self._parts, self._open) if part]


class Codec(NamedTuple):
    """The encoding of a type in one version.

    Attributes:
        write: appends a value; raises :class:`NotEncodable`.
        read: reads a value; raises :class:`MalformedAnswer`.
    """

    write: Callable[[Writer, Any], None]
    read: Callable[[Reader], Any]


def number(form: str) -> Codec:
    """Return a number of fixed size, in the notation of the module ``struct``."""
    packed = struct.Struct(form)

    def write(writer: Writer, value: Any) -> None:
        try:
            writer.add(packed.pack(value))
        except struct.error as error:
            raise NotEncodable(f"{value!r}: {error}") from None

    return Codec(write, lambda reader: reader.number(packed))


INT8, INT16, INT32, INT64, BOOL = (number(f">{letter}") for letter in "bhiq?")


def _write_uuid(writer: Writer, value: bytes) -> None:
    if len(value) != 16:
        raise NotEncodable(f"{len(value)} bytes are not a UUID, which has 16")
    writer.add(value)


UUID = Codec(_write_uuid, lambda reader: bytes(reader.take(16)))


def _length(*, short: bool, flexible: bool, nullable: bool) -> Codec:
    """Return the length before a value, or ``None`` for null: 16 or 32 bits, or its successor in flexible versions."""
    plain = INT16 if short else INT32

    def write(writer: Writer, size: int | None) -> None:
        if size is None and not nullable:
            raise NotEncodable("null is not a value of this version")
        if flexible:
            writer.uvarint(0 if size is None else size + 1)
        else:
            plain.write(writer, -1 if size is None else size)

    def read(reader: Reader) -> int | None:
        size = reader.uvarint() - 1 if flexible else plain.read(reader)
        if size == -1 and nullable:
            return None
        if not 0 <= size <= reader.left:
            raise MalformedAnswer(f"the length {size} does not fit the {reader.left} bytes that follow")
        return int(size)

    return Codec(write, read)


def string(*, flexible: bool, nullable: bool) -> Codec:
    """Return a text in UTF-8."""
    length = _length(short=True, flexible=flexible, nullable=nullable)

    def write(writer: Writer, value: str | None) -> None:
        if value is None:
            length.write(writer, None)
            return
        data = value.encode()
        if len(data) > _LONGEST_STRING:
            raise NotEncodable(f"a string of {len(data)} bytes is longer than {_LONGEST_STRING}")
        length.write(writer, len(data))
        writer.add(data)

    def read(reader: Reader) -> str | None:
        size = length.read(reader)
        if size is None:
            return None
        try:
            return str(reader.take(size), "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedAnswer(f"a string is not valid UTF-8: {error.reason}") from None

    return Codec(write, read)


def binary(*, flexible: bool, nullable: bool, copied: bool = True) -> Codec:
    """Return the bytes; those that are not copied become a separate part of the request."""
    length = _length(short=False, flexible=flexible, nullable=nullable)

    def write(writer: Writer, value: Bytes | None) -> None:
        length.write(writer, None if value is None else len(value))
        if value is not None:
            (writer.add if copied else writer.add_uncopied)(value)

    def read(reader: Reader) -> bytes | None:
        size = length.read(reader)
        return None if size is None else bytes(reader.take(size))

    return Codec(write, read)


def array(item: Codec, *, flexible: bool, nullable: bool) -> Codec:
    """Return a tuple of values of one type. Each takes one byte at least, which bounds its length."""
    length = _length(short=False, flexible=flexible, nullable=nullable)
    write_item, read_item = item

    def write(writer: Writer, values: Sequence[Any] | None) -> None:
        length.write(writer, None if values is None else len(values))
        for value in values or ():
            write_item(writer, value)

    def read(reader: Reader) -> tuple[Any, ...] | None:
        size = length.read(reader)
        return None if size is None else tuple([read_item(reader) for _ in range(size)])

    return Codec(write, read)
