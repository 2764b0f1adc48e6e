"""Sets of global transaction identifiers: MySQL's ``uuid[:tag]:intervals`` and MariaDB's ``domain-server-sequence``.

The text forms are those of the servers without line breaks, and for MySQL also Debezium's, which writes 5 as ``5-5``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rowtide.schema_history.position.intervals import Intervals

_GNO_END = 2**63 - 1
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}\Z")
_INTERVAL = re.compile(r"([0-9]+)(?:\s*-\s*([0-9]+))?\Z")
_PLACE = "\0"


def source_of(gtid: str) -> str:
    """Return the source of one GTID: the UUID of ``uuid:5`` or ``uuid:tag:5``, and ``0-1`` of MariaDB's ``0-1-5``."""
    return gtid.partition(":")[0] if ":" in gtid else gtid.rpartition("-")[0]


class GtidSet:
    """A set of MySQL GTIDs, tagged ones (8.3 and later) included. It is mutable: ``copy`` it before sharing.

    Adding a transaction at the end takes constant time, and so does ``str``, if the previous one had the same source.
    """

    __slots__ = ("_around", "_growing", "_sets", "_text")

    def __init__(self) -> None:
        self._sets: dict[str, dict[str, Intervals]] = {}
        self._text: str | None = None
        # The ranges that were added to last, and the text before and after the end of the last one of them.
        self._growing: Intervals | None = None
        self._around: tuple[str, str] | None = None

    @classmethod
    def parse(cls, text: str) -> "GtidSet":
        """Parse the text of the server or of Debezium.

        Raises:
            ValueError: the text is not a GTID set; the message names the invalid part.
        """
        result = cls()
        for part in text.split(","):
            if part := part.strip():
                result._parse_part(part.lower(), text)
        return result

    def _parse_part(self, part: str, text: str) -> None:
        uuid, *pieces = (piece.strip() for piece in part.split(":"))
        if not _UUID.match(uuid):
            raise ValueError(f"not a GTID set: {uuid!r} is not a UUID, in {text!r}")
        tag = ""
        for piece in pieces:
            if match := _INTERVAL.match(piece):
                start = int(match[1])
                stop = int(match[2] or start) + 1
                if not 0 < start < _GNO_END or stop > _GNO_END:
                    raise ValueError(f"not a GTID set: the numbers of {piece!r} are out of range, in {text!r}")
                if start < stop:  # the server reads 5-3 as empty
                    self._add_range(_dashed(uuid), tag, start, stop)
            elif _TAG.match(piece):
                tag = piece
            elif piece:
                raise ValueError(f"not a GTID set: {piece!r} is neither an interval nor a tag, in {text!r}")

    def _add_range(self, uuid: str, tag: str, start: int, stop: int) -> None:
        self._sets.setdefault(uuid, {}).setdefault(tag, Intervals()).add(start, stop)
        self._text = self._around = None

    def add(self, uuid: str, gno: int, tag: str = "") -> None:
        """Add one transaction; ``uuid`` and ``tag`` in lower case, as events have them."""
        try:
            intervals = self._sets[uuid][tag]
        except KeyError:
            self._add_range(uuid, tag, gno, gno + 1)
            return
        if intervals is not self._growing or gno != intervals.stops[-1]:
            self._growing, self._around = intervals, None
        intervals.add(gno, gno + 1)
        self._text = None

    def contains(self, uuid: str, gno: int, tag: str = "") -> bool:
        """Return whether one transaction is in the set; ``uuid`` and ``tag`` in lower case."""
        intervals = self._sets.get(uuid, {}).get(tag)
        return intervals is not None and intervals.contains(gno, gno + 1)

    def copy(self) -> "GtidSet":
        """Return an independent copy."""
        other = GtidSet()
        other._sets = {
            uuid: {tag: intervals.copy() for tag, intervals in tags.items()} for uuid, tags in self._sets.items()
        }
        return other

    def update(self, other: "GtidSet") -> None:
        """Add all transactions of another set."""
        for uuid, tag, intervals in other.items():
            for start, stop in intervals:
                self._add_range(uuid, tag, start, stop)

    def __or__(self, other: "GtidSet") -> "GtidSet":
        """Return the union."""
        result = self.copy()
        result.update(other)
        return result

    def __sub__(self, other: "GtidSet") -> "GtidSet":
        """Return the transactions of this set that are not in the other: ``GTID_SUBTRACT``."""
        result = self.copy()
        for uuid, tag, intervals in other.items():
            mine = result._sets.get(uuid, {}).get(tag)
            if mine is not None:
                for start, stop in intervals:
                    mine.subtract(start, stop)
        return result._pruned()

    def __and__(self, other: "GtidSet") -> "GtidSet":
        """Return the transactions that are in both."""
        return self - (self - other)

    def __le__(self, other: "GtidSet") -> bool:
        """Return whether every transaction is in the other set too: ``GTID_SUBSET``."""
        for uuid, tag, intervals in self.items():
            theirs = other._sets.get(uuid, {}).get(tag)
            if theirs is None or not all(theirs.contains(start, stop) for start, stop in intervals):
                return False
        return True

    def __ge__(self, other: "GtidSet") -> bool:
        """Return whether every transaction of the other set is in this one."""
        return other <= self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GtidSet) and self._sets == other._sets

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._sets)

    def __str__(self) -> str:
        """Return the server's text without line breaks: sorted by uuid, untagged intervals before tagged ones."""
        if self._text is None:
            growing = self._growing
            if growing is None or growing.stops[-1] - growing.starts[-1] == 1:
                self._text = self._rendered()
            else:
                if self._around is None:
                    before, _, after = self._rendered(growing).partition(_PLACE)
                    self._around = f"{before}{growing.starts[-1]}-", after
                before, after = self._around
                self._text = f"{before}{growing.stops[-1] - 1}{after}"
        return self._text

    def _rendered(self, growing: Intervals | None = None) -> str:
        """Return the text, in which ``_PLACE`` stands for the last one of the ranges ``growing``."""

        def text(ranges: Intervals) -> str:
            return ranges.text_before_last() + _PLACE if ranges is growing else str(ranges)

        return ",".join(
            ":".join([uuid, *(_tagged(tag, text(tags[tag])) for tag in sorted(tags))])
            for uuid, tags in sorted(self._sets.items())
        )

    def __repr__(self) -> str:
        return f"GtidSet({str(self)!r})"

    def filter(self, keep: Callable[[str], bool]) -> "GtidSet":
        """Return the transactions whose source uuid ``keep`` accepts (``gtid.source.includes`` and ``excludes``)."""
        result = GtidSet()
        for uuid, tag, intervals in self.items():
            if keep(uuid):
                for start, stop in intervals:
                    result._add_range(uuid, tag, start, stop)
        return result

    def encode(self) -> bytes:
        """Return the encoding of COM_BINLOG_DUMP_GTID and PREVIOUS_GTIDS.

        With tags if there is one, otherwise the older one.
        """
        items = list(self.items())
        tagged = any(tag for _, tag, _ in items)
        count = len(items)
        parts = [(1 | count << 8 | 1 << 56 if tagged else count).to_bytes(8, "little")]
        for uuid, tag, intervals in items:
            parts.append(bytes.fromhex(uuid.replace("-", "")))
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode("ascii"))
            parts.append(len(intervals).to_bytes(8, "little"))
            for start, stop in intervals:
                parts.append(start.to_bytes(8, "little") + stop.to_bytes(8, "little"))
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> "GtidSet":
        """Parse the result of ``encode``.

        Raises:
            ValueError: the bytes are truncated or not this encoding.
        """
        result = cls()
        tagged = len(data) >= 8 and data[7] == 1
        if (tagged and data[0] != 1) or len(data) < 8 or data[7] > 1:
            raise ValueError("unknown encoding of a GTID set")
        count = int.from_bytes(data[1:7] if tagged else data[:8], "little")
        pos = 8
        for _ in range(count):
            uuid, tag, pos = data[pos : pos + 16].hex(), "", pos + 16
            if tagged:
                length = data[pos] >> 1 if pos < len(data) else 0
                tag, pos = data[pos + 1 : pos + 1 + length].decode("ascii"), pos + 1 + length
                if tag and not _TAG.match(tag):
                    raise ValueError(f"a GTID set has the invalid tag {tag!r}")
            size, pos = int.from_bytes(data[pos : pos + 8], "little"), pos + 8
            if pos + 16 * size > len(data):
                raise ValueError(f"a GTID set of {len(data)} bytes is truncated")
            for _ in range(size):
                start, stop = (int.from_bytes(data[i : i + 8], "little") for i in (pos, pos + 8))
                if not 0 < start < stop <= _GNO_END:
                    raise ValueError(f"a GTID set has the invalid interval {start} to {stop}")
                result._add_range(_dashed(uuid), tag, start, stop)
                pos += 16
        if pos != len(data):
            raise ValueError(f"a GTID set of {pos} bytes is followed by {len(data) - pos} unknown bytes")
        return result

    def items(self) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
        """Uuid, tag and intervals (first, last + 1) in the order of the text."""
        for uuid, tags in sorted(self._sets.items()):
            for tag in sorted(tags):
                yield uuid, tag, list(tags[tag].pairs())

    def _pruned(self) -> "GtidSet":
        sets = {
            uuid: {tag: intervals for tag, intervals in tags.items() if intervals.starts}
            for uuid, tags in self._sets.items()
        }
        self._sets = {uuid: tags for uuid, tags in sets.items() if tags}
        self._text = self._growing = self._around = None
        return self


def _tagged(tag: str, text: str) -> str:
    return f"{tag}:{text}" if tag else text


def _dashed(uuid: str) -> str:
    digits = uuid.replace("-", "")
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class MariadbGtid(NamedTuple):
    """A MariaDB GTID: replication domain, server id, sequence number."""

    domain: int
    server_id: int
    sequence: int

    @classmethod
    def parse(cls, text: str) -> "MariadbGtid":
        """Parse ``0-1-42``; raises ``ValueError`` if the text is not a GTID."""
        pieces = text.strip().split("-")
        if len(pieces) != 3 or not all(piece.isascii() and piece.isdigit() for piece in pieces):
            raise ValueError(f"not a MariaDB GTID (domain-server-sequence): {text!r}")
        domain, server_id, sequence = map(int, pieces)
        if domain >= 2**32 or server_id >= 2**32 or sequence >= 2**64:
            raise ValueError(f"not a MariaDB GTID: a number is too large: {text!r}")
        return cls(domain, server_id, sequence)

    def __str__(self) -> str:
        return f"{self.domain}-{self.server_id}-{self.sequence}"


class MariadbGtidPosition:
    """A MariaDB GTID position: the last GTID of each domain. It stands for all transactions up to them."""

    __slots__ = ("_last", "_text")

    def __init__(self, last: Mapping[int, MariadbGtid] | None = None) -> None:
        self._last: dict[int, MariadbGtid] = dict(last or {})
        self._text: str | None = None

    @classmethod
    def parse(cls, text: str) -> "MariadbGtidPosition":
        """Parse the text of ``@@gtid_binlog_pos``; raises ``ValueError`` if it is not a position.

        Of several GTIDs in a domain (``@@gtid_binlog_state`` has one per server) the highest sequence number counts.
        """
        result = cls()
        for part in text.split(","):
            if part.strip():
                gtid = MariadbGtid.parse(part)
                if gtid.domain not in result._last or result._last[gtid.domain].sequence < gtid.sequence:
                    result.add(gtid)
        return result

    def add(self, gtid: MariadbGtid) -> None:
        """Advance to a transaction: it becomes the last one of its domain."""
        self._last[gtid.domain] = gtid
        self._text = None

    def copy(self) -> "MariadbGtidPosition":
        """Return an independent copy."""
        return MariadbGtidPosition(self._last)

    def filter(self, keep: Callable[[str], bool]) -> "MariadbGtidPosition":
        """Return the GTIDs whose ``domain-server`` is accepted (``gtid.source.includes`` and ``excludes``)."""
        return MariadbGtidPosition({d: gtid for d, gtid in self._last.items() if keep(f"{d}-{gtid.server_id}")})

    def contains(self, gtid: MariadbGtid) -> bool:
        """Return whether the transaction is at or before this position."""
        last = self._last.get(gtid.domain)
        return last is not None and last.sequence >= gtid.sequence

    def __or__(self, other: "MariadbGtidPosition") -> "MariadbGtidPosition":
        """Return the later position of the two in every domain."""
        result = self.copy()
        for gtid in other._last.values():
            if not result.contains(gtid):
                result.add(gtid)
        return result

    def __le__(self, other: "MariadbGtidPosition") -> bool:
        """Return whether everything up to here is at or before the other position."""
        return all(other.contains(gtid) for gtid in self._last.values())

    def __ge__(self, other: "MariadbGtidPosition") -> bool:
        """Return whether everything up to the other position is at or before this one."""
        return other <= self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MariadbGtidPosition) and self._last == other._last

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._last)

    def __iter__(self) -> Iterator[MariadbGtid]:
        """Yield the last GTIDs in the order of their domains."""
        return iter(self._last[domain] for domain in sorted(self._last))

    def __str__(self) -> str:
        if self._text is None:
            self._text = ",".join(map(str, self))
        return self._text

    def __repr__(self) -> str:
        return f"MariadbGtidPosition({str(self)!r})"
