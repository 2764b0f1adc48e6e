"""The schema history as a file, one JSON record a line: Debezium's FileSchemaHistory.

An edge: it reads and writes a file. The property is ``schema.history.internal.file.filename``. A last line without its
line end is one that a crash cut off while it was written; whether it is whole is seen when it is parsed.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from rowtide.schema_history.store import HistoryStoreError, json_object, one_line, parsed

T = TypeVar("T")


class FileSchemaHistory:
    """A history file.

    Args:
        path: the file; it and its folder are made with the first record.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._buffering = False

    def append(self, text: str) -> None:
        """Add a line and force it to the disk (unless ``buffered``)."""
        try:
            if self._file is None:
                self._file = self._open()
            self._file.write(one_line(text).encode() + b"\n")
            if not self._buffering:
                self._sync(self._file)
        except OSError as failure:
            raise HistoryStoreError(f"cannot write schema history file {self._path}: {failure}") from failure

    def _open(self) -> BinaryIO:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("a+b")
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        return file

    @staticmethod
    def _sync(file: BinaryIO) -> None:
        file.flush()
        os.fsync(file.fileno())

    @contextmanager
    def buffered(self) -> Iterator[None]:
        """Force lines to the disk at the end of the block only."""
        self._buffering = True
        try:
            yield
        finally:
            self._buffering = False
            if self._file is not None:
                self._sync(self._file)

    def replay(self) -> Iterator[str]:
        """Every line."""
        return self.replay_as(json_object)

    def replay_as(self, parse: Callable[[str], T]) -> Iterator[T]:
        """Every line, parsed; empty ones are passed over as Debezium does."""
        if not self._path.exists():
            return
        try:
            with self._path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    if not line.isspace():
                        yield parsed(self._text(line, number), f"{self._path} line {number}", parse)
        except OSError as failure:
            raise HistoryStoreError(f"cannot read schema history file {self._path}: {failure}") from failure

    def _text(self, line: bytes, number: int) -> str:
        try:
            return line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            return parsed(line.decode("utf-8", "surrogateescape"), f"{self._path} line {number}", _strict)

    def exists(self) -> bool:
        """Whether the file exists and holds anything."""
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


def _strict(text: str) -> str:
    """Refuse bytes that are not UTF-8; raises ``ValueError``."""
    text.encode()
    return text
