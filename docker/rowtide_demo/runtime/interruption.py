"""Ctrl-C and SIGTERM: the first one ends the demo wherever it is; what it has started is then ended in order."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

__all__ = ["Interrupted", "Interruption", "interruptible"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The demo was told to end."""


class Interruption:
    """Whether the demo was told to end, and by which signal.

    The signal raises `Interrupted` in the main thread. Python drops an exception that is raised inside of a destructor,
    so `check` is called wherever the demo waits.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._held = False

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        if self.number is None:
            self.number = number
            self.check()

    def check(self) -> None:
        """Raise `Interrupted` if the demo was told to end and is not ending already."""
        if self.number is not None and not self._held:
            raise Interrupted

    def hold(self) -> None:
        """From now on signals are only noted: what was started is being ended."""
        self._held = True

    @property
    def exit_code(self) -> int:
        """What a shell expects of a program that a signal has ended."""
        return 128 + (self.number or 0)


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Handle Ctrl-C, SIGTERM and the end of the terminal inside of the block."""
    interruption = Interruption()
    before = {number: signal.signal(number, interruption.receive) for number in _SIGNALS}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
