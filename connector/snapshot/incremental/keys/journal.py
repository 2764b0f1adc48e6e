"""The keys of the row events that the stream has emitted since reading of a table began."""

from collections.abc import Hashable, Iterable
from enum import Enum, auto

_PRUNE_FROM = 10_000


class Verdict(Enum):
    """The decision about a row that was read."""

    EMIT = auto()
    DROP = auto()
    """The stream has emitted this state of the row, or a later one."""
    READ_AGAIN = auto()
    """The stream has emitted an event of this key that does not replace the row."""


class Journal:
    """The keys of emitted row events, each with the number of its last event.

    Attributes:
        number: the number of the last event. A row that is read from now on is compared only with later events.
    """

    def __init__(self) -> None:
        self.number = 0
        self._keys: dict[Hashable, tuple[int, bool]] = {}
        self._unknown = 0
        self._prune_at = _PRUNE_FROM

    def __len__(self) -> int:
        return len(self._keys)

    def record(self, keys: Iterable[Hashable], *, replaces: bool) -> None:
        """Record the keys of an event.

        Args:
            keys: of all its row images.
            replaces: whether its records hold complete rows, so that a consumer needs no earlier state.
        """
        self.number += 1
        number, known = self.number, self._keys
        for key in keys:
            known[key] = number, replaces

    def record_unknown(self) -> None:
        """Record an event that may have had any key."""
        self.number += 1
        self._unknown = self.number

    def concerns(self, since: int) -> bool:
        """Return whether there were events after event number ``since``."""
        return self.number > since

    def keys_since(self, since: int) -> set[Hashable] | None:
        """Return the keys of the events after number ``since``; ``None`` if one of these may have had any key."""
        if self._unknown > since:
            return None
        return {key for key, (number, _) in self._keys.items() if number > since}

    def verdict(self, key: Hashable, since: int) -> Verdict:
        """Return the decision about a row that was read when event ``since`` was the last one."""
        if self._unknown > since:
            return Verdict.READ_AGAIN
        number, replaces = self._keys.get(key, (0, True))
        if number <= since:
            return Verdict.EMIT
        return Verdict.DROP if replaces else Verdict.READ_AGAIN

    def prune(self, since: int) -> None:
        """Forget the events up to number ``since``, from time to time."""
        if len(self._keys) >= self._prune_at:
            self._keys = {key: entry for key, entry in self._keys.items() if entry[0] > since}
            self._prune_at = max(_PRUNE_FROM, 2 * len(self._keys))
