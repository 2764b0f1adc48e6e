"""The few positions of many that decide whether all of them belong to the state at another position."""

from collections.abc import Iterable

from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter, parse_gtids
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition


class CoveredPositions:
    """Positions that no other one stands behind for certain: if all of these are reached, then all are.

    Args:
        places: to begin with.
    """

    def __init__(self, places: Iterable[BinlogPosition] = ()) -> None:
        self._places: dict[BinlogPosition, GtidSet | MariadbGtidPosition | None] = {}
        for place in places:
            self.add(place)

    @property
    def places(self) -> tuple[BinlogPosition, ...]:
        """The positions."""
        return tuple(self._places)

    def add(self, place: BinlogPosition) -> None:
        """Let it reach a position too.

        Raises:
            ValueError: its GTIDs or file name cannot be read.
        """
        if place in self._places:
            return
        gtids = None if place.gtids is None else parse_gtids(place.gtids)
        if any(_before(place, gtids, other, known) for other, known in self._places.items()):
            return
        for other in [other for other, known in self._places.items() if _before(other, known, place, gtids)]:
            del self._places[other]
        self._places[place] = gtids

    def within(self, position: BinlogPosition) -> bool:
        """Whether all positions that were added belong to the state at a position."""
        reach = PositionFilter(position)
        return all(reach.includes(place) for place in self._places)


def _before(
    place: BinlogPosition,
    gtids: GtidSet | MariadbGtidPosition | None,
    other: BinlogPosition,
    known: GtidSet | MariadbGtidPosition | None,
) -> bool:
    """Whether every position that includes the other one includes the first too, by the rules of ``PositionFilter``."""
    if isinstance(gtids, GtidSet) and isinstance(known, GtidSet):
        return gtids <= known and not known <= gtids
    if isinstance(gtids, MariadbGtidPosition) and isinstance(known, MariadbGtidPosition):
        return gtids <= known and not known <= gtids
    if gtids is not None or known is not None:
        return False
    return (
        (place.server_id, place.base_name) == (other.server_id, other.base_name)
        and place.ts_sec <= other.ts_sec
        and (place.file_number, place.pos, place.event, place.row)
        <= (other.file_number, other.pos, other.event, other.row)
    )
