"""The schema history as a file with one JSON record per line, like Debezium's FileSchemaHistory.

The property is ``schema.history.internal.file.filename``. Connectors may share a file: a writer holds a file lock, so
that lines are not interleaved.

If the last line has no line end and is not JSON, a crash cut it off. No row that depends on it was sent, and its
statement is read from the binlog again. So readers ignore the line, and the next writer removes it.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rowtide.schema_history.store.history_store import (
    PARSE_FAILURES,
    HistoryStoreError,
    SchemaHistoryStore,
    StoredText,
    UnusableHistory,
    json_object,
    one_line,
)

log = logging.getLogger(__name__)


class FileSchemaHistory(SchemaHistoryStore):
    """A history file; the location of a record is the offset of its first byte.

    Args:
        path: the file; the first record creates it and its folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._buffering = False
        self._locked = False
        self._inode: int | None = None

    def append(self, text: str) -> None:
        """Add a line and force it to disk (unless ``buffered``)."""
        try:
            self._require_same_file()
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a+b")
                self._inode = os.fstat(self._file.fileno()).st_ino
            if self._buffering:
                if not self._locked:
                    self._begin(self._file)
                self._file.write(one_line(text).encode() + b"\n")
            else:
                self._begin(self._file)
                try:
                    self._file.write(one_line(text).encode() + b"\n")
                finally:
                    self._end(self._file)
        except OSError as failure:
            raise self._cannot_write(failure) from failure

    def _cannot_write(self, failure: OSError) -> HistoryStoreError:
        return HistoryStoreError(f"cannot write schema history file {self._path}: {failure}")

    def _require_same_file(self) -> None:
        """Refuse to write into another file with the same name, which would look like a history but lack most of it.

        Raises:
            UnusableHistory: the file is not the one that contained the history.
        """
        try:
            found = self._path.stat().st_ino
        except FileNotFoundError:
            found = None
        if self._inode not in (None, found):
            raise UnusableHistory(
                f"schema history file {self._path} was deleted or replaced while the connector ran. Start once with "
                "snapshot.mode=recovery, which is right if no captured table was altered since the stored position; "
                "otherwise take a new snapshot"
            )

    def _begin(self, file: BinaryIO) -> None:
        """Lock the file, and remove a line that a crash cut off."""
        fcntl.flock(file, fcntl.LOCK_EX)
        self._locked = True
        tail = _tail(file)
        if tail and not _is_record(tail):
            log.warning("the last line of schema history file %s was cut off by a crash and is removed", self._path)
            file.truncate(file.seek(0, os.SEEK_END) - len(tail))
        elif tail:
            file.write(b"\n")

    def _end(self, file: BinaryIO) -> None:
        try:
            file.flush()
            os.fsync(file.fileno())
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
            self._locked = False

    @contextmanager
    def buffered(self) -> Iterator[None]:
        """Force lines to disk only at the end of the block."""
        self._buffering = True
        try:
            yield
        finally:
            self._buffering = False
            if self._file is not None and self._locked:
                try:
                    self._end(self._file)
                except OSError as failure:
                    raise self._cannot_write(failure) from failure

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Yield every line; empty lines are ignored, as in Debezium."""
        try:
            with self._path.open("rb") as lines:
                self._inode = self._inode or os.fstat(lines.fileno()).st_ino
                at = lines.seek(start)
                for line in lines:
                    end = at + len(line)
                    if not line.endswith(b"\n") and not _is_record(line):
                        log.warning("%s was cut off by a crash and is ignored", self.describe(at))
                        return
                    if not line.isspace():
                        yield StoredText(at, end, line.decode("utf-8", "surrogateescape").rstrip("\r\n"))
                    at = end
        except FileNotFoundError:
            return
        except OSError as failure:
            raise HistoryStoreError(f"cannot read schema history file {self._path}: {failure}") from failure

    def describe(self, at: int) -> str:
        """Return the path and the number of the line."""
        try:
            with self._path.open("rb") as file:
                number = file.read(at).count(b"\n") + 1
        except OSError:
            return f"{self._path} byte {at}"
        return f"{self._path} line {number}"

    def exists(self) -> bool:
        """Return whether the file exists and is not empty."""
        try:
            return self._path.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as failure:
            raise HistoryStoreError(f"cannot read schema history file {self._path}: {failure}") from failure

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _tail(file: BinaryIO) -> bytes:
    """Return the bytes after the last line end."""
    size, step = file.seek(0, os.SEEK_END), 4096
    while True:
        begin = max(0, size - step)
        file.seek(begin)
        found = file.read(size - begin)
        if b"\n" in found or not begin:
            return found.rpartition(b"\n")[2]
        step *= 16


def _is_record(line: bytes) -> bool:
    try:
        json_object(line.decode())
    except PARSE_FAILURES:
        return False
    return True
