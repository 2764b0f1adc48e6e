"""Makes new and renamed files of a folder outlast a power cut."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Write a folder through to the disk.

    Raises:
        OSError: it cannot be written.
    """
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
