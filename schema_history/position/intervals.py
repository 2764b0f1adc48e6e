"""The transaction numbers of one source of a GTID set, as ranges."""

from bisect import bisect_right
from collections.abc import Iterator


class Intervals:
    """A set of integers as sorted, disjoint, non-adjacent ranges; ``stops`` are exclusive."""

    __slots__ = ("_text", "starts", "stops")

    def __init__(self, starts: list[int] | None = None, stops: list[int] | None = None) -> None:
        self.starts = starts if starts is not None else []
        self.stops = stops if stops is not None else []
        self._text: str | None = None

    def copy(self) -> "Intervals":
        """Return an independent copy."""
        return Intervals(self.starts.copy(), self.stops.copy())

    def add(self, start: int, stop: int) -> None:
        """Add a range; at the end, where nearly all additions are, without a search."""
        starts, stops = self.starts, self.stops
        self._text = None
        if starts and start == stops[-1]:
            stops[-1] = stop
        elif not starts or start > stops[-1]:
            starts.append(start)
            stops.append(stop)
        else:
            first = bisect_right(stops, start - 1)  # the first range that touches or follows
            last = bisect_right(starts, stop)  # after the last range that touches
            if first < last:
                start, stop = min(start, starts[first]), max(stop, stops[last - 1])
            starts[first:last] = [start]
            stops[first:last] = [stop]

    def subtract(self, start: int, stop: int) -> None:
        """Remove a range."""
        starts, stops = self.starts, self.stops
        first, last = bisect_right(stops, start), bisect_right(starts, stop - 1)
        if first >= last:
            return
        self._text = None
        left, right = starts[first], stops[last - 1]
        keep = [(a, b) for a, b in ((left, start), (stop, right)) if a < b]
        starts[first:last] = [a for a, _ in keep]
        stops[first:last] = [b for _, b in keep]

    def contains(self, start: int, stop: int) -> bool:
        """Return whether all of a range is in the set."""
        index = bisect_right(self.starts, start) - 1
        return index >= 0 and stop <= self.stops[index]

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Return the first number of each range, and the one after its last."""
        return zip(self.starts, self.stops, strict=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intervals) and self.starts == other.starts and self.stops == other.stops

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        if self._text is None:
            self._text = ":".join(_range_text(start, stop) for start, stop in self.pairs())
        return self._text

    def text_before_last(self) -> str:
        """Return the text without that of the last range."""
        return str(self).removesuffix(_range_text(self.starts[-1], self.stops[-1]))


def _range_text(start: int, stop: int) -> str:
    return f"{start}-{stop - 1}" if stop - start > 1 else str(start)
