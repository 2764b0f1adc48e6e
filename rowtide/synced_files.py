"""Writes files and their names durably, so that they survive a power cut."""

import contextlib
import os
from pathlib import Path


def write_synced(path: Path, content: bytes) -> None:
    """Write a file through to the disk. After an ``OSError``, the file may have a part of the content."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file in one step: after an error or a crash it has the old content, or the new one.

    The new content is first written to a file with the same name and the suffix ``.new``. Call `sync_folder` if the new
    content must not be lost by a power cut.

    Raises:
        OSError: the file cannot be written.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        write_synced(new, content)
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()  # on a full disk, a part of the content would take space for nothing
        raise


def sync_folder(folder: Path) -> None:
    """Write the names of a folder's files through to the disk. Raises ``OSError``."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
