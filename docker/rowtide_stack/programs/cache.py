"""The cache of downloaded programs: an entry is there whole, or not at all.

Two runs that need the same entry at once do not collide: one builds it under a lock of the operating system, the other
waits and then finds it. An entry is built in a folder beside its place and renamed when it is complete, so a run that
is killed in the middle leaves nothing that looks finished.
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
    """The folder of all entries: ``$ROWTIDE_CACHE``, else ``rowtide`` in the user's cache folder (XDG)."""
    if own := os.environ.get("ROWTIDE_CACHE"):
        return Path(own).absolute()
    # The XDG specification: an empty or relative XDG_CACHE_HOME counts as unset.
    base = Path(os.environ.get("XDG_CACHE_HOME") or ".")
    return (base if base.is_absolute() else Path.home() / ".cache") / "rowtide"


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock ``name`` of this cache; wait for whoever holds it. It is freed even if the holder is killed."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """The folder of the entry ``name``, which must contain its version; ``build`` fills a new one if it is not there.

    Raises:
        ValueError: ``name`` is not usable as a folder's name.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise ValueError(f"a cache entry is named with lower-case letters, digits, dots and dashes, not {name!r}")
    entry = cache_root() / name
    if entry.is_dir():
        return entry
    with locked(name):
        if entry.is_dir():
            return entry
        for left_over in entry.parent.glob(f".{name}.*.part"):  # whoever made it was killed: we hold the lock
            shutil.rmtree(left_over)
        part = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".part", dir=entry.parent))
        try:
            build(part)
            part.chmod(0o755)  # mkdtemp makes it private
            part.rename(entry)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return entry
