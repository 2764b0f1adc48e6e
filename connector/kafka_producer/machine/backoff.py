"""The delay before the next attempt."""

from dataclasses import dataclass

_MOST_DOUBLINGS = 32


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double with every consecutive failure.

    Attributes:
        first_s: the delay after the first failure, in seconds (``retry.backoff.ms``).
        longest_s: the longest delay (``retry.backoff.max.ms``).
    """

    first_s: float = 0.1
    longest_s: float = 1.0

    def delay(self, failures: int) -> float:
        """Return the delay after this number of consecutive failures, at least one."""
        return min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))


class Retry:
    """The next attempt of an operation that may fail.

    Attributes:
        at: the time of the next attempt; past, if it may be made now.
    """

    __slots__ = ("_backoff", "_failures", "at")

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._failures = 0
        self.at = float("-inf")

    def failed(self, now: float) -> None:
        """Note that an attempt failed: the next wait is longer than the last one."""
        self._failures += 1
        self.at = now + self._backoff.delay(self._failures)

    def succeeded(self) -> None:
        """Note that an attempt succeeded: the next one may be made immediately."""
        self._failures = 0
        self.at = float("-inf")
