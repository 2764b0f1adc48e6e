"""The folder of a mirror: its binlog files, their index, its lock, and the identity of its server.

::

    binlog.000007     a file that the server has closed, with the server's bytes
    binlog.000008     the file that the server writes; its in-use flag is set, as on the server
    binlog.index      the names of the files, oldest first
    mirror.json       the server that they come from
    mirror.lock       locked by the process that writes the mirror
"""

import contextlib
import errno
import fcntl
import gzip
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rowtide.connector.errors import MirrorError
from rowtide.connector.protocol.header import HEADER, HEADER_LENGTH, IN_USE
from rowtide.connector.source.files.folder import BinlogFile, binlog_files
from rowtide.connector.source.mirror.binlog_copy import FIRST_EVENT, CopyPosition, whole_part
from rowtide.synced_files import replace_file, sync_folder

_IDENTITY, _LOCK = "mirror.json", "mirror.lock"
_FLAGS_AT = FIRST_EVENT + 17


@dataclass(frozen=True, slots=True)
class Origin:
    """The server of a mirror.

    Attributes:
        flavor: ``mysql`` or ``mariadb``.
        server: MySQL's ``server_uuid`` or MariaDB's ``server_id``.
    """

    flavor: str
    server: str


@dataclass(frozen=True, slots=True)
class MirrorRetention:
    """The rules for deleting files of a mirror. The newest file is never deleted.

    Attributes:
        size: bytes that all files may have; ``None`` for no limit.
        age_s: seconds since the last event of a file; ``None`` for no limit.
    """

    size: int | None = None
    age_s: float | None = None


class MirrorFolder:
    """A mirror for writing. At most one process can open it.

    Args:
        folder: the directory, created if it is missing.

    Attributes:
        folder: the directory.

    Raises:
        MirrorError: another process writes the mirror, or the directory cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current: int | None = None
        self._unsynced = False
        with usable(folder):
            folder.mkdir(0o750, parents=True, exist_ok=True)
            self._lock = (folder / _LOCK).open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise MirrorError(
                f"another process writes the mirror {folder}: stop it, or choose another directory (--to)"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write the current file through to the disk, and release the lock."""
        try:
            self.sync()
        finally:
            current, self._current = self._current, None
            if current is not None:
                os.close(current)
            self._lock.close()

    def claim(self, origin: Origin) -> None:
        """Store the server of a new mirror, or compare it with the stored one.

        Raises:
            MirrorError: the files come from another server, or their server is unknown.
        """
        found = origin_of(self.folder)
        if found == origin:
            return
        if found is not None:
            raise MirrorError(
                f"{self.folder} is a mirror of {found.flavor} server {found.server}, and this is {origin.flavor} "
                f"server {origin.server}: choose another directory (--to), and keep this one as an archive"
            )
        if self._listed():
            raise MirrorError(
                f"{self.folder} has binlog files, but no {_IDENTITY} that names their server: choose an empty directory"
            )
        text = json.dumps({"flavor": origin.flavor, "server": origin.server})
        self._replace(_IDENTITY, f"{text}\n")

    def resume(self) -> CopyPosition | None:
        """Open the newest file after its last complete event, and cut off the remains of a crash after it.

        Returns:
            The progress of the file; ``None`` if there is no file.
        """
        with usable(self.folder):
            files = self._listed()
            if not files:
                return None
            path = files[-1].path
            if path.suffix == ".gz":
                raise MirrorError(f"{path} is compressed: the newest file of a mirror must stay as it is")
            with path.open("rb") as stream:
                at = whole_part(stream, files[-1].name)
            self._open(path)
            os.truncate(path, at.end)
            self._write_index()
            return at

    def append(self, pieces: Sequence[bytes], end: int) -> None:
        """Append events to the current file. If this fails, no part of them remains in it.

        Args:
            pieces: the bytes.
            end: the size of the file after them.
        """
        assert self._current is not None
        with usable(self.folder):
            data = b"".join(pieces)
            begin = written = end - len(data)
            try:
                while written < end:
                    written += os.pwrite(self._current, memoryview(data)[written - begin :], written)
            except OSError:
                os.ftruncate(self._current, begin)
                raise
            self._unsynced = True

    def begin(self, name: str) -> None:
        """Begin a file after :meth:`finish` has finished the previous one."""
        with usable(self.folder):
            self._open(self.folder / name)
            self._write_index()

    def finish(self, *, closed: bool) -> None:
        """Finish the current file.

        Args:
            closed: whether the server cleared the in-use flag.
        """
        if self._current is None:
            return
        with usable(self.folder):
            os.fsync(self._current)
            flags = os.pread(self._current, 1, _FLAGS_AT)
            if closed and flags and flags[0] & IN_USE:
                os.pwrite(self._current, bytes([flags[0] & ~IN_USE & 0xFF]), _FLAGS_AT)
                os.fsync(self._current)
            os.close(self._current)
        self._current, self._unsynced = None, False

    def sync(self) -> None:
        """Write the current file through to the disk."""
        if self._unsynced and self._current is not None:
            with usable(self.folder):
                os.fsync(self._current)
            self._unsynced = False

    def prune(self, retention: MirrorRetention, now: float) -> list[str]:
        """Delete the oldest files that exceed the limits, and return their names.

        Args:
            retention: the limits.
            now: seconds since the epoch.
        """
        with usable(self.folder):
            files = self._listed()
            sizes = [file.path.stat().st_size for file in files]
            total, gone = sum(sizes), 0
            for number, following in enumerate(files[1:]):
                too_large = retention.size is not None and total > retention.size
                if not too_large and not self._too_old(following, retention, now):
                    break
                total -= sizes[number]
                gone = number + 1
            if gone:
                self._write_index(gone)
                for file in files[:gone]:
                    file.path.unlink()
            return [file.name for file in files[:gone]]

    def _too_old(self, following: BinlogFile, retention: MirrorRetention, now: float) -> bool:
        """Return whether the file before another one is too old: it ends where the other one begins."""
        began = began_at(following.path)
        return retention.age_s is not None and began is not None and began < now - retention.age_s

    def size(self) -> tuple[int, int]:
        """Return the number of files, and their bytes."""
        sizes = [file.path.stat().st_size for file in self._listed()]
        return len(sizes), sum(sizes)

    def _listed(self) -> list[BinlogFile]:
        return binlog_files(self.folder, required=False)

    def _open(self, path: Path) -> None:
        self._current = os.open(path, os.O_RDWR | os.O_CREAT, 0o640)
        sync_folder(self.folder)

    def _write_index(self, skip: int = 0) -> None:
        files = self._listed()[skip:]
        base = files[0].name.rpartition(".")[0]
        self._replace(f"{base}.index", "".join(f"./{file.name}\n" for file in files))

    def _replace(self, name: str, text: str) -> None:
        """Write a small file in one step."""
        with usable(self.folder):
            replace_file(self.folder / name, text.encode())
            sync_folder(self.folder)


def origin_of(folder: Path) -> Origin | None:
    """Return the server of a mirror; ``None`` if the folder is not a mirror.

    Raises:
        MirrorError: the file that names the server is damaged.
    """
    path = folder / _IDENTITY
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Origin(str(fields["flavor"]), str(fields["server"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise MirrorError(
            f"{path} cannot be read: {error}. It has the flavor and the server (server_uuid, on MariaDB server_id): "
            'write {"flavor": "mysql", "server": "..."} into it'
        ) from None


def began_at(path: Path) -> int | None:
    """Return the time at which a binlog file was begun, in seconds since the epoch; ``None`` if it has no event yet."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        head = stream.read(FIRST_EVENT + HEADER_LENGTH)
    return int(HEADER.unpack_from(head, FIRST_EVENT)[0]) if len(head) == FIRST_EVENT + HEADER_LENGTH else None


@contextlib.contextmanager
def usable(folder: Path) -> Iterator[None]:
    """Raise one error if a file or the directory cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise MirrorError(
            f"the mirror {folder} cannot be written: {error.strerror or error}{_WAYS_OUT.get(error.errno or 0, '')}. "
            "The data in its files is complete: the next start resumes there"
        ) from error


_FULL = ". Free space, or limit the mirror with --keep-size or --keep-days"
_WAYS_OUT = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: ". Raise the limit of the size of files (ulimit -f)",
    errno.EACCES: ". Give the user of this process the right to write there",
    errno.EROFS: ". Choose a directory of another file system (--to)",
}
