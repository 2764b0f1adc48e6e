"""A small file system that can be full. It needs the right to mount (root, or CAP_SYS_ADMIN)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

__all__ = ["Disk", "can_mount"]


class Disk:
    """A tmpfs of limited size; ``with`` mounts and removes it.

    Args:
        megabytes: its size.

    Attributes:
        folder: where it is mounted.
    """

    def __init__(self, megabytes: int) -> None:
        self._size = megabytes
        self.folder = Path(tempfile.mkdtemp(prefix="rowtide-disk-"))

    def __enter__(self) -> Self:
        options = f"size={self._size}m,mode=0700"
        command = ["mount", "-t", "tmpfs", "-o", options, "rowtide-chaos", str(self.folder)]
        subprocess.run(command, check=True, capture_output=True)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True, capture_output=True)
        self.folder.rmdir()

    def fill(self) -> None:
        """Use all free space, until `free`."""
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(filler.fileno(), filler.seek(0, os.SEEK_END), size)

    def free(self) -> None:
        """Make room again."""
        (self.folder / "filler").unlink(missing_ok=True)

    @contextlib.contextmanager
    def holds_temporary_files(self) -> Iterator[None]:
        """Put new temporary files and folders of this process on the disk."""
        before, tempfile.tempdir = tempfile.tempdir, str(self.folder)
        try:
            yield
        finally:
            tempfile.tempdir = before


def can_mount() -> bool:
    """Whether this process may mount a disk."""
    try:
        with Disk(1):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
