"""Events that a server has published twice: after a crash, it begins behind the last position that it had saved."""

from collections import OrderedDict

from rowtide.databus.events import Position

LOOK_BACK = 10_000
"""The number of events among which repeats are found."""


class Repeats:
    """Finds events that were there before, by the positions of their keys.

    The original drops all events whose binlog file has a lower number than the last one: for ever, if that was the
    file of another server before a fail-over. Only keys that were there are dropped here.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[Position, None] = OrderedDict()

    def seen(self, position: Position) -> bool:
        """Whether an event with this position was there before; from now on, it was."""
        if position in self._seen:
            return True
        self._seen[position] = None
        if len(self._seen) > LOOK_BACK:
            self._seen.popitem(last=False)
        return False

    def forget(self, position: Position) -> None:
        """Expect an event with this position, even if it was there before."""
        self._seen.pop(position, None)
