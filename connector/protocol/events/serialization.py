"""Parses messages of MySQL's serialization library (``mysql/serialization``, 8.3 and later), as GTID_TAGGED uses it.

A message is: version, size, the last field id that must be understood, then fields, each prefixed by its id. All
numbers have a variable length: as many low one-bits as there are further bytes, a zero bit, then the value.
"""

from collections.abc import Callable, Sequence
from typing import Any

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.byte_reader import ByteReader

_KNOWN_VERSION = 1


def read_uint(reader: ByteReader) -> int:
    """Return an unsigned number of 1 to 9 bytes."""
    first = reader.uint(1)
    further = (~first & (first + 1)).bit_length() - 1
    if further == 8:
        return reader.uint(8)
    return first >> further + 1 | reader.uint(further) << 7 - further


def read_int(reader: ByteReader) -> int:
    """Return a signed number: the sign is the lowest bit, negative numbers are inverted."""
    value = read_uint(reader)
    return ~(value >> 1) if value & 1 else value >> 1


_READERS: dict[str, Callable[[ByteReader], Any]] = {
    "uint": read_uint,
    "int": read_int,
    "string": lambda reader: reader.take(read_uint(reader)),
    "bytes16": lambda reader: bytes(read_uint(reader) for _ in range(16)),
}


def read_message(reader: ByteReader, kinds: Sequence[str]) -> dict[int, Any]:
    """Return the fields that are present in a message, by id.

    Args:
        reader: at the start of the message, which must fill it.
        kinds: for each field id, the kind of its value: ``uint``, ``int``, ``string``, ``bytes16``.

    Raises:
        UnsupportedEvent: a newer version, or an unknown field that must be understood.
        RemoteProtocolError: the stated size is not that of the message.
    """
    begin, available = reader.pos, reader.remaining()
    version = read_uint(reader)
    if version > _KNOWN_VERSION:
        raise UnsupportedEvent(f"a serialized message of unknown version {version}; known: {_KNOWN_VERSION}")
    size, last_needed = read_uint(reader), read_uint(reader)
    if size != available:
        raise RemoteProtocolError(f"a serialized message of {available} bytes, but its header states {size}")
    fields: dict[int, Any] = {}
    while reader.pos < begin + size:
        field = read_uint(reader)
        if field >= len(kinds):
            if field <= last_needed or len(kinds) <= last_needed:
                raise UnsupportedEvent(f"a serialized message with unknown field {field}, which must be understood")
            break  # ids ascend, so all further fields may be ignored
        fields[field] = _READERS[kinds[field]](reader)
    return fields
