"""Events that a server has published twice: after a crash, it resumes at the last position that it saved."""

from collections import OrderedDict

from rowtide.databus.events import Position, QueryEvent, RowsEvent

LOOK_BACK = 10_000
"""The number of events among which repeats are found."""


class Repeats:
    """Finds repeated events by the positions of their keys and their content.

    The original drops all events whose binlog file has a lower number than the last one: if the last one was in a file
    of another server before a fail-over, it drops them forever. Here, only repeats are dropped. Their content counts,
    too: after RESET BINARY LOGS AND GTIDS, or a fail-over to a server whose files have the same names, positions are
    repeated with other changes.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[Position, int], None] = OrderedDict()

    def seen(self, position: Position, event: RowsEvent | QueryEvent) -> bool:
        """Return whether this event is a repeat, and remember it."""
        known = position, _content(event)
        if known in self._seen:
            return True
        self._seen[known] = None
        if len(self._seen) > LOOK_BACK:
            self._seen.popitem(last=False)
        return False

    def forget(self, position: Position) -> None:
        """Accept events with this position, even if they are repeats."""
        for known in [known for known in self._seen if known[0] == position]:
            del self._seen[known]


def _content(event: RowsEvent | QueryEvent) -> int:
    """Return a hash of the changes of an event.

    The structure is ignored, because its statistics may differ in a repeat.
    """
    change = event.query if isinstance(event, QueryEvent) else event.rows
    return hash((event.action, str(event.table), change))
