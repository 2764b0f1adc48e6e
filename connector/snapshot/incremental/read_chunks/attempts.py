"""Decides how the next chunk of a table is read after unsuccessful attempts. Pure."""

_MAX_REFUSED = 8
_REPORTED_EACH = 8


class Attempts:
    """The reads of a chunk until one can be emitted, with fewer rows each time if that may help.

    Args:
        size: rows of the first chunk of a table.

    Attributes:
        size: rows of the next chunk.
        limit: the maximum number of rows of a chunk of the table; ``None`` if no chunk was too large.
        refused: the number of times the server has refused the query since the last chunk.
        in_vain: the number of reads since the last emitted chunk that could not be emitted.
        held: whether the stream waits while the next chunk is read, because its rows change.
    """

    def __init__(self, size: int) -> None:
        self._first = self.size = size
        self.limit: int | None = None
        self.refused = self.in_vain = 0
        self.held = False

    def next_table(self) -> None:
        """Start with another table."""
        self.limit = None
        self.emitted(self._first)

    def emitted(self, size: int) -> None:
        """Note that a chunk was emitted; the next one has ``size`` rows."""
        self.size = size
        self.refused = self.in_vain = 0
        self.held = False

    def too_large(self, rows: int) -> None:
        """Note that this number of rows is too large for a chunk of this table."""
        self.size = self.limit = max(1, rows // 2)

    def server_refused(self) -> None:
        """Note that the server has refused the query."""
        self.refused += 1
        self._halve()

    def rows_changed(self) -> None:
        """Note that rows of the chunk have changed so that it cannot be emitted."""
        self.in_vain += 1
        if self.held:
            self._halve()
        self.held = True

    def structure_changed(self) -> None:
        """Note that the table has a different structure when the stream has passed the chunk."""
        self.in_vain += 1

    def _halve(self) -> None:
        self.size = max(1, self.size // 2)

    @property
    def exhausted(self) -> bool:
        """Whether the server has refused the query too often."""
        return self.refused >= _MAX_REFUSED

    @property
    def delays(self) -> int:
        """How often the next chunk is postponed, each time for longer.

        Many unsuccessful reads are a load for the server. They count only once, because the next one may succeed.
        """
        return max(self.refused, int(self.in_vain >= _REPORTED_EACH))

    @property
    def to_report(self) -> bool:
        """Whether to report the last of many unsuccessful reads."""
        return self.in_vain > 0 and self.in_vain % _REPORTED_EACH == 0
