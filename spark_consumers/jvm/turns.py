"""Turns of processes that write the same tables on a local disk.

There, a commit of Delta Lake or of an Iceberg table without a catalog looks whether its file exists, and then renames
it: safe among the threads of a process, but not between two. Other file systems have no locks, and need none.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from rowtide.spark_consumers.errors import StateError
from rowtide.spark_consumers.jvm.files import HadoopFiles

LONGEST_WAIT = 600.0
"""Seconds that a process waits for its turn."""
_PAUSE = 0.2


@dataclass(slots=True)
class _Turn:
    """The lock of a table, which the threads of this process share."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    holders: int = 0
    held: ExitStack = field(default_factory=ExitStack)


_TURNS: dict[str, _Turn] = {}


@contextmanager
def turn(files: HadoopFiles, path: str, wait: float = LONGEST_WAIT) -> Iterator[None]:
    """Exclude other processes while the context is open; first wait until another one has ended.

    Args:
        files: the file system.
        path: of the lock.
        wait: seconds.

    Raises:
        StateError: another process did not end in time.
    """
    shared = _TURNS.setdefault(path, _Turn())
    with shared.guard:
        if not shared.holders:
            _enter(shared.held, files, path, time.monotonic() + wait)
        shared.holders += 1
    try:
        yield
    finally:
        with shared.guard:
            shared.holders -= 1
            if not shared.holders:
                shared.held.close()


def _enter(stack: ExitStack, files: HadoopFiles, path: str, until: float) -> None:
    while True:
        try:
            stack.enter_context(files.lock(path))
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise StateError(
                    f"another run or upkeep of this table has not ended in {LONGEST_WAIT:.0f} s ({error}; {path}): run "
                    "the command again when it has"
                ) from error
            time.sleep(_PAUSE)
        else:
            return
