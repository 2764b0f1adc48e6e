"""Computes the transactions that a start at one position would repeat or miss, compared with another position. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.search.positions import FoundPosition
from rowtide.schema_history.position.binlog_position import file_number
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtid, MariadbGtidPosition


@dataclass(frozen=True, slots=True)
class Difference:
    """The effect of a start at a found position on a connector.

    Attributes:
        repeats: the transactions that it would read again; ``None`` if there are none.
        misses: the transactions that it would never read; ``None`` if there are none.
        unknown: the reason why the positions cannot be compared; ``None`` if they can.
    """

    repeats: str | None = None
    misses: str | None = None
    unknown: str | None = None


UnreadRows = Callable[[], int | None]
"""How many rows of the stored position's transaction are not processed yet; ``None`` if that is unknown."""


def compared(
    found: FoundPosition, stored: SourceOffset, connector: str, sizes: Mapping[str, int], unread: UnreadRows
) -> Difference:
    """Compare a found position with the stored one: by GTIDs if both have them, otherwise by file and position.

    Args:
        found: the found position.
        stored: the stored position.
        connector: ``mysql`` or ``mariadb``.
        sizes: the sizes of the binlog files by their names, oldest first.
        unread: called if the stored position is inside a transaction that a start at the found one would skip.
    """
    if found.gtids is not None and stored.gtids is not None:
        return _by_gtids(found.gtids, stored, connector, unread)
    if found.file.rpartition(".")[0] != stored.file.rpartition(".")[0]:
        return Difference(unknown=f"binlog files {found.file} and {stored.file} belong to different servers")
    here, there = _place(found.file, found.pos), _place(stored.file, stored.pos)
    between = f"{_text(min(here, there), found)} to {_text(max(here, there), found)}{_bytes(here, there, sizes)}"
    if here > there:
        return Difference(
            misses=f"{between}, apart from {_read_part(stored, unread())}" if stored.done_within else between
        )
    if here < there:
        return Difference(repeats=between)
    return Difference(repeats=stored.done_within or None)


def _by_gtids(gtids: str, stored: SourceOffset, connector: str, unread: UnreadRows) -> Difference:
    current = stored.within if stored.done_within else None
    if connector == "mysql":
        here, there = GtidSet.parse(gtids), GtidSet.parse(stored.gtids or "")
        repeats, misses = str(there - here) or None, str(here - there) or None
        if current is not None and GtidSet.parse(current) <= here:
            return Difference(repeats, _behind(stored, str(here - there - GtidSet.parse(current)), unread()))
    else:
        before, after = MariadbGtidPosition.parse(gtids), MariadbGtidPosition.parse(stored.gtids or "")
        repeats, misses = _ahead(after, before), _ahead(before, after)
        if current is not None and before.contains(MariadbGtid.parse(current)):
            after.add(MariadbGtid.parse(current))
            return Difference(repeats, _behind(stored, _ahead(before, after), unread()))
    return Difference(repeats or stored.done_within or None, misses)


def _behind(stored: SourceOffset, others: str | None, unread: int | None) -> str | None:
    """Return the transactions that a start misses, including the unread part of the current transaction."""
    rest = None
    if unread is None:
        rest = f"any rows after {stored.done_within} (the binlog does not show whether there are any)"
    elif unread:
        rest = f"{_rows(unread)} after {stored.done_within}"
    return " and ".join(part for part in (others, rest) if part) or None


def _read_part(stored: SourceOffset, unread: int | None) -> str:
    """Return the part of the stored position's transaction that the connector has read."""
    if unread is None:
        return stored.done_within
    return f"{stored.done_within}, {f'after which {_rows(unread)} follow' if unread else 'which are all of its rows'}"


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"


def _ahead(one: MariadbGtidPosition, other: MariadbGtidPosition) -> str | None:
    """Return the transactions between one position and the other."""
    last = {gtid.domain: gtid for gtid in other}
    ahead = [
        f"{gtid.domain}-{gtid.server_id}-{last[gtid.domain].sequence + 1 if gtid.domain in last else 1} to {gtid}"
        for gtid in one
        if not other.contains(gtid)
    ]
    return ", ".join(ahead) or None


def _place(file: str, pos: int) -> tuple[int, int]:
    return file_number(file) or 0, pos


def _text(place: tuple[int, int], found: FoundPosition) -> str:
    base, _, digits = found.file.rpartition(".")
    return f"{base}.{place[0]:0{len(digits)}}:{place[1]}"


def _bytes(one: tuple[int, int], other: tuple[int, int], sizes: Mapping[str, int]) -> str:
    first, last = min(one, other), max(one, other)
    numbers = {file_number(name): size for name, size in sizes.items()}
    if not all(number in numbers for number in range(first[0], last[0])):
        return ""
    total = sum(numbers[number] for number in range(first[0], last[0])) + last[1] - first[1]
    return f" ({total} bytes)"
