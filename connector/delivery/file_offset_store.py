"""Offsets in a file, in the format of Kafka Connect's ``FileOffsetBackingStore``.

The file is a serialized Java object, a ``HashMap<byte[], byte[]>`` (Java Object Serialization Specification, section
6). Kafka Connect's standalone worker and Debezium Engine read what is written here, and the reverse.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from rowtide.connector.delivery.errors import OffsetStoreError, OffsetStoreUnavailable
from rowtide.connector.delivery.offset_store import is_offset_key, offset_key
from rowtide.connector.records.offset import SourceOffset
from rowtide.synced_files import replace_file

_STREAM = b"\xac\xed\x00\x05"
_OBJECT, _CLASS, _ARRAY, _REFERENCE, _NULL, _BLOCK, _END = 0x73, 0x72, 0x75, 0x71, 0x70, 0x77, 0x78
_HASH_MAP = (
    b"\x72\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02"
    b"F\x00\x0aloadFactorI\x00\x09threshold\x78\x70"
)
_BYTE_ARRAY = b"\x72\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00\x78\x70"
_BYTE_ARRAY_AGAIN = b"\x71\x00\x7e\x00\x02"
_CLASS_HANDLE = 0x7E0002
_LOAD_FACTOR = 0.75
_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE})
"""Errors of the operating system that can pass without a change of the configuration."""


class FileOffsetStore:
    """Stores the offset of one connector in a file; offsets of other connectors in it remain unchanged.

    Args:
        path: the file (``offset.storage.file.filename``); its directory must exist.
        name: the connector's name.
        prefix: its ``topic.prefix``.
    """

    def __init__(self, path: Path, name: str, prefix: str) -> None:
        self._path = path
        self._name = name
        self._prefix = prefix

    def record(self, offset: SourceOffset | None) -> None:
        """Return ``None``: offsets are not stored in Kafka."""

    def load(self) -> SourceOffset | None:
        """Return the stored offset, ``None`` if there is none.

        Raises:
            OffsetStoreError: the file cannot be read, or its content is not an offset.
        """
        for key, value in self._read().items():
            if is_offset_key(key, self._name, self._prefix) and value is not None:
                try:
                    return SourceOffset.from_json(value)
                except ValueError as error:
                    raise OffsetStoreError(f"{self._path}: the stored offset cannot be read: {error}") from error
        return None

    def save(self, offset: SourceOffset | None) -> None:
        """Write the offset and wait until it is on disk; ``None`` deletes it.

        Raises:
            OffsetStoreUnavailable: the disk is full or currently does not work.
            OffsetStoreError: the file cannot be written.
        """
        try:
            with _locked(self._path.parent) as folder:
                self._write(offset)
                os.fsync(folder)
        except OSError as error:
            kind = OffsetStoreUnavailable if error.errno in _PASSING else OffsetStoreError
            raise kind(
                f"the offset cannot be written to {self._path} (offset.storage.file.filename): {error.strerror}"
            ) from error

    def _write(self, offset: SourceOffset | None) -> None:
        entries = {key: value for key, value in self._read().items() if not self._is_ours(key)}
        if offset is not None:
            entries[offset_key(self._name, self._prefix)] = offset.to_json().encode()
        replace_file(self._path, serialized(entries))

    def _is_ours(self, key: bytes) -> bool:
        return is_offset_key(key, self._name, self._prefix)

    def _read(self) -> dict[bytes, bytes | None]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise OffsetStoreError(f"the offset cannot be read from {self._path}: {error.strerror}") from error
        try:
            return deserialized(data) if data else {}
        except (ValueError, struct.error, IndexError) as error:
            raise OffsetStoreError(
                f"{self._path} is not an offset file of Kafka Connect (offset.storage.file.filename): {error}"
            ) from error


@contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Open a folder and lock it: other connectors store their offsets in the same file."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # NFS has no locks on folders
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield opened
    finally:
        os.close(opened)


def serialized(entries: Mapping[bytes, bytes | None]) -> bytes:
    """Return a ``HashMap<byte[], byte[]>`` as ``ObjectOutputStream.writeObject`` writes it."""
    capacity = 16
    while len(entries) > capacity * _LOAD_FACTOR:
        capacity *= 2
    out = bytearray(_STREAM)
    out += bytes((_OBJECT,)) + _HASH_MAP + struct.pack(">fi", _LOAD_FACTOR, int(capacity * _LOAD_FACTOR))
    out += bytes((_BLOCK, 8)) + struct.pack(">ii", capacity, len(entries))
    description = _BYTE_ARRAY
    for pair in entries.items():
        for data in pair:
            if data is None:
                out.append(_NULL)
            else:
                out += bytes((_ARRAY,)) + description + struct.pack(">i", len(data)) + data
                description = _BYTE_ARRAY_AGAIN
    out.append(_END)
    return bytes(out)


def deserialized(data: bytes) -> dict[bytes, bytes | None]:
    """Return the entries of a serialized ``HashMap<byte[], byte[]>``.

    Raises:
        ValueError, struct.error, IndexError: it is something else, or truncated.
    """
    head = _STREAM + bytes((_OBJECT,)) + _HASH_MAP
    if not data.startswith(head):
        raise ValueError("it does not begin as a serialized java.util.HashMap")
    at = len(head) + 8
    if data[at : at + 2] != bytes((_BLOCK, 8)):
        raise ValueError(f"byte {at}: the size of the map is missing")
    _, count = struct.unpack_from(">ii", data, at + 2)
    at += 10
    arrays: dict[int, bytes] = {}
    handle = _CLASS_HANDLE
    items: list[bytes | None] = []
    for _ in range(2 * count):
        kind = data[at]
        at += 1
        if kind == _NULL:
            items.append(None)
        elif kind == _REFERENCE:
            (referenced,) = struct.unpack_from(">i", data, at)
            if referenced not in arrays:
                raise ValueError(f"byte {at}: a reference to something other than a byte array")
            items.append(arrays[referenced])
            at += 4
        elif kind == _ARRAY:
            if data.startswith(_BYTE_ARRAY, at):
                at += len(_BYTE_ARRAY)
                handle += 1
            elif data.startswith(_BYTE_ARRAY_AGAIN, at):
                at += len(_BYTE_ARRAY_AGAIN)
            else:
                raise ValueError(f"byte {at}: not a byte array")
            (length,) = struct.unpack_from(">i", data, at)
            found = data[at + 4 : at + 4 + length]
            if length < 0 or len(found) != length:
                raise ValueError(f"byte {at}: the file is cut off")
            arrays[handle] = found
            handle += 1
            items.append(found)
            at += 4 + length
        else:
            raise ValueError(f"byte {at - 1}: neither a byte array nor null")
    if data[at : at + 1] != bytes((_END,)):
        raise ValueError(f"byte {at}: the map does not end")
    return {key: value for key, value in zip(items[::2], items[1::2], strict=True) if key is not None}
