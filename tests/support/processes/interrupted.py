"""Ctrl-C at a chosen place of a program."""

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType


class Interrupted:
    """Raises KeyboardInterrupt where a function of some modules begins or ends, as Ctrl-C in the main thread can.

    Args:
        number: how many of these places come before.
        modules: these modules.
        never: functions in which it is not raised.
    """

    def __init__(self, number: int, modules: Collection[ModuleType], never: Collection[CodeType] = ()) -> None:
        self._left = number
        self._files = {module.__file__ for module in modules}
        self._never = never

    @property
    def raised(self) -> bool:
        """Whether there were so many places."""
        return self._left < 0

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Raise it in the block."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(before)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> "Interrupted | None":
        """Count a place: a trace function of :func:`sys.settrace`."""
        if frame.f_code.co_filename not in self._files or frame.f_code in self._never:
            return None
        frame.f_trace_lines = False
        self._left -= 1
        if self._left == -1:
            raise KeyboardInterrupt
        return self
