"""What a start at one position would repeat or miss, compared with another position. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.search.positions import Found
from rowtide.schema_history.position.binlog_position import file_number
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition


@dataclass(frozen=True, slots=True)
class Difference:
    """What a start at a found position would do to a connector.

    Attributes:
        repeats: what it would read again; ``None`` if nothing.
        misses: what it would never read; ``None`` if nothing.
        unknown: why the positions cannot be compared; ``None`` if they can.
    """

    repeats: str | None = None
    misses: str | None = None
    unknown: str | None = None


def compared(found: Found, stored: SourceOffset, connector: str, sizes: Mapping[str, int]) -> Difference:
    """Compare a found position with the stored one: by GTIDs if both have them, else by file and position.

    Args:
        found: the found position.
        stored: the stored position.
        connector: ``mysql`` or ``mariadb``.
        sizes: the sizes of the binlog files by their names, oldest first.
    """
    if found.gtids is not None and stored.gtids is not None:
        return _by_gtids(found.gtids, stored, connector)
    if found.file.rpartition(".")[0] != stored.file.rpartition(".")[0]:
        return Difference(unknown=f"binlog files {found.file} and {stored.file} are not of one server")
    here, there = _place(found.file, found.pos), _place(stored.file, stored.pos)
    between = f"{_text(min(here, there), found)} to {_text(max(here, there), found)}{_bytes(here, there, sizes)}"
    if here > there:
        return Difference(misses=between)
    if here < there:
        return Difference(repeats=between)
    return Difference(repeats=_part(stored))


def _by_gtids(gtids: str, stored: SourceOffset, connector: str) -> Difference:
    if connector == "mysql":
        here, there = GtidSet.parse(gtids), GtidSet.parse(stored.gtids or "")
        repeats = str(there - here) or _part(stored)
        return Difference(repeats=repeats or None, misses=str(here - there) or None)
    before, after = MariadbGtidPosition.parse(gtids), MariadbGtidPosition.parse(stored.gtids or "")
    return Difference(repeats=_ahead(after, before) or _part(stored), misses=_ahead(before, after))


def _ahead(one: MariadbGtidPosition, other: MariadbGtidPosition) -> str | None:
    """The transactions up to one position that are behind the other one."""
    last = {gtid.domain: gtid for gtid in other}
    ahead = [
        f"{gtid.domain}-{gtid.server_id}-{last[gtid.domain].sequence + 1 if gtid.domain in last else 1} to {gtid}"
        for gtid in one
        if not other.contains(gtid)
    ]
    return ", ".join(ahead) or None


def _part(stored: SourceOffset) -> str | None:
    """The part of its transaction that the connector has read."""
    if not stored.event and not stored.row:
        return None
    return f"{stored.event} events and {stored.row} rows of the transaction at {stored.file}:{stored.pos}"


def _place(file: str, pos: int) -> tuple[int, int]:
    return file_number(file) or 0, pos


def _text(place: tuple[int, int], found: Found) -> str:
    base, _, digits = found.file.rpartition(".")
    return f"{base}.{place[0]:0{len(digits)}}:{place[1]}"


def _bytes(one: tuple[int, int], other: tuple[int, int], sizes: Mapping[str, int]) -> str:
    first, last = min(one, other), max(one, other)
    numbers = {file_number(name): size for name, size in sizes.items()}
    if not all(number in numbers for number in range(first[0], last[0])):
        return ""
    total = sum(numbers[number] for number in range(first[0], last[0])) + last[1] - first[1]
    return f" ({total} bytes)"
