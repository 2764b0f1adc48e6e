"""The folder of dumps.

A dump is a file with a rows event on each line, and an end marker::

    {"Table":{...},"Action":"insert","Rows":[["MQ==","eA=="],["Mg==",null]]}
    {"End":true,"Rows":2,"Offset":17}

From this offset, the topic has only events after the dump. Dumps of earlier versions do not have it.
A file that is being written has another name. It is renamed when it is complete and on disk.
"""

import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from rowtide.databus.server.dumps.source import DumpPart
from rowtide.synced_files import sync_folder

_NAME = re.compile(r"DB\.Data[0-9A-Za-z-]{1,100}\.Json")
_PART = ".part"
_MARKER = re.compile(rb'^\{"End":true,"Rows":(\d+)(?:,"Offset":\d+)?\}\n\Z', re.MULTILINE)
_LONGEST_MARKER = 96
_CHUNK = 1 << 18
_ROWS = b'"Rows":[['
_FOLDER_MODE, _FILE_MODE = 0o750, 0o640
"""As MySQL's own files: dumps have the rows of the tables, which other users of the machine may not read."""


def _open_for_group(path: str, flags: int) -> int:
    return os.open(path, flags, _FILE_MODE)


class StoredDump:
    """A dump, opened. The file may be deleted while it is open.

    Args:
        path: of the file.

    Attributes:
        rows: the number of rows.
        end_marker: the line after the last row.

    Raises:
        OSError: it cannot be read.
        ValueError: it has no end marker.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            size = self._file.seek(0, os.SEEK_END)
            self._file.seek(max(size - _LONGEST_MARKER, 0))
            marker = _marker(self._file.read(), path)
            self._file.seek(0)
        except BaseException:
            self._file.close()
            raise
        self.rows = int(marker[1])
        self.end_marker = marker[0]
        self._left = size - len(self.end_marker)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self) -> bytes:
        """Return the next bytes, without the end marker; none at the end."""
        chunk = self._file.read(min(_CHUNK, self._left))
        self._left -= len(chunk)
        return chunk

    def read_single(self) -> bytes:
        """Return the next lines, with one row in each, as the original server writes them; none at the end."""
        found: list[bytes] = []
        size = 0
        while size < _CHUNK and self._left:
            line = self._file.readline()
            self._left -= len(line)
            head, mark, rows = line.rpartition(_ROWS)  # values are base64: their text has neither brackets nor quotes
            single = [b"%b%b%b]]}\n" % (head, mark, row) for row in rows.removesuffix(b"]]}\n").split(b"],[")]
            found += single if mark else [line]
            size += sum(map(len, single))
        return b"".join(found)


class DumpWriter:
    """Writes a dump: :meth:`add` its rows, then :meth:`complete` it. Leaving the block earlier deletes the file.

    Args:
        folder: of the dumps.
        name: of the dump.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / name
        self._part = folder / f"{name}{_PART}"
        self._file = open(self._part, "xb", opener=_open_for_group)  # noqa: SIM115 - Path has no opener
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(OSError):  # of a full disk: what was not written no longer matters
            self._file.close()
        self._part.unlink(missing_ok=True)

    def add(self, part: DumpPart) -> None:
        """Write rows.

        Raises:
            OSError: the disk is full, for example.
        """
        self._file.write(part.event + b"\n")
        self.rows += part.rows

    def complete(self, end: int) -> None:
        """Write the end marker, and rename the file.

        Args:
            end: the offset from which the topic has only events after the dump.

        Raises:
            OSError: the disk is full, for example.
        """
        self._file.write(b'{"End":true,"Rows":%d,"Offset":%d}\n' % (self.rows, end))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.rename(self._path)
        sync_folder(self._path.parent)


class DumpFolder:
    """The dumps of a server.

    Args:
        path: of the folder (``data_dir``); it is created if it is missing.

    Raises:
        OSError: it cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)

    def new_name(self) -> str:
        """Return a name for a dump that no other server uses."""
        return f"DB.Data{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}.Json"

    def writer(self, name: str) -> DumpWriter:
        """Begin to write a dump, and delete the remains of an incomplete one.

        Raises:
            OSError: the file cannot be created.
        """
        for left in self.path.glob(f"DB.Data*.Json{_PART}"):
            left.unlink(missing_ok=True)
        return DumpWriter(self.path, name)

    def open(self, name: str) -> StoredDump | None:
        """Open a dump; ``None`` if there is none with this name.

        Raises:
            OSError: it cannot be read.
            ValueError: it has no end marker.
        """
        if _NAME.fullmatch(name) is None:
            return None
        try:
            return StoredDump(self.path / name)
        except FileNotFoundError:
            return None

    def keep(self, announced: str, most: int) -> None:
        """Delete old dumps. A client that is reading one of them can still finish it.

        Args:
            announced: the dump that new clients begin with.
            most: the number of dumps to keep.
        """
        found = [path for path in self.path.glob("DB.Data*.Json") if _NAME.fullmatch(path.name)]
        newest = sorted(found, key=lambda path: (path.name == announced, path.name), reverse=True)
        for path in newest[most:]:
            path.unlink(missing_ok=True)


def _marker(end: bytes, path: Path) -> re.Match[bytes]:
    found = _MARKER.search(end)
    if found is None:
        raise ValueError(f"dump {path} has no end marker")
    return found
