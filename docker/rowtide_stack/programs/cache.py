"""The cache of downloaded programs, whose entries are always complete.

An entry is built in a temporary folder under a file lock, and renamed when it is complete. A second process that needs
the same entry waits for the lock and then uses the entry. A process that is killed leaves no partial entry.
"""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["cache_root", "cached", "locked"]


def cache_root() -> Path:
    """Return the folder of the cache: ``$ROWTIDE_CACHE``, or ``rowtide`` in the user's cache folder (XDG)."""
    if own := os.environ.get("ROWTIDE_CACHE"):
        return Path(own).absolute()
    # The XDG specification: an empty or relative XDG_CACHE_HOME counts as unset.
    base = Path(os.environ.get("XDG_CACHE_HOME") or ".")
    return (base if base.is_absolute() else Path.home() / ".cache") / "rowtide"


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock ``name`` of this cache, after waiting until it is free.

    It is released even if its holder is killed.
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of an entry of the cache.

    Args:
        name: the name of the entry, which should contain a version.
        build: fills the empty folder of a new entry.

    Raises:
        ValueError: ``name`` cannot be the name of a folder.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise ValueError(f"a cache entry is named with lower-case letters, digits, dots and dashes, not {name!r}")
    entry = cache_root() / name
    if entry.is_dir():
        return entry
    with locked(name):
        if entry.is_dir():
            return entry
        for left_over in entry.parent.glob(f".{name}.*.part"):  # its builder was killed, as we hold the lock
            shutil.rmtree(left_over)
        part = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".part", dir=entry.parent))
        try:
            build(part)
            part.chmod(0o755)  # mkdtemp creates it with 0700
            part.rename(entry)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return entry
