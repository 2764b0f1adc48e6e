"""Signals in a file (``signal.file``): one JSON object per line.

The file is taken by renaming it (``signals.txt.<time>.taken``) and replacing it with an empty one, so a line that is
appended at that time is in one of the two. A taken file is deleted when all its signals are carried out, this is
stored, and no writer still has it open: a writer may have opened it before it was taken.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.channel import ChannelFailed
from rowtide.connector.signals.inbox import ReceivedSignal
from rowtide.connector.signals.signal import from_message

_TAKEN = ".taken"
_GRACE_S = 5.0
"""Where the system does not show whether a file is open, the channel waits this long after the last write."""


class FileChannel:
    """Reads the file, and the rest of earlier ones.

    A position is the time of taking and a number of bytes: ``1795317122000000000:512``.

    Args:
        path: the file; it need not exist.
        start: the stored position.
        new_id: makes ids for signals without one.
        clock: nanoseconds since the epoch.
    """

    name = "file"

    def __init__(
        self, path: Path, start: object, new_id: Callable[[], str], clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._path = path
        self._new_id = new_id
        self._clock = clock
        self._read: tuple[int, int] = _parsed(start)
        self._stored = self._read
        self._ends: dict[int, int] = {}  # of the last signal in a taken file

    def poll(self) -> Iterator[ReceivedSignal]:
        """Yield the signals in new lines. A line without an end of line counts when no writer has the file open."""
        try:
            for taken_at, path in self._taken():
                yield from self._signals(taken_at, path)
            if self._path.exists() and self._path.stat().st_size and all(map(self._is_settled, self._taken())):
                yield from self._signals(*self._take())
        except OSError as error:
            raise ChannelFailed(
                f"the file {self._path} (signal.file): {error}. The connector must be allowed to read it, and to "
                "rename files in its folder; in a container, mount the folder instead of the file"
            ) from error

    def stored(self, position: object) -> None:
        """Delete taken files whose signals are all carried out."""
        self._stored = max(self._stored, _parsed(position))
        try:
            for taken_at, path in self._taken():
                if self._is_settled((taken_at, path)) and (taken_at, self._ends.get(taken_at, 0)) <= self._stored:
                    path.unlink()
                    self._ends.pop(taken_at, None)
        except OSError as error:
            raise ChannelFailed(f"a file next to {self._path} (signal.file) cannot be deleted: {error}") from error

    def close(self) -> None:
        """Do nothing: nothing is open between two polls."""

    def _is_settled(self, taken: tuple[int, Path]) -> bool:
        """Return whether a taken file has been read to its end, and no longer grows."""
        taken_at, path = taken
        return self._is_final(path) and (taken_at, path.stat().st_size) <= self._read

    def _is_final(self, path: Path) -> bool:
        """Return whether no writer has a taken file open; new writers do not find it.

        Linux gives a read lease only for a file that no process has open for writing.
        """
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except (OSError, AttributeError) as error:  # it belongs to another account, or the system has no leases
            if isinstance(error, OSError) and error.errno == errno.EAGAIN:
                return False
            return self._clock() / 1e9 - path.stat().st_mtime > _GRACE_S
        else:
            return True
        finally:
            os.close(descriptor)  # and gives the lease back

    def _take(self) -> tuple[int, Path]:
        """Rename the file, and replace it with an empty one with the same owner and mode."""
        moment, status = max(self._clock(), self._read[0] + 1), self._path.stat()
        taken = self._path.rename(self._path.with_name(f"{self._path.name}.{moment}{_TAKEN}"))
        with contextlib.suppress(FileExistsError):  # a writer was faster
            self._path.touch(exist_ok=False)
            self._path.chmod(status.st_mode & 0o7777)
            with contextlib.suppress(PermissionError):  # as good as this account can
                os.chown(self._path, status.st_uid, status.st_gid)
        return moment, taken

    def _taken(self) -> list[tuple[int, Path]]:
        """Return the taken files in the order in which they were taken."""
        found = []
        for path in self._path.parent.glob(f"{_literal(self._path.name)}.*{_TAKEN}"):
            number = path.name.removeprefix(f"{self._path.name}.").removesuffix(_TAKEN)
            if number.isdecimal():
                found.append((int(number), path))
        return sorted(found)

    def _signals(self, taken_at: int, path: Path) -> Iterator[ReceivedSignal]:
        before, done = self._read
        if taken_at < before:
            return
        start = done if taken_at == before else 0
        final = self._is_final(path)  # before it is read
        with path.open("rb") as file:
            file.seek(start)
            data = file.read()
        for line in data.splitlines(keepends=True):
            if not line.endswith(b"\n") and not final:
                return
            start += len(line)
            self._read = taken_at, start
            if not line.strip():
                continue
            position = f"{taken_at}:{start}"
            self._ends[taken_at] = start
            try:
                yield ReceivedSignal(from_message(line, self.name, self._new_id), self.name, position)
            except SignalError as problem:
                yield ReceivedSignal(problem, self.name, position)


def _parsed(position: object) -> tuple[int, int]:
    taken_at, _, size = str(position or "0:0").partition(":")
    return (int(taken_at), int(size)) if taken_at.isdecimal() and size.isdecimal() else (0, 0)


def _literal(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
