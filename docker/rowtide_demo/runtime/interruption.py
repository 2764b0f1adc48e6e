"""Ctrl-C, SIGTERM and SIGHUP: the first of them interrupts the demo, which then stops everything that it started."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

__all__ = ["Interrupted", "Interruption", "interruptible"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal interrupted the demo."""


class Interruption:
    """The signal that interrupted the demo, if any.

    The handler raises `Interrupted` in the main thread. Python discards exceptions that are raised in a destructor, so
    the demo also calls `check` wherever it waits.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._held = False

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Return the signal handler."""
        if self.number is None:
            self.number = number
            self.check()

    def check(self) -> None:
        """Raise `Interrupted` if a signal has arrived and the demo is not stopping already."""
        if self.number is not None and not self._held:
            raise Interrupted

    def hold(self) -> None:
        """Ignore signals from now on, because the demo is stopping its programs."""
        self._held = True

    @property
    def exit_code(self) -> int:
        """The exit code by which a shell reports a program that a signal ended."""
        return 128 + (self.number or 0)


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Handle the signals within the block."""
    interruption = Interruption()
    before = {number: signal.signal(number, interruption.receive) for number in _SIGNALS}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
