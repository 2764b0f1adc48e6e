"""Records as JSON lines: to a stream such as standard output, and to files in a directory.

A line is ``{"topic":…,"key":…,"value":…,"headers":{…}}``, with key and value as the configured converters write them.
"""

import errno
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.sinks.record_sink import Record
from rowtide.synced_files import sync_folder

DEFAULT_MAX_BYTES = 256 * 1024 * 1024
"""The size at which :class:`FileSink` begins a new file."""
_NAME = re.compile(r"records-(\d{8,})\.jsonl")


def json_line(record: Record) -> bytes:
    """Return a record as one line of JSON, with its line end."""
    headers = {name: None if text is None else text.decode() for name, text in record.headers}
    parts = (
        b'{"topic":',
        json.dumps(record.topic, ensure_ascii=False).encode(),
        b',"key":',
        b"null" if record.key is None else record.key,
        b',"value":',
        b"null" if record.value is None else record.value,
        b',"headers":',
        json.dumps(headers, ensure_ascii=False, separators=(",", ":")).encode(),
        b"}\n",
    )
    return b"".join(parts)


def write_all(stream: BinaryIO, data: bytes | memoryview) -> None:
    """Write everything to a stream, which may be unbuffered (``python -u``) and accept only a part."""
    rest = memoryview(data)
    while rest:
        taken = stream.write(rest)
        if taken is None:
            raise BlockingIOError(errno.EAGAIN, "the stream is non-blocking; make it blocking")
        rest = rest[taken:]


class StreamSink:
    """Writes records to a stream, such as standard output.

    Delivery is at least once as far as the operating system: a record counts as delivered when the system has accepted
    it.

    Args:
        stream: a binary stream; it is not closed.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, records: Sequence[Record]) -> None:
        """Write a line for each record, and flush: a reader sees every change immediately.

        Raises:
            DeliveryError: the reader has closed the stream.
        """
        try:
            write_all(self._stream, b"".join(map(json_line, records)))
            self._stream.flush()
        except BrokenPipeError as error:
            raise DeliveryError("standard output was closed by its reader") from error

    def flush(self) -> None:
        """Do nothing: every write is already flushed."""

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller, and stays open."""


class FileSink:
    """Writes records to ``DIRECTORY/records-00000001.jsonl`` and so on, all topics in the order of commits.

    Delivery is at least once: a file is written to disk (fsync) before the position is stored. After a crash, an
    incomplete line is removed, and records since the stored position are written again.

    Args:
        directory: the directory; created if it does not exist.
        max_bytes: a new file begins when the last one has reached this size.

    Raises:
        DeliveryError: the directory cannot be used.
    """

    def __init__(self, directory: str | os.PathLike[str], max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._directory = Path(directory)
        self._max_bytes = max_bytes
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            numbers = [int(match[1]) for path in self._directory.iterdir() if (match := _NAME.fullmatch(path.name))]
            self._number = max(numbers, default=0) or 1
            self._stream = self._opened()
            self._remove_torn_line()
        except OSError as error:
            raise DeliveryError(
                f"no records can be written to {directory}: {error.strerror}. Name a directory that this user can "
                "write to, or one that can be created"
            ) from error

    def write(self, records: Sequence[Record]) -> None:
        """Write a line for each record.

        Raises:
            OSError: the disk is full, for example.
        """
        if self._stream.tell() >= self._max_bytes:
            self.flush()
            self._stream.close()
            self._number += 1
            self._stream = self._opened()
        end = self._stream.tell()
        try:
            write_all(self._stream, b"".join(map(json_line, records)))
        except OSError as error:
            self._stream.truncate(end)  # the sink may be used again: a torn line would damage the line after it
            raise OSError(error.errno, error.strerror, self._stream.name) from error

    def flush(self) -> None:
        """Write everything to disk.

        Raises:
            OSError: as for ``write``.
        """
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _opened(self) -> BinaryIO:
        """Open the current file without a buffer, and write its name to disk."""
        stream = (self._directory / f"records-{self._number:08d}.jsonl").open("ab", buffering=0)
        sync_folder(self._directory)
        return stream

    def _remove_torn_line(self) -> None:
        path = self._directory / f"records-{self._number:08d}.jsonl"
        size = path.stat().st_size
        with path.open("rb") as stream:
            end = size
            while end > 0:
                start = max(0, end - 65536)
                stream.seek(start)
                found = stream.read(end - start).rfind(b"\n")
                if found >= 0:
                    end = start + found + 1
                    break
                end = start
        if end < size:
            self._stream.truncate(end)
