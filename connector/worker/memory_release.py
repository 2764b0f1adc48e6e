"""Returns memory that is no longer used to the operating system.

The C library keeps the memory that a snapshot or a long backlog has used, 130 MB in arenas of several threads, although
most of it is free.
"""

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

from mode import Service

log = logging.getLogger(__name__)

_INTERVAL_S = 30.0
_GROWTH = 32 << 20
_STATM = Path("/proc/self/statm")


class MemoryRelease(Service):
    """Returns free memory while the process has more resident memory than at its start.

    It takes 25 to 70 ms with a gigabyte, and ten times as much if the free memory is scattered. So a thread does it,
    while the event loop continues; only allocations in the arena that is being trimmed wait. Where the C library
    has no ``malloc_trim``, the service does nothing.

    Args:
        interval: seconds between two checks.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(self, interval: float = _INTERVAL_S, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._interval = interval

    @Service.task
    async def _release(self) -> None:
        start = resident()
        while start and not self.should_stop:
            await self.sleep(self._interval)
            before = resident()
            if before and before - start > _GROWTH:
                await asyncio.to_thread(release)
                log.debug("resident memory: %d MB, %d before free memory was returned", resident() >> 20, before >> 20)


def resident() -> int:
    """Return the resident memory of this process in bytes; 0 if ``/proc`` is missing or cannot be read."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:  # such as one open file too many, which is not a reason to end
        return 0


def release() -> None:
    """Return free memory to the operating system; see malloc_trim(3). Other threads run at the same time."""
    import ctypes  # noqa: PLC0415 - most workers never need it

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
