"""Notices when this process has been suspended for so long that another one may run its connectors."""

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

_TICK_S = 0.2
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The monotonic clock of Linux stops while the machine is suspended; that since the boot does not, clock_gettime(2)."""


def _now() -> float:
    return time.clock_gettime(_CLOCK)


class Lease:
    """Watches the clock in a thread: it jumps if the process was stopped (SIGSTOP, a paused virtual machine).

    Args:
        limit_s: the seconds after which the group may have assigned the connectors to another process: less than the
            session timeout.
        on_lapse: called in the thread before anything that may take long, with the seconds that have passed.
        clock: seconds of a clock that is never set back.
    """

    def __init__(self, limit_s: float, on_lapse: Callable[[float], None], clock: Callable[[], float] = _now) -> None:
        self._limit_s = limit_s
        self._on_lapse = on_lapse
        self._clock = clock
        self._seen = clock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._seen = self._clock()
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._stop.set()

    def tick(self) -> None:
        """Check the clock."""
        missing = self._clock() - self._seen
        if missing > self._limit_s:
            log.warning("this process did not run for %.1f s: another process may run its connectors", missing)
            self._on_lapse(missing)
        self._seen = self._clock()  # what on_lapse takes is not missing

    def _run(self) -> None:
        while not self._stop.wait(_TICK_S):
            self.tick()
