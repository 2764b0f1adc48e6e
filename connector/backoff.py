"""The wait before another attempt at an operation that has failed."""

_MOST_DOUBLINGS = 32


def backoff_s(failures: int, first_s: float, longest_s: float) -> float:
    """Return the wait after a number of consecutive failures, in seconds.

    Args:
        failures: how many, at least one.
        first_s: the wait after the first failure.
        longest_s: the longest wait.
    """
    return min(longest_s, first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))


class Backoff:
    """Counts consecutive failures, after each of which the wait is twice as long.

    Args:
        first_s: the wait after the first failure, in seconds.
        longest_s: the longest wait.
    """

    __slots__ = ("_failures", "_first_s", "_longest_s")

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._failures = 0

    def failed(self) -> float:
        """Count a failure, and return the wait before the next attempt, in seconds."""
        self._failures += 1
        return backoff_s(self._failures, self._first_s, self._longest_s)

    def succeeded(self) -> None:
        """Note that an attempt succeeded: the next failure is the first one."""
        self._failures = 0
