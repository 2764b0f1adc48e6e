"""The positions that a summary covers, reduced to the few that determine whether it may be used."""

from collections.abc import Iterable

from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter, parse_gtids
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition


class CoveredPositions:
    """A set of positions, reduced to its latest ones: those for which no other one is known to be later.

    If all of these belong to the state at some position, then all positions that were ever added do.

    Args:
        positions: the first ones to add.
    """

    def __init__(self, positions: Iterable[BinlogPosition] = ()) -> None:
        self._latest: dict[BinlogPosition, GtidSet | MariadbGtidPosition | None] = {}
        for position in positions:
            self.add(position)

    @property
    def latest(self) -> tuple[BinlogPosition, ...]:
        """The positions that stand for all others."""
        return tuple(self._latest)

    def add(self, position: BinlogPosition) -> None:
        """Add a position.

        Raises:
            ValueError: its GTIDs or file name cannot be parsed.
        """
        if position in self._latest:
            return
        gtids = None if position.gtids is None else parse_gtids(position.gtids)
        if any(_is_implied_by(position, gtids, other, known) for other, known in self._latest.items()):
            return
        for other in [o for o, known in self._latest.items() if _is_implied_by(o, known, position, gtids)]:
            del self._latest[other]
        self._latest[position] = gtids

    def all_within(self, position: BinlogPosition) -> bool:
        """Return whether all positions that were added belong to the state at ``position``."""
        accepted = PositionFilter(position)
        return all(accepted.includes(each) for each in self._latest)


def _is_implied_by(
    position: BinlogPosition,
    gtids: GtidSet | MariadbGtidPosition | None,
    other: BinlogPosition,
    other_gtids: GtidSet | MariadbGtidPosition | None,
) -> bool:
    """Return whether every state that includes the other position also includes this one (``PositionFilter``)."""
    if isinstance(gtids, GtidSet) and isinstance(other_gtids, GtidSet):
        return gtids <= other_gtids and not other_gtids <= gtids
    if isinstance(gtids, MariadbGtidPosition) and isinstance(other_gtids, MariadbGtidPosition):
        return gtids <= other_gtids and not other_gtids <= gtids
    if gtids is not None or other_gtids is not None:
        return False
    return (
        (position.server_id, position.base_name) == (other.server_id, other.base_name)
        and position.ts_sec <= other.ts_sec
        and (position.file_number, position.pos, position.event, position.row)
        <= (other.file_number, other.pos, other.event, other.row)
    )
